"""The pictures of the page on the zoo: seven choices, and a batch that ages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.patches import FancyBboxPatch

from rlnb.classroom.figures import BLACK, GREEN, GREY, ORANGE, SKY, WINE, Picture, static_figure

__all__ = ["CHOICES", "ageing", "seven_choices"]

TEXT = 10.5  # points: the size of the page's own text
LIT = "#FFF1CC"

# the choice, its letter, the question it answers, GRPO's answer, and what others take
CHOICES: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    ("reward", "R", "What is paid?", "as it is", ("length\npenalty", "KL in the\nreward")),
    ("advantage", "A", "Better than\nwhat?", "group's mean\nand std", ("mean only", "a critic")),
    ("ratio", "ρ", "How far from\nwhich policy?", "per token,\nto π_old", ("per answer",)),
    ("surrogate", "f", "What if the\nratio is far?", "min and clip,\n0.8 to 1.2",
     ("capped\nweight", "soft edge")),
    ("gate", "g", "Is the token\ntrusted?", "none",
     ("drop moved\ntokens", "engine ratio,\ncapped at 2")),
    ("weights", "c", "How are tokens\naveraged?", "mean per\nanswer",
     ("all tokens\nalike", "constant\nlength")),
    ("terms", "h", "What else\npulls?", "KL to the\nreference", ("none", "entropy")),
)  # fmt: skip


def seven_choices() -> Picture:
    """A column per choice, with its question: GRPO's answer lit, below it those of others."""

    def build(figure, _):
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 900), ylim=(258, 0))
        axes.axis("off")
        axes.text(8, 124, "GRPO", fontsize=TEXT, weight="bold", va="center", rotation=90)
        axes.text(8, 206, "others", fontsize=TEXT, va="center", rotation=90, color=GREY)
        for k, (name, letter, question, grpo, others) in enumerate(CHOICES):
            x = 30 + 124 * k
            axes.text(x + 58, 16, name, ha="center", fontsize=12, weight="bold")
            axes.text(x + 58, 39, letter, ha="center", fontsize=13, color=WINE)
            axes.text(x + 58, 66, question, ha="center", va="center", fontsize=TEXT)
            box(axes, x, 96, 116, 56, grpo, lit=True)
            for row, text in enumerate(others):
                box(axes, x, 164 + 45 * row, 116, 40, text)

    said = "; ".join(
        f"{name} ({letter}), {question} {grpo}; others: {', '.join(others)}"
        for name, letter, question, grpo, others in CHOICES
    ).replace("\n", " ")
    return static_figure(
        build,
        size=(900, 258),
        alt=f"Seven choices. {said}.",
        caption="Seven questions. A method has one entry in every column. The lit row is GRPO.",
    )


def box(axes, x, y, width, height, text, lit=False):
    """A rounded box with its text; lit: the one that counts here."""
    axes.add_patch(
        FancyBboxPatch(
            (x, y),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=7",
            fc=LIT if lit else "white",
            ec=ORANGE if lit else GREY,
            lw=2.2 if lit else 1,
        )
    )
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=TEXT)


LINES = {
    "SAPO": (BLACK, "-"),
    "GSPO": (SKY, "-."),
    "CISPO": (GREEN, (0, (6, 2))),
    "DPPO": (WINE, ":"),
}


def ageing(
    drift: Sequence[float], cosines: Mapping[str, Sequence[float]], beside: Mapping[str, str]
) -> Picture:
    """Cosine of a method's gradient with that of its relative, as the policy leaves the old one.

    drift: share of the way to the running batch. beside: method -> the relative it is told from.
    """

    def build(figure, _):
        axes = figure.add_axes((0.09, 0.19, 0.6, 0.76))
        floor = 2.0
        for name, values in sorted(cosines.items(), key=lambda item: -item[1][-1]):
            color, line = LINES[name]
            axes.plot(drift, values, color=color, ls=line, lw=2.6)
            floor = min(values[-1], floor - 0.075)
            axes.text(
                1.03, floor, f"{name} against {beside[name]}", color=color, fontsize=TEXT,
                va="center", clip_on=False,
            )  # fmt: skip
        axes.set(xlim=(0, 1), ylim=(min(min(v) for v in cosines.values()) - 0.05, 1.03))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel(
            "how far the policy has moved (0: fresh batch, 1: the running batch)", fontsize=TEXT
        )
        axes.set_ylabel("cosine of the two pushes", fontsize=TEXT)

    said = "; ".join(
        f"{name} against {beside[name]} {values[0]:.2f} to {values[-1]:.2f}"
        for name, values in cosines.items()
    )
    return static_figure(
        build,
        size=(900, 300),
        alt=f"Cosine of the pushes from a fresh batch to the running one. {said}.",
        caption="Height 1: the two methods push in one direction. At the left end, where every "
        "ratio is 1, each pair does.",
    )
