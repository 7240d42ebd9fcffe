"""One right token, one batch, many updates: where four rules leave it."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import at_least, between, checked, inside
from rlnb.classroom.figures import GREY
from rlnb.classroom.pictures.soft_edges import LOOKS, weights

NAMES = ("PPO", "CISPO", "SAPO", "DPPO")
STARTS = (0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 0.95)
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0)
MOST = 30
CAPTION = (
    "The token's probability, update by update, on one batch. The advantage is +1 throughout; an "
    "update adds rate × w × (1 − p) to its logit."
)


@checked(start=inside(0, 1), rate=at_least(0), updates=between(1, MOST))
def compute(start: float = 0.01, rate: float = 0.1, updates: int = 8) -> dict[str, Any]:
    """Probability of one right token after each update under four rules, (updates + 1,) each.

    start in (0, 1): probability when sampled; rate: the step on its logit; updates: 1 to 30.
    Returns path (method -> list), end (method -> number), and the arguments.

    >>> {name: round(p, 3) for name, p in compute(0.01, 0.2, 8)["end"].items()}
    {'PPO': 0.012, 'CISPO': 0.427, 'SAPO': 0.051, 'DPPO': 0.646}
    """
    path = {}
    for name in NAMES:
        logit, p = np.log(start / (1 - start)), start
        path[name] = [start]
        for _ in range(updates):
            logit += rate * float(weights(np.array(p / start), 1, start)[name]) * (1 - p)
            p = float(1 / (1 + np.exp(-logit)))
            path[name].append(p)
    end = {name: steps[-1] for name, steps in path.items()}
    return {"start": start, "rate": rate, "updates": updates, "path": path, "end": end}


def build(figure, data):
    axes = figure.add_axes((0.08, 0.2, 0.62, 0.75))
    axes.set(xlim=(-0.2, MOST + 0.3), yscale="log", ylim=(0.0008, 1.3))
    axes.set_yticks((0.001, 0.01, 0.1, 1), ("0.001", "0.01", "0.1", "1"))
    axes.minorticks_off()
    axes.set_xlabel("updates with the one batch", fontsize=11)
    axes.set_ylabel("its probability (log scale)", fontsize=11)
    axes.tick_params(labelsize=10.5)
    artists = {"start": axes.axhline(1, color=GREY, lw=1, ls=":")}
    for k, name in enumerate(NAMES):
        color, line = LOOKS[name]
        wide = 7.5 - 1.8 * k  # where lines coincide, all are seen
        artists["path", name] = axes.plot(
            [], [], color=color, ls=line, lw=wide, marker="o", ms=wide + 2
        )[0]
        y = 0.74 - 0.15 * k
        figure.add_artist(
            Line2D([0.73, 0.78], [y, y], color=color, ls=line, lw=2.8, transform=figure.transFigure)
        )
        artists["text", name] = figure.text(0.79, y, "", fontsize=12, va="center", weight="bold")
    return artists


def update(artists, data):
    artists["start"].set_ydata([data["start"]] * 2)
    for name in NAMES:
        path = data["path"][name]
        artists["path", name].set_data(np.arange(len(path)), path)
        artists["text", name].set_text(f"{name}  {data['end'][name]:.4f}")


def readout(data) -> str:
    listed = ", ".join(f"{name} {data['end'][name]:.4f}" for name in NAMES)
    return (
        f"Started at {data['start']:g}, {data['updates']} updates at rate {data['rate']:g}: "
        f"{listed}."
    )


def alt(data) -> str:
    return f"Probability of one right token over the updates, four rules. {readout(data)}"


def dppo_lands(data) -> bool:
    """DPPO has taken a token from 0.01 past its edge, stopped, and is still below 0.25."""
    path = data["path"]["DPPO"]
    return data["start"] == 0.01 and path[-1] == path[-2] and 0.16 < path[-1] < 0.25


def cispo_ahead(data) -> bool:
    """From 0.01 at rate 0.2 CISPO leaves the token at least 0.1 above DPPO."""
    here = data["start"] == 0.01 and data["rate"] == 0.2
    return here and data["end"]["CISPO"] - data["end"]["DPPO"] >= 0.1


def many_updates_explorer() -> Explorer:
    """Where the token starts, the learning rate, and the number of updates."""
    return Explorer(
        compute,
        build,
        update,
        {
            "start": choice_slider(
                0.01,
                [(f"{p:g}", p) for p in STARTS],
                "started at",
                "the token's probability when it was sampled",
            ),
            "rate": choice_slider(
                0.1,
                [(f"{r:g}", r) for r in RATES],
                "rate",
                "the learning rate, on the token's logit",
            ),
            "updates": slider(8, 1, MOST, 1, "updates", "with the one batch"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 300),
    )
