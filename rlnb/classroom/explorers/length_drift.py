"""The push of 1/T on the decision to stop, followed for a hundred steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import between, checked
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, POSITIVE

START, STEPS, RATE, TOP = 0.1, 100, 0.5, 75  # stop probability, steps, learning rate, the axis
CAPTION = (
    "Mean lengths under the expected push of GRPO, the share of right answers held fixed. Divided "
    "by a constant, the expected push is 0, and only the noise of samples would move them."
)


def stop_push(q: float) -> float:
    """E[1/T] - q of an answer that stops with probability q after each token.

    >>> round(stop_push(0.1), 6)
    0.155843
    """
    return -q * math.log(q) / (1 - q) - q


@checked(share=between(0.05, 0.95), knows=between(50, 100))
def compute(share: float = 0.2, knows: int = 80) -> dict[str, Any]:
    """A model writes a verdict on its answer, then goes on and stops with a rate per verdict.

    share: of right answers, fixed, since the reward does not look at what comes after. knows: in
    how many of a hundred answers the verdict says the truth (50 is a coin). Large groups, so
    advantages sqrt((1-p)/p) and -sqrt(p/(1-p)); both stop rates start at 0.1. Returns right, wrong
    and all (STEPS + 1,), mean lengths, and the arguments.

    >>> data = compute(0.5, 50)
    >>> [round(float(data[kind][-1]), 6) for kind in ("right", "wrong")]
    [10.0, 10.0]
    """
    truth = knows / 100
    pull = (2 * truth - 1) * math.sqrt(share * (1 - share))  # E[A; says right] = -E[A; says wrong]
    logits = np.full(2, math.log(START / (1 - START)))  # says right, says wrong
    lengths = []
    for _ in range(STEPS + 1):
        q = 1 / (1 + np.exp(-logits))
        lengths.append(1 / q)
        logits = logits + RATE * pull * np.array([stop_push(q[0]), -stop_push(q[1])])
    says_right, says_wrong = np.array(lengths).T
    right = truth * says_right + (1 - truth) * says_wrong
    wrong = (1 - truth) * says_right + truth * says_wrong
    return {
        "share": share,
        "knows": knows,
        "right": right,
        "wrong": wrong,
        "all": share * right + (1 - share) * wrong,
    }


LOOK = {  # drawn in this order: where the three agree, all are seen
    "right": (POSITIVE, "-", "right answers"),
    "wrong": (NEGATIVE, "--", "wrong answers"),
    "all": (BLACK, ":", "all answers"),
}


def build(figure, data):
    axes = figure.add_axes((0.07, 0.17, 0.58, 0.79))
    axes.set(xlim=(0, STEPS), ylim=(0, TOP))
    axes.set_xlabel("step", fontsize=10.5)
    axes.set_ylabel("mean length, tokens", fontsize=10.5)
    axes.tick_params(labelsize=10.5)
    axes.axhline(1 / START, color=GREY, lw=0.9)
    artists = {
        name: axes.plot([], [], color=color, ls=line, lw=6 if name == "right" else 3, label=label)[
            0
        ]  # fmt: skip
        for name, (color, line, label) in LOOK.items()
    }
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)
    artists["text"] = figure.text(0.67, 0.2, "", fontsize=11, va="bottom", linespacing=1.5)
    return artists


def update(artists, data):
    for name in LOOK:
        artists[name].set_data(np.arange(STEPS + 1), data[name])
    artists["text"].set_text(
        "at step 100\n" + "\n".join(f"{name}: {data[name][-1]:.1f}" for name in LOOK)
    )


def readout(data) -> str:
    return (
        f"{100 * data['share']:.0f} % right, verdict true in {data['knows']} of 100. At step 100: "
        f"right {data['right'][-1]:.1f}, wrong {data['wrong'][-1]:.1f}, all {data['all'][-1]:.1f} "
        "tokens."
    )


def alt(data) -> str:
    return f"Mean lengths over 100 steps, all from 10 tokens. {readout(data)}"


def hidden_growth(data) -> bool:
    """Wrong answers three times as long as at the start, the mean of all not above the start."""
    return data["wrong"][-1] >= 30 and data["all"][-1] <= 10


def held_up(data) -> bool:
    """Right answers end no shorter than they began, as read; wrong ones at least twice as long."""
    return round(float(data["right"][-1]), 1) >= 10 and data["wrong"][-1] >= 20


def length_drift_explorer() -> Explorer:
    """The share of right answers, and how often the model's verdict is true."""
    return Explorer(
        compute,
        build,
        update,
        {
            "share": slider(0.2, 0.05, 0.95, 0.05, "share right", "of the answers, held fixed"),
            "knows": slider(80, 50, 100, 5, "verdict true, %", "50 is a coin"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 310),
    )
