"""When does the mean reward help? It depends on how many right answers share the probability.

The toy. k right answers share the probability p, twenty wrong ones the rest, each alike; right
earns 1, wrong 0. The leave-one-out baseline of an answer is the mean reward of the other G - 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import above, between, checked, echoing
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, PALE, POSITIVE

WRONG = 20  # different wrong answers
WAYS = (1, 2, 5, 10, 20, 50)
SIZES = (2, 4, 8, 16)
LOW, HIGH = 0.06, 1500.0
RULES = ("mean reward, known", "leave-one-out", "best number, known")
CAPTION = (
    "Left, why: the mean reward is the best number where both bars are equal. Right, the noise "
    "per answer, b = 0 counting as 1."
)


@echoing
@checked(p=between(0.01, 0.99), ways=above(0), size=above(1))
def compute(p: float = 0.5, ways: int = 5, size: int = 8) -> dict[str, Any]:
    """Noise per answer of three baselines, as multiples of no baseline's.

    Returns right and wrong, the squared length of the score of a right and of a wrong answer;
    best, the baseline with the least noise; none, the noise without one; relative (3,) over RULES;
    and the arguments. Leave-one-out adds (Var(R) E|score|^2 / |grad J|^2 + 1) / (G - 1) to the
    noise at the mean reward.

    >>> compute(0.9, 50, 4)["relative"].round(2).tolist()
    [0.1, 0.14, 0.1]
    """
    pi = np.array([p / ways] * ways + [(1 - p) / WRONG] * WRONG)
    rewards = np.array([1.0] * ways + [0.0] * WRONG)
    size2 = 1 - 2 * pi + (pi**2).sum()  # |onehot - pi|^2
    signal = float(((pi * (rewards - p)) ** 2).sum())

    def noise(b: float) -> float:
        return float(pi @ ((rewards - b) ** 2 * size2)) / signal - 1

    best = float(pi @ (size2 * rewards) / (pi @ size2))
    price = (p * (1 - p) * float(pi @ size2) / signal + 1) / (size - 1)
    return {
        "right": float(size2[0]),
        "wrong": float(size2[-1]),
        "best": best,
        "none": noise(0.0),
        "relative": np.array([noise(p), noise(p) + price, noise(best)]) / noise(0.0),
    }


def build(figure, data):
    left = figure.add_axes((0.08, 0.13, 0.22, 0.69))
    left.set(xlim=(-0.6, 1.6), ylim=(0, 2), yticks=(0, 1, 2))
    left.set_xticks((0, 1), ["right", "wrong"], fontsize=10.5)
    left.tick_params(labelsize=10.5)
    left.set_title("squared length\nof the score", fontsize=10.5, weight="bold")
    artists: dict[str, Any] = {
        "size": left.bar((0, 1), (1, 1), 0.6, color=(POSITIVE, NEGATIVE)),
        "size_text": [left.text(x, 0, "", ha="center", fontsize=10.5) for x in (0, 1)],
    }
    right = figure.add_axes((0.52, 0.13, 0.46, 0.72))
    right.set(xscale="log", xlim=(LOW, HIGH), ylim=(2.6, -0.75))
    right.set_xticks((0.1, 1, 10, 100), ["0.1", "1", "10", "100"], fontsize=10.5)
    right.minorticks_off()
    right.set_yticks(range(3), RULES, fontsize=10.5)
    right.set_title("noise per answer, b = 0 counts as 1", fontsize=10.5, weight="bold")
    right.axvspan(1, HIGH, color=PALE, lw=0, zorder=0)
    right.axvline(1, color=BLACK, lw=1.2)
    right.text(HIGH * 0.9, -0.44, "noisier than b = 0", ha="right", va="center", color=GREY,
               fontsize=10.5)  # fmt: skip
    artists["noise"] = right.barh(range(3), np.ones(3), 0.5, left=LOW / 10,
                                  color=(GREY, BLACK, "#A0A0A0"))  # fmt: skip
    artists["noise_text"] = [
        right.text(1, y, "", va="center", fontsize=11, weight="bold") for y in range(3)
    ]
    return artists


def update(artists, data):
    for bar, text, value in zip(
        artists["size"], artists["size_text"], (data["right"], data["wrong"]), strict=True
    ):
        bar.set_height(value)
        text.set_text(f"{value:.2f}")
        text.set_y(value + 0.06)
    for bar, text, value in zip(
        artists["noise"], artists["noise_text"], data["relative"], strict=True
    ):
        bar.set_width(min(value, HIGH) - LOW / 10)
        text.set_text(f"{value:.2f}")
        # to the right of its bar, and of the line at 1 where it would stand on that
        text.set_x(1.12 * (1 if 0.3 < value < 1 else max(min(value, HIGH / 3), LOW)))


def readout(data) -> str:
    ways = data["ways"]
    known, others, best = data["relative"]
    return (
        f"p = {data['p']:.2f}, {ways} right answer{'s' if ways > 1 else ''}, G = {data['size']}. "
        f"Noise, times that of b = 0: mean reward {known:.2f}, leave-one-out {others:.2f}, best b "
        f"{best:.2f}."
    )


def alt(data) -> str:
    return (
        f"Squared length of the score: a right answer {data['right']:.2f}, a wrong one "
        f"{data['wrong']:.2f}. {readout(data)}"
    )


def hurts_all_the_same(data) -> bool:
    """Ten ways to be right and groups of 8 or more, and leave-one-out is noisier than b = 0."""
    return data["ways"] >= 10 and data["size"] >= 8 and data["relative"][1] > 1


def ways_to_be_right_explorer() -> Explorer:
    """The chance to be right, how many answers share it, and the group size."""
    return Explorer(
        compute,
        build,
        update,
        {
            "p": slider(0.5, 0.05, 0.95, 0.05, "chance p", "to be right"),
            "ways": choice_slider(5, [(str(k), k) for k in WAYS], "right answers",
                                  "so many different ones share the chance p"),
            "size": choice_slider(8, [(str(g), g) for g in SIZES], "group size G",
                                  "answers to the one prompt"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 280),
    )  # fmt: skip
