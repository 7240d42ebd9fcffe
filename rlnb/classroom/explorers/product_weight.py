"""The weight w of a whole answer: how the old policy and today's policy spread over it, and what a
weighted mean is worth."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.figures import BLACK, GREY, ORANGE

HALF_WIDTHS = (1, 2, 4, 8, 16, 32)  # of the axis, in powers of ten
BINS = 72
BATCH = 1000
BATCHES = 1000  # "a typical batch" is the middle one of these
RARE = 1e-12  # answers less likely than that are not looked for among a million dice
CAPTION = (
    "Both humps are drawn equally high. Both numbers come from 1,000 batches of 1,000 answers of "
    "the old policy. Measured: the mean reward (share of heads), weighted and divided by Σw."
)


@cache
def _dice() -> np.ndarray:
    """Every batch's dice in ascending order, batch b between b and b + 1."""
    generator = torch.Generator().manual_seed(0)
    dice = torch.rand(BATCHES, BATCH, generator=generator, dtype=torch.float64).numpy()
    return (np.sort(dice, 1) + np.arange(BATCHES)[:, None]).ravel()


def _drawn(chance: np.ndarray) -> tuple[np.ndarray, slice]:
    """How many answers of each kind the batches hold, and which kinds were looked for."""
    likely = np.flatnonzero(chance > RARE)
    kinds = slice(likely[0], likely[-1] + 1)
    below = chance.cumsum()[kinds]
    below[-1] = 1.0
    found = np.searchsorted(_dice(), below + np.arange(BATCHES)[:, None])
    return np.diff(found - BATCH * np.arange(BATCHES)[:, None], prepend=0), kinds


