"""Two ways to get better, cooling and new skill, and what pass@k says of each.

Two hundred problems with forty possible answers each, one of them right. Ten problems are out of
the base's reach. Cooling multiplies all logits by 1/T; new skill lifts the right answer's logit, on
the problems where it was least likely.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing
from rlnb.classroom.figures import BLACK, GREY, ORANGE

__all__ = [
    "KS", "ahead_with_losses", "alt", "build", "compute", "learned_and_behind", "readout",
    "sharpen_or_learn_explorer", "update",
]  # fmt: skip

PROBLEMS, CHOICES, SKILL = 200, 40, 4.0
OUT_OF_REACH, UNKNOWN = 10, -7.0  # so many problems, with this logit of the right answer
KS = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
CAPTION = (
    "Left: the chance that at least one of k answers is right, mean over 200 problems. "
    "Right: every problem, before and after; above the line it got easier."
)


@cache
def _logits() -> np.ndarray:
    """(problems, choices), the right answer first; hardest problem first."""
    dice = np.random.default_rng(5)
    z = dice.normal(size=(PROBLEMS, CHOICES))
    z[:, 0] = 2.5 + 1.7 * dice.normal(size=PROBLEMS)
    z[dice.permutation(PROBLEMS)[:OUT_OF_REACH], 0] = UNKNOWN
    return z[np.argsort(_right(z))]


def _right(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(1, keepdims=True))
    return e[:, 0] / e.sum(1)


def _curve(p: np.ndarray) -> np.ndarray:
    return np.array([(1 - (1 - p) ** k).mean() for k in KS])


@echoing
@checked(power=between(1, 4), skill=between(0, 100))
def compute(power: float = 1.0, skill: int = 0) -> dict[str, Any]:
    """pass@k of the base and of what became of it; skill: % of the problems, hardest first.

    Returns base and now (9,), pass@k at KS; before and after (200,), chances of a right answer;
    crossing, the first k of KS at which the base is ahead again (None: nowhere); lost, by how much
    it is ahead at most, and worst, at which k; learned, how many of the ten out of reach are now
    right more often than not; halved, how many problems have half of their chance or less.

    >>> compute()["base"].round(2).tolist()[::4]
    [0.22, 0.74, 0.94]
    """
    z = _logits().copy()
    before = _right(z)
    hardest = z[: PROBLEMS * skill // 100]
    hardest[:, 0] = np.maximum(hardest[:, 0], SKILL)
    after = _right(power * z)
    base, now = _curve(before), _curve(after)
    behind = KS[now < base - 1e-9]
    unknown = before < before[OUT_OF_REACH]
    return {
        "power": power, "skill": skill, "base": base, "now": now, "before": before,
        "after": after, "crossing": int(behind[0]) if len(behind) else None,
        "lost": max(0.0, float((base - now).max())), "worst": int(KS[(base - now).argmax()]),
        "learned": int((after[unknown] > 0.5).sum()), "halved": int((after <= before / 2).sum()),
    }  # fmt: skip


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    axes = figure.add_axes((0.075, 0.17, 0.51, 0.75))
    axes.set(xlim=(-0.15, 8.15), ylim=(0, 1.03), xticks=range(9), yticks=np.arange(0, 1.1, 0.25))
    axes.set_xticklabels(KS, fontsize=10.5)
    axes.tick_params(labelsize=10.5)
    axes.set_xlabel("k, answers to each problem", fontsize=10.5, labelpad=1)
    axes.set_ylabel("pass@k", fontsize=10.5)
    axes.plot(range(9), data["base"], "o-", color=BLACK, ms=5)
    axes.text(0.03, 0.93, "before", color=BLACK, fontsize=11, transform=axes.transAxes)
    axes.text(0.03, 0.85, "after", color=ORANGE, fontsize=11, weight="bold",
              transform=axes.transAxes)  # fmt: skip
    each = figure.add_axes((0.67, 0.17, 0.31, 0.75))
    each.set(xscale="log", yscale="log", xlim=(3e-6, 1.3), ylim=(1e-6, 2))
    each.tick_params(labelsize=10.5)
    each.set_xticks([1e-4, 1e-2, 1], ["0.0001", "0.01", "1"])
    each.set_yticks([1e-6, 1e-4, 1e-2, 1], ["10⁻⁶", "0.0001", "0.01", "1"])
    each.minorticks_off()
    each.set_xlabel("chance to be right, before", fontsize=10.5, labelpad=1)
    each.set_title("after", fontsize=10.5, loc="left")
    each.plot([1e-6, 1], [1e-6, 1], color=GREY, lw=1, ls="--")
    return {
        "now": axes.plot(range(9), data["now"], "s--", color=ORANGE, ms=5)[0],
        "dots": each.plot(data["before"], data["after"], "o", color=ORANGE, ms=3, alpha=0.7)[0],
    }


def update(artists, data):
    """The figure moved to new data."""
    artists["now"].set_ydata(data["now"])
    artists["dots"].set_ydata(np.clip(data["after"], 1.3e-6, None))


def readout(data) -> str:
    """The numbers that change, as a sentence."""
    gain = data["now"] - data["base"]
    said = (
        f"pass@1 {gain[0]:+.2f}. Learned: {data['learned']} of {OUT_OF_REACH}. "
        f"Halved: {data['halved']} problems"
    )
    where = data["crossing"]
    return f"{said}. " + (
        f"The base is ahead from k = {where}, most at {data['worst']}: {data['lost']:.2f}."
        if where
        else "The base is ahead nowhere."
    )


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    return (
        f"pass@k before and after, cooling to T = 1/{data['power']:.1f}, new skill on "
        f"{data['skill']} % of the problems. {readout(data)}"
    )


def learned_and_behind(data) -> bool:
    """All that was out of reach is learned, and yet the base is ahead by 0.05 somewhere."""
    return data["learned"] == OUT_OF_REACH and data["lost"] >= 0.05


def ahead_with_losses(data) -> bool:
    """The base is ahead at no k, and yet 15 problems have half of their chance or less."""
    return data["crossing"] is None and data["halved"] >= 15


def sharpen_or_learn_explorer() -> Explorer:
    """How much cooler, and on how many problems something new."""
    return Explorer(
        compute,
        build,
        update,
        {
            "power": slider(1.0, 1.0, 4.0, 0.1, "cooling, 1/T", "all logits times this"),
            "skill": slider(0, 0, 100, 5, "new skill, %", "of the problems, hardest first"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 310),
    )
