"""One group of answers: what subtracting the mean gives, and what dividing by the std adds."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import between, checked
from rlnb.classroom.figures import BLACK, NEGATIVE, POSITIVE, WINE, signed

LARGEST = 20
EDGE = 4.6
CAPTION = (
    "Left the reward minus the group's mean, right the same divided by the group's std. A bar is "
    "an answer: yours, then the right ones, then the wrong ones."
)


@checked(size=between(2, LARGEST), right=between(0, LARGEST), mine=between(0, 1))
def compute(size: int = 4, right: int = 1, mine: float = 1.0) -> dict[str, Any]:
    """Advantages in a group: your answer earns `mine`, `right` others earn 1, the rest 0.

    right is cut at size - 1. Returns centred and zscore (size,), yours first, the population std,
    the mean, and the arguments. A group whose rewards are equal has all zeros.

    >>> compute(4, 0)["zscore"].round(4).tolist()
    [1.7321, -0.5774, -0.5774, -0.5774]
    """
    right = min(right, size - 1)
    rewards = np.array([mine] + [1.0] * right + [0.0] * (size - 1 - right))
    equal = rewards.min() == rewards.max()
    centred, std = rewards - rewards.mean(), float(rewards.std())
    if equal:
        centred, std = np.zeros(size), 0.0
    return {
        "size": size,
        "right": right,
        "mine": mine,
        "mean": float(rewards.mean()),
        "std": std,
        "centred": centred,
        "zscore": centred if equal else centred / std,
    }


def build(figure, data):
    artists = {}
    for k, (name, title) in enumerate(
        (("centred", "reward − mean"), ("zscore", "(reward − mean) / std"))
    ):
        axes = figure.add_axes((0.07 + 0.49 * k, 0.05, 0.43, 0.83))
        axes.set(xlim=(0, 1), ylim=(-EDGE, EDGE + 1.1), xticks=(), yticks=range(-4, 5, 2))
        axes.tick_params(labelsize=10.5)
        axes.axhline(0, color=BLACK, lw=0.8)
        axes.set_title(title, fontsize=11, weight="bold")
        if k == 0:
            axes.set_ylabel("advantage", fontsize=10.5)
        artists[name] = axes.bar(np.zeros(LARGEST), np.zeros(LARGEST), ec="white", lw=0)
        artists[name][0].set(facecolor=WINE, hatch="//")
        for text, at, color in (("yours", 0.02, WINE), ("right", 0.5, POSITIVE),
                                ("wrong", 0.98, NEGATIVE)):  # fmt: skip
            artists[name, text] = axes.text(
                at, EDGE + 0.5, "", fontsize=11.5, weight="bold", color=color, va="center",
                ha={0.02: "left", 0.5: "center", 0.98: "right"}[at],
            )  # fmt: skip
    return artists


def update(artists, data):
    size, right = data["size"], data["right"]
    place = (np.arange(size) + 0.5) / size
    width = min(0.7 / size, 0.1)
    for name in ("centred", "zscore"):
        for i, bar in enumerate(artists[name]):
            bar.set_visible(i < size)
            if i < size:
                bar.set(x=place[i] - width / 2, width=width, height=data[name][i])
            if i:
                bar.set_facecolor(POSITIVE if i <= right else NEGATIVE)
        for text, at, there in (("yours", 0, True), ("right", 1, right > 0),
                                ("wrong", -1, right < size - 1)):  # fmt: skip
            artists[name, text].set_visible(there)
            artists[name, text].set_text(f"{text}: {said(data[name][at])}")


def said(advantage: float) -> str:
    """Two decimals and a sign; what rounds to 0 has none."""
    value = round(float(advantage), 2)
    return signed(value, 2) if value else "0.00"


def readout(data) -> str:
    start = f"G = {data['size']}, yours earns {data['mine']:g}, others right {data['right']}"
    if data["std"] == 0:
        return f"{start}: all rewards are equal, every advantage is 0. A silent group."
    return f"{start}: mean {data['mean']:.3f}, std {data['std']:.3f}."


def alt(data) -> str:
    pairs = "; ".join(
        f"{name}: yours {said(data[key][0])}, last {said(data[key][-1])}"
        for key, name in (("centred", "minus the mean"), ("zscore", "divided by the std"))
    )
    return f"Advantages in a group as bars. {readout(data)} {pairs}."


def loud(data) -> bool:
    """Your answer above 3 in the smallest group that can have one."""
    return data["size"] == 11 and data["zscore"][0] > 3


def nearly_right_and_sunk(data) -> bool:
    """Your answer earns 0.9, and less than -2.5 is what the division makes of that."""
    return abs(data["mine"] - 0.9) < 1e-9 and data["zscore"][0] < -2.5


def one_group_explorer() -> Explorer:
    """Group size, how many others are right, and what your answer earns."""
    return Explorer(
        compute,
        build,
        update,
        {
            "size": slider(4, 2, LARGEST, 1, "group size G", "answers to the one prompt"),
            "right": slider(1, 0, LARGEST - 1, 1, "others right", "of the G − 1 others; earn 1"),
            "mine": slider(1.0, 0.0, 1.0, 0.1, "your reward", "other wrong answers earn 0"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 270),
    )
