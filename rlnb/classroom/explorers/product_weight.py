"""The weight of a whole answer: what a batch holds of it, and what its mean is made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider
from rlnb.classroom.figures import BLACK, GREY, ORANGE

LENGTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SPREADS = (0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2)
EDGES = np.arange(-18.25, 18.3, 0.5)
BATCH = 1000
CAPTION = (
    "Orange: how often an answer of that weight is written. Black: how much of the mean weight, 1, "
    "such answers supply. Each is drawn to its own peak."
)


def compute(length: int = 20, spread: float = 0.2) -> dict[str, Any]:
    """Weights of answers whose `length` token ratios are 1 + spread or 1 - spread, even odds.

    Exact, by counting the ups. Returns written and carried (73,), shares per half decade of the
    weight; edge, log10 of the weight that one answer in 1,000 exceeds, about; beyond, the share of
    the mean above it; median; ess of 1,000 answers; and the arguments.

    >>> d = compute(1000, 0.2)
    >>> f"{d['median']:.1e}", round(compute(100, 0.2)["ess"], 1)
    ('1.4e-09', 19.8)
    """
    up = np.arange(length + 1)
    log_chance = np.array(
        [math.lgamma(length + 1) - math.lgamma(k + 1) - math.lgamma(length - k + 1) for k in up]
    ) - length * math.log(2)
    log_weight = up * math.log(1 + spread) + (length - up) * math.log(1 - spread)
    chance = np.exp(log_chance)
    carries = np.exp(log_chance + log_weight)
    # each weight stands for the interval around it: no notches where bins and weights interfere
    step = math.log((1 + spread) / (1 - spread)) / math.log(10)
    places = np.append(
        log_weight / math.log(10) - step / 2, log_weight[-1] / math.log(10) + step / 2
    )
    written, carried = (np.append(0, x.cumsum()) for x in (chance, carries))
    edge = float(np.interp(1 - 1 / BATCH, written, places))
    return {
        "written": np.diff(np.interp(EDGES, places, written)),
        "carried": np.diff(np.interp(EDGES, places, carried)),
        "edge": edge,
        "beyond": float(1 - np.interp(edge, places, carried)),
        "median": float(np.exp(log_weight[int((chance.cumsum() < 0.5 - 1e-12).sum())])),
        "ess": BATCH / (1 + spread**2) ** length,
        "length": length,
        "spread": spread,
    }


def build(figure, data):
    axes = figure.add_axes((0.07, 0.19, 0.91, 0.77))
    axes.set(xlim=(-16, 16), ylim=(0, 1.5), yticks=())
    ticks = (-15, -10, -5, 0, 5, 10, 15)
    axes.set_xticks(ticks, [f"$10^{{{t}}}$" if t else "1" for t in ticks])
    axes.tick_params(labelsize=11)
    axes.set_xlabel("weight of an answer, the product of its token ratios", fontsize=10.5)
    axes.set_ylabel("share, each to its peak", fontsize=10.5)
    zero = np.zeros(len(EDGES) - 1)
    return {
        "written": axes.stairs(zero, EDGES, fill=True, color=ORANGE, alpha=0.75),
        "carried": axes.stairs(zero, EDGES, color=BLACK, lw=2.6),
        "edge": axes.axvline(0, color=GREY, ls="--", lw=1.8, ymax=0.68),
        "name": axes.text(0, 1.05, "", fontsize=10.5, va="bottom"),
        "ess": axes.text(-15.7, 1.42, "", fontsize=12, weight="bold", va="top"),
        "half": axes.text(15.7, 1.42, "", fontsize=12, weight="bold", va="top", ha="right"),
    }


def update(artists, data):
    for name in ("written", "carried"):
        artists[name].set_data(data[name] / data[name].max())
    artists["edge"].set_xdata([data["edge"], data["edge"]])
    artists["name"].set_position((data["edge"] + 0.2, 1.05))
    artists["name"].set_text(
        f"1 answer in 1,000 lies beyond this line,\nand {data['beyond']:.1%} of the mean"
    )
    artists["ess"].set_text(f"1,000 answers are worth {_worth(data)}")
    artists["half"].set_text(f"median weight {_small(data['median'])}")


def _worth(data) -> str:
    if data["ess"] < 1:
        return "less than one"
    return f"{data['ess']:.0f}"


def _small(x: float) -> str:
    return f"{x:.2f}" if x >= 0.01 else f"{x:.1e}"


def readout(data) -> str:
    return (
        f"{data['length']} tokens, each ratio 1 ± {data['spread']:.2f}: 1,000 answers are worth "
        f"{_worth(data)}; median weight {_small(data['median'])}."
    )


def alt(data) -> str:
    return (
        f"Weights of answers on a log axis. {readout(data)} {data['beyond']:.1%} of the mean lies "
        "beyond the weight that one answer in 1,000 exceeds."
    )


def worth_less_than_one(data) -> bool:
    """At 20 % a token, the shortest answers of the list of which 1,000 are worth less than one."""
    return data["spread"] == 0.2 and data["length"] == 200


def long_and_alive(data) -> bool:
    """1,000 tokens, and half of the samples are left."""
    return data["length"] == 1000 and data["ess"] >= 500


def product_weight_explorer() -> Explorer:
    """How long the answers are, and how far each token's ratio is from 1."""
    return Explorer(
        compute,
        build,
        update,
        {
            "length": choice_slider(
                20, [(f"{T:,}", T) for T in LENGTHS], "tokens T", "length of every answer"
            ),
            "spread": choice_slider(
                0.2,
                [(f"± {s:.2f}", s) for s in SPREADS],
                "token ratio 1 ±",
                "how far a token moved",
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 320),
    )
