"""Where a push on length comes from: answer by answer, when n of them share a divisor."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider
from rlnb.classroom.explorers.arguments import checked, echoing, one_of
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, POSITIVE

__all__ = ["its_own_divisor", "shared_divisor_explorer"]

MEANS = (5, 10, 20, 50, 100, 200)
SIZES = (1, 2, 4, 8, 16, 32, 64)
BINS = 20  # of a fifth of the mean length each, whole tokens: up to four times the mean
CAPTION = (
    "A bar: answers of that length, their chance times weight times slope of 'stop'. Blue: stop "
    "sooner, orange: go on. Black outline: the same under a constant, where both sides cancel. "
    "A right answer, A = 1."
)
NODES, AREAS = np.polynomial.legendre.leggauss(400)
NODES, AREAS = (NODES + 1) / 2, AREAS / 2  # on (0, 1)


@echoing
@checked(mean=one_of(MEANS), others=one_of(MEANS), n=one_of(SIZES))
def compute(mean: int = 10, others: int = 10, n: int = 1) -> dict[str, Any]:
    """An answer of this mean length shares a divisor with n - 1 of mean length `others`.

    Lengths are geometric. With N tokens in all a token weighs E[N] / N, so an average token weighs
    1. The weight in an answer of T is E[N] E[1 / (T + S)], with S the tokens of the others: an
    integral of x^(T-1) E[x^S] over x from 0 to 1, taken with 400 nodes.

    >>> [round(compute(10, 10, n)["push"], 3) for n in (1, 8, 32)]
    [1.558, 0.125, 0.029]
    """
    q, p = 1 / mean, 1 / others
    T = np.arange(1, 30 * mean + 1)
    chance = q * (1 - q) ** (T - 1)
    if n == 1:
        weight = mean / T
    else:
        rest = (p * NODES / (1 - (1 - p) * NODES)) ** (n - 1)
        tokens = mean + (n - 1) * others
        weight = tokens * (np.exp(np.outer(T - 1, np.log(NODES))) @ (AREAS * rest))
    fixed, terms = chance * (1 - q * T), chance * weight * (1 - q * T)
    bins = np.minimum((T - 1) * BINS // (4 * mean), BINS - 1)
    return {
        "mean": mean,
        "others": others,
        "n": n,
        "push": float(terms.sum()),
        "bars": np.bincount(bins, terms, BINS),
        "fixed": np.bincount(bins, fixed, BINS),
    }


def build(figure, data):
    axes = figure.add_axes((0.08, 0.17, 0.6, 0.79))
    axes.set(xlim=(0, 4), ylim=(-0.2, 0.95))
    axes.axhline(0, color=GREY, lw=0.8)
    axes.set_xlabel("length of the answer, in mean lengths", fontsize=10.5)
    axes.set_ylabel("part of the length bias", fontsize=10.5)
    axes.tick_params(labelsize=10.5)
    left = np.arange(BINS) * 4 / BINS
    bars = axes.bar(left, np.zeros(BINS), 4 / BINS, align="edge", ec="white", lw=0.5)
    (outline,) = axes.plot(np.repeat(np.arange(BINS + 1), 2)[1:-1] * 4 / BINS,
                           np.zeros(2 * BINS), color=BLACK, lw=1.4)  # fmt: skip
    above = figure.text(0.71, 0.78, "", fontsize=12, color=POSITIVE, weight="bold")
    below = figure.text(0.71, 0.66, "", fontsize=12, color=NEGATIVE, weight="bold")
    total = figure.text(0.71, 0.5, "", fontsize=14, weight="bold")
    gauge = figure.add_axes((0.93, 0.17, 0.06, 0.79))
    gauge.set(xlim=(0, 1), ylim=(0, 4.5), xticks=[], yticks=(0, 1, 2, 3, 4))
    gauge.tick_params(labelsize=10.5)
    gauge.set_xlabel("bias", fontsize=10.5)
    (level,) = gauge.bar([0.5], [0], 0.7, color=BLACK)
    axes.text(3.97, 0.02, "4 and more", ha="right", fontsize=10.5, color=GREY)
    cut = axes.text(0.25, 0.86, "", fontsize=10.5, color=POSITIVE)
    return {"bars": bars, "outline": outline, "cut": cut, "above": above, "below": below,
            "total": total, "level": level}  # fmt: skip


def update(artists, data):
    for bar, height in zip(artists["bars"], data["bars"], strict=True):
        bar.set_height(min(height, 0.95))
        bar.set_facecolor(POSITIVE if height > 0 else NEGATIVE)
    artists["outline"].set_ydata(np.repeat(data["fixed"], 2))
    tall = float(data["bars"][0])
    artists["cut"].set_text(f"this bar goes to {tall:.2f}" if tall > 0.95 else "")
    up, down = data["bars"][data["bars"] > 0].sum(), -data["bars"][data["bars"] < 0].sum()
    artists["above"].set_text(f"stop sooner: {up:.3f}")
    artists["below"].set_text(f"go on: {down:.3f}")
    artists["level"].set_height(data["push"])
    artists["total"].set_text(f"bias: {data['push']:.3f}")


def readout(data) -> str:
    n = data["n"]
    share = f"with {n - 1} of {data['others']}" if n > 1 else "alone: GRPO's 1/T"
    limit = f" 1/(n − 1) is {1 / (n - 1):.3f}." if n > 1 else ""
    return f"Mean length {data['mean']}, {share}: length bias {data['push']:.3f}.{limit}"


def alt(data) -> str:
    return (
        "Bars by length of an answer, blue where it pushes to stop sooner, orange where it pushes "
        f"to go on. {readout(data)}"
    )


def its_own_divisor(data) -> bool:
    """Eight or more share a divisor, and the bias is above 1 all the same."""
    return data["n"] >= 8 and data["push"] > 1


def shared_divisor_explorer() -> Explorer:
    """Mean length of an answer and of its neighbours, and how many share a divisor."""
    return Explorer(
        compute,
        build,
        update,
        {
            "mean": choice_slider(10, [(str(m), m) for m in MEANS], "mean length", "its own"),
            "others": choice_slider(
                10, [(str(m), m) for m in MEANS], "the others'", "mean length of its neighbours"
            ),
            "n": choice_slider(
                1, [(str(k), k) for k in SIZES], "answers that share", "1 is GRPO's own length"
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 300),
    )
