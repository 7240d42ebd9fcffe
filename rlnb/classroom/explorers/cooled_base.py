"""Temperature and first symbol: what page 21's base solves before any RL, as an area.

Recorded by `rlnb.training.studies.cooled_base`; nothing is sampled here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from matplotlib.patches import Rectangle

from rlnb.classroom.explorer import Explorer, choice, choice_slider
from rlnb.classroom.explorers.arguments import checked, echoing, one_of
from rlnb.classroom.figures import BLACK, GREEN, GREY, ORANGE
from rlnb.shipped import data_folder
from rlnb.training.studies.cooled_base import OPENINGS, TEMPERATURES, rows

__all__ = ["above_nine_tenths", "compute", "cooled_base_explorer"]

TEXT = 10.5
STYLES = {"direct": ORANGE, "steps": GREEN}
CAPTION = (
    "Width: the share of a style among the answers. Filled: how many of its answers are right. The "
    "filled area is pass@1. 250 problems, 8 answers each; at T = 0 one, the likeliest."
)


@cache
def _rows() -> dict[tuple[str, float], dict[str, float]]:
    return rows(data_folder() / "runs" / "chain_cooled_base.json")


@echoing
@checked(temperature=one_of(TEMPERATURES), opening=one_of(OPENINGS))
def compute(temperature: float = 1.0, opening: str = "its own") -> dict[str, Any]:
    """d, the share of direct answers; right, the share of right ones in each style; p, pass@1.

    A style that no answer has is not in `right`. p = d right["direct"] + (1 - d) right["steps"].

    >>> data = compute(1.0, "its own")
    >>> f"{data['d']:.2f} {data['right']['steps']:.2f} {data['p']:.2f}"
    '0.61 0.62 0.38'
    """
    row = _rows()[opening, temperature]
    right = {style: row[f"right/{style}"] for style in STYLES if f"right/{style}" in row}
    return {"d": row["direct"], "right": right, "p": row["pass@1"]}


def build(figure, data):
    axes = figure.add_axes((0.075, 0.2, 0.55, 0.76))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.tick_params(labelsize=TEXT)
    axes.set_xlabel("share of the answers", fontsize=TEXT)
    axes.set_ylabel("right", fontsize=TEXT)
    artists: dict[str, Any] = {}
    for style, colour in STYLES.items():
        for part, face in (("all", "none"), ("right", colour)):
            box = Rectangle((0, 0), 0, 1, facecolor=face, edgecolor=GREY, lw=1.2, alpha=0.85)
            artists[part, style] = axes.add_patch(box)
    for k, (style, colour) in enumerate(STYLES.items()):
        artists["text", style] = figure.text(0.66, 0.62 - 0.2 * k, "", fontsize=12, color=BLACK,
                                             va="center")  # fmt: skip
        figure.text(0.645, 0.62 - 0.2 * k, "■", fontsize=13, color=colour, va="center", ha="right")
    artists["p"] = figure.text(0.66, 0.84, "", fontsize=13, weight="bold")
    return artists


def update(artists, data):
    place = {"direct": (0.0, data["d"]), "steps": (data["d"], 1 - data["d"])}
    for style, (left, width) in place.items():
        height = data["right"].get(style, 0.0)
        for part, tall in (("all", 1.0), ("right", height)):
            artists[part, style].set_bounds(left, 0, width, tall)
        said = f"{height:.2f} right" if style in data["right"] else "none written"
        artists["text", style].set_text(f"{style}: {width:.2f} of the answers,\n{said}")
    artists["p"].set_text(f"pass@1 {data['p']:.2f}")


def _first(data) -> str:
    return "own first symbol" if data["opening"] == OPENINGS[0] else f"{data['opening']} forced"


def readout(data) -> str:
    each = "; ".join(
        f"{style} {share:.2f}, right {data['right'][style]:.2f}"
        for style, share in (("direct", data["d"]), ("steps", 1 - data["d"]))
        if style in data["right"]
    )
    heat = "greedy" if data["temperature"] == 0 else f"T = {data['temperature']:g}"
    return f"{heat}, {_first(data)}: {each}; pass@1 {data['p']:.2f}."


def alt(data) -> str:
    return f"A square of all answers, split by style, right ones filled. {readout(data)}"


def above_nine_tenths(data) -> bool:
    """pass@1 above 0.9, at the highest temperature at which any setting has it."""
    hottest = max(t for (_, t), row in _rows().items() if row["pass@1"] > 0.9)
    return data["p"] > 0.9 and data["temperature"] == hottest


def cooled_base_explorer() -> Explorer:
    """The temperature, and who writes the first symbol."""
    return Explorer(
        compute,
        build,
        update,
        {
            "temperature": choice_slider(1.0, [(f"{t:g}", t) for t in TEMPERATURES],
                                         "temperature", "0 is greedy"),
            "opening": choice("its own", [(o, o) for o in OPENINGS], "first symbol",
                              "the model's own, or forced to begin steps or a direct answer"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 265),
    )  # fmt: skip
