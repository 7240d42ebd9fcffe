"""One token that costs reward: what a push does to it when the policy wrote it, and when not."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import between, checked
from rlnb.classroom.figures import BLACK, GREY, ORANGE, signed
from rlnb.toys.turns import author_path

STEPS = 1000
CAPTION = (
    "log π(error) along 1,000 expected updates of its logit, learning rate 1. Both start where "
    "the world's share is. The scale follows the lower curve."
)


@checked(share=between(0.05, 0.95), gap=between(0, 1))
def compute(share: float = 0.3, gap: float = 1.0) -> dict[str, Any]:
    """Paths of log pi(error), 1,001 numbers each: written by the policy, and by the world.

    share: how often the world writes `error`, and the policy's first belief. gap: reward after ok
    minus reward after error.

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
    axes.set_ylabel("log π(error)", fontsize=10.5)
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
    push = gap * q * (1 - q)
    return (
        f"Error in {q:.0%} of the trajectories, costs {gap:.2f}. First push "
        f"{signed(-push, 4)} on both; after 1,000 updates log π is "
        f"{signed(float(data['policy'][-1]), 1)} (policy) and "
        f"{signed(float(data['world'][-1]), 1)} (world)."
    )


def alt(data) -> str:
    return f"Two curves of log π of the token error over 1,000 updates. {readout(data)}"


def driven_furthest(data) -> bool:
    """An error costs 1, and comes half the time: no other share drives the world's token lower."""
    return data["gap"] > 0.99 and abs(data["share"] - 0.5) < 0.01


def policy_ends_lower(data) -> bool:
    """The policy's own token ends lower than the world's."""
    return float(data["policy"][-1]) < float(data["world"][-1]) - 1e-9


def two_authors_explorer() -> Explorer:
    """How often the world errs, and what an error costs."""
    return Explorer(
        compute,
        build,
        update,
        {
            "share": slider(0.3, 0.05, 0.95, 0.05, "share of errors", "of all trajectories"),
            "gap": slider(0.0, 0.0, 1.0, 0.05, "cost of an error",
                          "reward after ok minus reward after error"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 300),
    )  # fmt: skip
