"""How large a group: few prompts with a good baseline each, or many prompts with a poor one."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import above, between, checked
from rlnb.classroom.figures import BLACK, GREEN, GREY, SKY

SMALLEST, LARGEST = 2, 64
RATIOS = (1, 4, 16, 64, 256, 1024)
SIZES = np.arange(SMALLEST, LARGEST + 1)
CAPTION = (
    "A step of a fixed number of answers, mean of the others as baseline. Down is good: 1 is the "
    "least noise that any G reaches."
)
# name -> colour, line, width
LINES = {
    "all three": (BLACK, "-", 3.0),
    "prompts differ": (GREEN, "-.", 2.2),
    "answers differ": (GREY, ":", 2.2),
    "the baseline errs": (SKY, "--", 2.2),
}


def parts(size: Any, ratio: float) -> dict[str, Any]:
    """The three parts of N Var, in units of how prompts differ: G, ratio, ratio / (G - 1)."""
    found = {
        "prompts differ": size * 1.0,
        "answers differ": ratio + 0.0 * size,
        "the baseline errs": ratio / (size - 1.0),
    }
    return {"all three": sum(found.values()), **found}


@checked(size=between(SMALLEST, LARGEST), ratio=above(0))
def compute(size: int = 16, ratio: float = 16.0) -> dict[str, Any]:
    """Noise of a step in groups of `size`; answers are `ratio` times as noisy as prompts differ.

    Returns curves (name -> (63,) over SIZES) and here (name -> number), both over the least total,
    best (the size that has it), and the arguments.

    >>> compute(5, 16)["best"], compute(5, 64)["best"]
    (5, 9)
    """
    total = parts(SIZES, ratio)["all three"]
    least = total.min()
    return {
        "size": size,
        "ratio": ratio,
        "best": int(SIZES[total.argmin()]),
        "curves": {name: curve / least for name, curve in parts(SIZES, ratio).items()},
        "here": {name: float(x / least) for name, x in parts(size, ratio).items()},
    }


def build(figure, data):
    axes = figure.add_axes((0.08, 0.19, 0.6, 0.77))
    axes.set(xscale="log", xlim=(1.9, 68), ylim=(0, 3))
    axes.set_xticks((2, 4, 8, 16, 32, 64), ("2", "4", "8", "16", "32", "64"))
    axes.minorticks_off()
    axes.tick_params(labelsize=10.5)
    axes.set_xlabel("group size G (log scale)", fontsize=10.5)
    axes.set_ylabel("noise of a step", fontsize=10.5)
    artists = {}
    for name, (color, line, width) in LINES.items():
        artists[name] = axes.plot(SIZES, 0.0 * SIZES, color=color, ls=line, lw=width, label=name)[0]
    artists["dot"] = axes.plot([2], [0], "o", ms=12, color=BLACK, mec="white", clip_on=False)[0]
    artists["text"] = axes.text(2, 0, "", fontsize=11.5, weight="bold", ha="center")
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)
    return artists


def update(artists, data):
    for name in LINES:
        artists[name].set_ydata(data["curves"][name])
    y = min(data["here"]["all three"], 2.8)
    artists["dot"].set_data([data["size"]], [y])
    artists["text"].set(x=min(max(data["size"], 2.3), 56), y=y - 0.3 if y > 2.4 else y + 0.16)
    above = " ↑" if data["here"]["all three"] > 3 else ""
    artists["text"].set_text(f"{data['here']['all three']:.2f}{above}")


def readout(data) -> str:
    return (
        f"G = {data['size']}, answers {data['ratio']:g} times as noisy as prompts differ: "
        f"{data['here']['all three']:.2f} times the least noise."
    )


def alt(data) -> str:
    listed = ", ".join(f"{name} {data['here'][name]:.2f}" for name in LINES if name != "all three")
    return f"Noise of a step against the group size. {readout(data)} Of that: {listed}."


def best_at_64(data) -> bool:
    """Answers 64 times as noisy as prompts differ, and the best size for that."""
    return data["ratio"] == 64 and data["size"] == data["best"]


def group_size_explorer() -> Explorer:
    """Group size, and how noisy answers are beside how much prompts differ."""
    return Explorer(
        compute,
        build,
        update,
        {
            "size": slider(16, SMALLEST, LARGEST, 1, "group size G", "answers to one prompt"),
            "ratio": choice_slider(16, [(str(r), r) for r in RATIOS], "noise of an answer",
                                   "in units of how much the gradients of prompts differ"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 255),
    )  # fmt: skip
