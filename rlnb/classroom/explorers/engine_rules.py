"""Sixty policies learn from another engine: which correction leaves some of them behind?"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider
from rlnb.classroom.explorers.arguments import between, checked, one_of
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, POSITIVE, WINE
from rlnb.toys.two_engines import ONE_BACK, Run, train

DRAWS, STEPS, LOW = 60, 60, 0.8
FLIPS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3)
CHOICES = {
    "no correction": "nothing",
    "TIS, cap 2": "truncated at 2",
    "IcePop [1/2, 2]": "IcePop [1/2, 2]",
    **{f"IcePop, {name}": name for name in ONE_BACK},
}
CAPTION = (
    "Left: a line is a policy; thick: it ends below 0.8. Right: share of the tokens that get no "
    "push, by the sign of A, mean of the policies."
)


@cache
def _run(rule: str, flips: float) -> Run:
    return train(CHOICES[rule], flips, STEPS, draws=DRAWS)


@checked(rule=one_of(CHOICES), flips=between(0, 1))
def compute(rule: str = "IcePop [1/2, 2]", flips: float = 0.2) -> dict[str, Any]:
    """reward (60, 61), lowest and mean at the end, lost (how many end below 0.8), good and bad
    (61,) shares of tokens dropped, and the arguments.

    >>> compute("IcePop [1/2, 2]")["lost"]
    7
    """
    flips = round(float(flips), 4)
    run = _run(rule, flips)
    end = run.reward[:, -1]
    return {"rule": rule, "flips": flips, "reward": run.reward,
            "lowest": float(end.min()), "mean": float(end.mean()), "lost": int((end < LOW).sum()),
            "good": run.dropped_good.mean(0), "bad": run.dropped_bad.mean(0)}  # fmt: skip


def build(figure, data):
    left = figure.add_axes((0.065, 0.18, 0.5, 0.76))
    left.set(xlim=(0, STEPS), ylim=(0, 1.03))
    left.set_ylabel("mean reward", fontsize=10.5)
    left.axhline(LOW, color=BLACK, lw=0.8, ls=":")
    right = figure.add_axes((0.65, 0.18, 0.33, 0.76))
    right.set(xlim=(0, STEPS), ylim=(-0.5, 22))
    right.set_ylabel("tokens dropped, %", fontsize=10.5)
    steps = np.arange(STEPS + 1)
    for axes in (left, right):
        axes.set_xlabel("step", fontsize=10.5)
        axes.tick_params(labelsize=10.5)
    artists = {
        "lines": [left.plot(steps, steps * np.nan, zorder=4)[0] for _ in range(DRAWS)],
        "word": left.text(58, 0.1, "", ha="right", fontsize=11, weight="bold", zorder=6),
        "good": right.plot(steps, steps * np.nan, color=POSITIVE, lw=2, zorder=4, label="A > 0")[0],
        "bad": right.plot(
            steps, steps * np.nan, color=NEGATIVE, lw=2, zorder=4, ls="--", label="A ≤ 0"
        )[0],
    }
    right.legend(loc="upper right", ncols=2, fontsize=10.5, frameon=False)
    return artists


def update(artists, data):
    for line, reward in zip(artists["lines"], data["reward"], strict=True):
        lost = reward[-1] < LOW
        line.set_ydata(reward)
        line.set(color=WINE if lost else GREY, lw=2.0 if lost else 0.8)
    artists["word"].set_text(f"{data['lost']} of {DRAWS} end below {LOW}")
    artists["good"].set_ydata(100 * data["good"])
    artists["bad"].set_ydata(100 * data["bad"])


def readout(data) -> str:
    return (
        f"{data['rule']}: {data['lost']} of {DRAWS} end below {LOW}, the lowest at "
        f"{data['lowest']:.2f}. Dropped: {data['good'][-1]:.1%} where A > 0, "
        f"{data['bad'][-1]:.1%} elsewhere."
    )


def alt(data) -> str:
    return (
        f"Rewards of {DRAWS} policies and shares of dropped tokens over {STEPS} steps. Flipped: "
        f"{data['flips']:.0%}. {readout(data)}"
    )


def engine_rules_explorer() -> Explorer:
    """The rule, and how many prefixes are flipped."""
    return Explorer(
        compute,
        build,
        update,
        {
            "rule": choice_slider("IcePop [1/2, 2]", [(name, name) for name in CHOICES],
                                  "correction", "the factor on a token's push"),
            "flips": choice_slider(0.2, [(f"{x:.0%}", x) for x in FLIPS], "prefixes flipped",
                                   "share with another expert, the same for the whole run"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 270),
    )  # fmt: skip
