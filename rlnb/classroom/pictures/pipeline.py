"""The road from a prompt to a step; the part that a page changes is lit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from rlnb.classroom.figures import BLACK, GREY, ORANGE, Picture, static_figure

__all__ = ["STAGES", "pipeline"]

STAGES = {
    "prompt": "prompt",
    "answers": "G answers",
    "rewards": "rewards",
    "advantages": "advantages",
    "ratio": "ratio\nper token",
    "loss": "loss",
    "step": "gradient\nstep",
}
LIT = "#FFF1CC"


def pipeline(
    *lit: str, caption: str, again: bool = False, words: Mapping[str, str] | None = None
) -> Picture:
    """Seven boxes; `lit` names those this page changes. `again`: an arrow from the step back.

    `words` gives boxes another label. Raises ValueError for a stage that is not in STAGES.
    """
    stages = {**STAGES, **(words or {})}
    unknown = [name for name in (*lit, *stages) if name not in STAGES]
    if unknown:
        raise ValueError(f"pipeline: no stage {unknown[0]!r}; there are {list(STAGES)}.")

    def build(figure, _):
        height = 170 if again else 110
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 900), ylim=(0, height))
        axes.axis("off")
        floor = height - 85
        for i, (name, label) in enumerate(stages.items()):
            _box(axes, 12 + 127 * i, floor, label, name in lit)
            if i:
                axes.add_patch(_arrow((127 * i - 14, floor + 30), (127 * i + 10, floor + 30)))
        if again:
            _again(axes, floor)

    return static_figure(build, size=(900, 170 if again else 110), alt=_alt(stages, lit, again),
                         caption=caption)  # fmt: skip


def _box(axes, x: float, y: float, label: str, on: bool) -> None:
    style = "round,pad=0,rounding_size=8"
    axes.add_patch(
        FancyBboxPatch(
            (x, y),
            100,
            60,
            boxstyle=style,
            lw=2.4 if on else 1,
            fc=LIT if on else "white",
            ec=ORANGE if on else GREY,
        )
    )
    weight, color = ("bold", BLACK) if on else ("normal", GREY)
    axes.text(x + 50, y + 30, label, ha="center", va="center", fontsize=11, color=color,
              weight=weight)  # fmt: skip


def _arrow(start, end):
    return FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, color=GREY, lw=1.2)


def _again(axes, floor: float) -> None:
    bent = "arc3,rad=-0.2"
    axes.add_patch(
        FancyArrowPatch(
            (824, floor - 2),
            (570, floor - 2),
            connectionstyle=bent,
            arrowstyle="-|>",
            mutation_scale=15,
            color=ORANGE,
            lw=2.4,
        )
    )
    axes.text(697, 14, "again, on the same answers", ha="center", fontsize=11)


def _alt(stages: Mapping[str, str], lit: Sequence[str], again: bool) -> str:
    text = "Pipeline: " + ", ".join(label.replace("\n", " ") for label in stages.values()) + "."
    if lit:
        text += f" Lit: {', '.join(stages[name].replace(chr(10), ' ') for name in lit)}."
    return text + (" An arrow leads from the step back to the ratio." if again else "")
