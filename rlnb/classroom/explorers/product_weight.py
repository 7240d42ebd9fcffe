"""The weight w of a whole answer: what a batch holds, what the means of w and w² are made of."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.figures import BLACK, BLUE, GREY, ORANGE

HALF_WIDTHS = (1, 2, 4, 8, 16, 32)  # of the axis, in powers of ten
BINS = 72
BATCH = 1000
BATCHES = 51  # "a typical batch" is the middle one of these
CAPTION = (
    "Orange: how often an answer of that weight is written. Black: how much of the mean of w such "
    "answers supply; blue, of the mean of w². Each is drawn to its own peak. A typical batch is "
    "the middle one of 51."
)


@cache
def _dice() -> np.ndarray:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(BATCHES, BATCH, generator=generator, dtype=torch.float64).numpy()


def compute(length: int = 20, spread: float = 0.2) -> dict[str, Any]:
    """Weights of answers whose `length` token ratios are 1 + spread or 1 - spread, even odds.

    Exact, by counting the ups. Returns written, carried and squared (72,), the shares of answers,
    of the mean of w and of the mean of w² per interval of the weight; edges (73,), the log10 of its
    ends; half_width of the axis, in powers of ten; edge, log10 of the weight that one answer in
    1,000 exceeds, about; beyond and beyond_squared, the shares of the two means above it; median;
    ess of 1,000 answers; and the arguments.

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
    squares = np.exp(log_chance + 2 * log_weight - length * math.log1p(spread**2))
    # each weight stands for the interval around it: no notches where bins and weights interfere
    step = math.log((1 + spread) / (1 - spread)) / math.log(10)
    places = np.append(
        log_weight / math.log(10) - step / 2, log_weight[-1] / math.log(10) + step / 2
    )
    written, carried, squared = (np.append(0, x.cumsum()) for x in (chance, carries, squares))
    wide = abs(float(squares @ log_weight)) + 3.0 * math.sqrt(length) * step / 2 * math.log(10)
    half_width = next((w for w in HALF_WIDTHS if wide < w * math.log(10)), HALF_WIDTHS[-1])
    edges = np.linspace(-half_width, half_width, BINS + 1)
    edge = float(np.interp(1 - 1 / BATCH, written, places))
    drawn = log_weight[np.minimum(np.searchsorted(chance.cumsum(), _dice()), length)]
    weight = np.exp(drawn - drawn.max(1, keepdims=True))
    reported = float(np.median(weight.sum(1) ** 2 / (weight**2).sum(1)))
    return {
        "written": np.diff(np.interp(edges, places, written)),
        "carried": np.diff(np.interp(edges, places, carried)),
        "squared": np.diff(np.interp(edges, places, squared)),
        "edges": edges,
        "half_width": half_width,
        "edge": edge,
        "beyond": float(1 - np.interp(edge, places, carried)),
        "beyond_squared": float(1 - np.interp(edge, places, squared)),
        "median": float(np.exp(log_weight[int((chance.cumsum() < 0.5 - 1e-12).sum())])),
        "ess": BATCH / (1 + spread**2) ** length,
        "reported": reported,
        "length": length,
        "spread": spread,
    }


def build(figure, data):
    axes = figure.add_axes((0.07, 0.2, 0.91, 0.77))
    axes.set(xlim=(-1, 1), ylim=(0, 1.8), yticks=())
    axes.tick_params(labelsize=11)
    axes.set_xlabel("weight w of an answer, the product of its token ratios", fontsize=10.5)
    axes.set_ylabel("share, each to its peak", fontsize=10.5)
    zero, edges = np.zeros(BINS), np.linspace(-1, 1, BINS + 1)
    for y, color, text in (
        (0.97, ORANGE, "orange: what is written"),
        (0.88, BLACK, "black: what the mean of w is made of"),
        (0.79, BLUE, "blue: what the mean of w² is made of"),
    ):
        axes.text(0.99, y, text, color=color, fontsize=11, va="top", ha="right", **_axes(axes))
    return {
        "written": axes.stairs(zero, edges, fill=True, color=ORANGE, alpha=0.75),
        "carried": axes.stairs(zero, edges, color=BLACK, lw=2.6),
        "squared": axes.stairs(zero, edges, color=BLUE, lw=2.4, ls=(0, (2, 1))),
        "edge": axes.axvline(0, color=GREY, ls="--", lw=1.8, ymax=0.57),
        "name": axes.text(0, 1.04, "", fontsize=10.5, va="bottom"),
        "ess": axes.text(0.01, 0.97, "", fontsize=12, weight="bold", va="top", **_axes(axes)),
        "axis": axes.xaxis,
    }


def _axes(axes) -> dict[str, Any]:
    return {"transform": axes.transAxes}


def update(artists, data):
    for name in ("written", "carried", "squared"):
        artists[name].set_data(data[name] / data[name].max(), data["edges"])
    axes, half_width = artists["edge"].axes, data["half_width"]
    axes.set_xlim(-half_width, half_width)
    ticks = [half_width * k / 4 for k in (-4, -3, -2, -1, 0, 1, 2, 3, 4)]
    axes.set_xticks(ticks, [_power(t) for t in ticks])
    artists["edge"].set_xdata([data["edge"], data["edge"]])
    artists["name"].set_ha("right")
    artists["name"].set_position((data["edge"] - half_width / 80, 1.04))
    artists["name"].set_text(
        f"beyond this line: 1 answer in 1,000,\n{data['beyond']:.0%} of the mean of w, "
        f"{data['beyond_squared']:.0%} of that of w²"
    )
    artists["ess"].set_text(
        f"large-batch formula: {_effective(data)} of 1,000\n"
        f"a typical batch reports: {data['reported']:.0f}\n"
        f"median weight: {_small(data['median'])}"
    )


def _effective(data) -> str:
    if data["ess"] < 1:
        return "less than one"
    return f"{data['ess']:.0f}"


def _power(exponent: float) -> str:
    """A tick: 1, a power of ten, or 0.56 between them."""
    if exponent == round(exponent):
        return f"$10^{{{exponent:.0f}}}$" if exponent else "1"
    return f"{10**exponent:.2g}"


def _small(x: float) -> str:
    return f"{x:.2f}" if x >= 0.01 else f"{x:.1e}"


def readout(data) -> str:
    return (
        f"{data['length']} tokens, ratios 1 ± {data['spread']:.3f}. Of 1,000 answers the formula "
        f"leaves {_effective(data)}; a typical batch reports {data['reported']:.0f}."
    )


def alt(data) -> str:
    return (
        f"Weights of answers on a log axis. {readout(data)} The heaviest answer in 1,000 and those "
        f"beyond it make up {data['beyond']:.1%} of the mean of w and "
        f"{data['beyond_squared']:.1%} of the mean of w²."
    )


def reports_sixty(data) -> bool:
    """At 20 % a token, answers so long that a typical batch reports about 60 of 1,000: 50 to 70."""
    return data["spread"] == 0.2 and 50 <= data["reported"] <= 70


def half_of_long_answers(data) -> bool:
    """800 tokens or more, moved so little that the large-batch formula leaves half: 450 to 550."""
    return data["length"] >= 800 and 450 <= data["ess"] <= 550


def product_weight_explorer() -> Explorer:
    """How long the answers are, and how far each token's ratio is from 1."""
    spread = slider(0.2, 0.005, 0.2, 0.005, "ratio 1 ±", "how far each token moved")
    spread.readout_format = ".3f"
    return Explorer(
        compute,
        build,
        update,
        {"length": slider(20, 1, 1000, 1, "tokens T", "length of every answer"), "spread": spread},
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 310),
    )
