"""One token that goes with failure or success: the push on it, by who wrote it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import between, checked
from rlnb.classroom.figures import BLACK, GREY, ORANGE, signed
from rlnb.toys.turns import author_path

STEPS = 1000
CAPTION = (
    "log π(token) along 1,000 expected updates of its logit, learning rate 1. Both start where "
    "the world's share is. The scale follows the lower curve."
)


@checked(share=between(0.05, 0.95), gap=between(-1, 1))
def compute(share: float = 0.3, gap: float = 1.0) -> dict[str, Any]:
    """Paths of log pi(error), 1,001 numbers each: written by the policy, and by the world.

    share: how often the world writes the token, and the policy's first belief. gap: reward without
    it minus reward with it; below 0 the token goes with success.

    >>> [round(float(compute()[who][-1]), 1) for who in ("policy", "world")]
    [-6.9, -210.8]
    """
    return {
        "share": share,
        "gap": gap,
        **{
            who: np.array(author_path(who, share, gap=gap, steps=STEPS))
            for who in ("policy", "world")
        },
    }


def build(figure, data):
    axes = figure.add_axes((0.1, 0.17, 0.6, 0.78))
    axes.set(xlim=(0, STEPS), ylim=(-1, 0))
    axes.tick_params(labelsize=10.5)
    axes.set_xlabel("updates", fontsize=10.5)
    axes.set_ylabel("log π(token)", fontsize=10.5)
    artists = {"axes": axes}  # the scale follows the lower curve
    for k, (who, color, line) in enumerate((("policy", BLACK, "-"), ("world", ORANGE, "--"))):
        (artists[who],) = axes.plot([], [], color=color, ls=line, lw=2.8)
        y = 0.84 - 0.34 * k
        figure.text(0.73, y, ("the policy wrote it", "the world wrote it")[k], fontsize=11,
                    weight="bold")  # fmt: skip
        figure.add_artist(Line2D([0.73, 0.81], [y - 0.04] * 2, color=color, ls=line, lw=2.8))
        artists[who, "end"] = figure.text(0.73, y - 0.13, "", fontsize=11, color=GREY)
    return artists


def update(artists, data):
    lowest = min(float(data[who].min()) for who in ("policy", "world"))
    artists["axes"].set_ylim(1.06 * min(lowest, -1), 0)
    for who in ("policy", "world"):
        artists[who].set_data(np.arange(STEPS + 1), data[who])
        artists[who, "end"].set_text(f"after 1,000: {signed(float(data[who][-1]), 1)}")


def readout(data) -> str:
    q, gap = data["share"], data["gap"]
    policy, world = (float(data[who][-1]) for who in ("policy", "world"))
    value = f"costs {gap:.2f}" if gap >= 0 else f"earns {-gap:.2f}"
    return (
        f"In {q:.0%}, {value}: first push on both {signed(-gap * q * (1 - q), 4)}. In the end "
        f"log π: policy {signed(policy, 1)}, world {signed(world, 1)} (chance "
        f"{math.exp(world):.2f})."
    )


def alt(data) -> str:
    return f"Two curves of log π of one token over 1,000 updates. {readout(data)}"


def driven_furthest(data) -> bool:
    """The token costs 1, and comes half the time: no other share drives the world's lower."""
    return data["gap"] > 0.99 and abs(data["share"] - 0.5) < 0.01


def cheap_and_driven(data) -> bool:
    """The token costs 0.05 at most, and the world's ends 8 nats below the policy's own."""
    apart = float(data["policy"][-1]) - float(data["world"][-1])
    return 0 < data["gap"] < 0.051 and apart >= 8


def two_authors_explorer() -> Explorer:
    """How often the token comes, and what it costs; below 0 it goes with success."""
    return Explorer(
        compute,
        build,
        update,
        {
            "share": slider(0.3, 0.05, 0.95, 0.05, "how often it comes",
                            "share of all trajectories"),
            "gap": slider(1.0, -1.0, 1.0, 0.05, "what it costs",
                          "reward without it minus reward with it"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 300),
    )  # fmt: skip