def compute(length: int = 20, spread: float = 0.2) -> dict[str, Any]:
    """Weights of answers of `length` tosses: heads had chance 1/2, and today has (1 + spread)/2.

    So a toss has ratio 1 + spread or 1 - spread. Exact, by counting the heads. Returns old and
    today (72,), the shares of the two policies' answers per interval of the weight: today's is the
    old one's times w; edges (73,), the log10 of the intervals' ends; half_width of the axis, in
    powers of ten; edge, log10 of the weight that one old answer in 1,000 exceeds, about; beyond,
    the share of today's answers above it; beyond_squared, that of the mean of w²; median; ess, what
    the large-batch formula leaves of 1,000 answers; reported, the (sum w)² / (sum w²) of the middle
    one of 1,000 drawn batches; worth, how many fresh answers give the mean reward (the share of
    heads) with the mean squared error of those batches, weighted and divided by sum w; and the
    arguments.

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
    old, today, squared = (np.append(0, x.cumsum()) for x in (chance, carries, squares))
    wide = abs(float(squares @ log_weight)) + 3.0 * math.sqrt(length) * step / 2 * math.log(10)
    half_width = next((w for w in HALF_WIDTHS if wide < w * math.log(10)), HALF_WIDTHS[-1])
    edges = np.linspace(-half_width, half_width, BINS + 1)
    edge = float(np.interp(1 - 1 / BATCH, old, places))
    counts, kinds = _drawn(chance)
    log_drawn = np.where(counts > 0, log_weight[kinds], -np.inf)
    weight = np.exp(log_drawn - log_drawn.max(1, keepdims=True))
    total = (counts * weight).sum(1)
    reported = float(np.median(total**2 / (counts * weight**2).sum(1)))
    earns = (1 + spread) / 2
    error = (counts * weight) @ (up[kinds] / length) / total - earns
    return {
        "old": np.diff(np.interp(edges, places, old)),
        "today": np.diff(np.interp(edges, places, today)),
        "edges": edges,
        "half_width": half_width,
        "edge": edge,
        "beyond": float(1 - np.interp(edge, places, today)),
        "beyond_squared": float(1 - np.interp(edge, places, squared)),
        "median": float(np.exp(log_weight[int((chance.cumsum() < 0.5 - 1e-12).sum())])),
        "ess": BATCH / (1 + spread**2) ** length,
        "reported": reported,
        "worth": earns * (1 - earns) / length / float((error**2).mean()),
        "length": length,
        "spread": spread,
    }


def build(figure, data):
    axes = figure.add_axes((0.07, 0.2, 0.91, 0.77))
    axes.set(xlim=(-1, 1), ylim=(0, 1.8), yticks=())
    axes.tick_params(labelsize=11)
    axes.set_xlabel("weight w of an answer, the product of its token ratios", fontsize=10.5)
    axes.set_ylabel("share of the answers", fontsize=10.5)
    zero, edges = np.zeros(BINS), np.linspace(-1, 1, BINS + 1)
    for y, color, text in (
        (0.97, ORANGE, "orange: answers of the old policy"),
        (0.88, BLACK, "black: answers of today's policy"),
    ):
        axes.text(0.99, y, text, color=color, fontsize=11, va="top", ha="right", **_axes(axes))
    return {
        "old": axes.stairs(zero, edges, fill=True, color=ORANGE, alpha=0.75),
        "today": axes.stairs(zero, edges, color=BLACK, lw=2.6),
        "edge": axes.axvline(0, color=GREY, ls="--", lw=1.8, ymax=0.57),
        "name": axes.text(0, 1.04, "", fontsize=10.5, va="bottom"),
        "ess": axes.text(0.01, 0.97, "", fontsize=12, weight="bold", va="top", **_axes(axes)),
        "axis": axes.xaxis,
    }


def _axes(axes) -> dict[str, Any]:
    return {"transform": axes.transAxes}


def update(artists, data):
    for name in ("old", "today"):
        artists[name].set_data(data[name] / data[name].max(), data["edges"])
    axes, half_width = artists["edge"].axes, data["half_width"]
    axes.set_xlim(-half_width, half_width)
    ticks = [float(t) for t in range(-half_width, half_width + 1, max(1, half_width // 4))]
    axes.set_xticks(ticks, [_power(t) for t in ticks])
    artists["edge"].set_xdata([data["edge"], data["edge"]])
    artists["name"].set_ha("right")
    artists["name"].set_position((data["edge"] - half_width / 80, 1.04))
    artists["name"].set_text(
        f"beyond this line: 1 old answer in 1,000,\n{data['beyond']:.0%} of today's answers"
    )
    artists["ess"].set_text(
        f"ESS that a typical batch reports: {data['reported']:.0f} of 1,000\n"
        f"measured: {_fresh(data['worth'])}"
    )


def _fresh(answers: float) -> str:
    """Two digits: the mean squared error of 1,000 batches is known to some 5 per cent."""
    if answers < 1:
        return "less than one fresh answer"
    return f"as good as {float(f'{answers:.2g}'):,.0f} fresh answers"


def _power(exponent: float) -> str:
    """A tick: a short number, or a power of ten."""
    return f"{10**exponent:g}" if abs(exponent) <= 2 else f"$10^{{{exponent:.0f}}}$"


def readout(data) -> str:
    return (
        f"{data['length']} tosses, ratios 1 ± {data['spread']:.3f}: a batch reports an ESS of "
        f"{data['reported']:.0f}; measured: {_fresh(data['worth'])}."
    )


def alt(data) -> str:
    return (
        "Weights of answers on a log axis, under the old policy and under today's. "
        f"{readout(data)} The weight that one old answer in 1,000 exceeds is exceeded by "
        f"{data['beyond']:.1%} of today's answers."
    )


def reports_sixty(data) -> bool:
    """At 20 % a toss, answers so long that a typical batch reports about 60 of 1,000: 50 to 70."""
    return data["spread"] == 0.2 and 50 <= data["reported"] <= 70


def sixty_of_long_answers(data) -> bool:
    """850 tosses or more, moved so little that a typical batch reports about 60: 50 to 70."""
    return data["length"] >= 850 and 50 <= data["reported"] <= 70


def product_weight_explorer() -> Explorer:
    """How long the answers are, and how far each token's ratio is from 1."""
    spread = slider(0.2, 0.005, 0.2, 0.005, "ratio 1 ±", "how far each toss moved")
    spread.readout_format = ".3f"
    return Explorer(
        compute,
        build,
        update,
        {"length": slider(20, 1, 1000, 1, "tosses T", "length of every answer"), "spread": spread},
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 310),
    )
