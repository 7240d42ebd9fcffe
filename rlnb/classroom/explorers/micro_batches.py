"""A token mean computed piece by piece: what each token weighs, against what it should weigh."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from rlnb.classroom.explorer import Explorer, choice, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing, one_of
from rlnb.classroom.figures import BLACK, GREY, PALE

__all__ = ["hidden", "micro_batches_explorer"]

LONGEST = 8
SECOND, THIRD = 5, 2  # tokens of the two answers that do not move
UNIT = 0.22  # height of the right weight, in rows
CAPTION = (
    "A box is a token, its height the token's weight; the line is the height it should have. Grey "
    "bands are the micro-batches: the mean over the tokens of each, then over micro-batches."
)


@echoing
@checked(first=between(1, LONGEST), last=between(1, LONGEST), rows=one_of((1, 2, 4)))
def compute(first: int = 2, last: int = 8, rows: int = 2) -> dict[str, Any]:
    """Four answers, `rows` in a micro-batch; the weight of a token over the token mean's.

    >>> compute(1, 8, 1)["times"].tolist()
    [4.0, 0.8, 2.0, 0.5]
    """
    lengths = np.array([first, SECOND, THIRD, last])
    parts = lengths.reshape(-1, rows).sum(1)
    times = lengths.sum() / (len(parts) * np.repeat(parts, rows))
    return {"lengths": lengths, "rows": rows, "parts": parts, "times": times}


def build(figure, data):
    axes = figure.add_axes((0.13, 0.02, 0.86, 0.96))
    axes.set(xlim=(-0.1, 12), ylim=(4.02, -0.02))
    axes.axis("off")
    artists: dict[Any, Any] = {"bands": []}
    for k in range(4):
        band = Rectangle((-0.1, k), 12.1, 1, fc=PALE, ec="white", lw=3)
        artists["bands"].append(axes.add_patch(band))
    for i in range(4):
        figure.text(0.12, 0.98 - 0.96 * (i + 0.5) / 4, f"answer {i}", ha="right", va="center",
                    fontsize=10.5)  # fmt: skip
        artists["boxes", i] = [
            axes.add_patch(Rectangle((j + 0.04, i), 0.92, 0.1, fc="#9DB4C8", ec=BLACK, lw=0.8))
            for j in range(LONGEST)
        ]
        artists["line", i] = axes.plot([0, 1], [i, i], color=BLACK, lw=1.6, ls=(0, (4, 2)))[0]
        artists["text", i] = axes.text(8.2, i + 0.5, "", va="center", fontsize=11)
    return artists


def update(artists, data):
    for k, band in enumerate(artists["bands"]):
        band.set_visible(k < len(data["parts"]))
        band.set(y=k * data["rows"], height=data["rows"])
    for i in range(4):
        tokens, times = int(data["lengths"][i]), float(data["times"][i])
        floor = i + 0.96
        for j, box in enumerate(artists["boxes", i]):
            box.set_visible(j < tokens)
            box.set(y=floor - UNIT * times, height=UNIT * times)
        artists["line", i].set_data([0, tokens], [floor - UNIT, floor - UNIT])
        word = "token" if tokens == 1 else "tokens"
        artists["text", i].set_text(f"{tokens} {word}, weight × {times:.2f}")
        right = abs(times - 1) < 1e-9
        artists["text", i].set_color(GREY if right else BLACK)
        artists["text", i].set_weight("normal" if right else "bold")


def readout(data) -> str:
    parts = " and ".join(str(n) for n in data["parts"])
    wrong = int((abs(data["times"] - 1) > 1e-9).sum())
    said = "every weight is right" if wrong == 0 else f"{wrong} of 4 answers have a wrong weight"
    return f"Tokens in the micro-batches: {parts}; {said}."


def alt(data) -> str:
    rows = "; ".join(
        f"answer {i}: {n} tokens, weight times {t:.2f}"
        for i, (n, t) in enumerate(zip(data["lengths"], data["times"], strict=True))
    )
    return f"Four answers as rows of boxes, height is weight. {rows}. {readout(data)}"


def hidden(data) -> bool:
    """Two micro-batches, four different lengths, and every weight is right."""
    different = len(set(data["lengths"].tolist())) == 4
    return data["rows"] == 2 and different and bool((abs(data["times"] - 1) < 1e-9).all())


def micro_batches_explorer() -> Explorer:
    """Lengths of the first and the last of four answers, and how many go through at once."""
    return Explorer(
        compute,
        build,
        update,
        {
            "first": slider(2, 1, LONGEST, 1, "answer 0, tokens", "answers 1 and 2 have 5 and 2"),
            "last": slider(8, 1, LONGEST, 1, "answer 3, tokens", "the last of the four"),
            "rows": choice(
                2,
                [("all four", 4), ("two", 2), ("one", 1)],
                "in a micro-batch",
                "answers that fit into memory at once",
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 300),
    )
