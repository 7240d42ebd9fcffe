"""One group of answers: what subtracting the mean gives, and what dividing by the std adds."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import above, between, checked
from rlnb.classroom.figures import BLACK, NEGATIVE, POSITIVE, signed

LARGEST = 20
EDGE = 4.6
CAPTION = (
    "Left the reward minus the group's mean, right the same divided by the group's std. A bar is "
    "an answer."
)


@checked(size=between(2, LARGEST), right=between(0, LARGEST), pay=above(0))
def compute(size: int = 4, right: int = 2, pay: float = 1.0) -> dict[str, Any]:
    """Advantages in a group of `size` answers; `right` of them earn `pay`, the others 0.

    right is cut at size. Returns centred and zscore (size,), the population std, p (the share of
    right answers), and the arguments. A group whose rewards are equal has all zeros.

    >>> compute(4, 1)["zscore"].round(4).tolist()
    [1.7321, -0.5774, -0.5774, -0.5774]
    """
    right = min(right, size)
    rewards = np.array([pay] * right + [0.0] * (size - right))
    centred, std = rewards - rewards.mean(), float(rewards.std())
    if right in (0, size):
        centred, std = np.zeros(size), 0.0
    return {
        "size": size,
        "right": right,
        "pay": pay,
        "p": right / size,
        "std": std,
        "centred": centred,
        "zscore": centred / std if std else centred,
    }


def build(figure, data):
    artists = {}
    for k, (name, title) in enumerate(
        (("centred", "reward − mean"), ("zscore", "(reward − mean) / std"))
    ):
        axes = figure.add_axes((0.07 + 0.49 * k, 0.05, 0.43, 0.83))
        axes.set(xlim=(0, 1), ylim=(-EDGE, EDGE), xticks=(), yticks=range(-4, 5, 2))
        axes.tick_params(labelsize=10.5)
        axes.axhline(0, color=BLACK, lw=0.8)
        axes.set_title(title, fontsize=11, weight="bold")
        if k == 0:
            axes.set_ylabel("advantage", fontsize=10.5)
        artists[name] = axes.bar(np.zeros(LARGEST), np.zeros(LARGEST), ec="white", lw=0)
        for sign in (1, -1):
            artists[name, sign] = axes.text(0.5, sign * 4.15, "", fontsize=11.5, weight="bold",
                                            ha="center", va="center")  # fmt: skip
    return artists


def update(artists, data):
    place = (np.arange(data["size"]) + 0.5) / data["size"]
    width = min(0.7 / data["size"], 0.1)
    for name in ("centred", "zscore"):
        for i, bar in enumerate(artists[name]):
            bar.set_visible(i < data["size"])
            if i < data["size"]:
                bar.set(x=place[i] - width / 2, width=width, height=data[name][i])
                bar.set_facecolor(POSITIVE if i < data["right"] else NEGATIVE)
        for sign, at, word, color in ((1, 0, "right", POSITIVE), (-1, -1, "wrong", NEGATIVE)):
            there = data["right"] > 0 if sign > 0 else data["right"] < data["size"]
            artists[name, sign].set_visible(there)
            artists[name, sign].set_text(f"{word}: {signed(float(data[name][at]), 2)}")
            artists[name, sign].set_color(color)


def readout(data) -> str:
    start = f"G = {data['size']}, {data['right']} right, p = {data['p']:.2f}"
    if data["std"] == 0:
        return f"{start}: all rewards are equal, every advantage is 0. A silent group."
    return f"{start}, std {data['std']:.3f}."


def alt(data) -> str:
    pairs = "; ".join(
        f"{name}: first {signed(float(data[key][0]), 2)}, last {signed(float(data[key][-1]), 2)}"
        for key, name in (("centred", "minus the mean"), ("zscore", "divided by the std"))
    )
    return f"Advantages in a group as bars. {readout(data)} {pairs}."


def loud(data) -> bool:
    """A right answer above 3 in the smallest group that can have one."""
    return data["size"] == 11 and data["zscore"][0] > 3


def pay_does_not_matter(data) -> bool:
    """A right answer below 0.1 by the mean alone, and above 1.5 by the z-score."""
    return 0 < data["centred"][0] < 0.1 and data["zscore"][0] > 1.5


def one_group_explorer() -> Explorer:
    """Group size, how many are right, and what a right answer is paid."""
    return Explorer(
        compute,
        build,
        update,
        {
            "size": slider(4, 2, LARGEST, 1, "group size G", "answers to the one prompt"),
            "right": slider(2, 0, LARGEST, 1, "right answers", "at most G"),
            "pay": slider(1.0, 0.05, 1.0, 0.05, "pay for right", "a wrong answer earns 0"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 280),
    )
