"""What labs published, as boxes in the seven columns: filled where it is not GRPO's."""

from __future__ import annotations

from matplotlib.patches import Rectangle

from rlnb.classroom.figures import GREY, ORANGE, Picture, static_figure
from rlnb.interop.labs import lab
from rlnb.objective import ZOO, difference

__all__ = ["BOXES", "changed_choices", "labs"]

TEXT = 10.5
LIT, QUIET = "#FFF1CC", "#F1F1F1"
COLUMNS = ("reward", "advantage", "ratio", "surrogate", "gate", "weights", "terms")
GRPO = {
    "reward": "as it is",
    "advantage": "group's mean\nand std",
    "ratio": "per token,\nto π_old",
    "surrogate": "clip,\n0.8 to 1.2",
    "gate": "none",
    "weights": "mean per\nanswer",
    "terms": "k3 to π_ref,\nβ = 0.04",
}
NO_KL = {"terms": "none"}
# row of rlnb.interop.labs -> its boxes that are not GRPO's, in words
BOXES: dict[str, dict[str, str]] = {
    "DeepSeek-R1": {"surrogate": "clip,\n−9 to 11", "terms": "k3 to π_ref,\nβ = 0.001"},
    "DAPO": {"surrogate": "clip,\n0.8 to 1.28", "weights": "mean per\nprompt", **NO_KL},
    "GSPO": {"ratio": "per answer", "surrogate": "clip, 0.9997\nto 1.0004", "terms": "unsaid"},
    "MiniMax-M1": {"surrogate": "capped ρ,\ncap unsaid", "weights": "mean per\nprompt", **NO_KL},
    "OLMo 3 Think": {
        "advantage": "mean only",
        "surrogate": "clip,\n0.8 to 1.272",
        "gate": "engine ratio,\ncapped at 2",
        "weights": "all tokens\nalike",
        **NO_KL,
    },
}
# what a lab pays beside the verdict: it is no part of the policy's loss in `rlnb.interop.labs`
PAID = {"DAPO": "length\npenalty", "MiniMax-M1": "length\npenalty"}
TOP, HIGH, LEFT = 30, 43, 140
NARROW, WIDE = 62, 106  # of the first column, and of the others


def changed_choices(who: str) -> list[str]:
    """The choices in which a row of `rlnb.interop.labs` is not GRPO, by the map's names."""
    objective = lab(who).objective
    if objective is None:
        raise ValueError(f"{who} is no composition: {lab(who).why_not}.")
    parts = [change.part for change in difference(ZOO["grpo"], objective)]
    return ["gate" if part == "gates" else part for part in parts]


def _updates(who: str) -> str:
    count = lab(who).updates
    return "unsaid" if count is None else str(count)


def _place(column: int) -> tuple[float, float]:
    """Left edge and width of a column."""
    return (LEFT, NARROW) if column == 0 else (LEFT + NARROW + WIDE * (column - 1), WIDE)


def _said(who: str) -> dict[str, str]:
    """Every filled box of a row, the reward's among them."""
    return ({"reward": PAID[who]} if who in PAID else {}) | BOXES[who]


def labs() -> Picture:
    """A row per lab, GRPO's on top; boxes that differ are filled and say what stands there."""

    def build(figure, _):
        height = TOP + HIGH * (len(BOXES) + 1)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 900), ylim=(height, 0))
        axes.axis("off")

        def cell(column, row, text, colour, edge):
            (x, width), y = _place(column), TOP + HIGH * row
            axes.add_patch(Rectangle((x + 1, y + 1), width - 3, HIGH - 3, fc=colour, ec=edge, lw=1))
            axes.text(x + width / 2, y + HIGH / 2, text, ha="center", va="center", fontsize=TEXT,
                      linespacing=0.95)  # fmt: skip

        for k, name in enumerate(COLUMNS):
            x, width = _place(k)
            axes.text(x + width / 2, TOP / 2, name, ha="center", va="center",
                      fontsize=TEXT, weight="bold")  # fmt: skip
            cell(k, 0, GRPO[name], "white", GREY)
        axes.text(867, TOP / 2, "updates", ha="center", va="center", fontsize=TEXT, weight="bold")
        axes.text(6, TOP + HIGH / 2, "GRPO", va="center", fontsize=TEXT, weight="bold")
        axes.text(867, TOP + HIGH / 2, "1", ha="center", va="center", fontsize=TEXT)
        for row, who in enumerate(BOXES, 1):
            middle = TOP + HIGH * (row + 0.5)
            axes.text(6, middle, who, va="center", fontsize=TEXT)
            axes.text(867, middle, _updates(who), ha="center", va="center", fontsize=TEXT)
            for k, column in enumerate(COLUMNS):
                said = _said(who).get(column, "")
                cell(k, row, said, LIT if said else QUIET, ORANGE if said else QUIET)

    said = "; ".join(
        f"{who}, updates {_updates(who)}: "
        + ", ".join(f"{column} {text}" for column, text in _said(who).items()).replace("\n", " ")
        for who in BOXES
    )
    return static_figure(
        build,
        size=(900, TOP + HIGH * (len(BOXES) + 1)),
        alt=f"What labs published, told against GRPO. {said}.",
        caption="Filled: another entry than GRPO's, or unsaid. Updates: steps per batch.",
    )
