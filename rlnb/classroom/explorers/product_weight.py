"""The weight of a whole answer: what a batch holds of it, and what its mean is made of."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.figures import BLACK, GREY, ORANGE

HALF_WIDTHS = (1, 2, 4, 8, 16)  # of the axis, in powers of ten
BINS = 72
BATCH = 1000
BATCHES = 51  # "a typical batch" is the middle one of these
CAPTION = (
    "Orange: how often an answer of that weight is written. Black: how much of the mean weight, 1, "
    "such answers supply. Each is drawn to its own peak. A typical batch is the middle one of 51."
)


@cache
def _dice() -> np.ndarray:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(BATCHES, BATCH, generator=generator, dtype=torch.float64).numpy()


def compute(length: int = 20, spread: float = 0.2) -> dict[str, Any]:
    """Weights of answers whose `length` token ratios are 1 + spread or 1 - spread, even odds.

    Exact, by counting the ups. Returns written and carried (72,), shares per interval of the
    weight, and edges (73,), the log10 of its ends; half_width of the axis, in powers of ten; edge,
    log10 of the weight that one answer in 1,000 exceeds, about; beyond, the share of the mean above
    it; median; ess of 1,000 answers; and the arguments.

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
    wide = abs(float(chance @ log_weight)) + 3.5 * math.sqrt(length) * step / 2 * math.log(10)
    half_width = next((w for w in HALF_WIDTHS if wide < w * math.log(10)), HALF_WIDTHS[-1])
    edges = np.linspace(-half_width, half_width, BINS + 1)
    edge = float(np.interp(1 - 1 / BATCH, written, places))
    drawn = log_weight[np.minimum(np.searchsorted(chance.cumsum(), _dice()), length)]
    weight = np.exp(drawn - drawn.max(1, keepdims=True))
    reported = float(np.median(weight.sum(1) ** 2 / (weight**2).sum(1)))
    return {
        "written": np.diff(np.interp(edges, places, written)),
        "carried": np.diff(np.interp(edges, places, carried)),
        "edges": edges,
        "half_width": half_width,
        "edge": edge,
        "beyond": float(1 - np.interp(edge, places, carried)),
        "median": float(np.exp(log_weight[int((chance.cumsum() < 0.5 - 1e-12).sum())])),
        "ess": BATCH / (1 + spread**2) ** length,
        "reported": reported,
        "length": length,
        "spread": spread,
    }


def build(figure, data):
    axes = figure.add_axes((0.07, 0.19, 0.91, 0.77))
    axes.set(xlim=(-1, 1), ylim=(0, 1.7), yticks=())
    axes.tick_params(labelsize=11)
    axes.set_xlabel("weight of an answer, the product of its token ratios", fontsize=10.5)
    axes.set_ylabel("share, each to its peak", fontsize=10.5)
    zero, edges = np.zeros(BINS), np.linspace(-1, 1, BINS + 1)
    return {
        "written": axes.stairs(zero, edges, fill=True, color=ORANGE, alpha=0.75),
        "carried": axes.stairs(zero, edges, color=BLACK, lw=2.6),
        "edge": axes.axvline(0, color=GREY, ls="--", lw=1.8, ymax=0.6),
        "name": axes.text(0, 1.05, "", fontsize=10.5, va="bottom"),
        "ess": axes.text(
            0.01, 0.95, "", transform=axes.transAxes, fontsize=12, weight="bold", va="top"
        ),
        "axis": axes.xaxis,
        "half": axes.text(
            0.99,
            0.95,
            "",
            transform=axes.transAxes,
            fontsize=12,
            weight="bold",
            va="top",
            ha="right",
        ),
    }


def update(artists, data):
    for name in ("written", "carried"):
        artists[name].set_data(data[name] / data[name].max(), data["edges"])
    axes, half_width = artists["edge"].axes, data["half_width"]
    axes.set_xlim(-half_width, half_width)
    ticks = [half_width * k / 4 for k in (-4, -3, -2, -1, 0, 1, 2, 3, 4)]
    axes.set_xticks(ticks, [_power(t) for t in ticks])
    artists["edge"].set_xdata([data["edge"], data["edge"]])
    side = -1 if data["edge"] > 0.3 * half_width else 1
    artists["name"].set_ha("right" if side < 0 else "left")
    artists["name"].set_position((data["edge"] + side * half_width / 80, 1.05))
    artists["name"].set_text(
        f"beyond this line lie 1 answer in 1,000\nand {data['beyond']:.1%} of the mean weight"
    )
    artists["ess"].set_text(
        f"large-batch formula: {_effective(data)} of 1,000\n"
        f"a typical batch reports: {data['reported']:.0f}"
    )
    artists["half"].set_text(f"median weight {_small(data['median'])}")


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
        f"{data['length']} tokens, each ratio 1 ± {data['spread']:.3f}. Of 1,000 answers the "
        f"large-batch formula leaves {_effective(data)}; a typical batch reports "
        f"{data['reported']:.0f}."
    )


def alt(data) -> str:
    return (
        f"Weights of answers on a log axis. {readout(data)} {data['beyond']:.1%} of the mean lies "
        "beyond the weight that one answer in 1,000 exceeds."
    )


def less_than_one(data) -> bool:
    """At 20 % a token, the shortest answers of which 1,000 leave less than one, within 5 tokens."""
    return data["spread"] == 0.2 and 177 <= data["length"] <= 182


def as_many_at_ten_times(data) -> bool:
    """200 tokens, and about as many effective samples as at 20 tokens and 20 %: 456 of 1,000."""
    return data["length"] == 200 and 415 <= data["ess"] <= 500


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
        size=(900, 340),
    )
