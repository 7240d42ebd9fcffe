"""One token under four rules: what its weight is, by ratio and by probability moved."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from rlnb.classroom.explorer import Explorer, choice, choice_slider
from rlnb.classroom.explorers.arguments import checked, inside, one_of
from rlnb.classroom.figures import BLACK, GREY, PALE, signed
from rlnb.classroom.pictures.soft_edges import LOOKS, weights

NAMES = ("PPO", "CISPO", "SAPO", "DPPO")
OLD = (0.0001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.75, 0.8, 0.9, 0.99)
SEEN = (
    *(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.78, 0.82, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15),
    *(1.19, 1.25, 1.3, 1.4, 1.5, 1.75, 2.0, 2.5, 3.0, 3.25, 3.5, 3.75, 4.0, 4.5, 5.0, 5.5, 6.0),
    *(6.5,),
)
RATIOS = np.linspace(0.02, 7.0, 500)
CAPTION = (
    "The lines are the weight w over the ratio, the dots this token. In the hatched part its "
    "probability would be above 1."
)


@checked(old=inside(0, 1), ratio=inside(0, 8), sign=one_of(("good", "bad")))
def compute(old: float = 0.1, ratio: float = 1.0, sign: str = "good") -> dict[str, Any]:
    """Weight of one token under PPO 0.2, CISPO 5, SAPO 1 and 1.05, DPPO 0.15.

    old in (0, 1): probability when sampled; ratio in (0, 8): now over then; sign of the advantage,
    "good" or "bad". Returns at and curve (method -> weight), moved, possible, and the arguments.

    >>> {name: round(w, 2) for name, w in compute(0.1, 2.0)["at"].items()}
    {'PPO': 0.0, 'CISPO': 2.0, 'SAPO': 1.57, 'DPPO': 2.0}
    """
    s = 1 if sign == "good" else -1
    curve = weights(RATIOS, s, old)
    at = weights(np.array(ratio), s, old)
    return {
        "old": old,
        "ratio": ratio,
        "sign": sign,
        "moved": old * (ratio - 1),
        "possible": old * ratio <= 1 + 1e-12,
        "curve": {name: curve[name] for name in NAMES},
        "at": {name: float(at[name]) for name in NAMES},
    }


def build(figure, data):
    axes = figure.add_axes((0.07, 0.2, 0.63, 0.76))
    axes.set(xlim=(0, 7), ylim=(-0.2, 6.6), xticks=range(8), yticks=range(0, 7, 2))
    axes.set_xlabel("ratio ρ of the token", fontsize=11)
    axes.set_ylabel("weight w", fontsize=11)
    axes.tick_params(labelsize=10.5)
    artists = {
        "wall": axes.axvspan(6.9, 7, facecolor=PALE, hatch="//", edgecolor="#B5B5B5", lw=0),
        "cursor": axes.axvline(1, color=GREY, lw=1),
        "told": figure.text(0.73, 0.86, "", fontsize=11.5, weight="bold", va="center"),
    }
    for k, name in enumerate(NAMES):
        color, line = LOOKS[name]
        wide = 6 if name == "PPO" else 2.6  # the others lie on it inside the band
        artists["curve", name] = axes.plot(
            [], [], color=color, ls=line, lw=wide, solid_capstyle="butt", dash_capstyle="butt"
        )[0]
        artists["dot", name] = axes.plot([], [], "o", color=color, ms=13 - 2 * k, mec="white")[0]
        y = 0.64 - 0.14 * k
        figure.add_artist(_key(figure, y, color, line))
        artists["text", name] = figure.text(
            0.79, y, "", fontsize=12, va="center", weight="bold", color=BLACK
        )
    return artists


def _key(figure, y: float, color: str, line):
    return Line2D([0.73, 0.78], [y, y], color=color, ls=line, lw=2.8, transform=figure.transFigure)


def update(artists, data):
    edge = min(1 / data["old"], 7.0)
    artists["wall"].set_x(edge)
    artists["wall"].set_width(7.0 - edge)
    artists["cursor"].set_xdata([data["ratio"]] * 2)
    for name in NAMES:
        y = data["curve"][name].copy()
        y[1:][np.abs(np.diff(y)) > 0.3] = np.nan
        artists["curve", name].set_data(RATIOS, y)
        artists["dot", name].set_data([data["ratio"]], [data["at"][name]])
        weight = f"{data['at'][name]:.2f}" if data["possible"] else "–"
        artists["text", name].set_text(f"{name}  {weight}")
        artists["dot", name].set_visible(data["possible"])
    now = data["old"] * data["ratio"]
    artists["told"].set_text(
        f"{data['old']:g} → {now:.4g}\nmoved {signed(data['moved'], 4)}"
        if data["possible"]
        else "not possible:\nprobability above 1"
    )


def readout(data) -> str:
    if not data["possible"]:
        return f"ρ = {data['ratio']:.2f} from {data['old']:g}: not possible, it would be above 1."
    listed = ", ".join(f"{name} {data['at'][name]:.2f}" for name in NAMES)
    return (
        f"{data['sign']} token, {data['old']:g} → {data['old'] * data['ratio']:.4g}, "
        f"ρ = {data['ratio']:.2f}. Weights: {listed}."
    )


def alt(data) -> str:
    return f"Weight over the ratio under four rules. {readout(data)}"


def dppo_beyond_the_cap(data) -> bool:
    """PPO is done with it, and DPPO gives it more than CISPO's cap."""
    at = data["at"]
    return data["possible"] and at["PPO"] == 0 and at["DPPO"] > at["CISPO"]


def sapo_lets_go(data) -> bool:
    """Nobody is silent, and SAPO has less than a fifth of PPO's weight."""
    at = data["at"]
    return data["possible"] and min(at.values()) > 0 and at["SAPO"] < at["PPO"] / 5


def four_edges_explorer() -> Explorer:
    """Old probability, ratio, and the sign of the advantage."""
    return Explorer(
        compute,
        build,
        update,
        {
            "old": choice_slider(
                0.1,
                [(f"{p:g}", p) for p in OLD],
                "when sampled",
                "the token's probability when it was sampled",
            ),
            "ratio": choice_slider(
                1.0, [(f"{r:.2f}", r) for r in SEEN], "ratio ρ", "probability now over then"
            ),
            "sign": choice(
                "good",
                [("good, A > 0", "good"), ("bad, A < 0", "bad")],
                "the token",
                "was the answer better or worse than the mean?",
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 300),
    )
