"""The pictures of the page on the zoo: seven choices, ways between methods, a batch that ages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from rlnb.classroom.figures import (
    BLACK,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    WINE,
    Picture,
    static_figure,
)
from rlnb.objective import ZOO, Objective, difference

__all__ = ["CHOICES", "PLACES", "WAYS", "ageing", "changed_parts", "seven_choices", "ways"]

TEXT = 10.5  # points: the size of the page's own text
LIT = "#FFF1CC"

# the choice, its letter, GRPO's, and what others take
CHOICES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("shape", "R", "as it is", ("KL in the\nreward", "length\npenalty")),
    ("advantage", "A", "group's mean\nand std", ("mean only", "the others'\nmean", "a critic")),
    ("ratio", "ρ", "per token,\nto π_old", ("per answer", "to the\nengine")),
    ("surrogate", "f", "min and clip,\nband 0.2", ("band 0.28", "capped\nweight", "soft edge")),
    ("gate", "g", "none", ("mask by\ndivergence", "drop a far\nengine ratio")),
    ("weights", "c", "mean per\nanswer", ("all tokens\nalike", "constant\nlength")),
    ("terms", "+", "k3 to π_ref,\nβ = 0.04", ("none", "entropy", "critic's loss")),
)


def seven_choices() -> Picture:
    """A column per choice: GRPO's on top, lit; below it what other methods put there."""

    def build(figure, _):
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 900), ylim=(270, 0))
        axes.axis("off")
        axes.text(8, 92, "GRPO", fontsize=TEXT, weight="bold", va="center", rotation=90)
        axes.text(8, 192, "others", fontsize=TEXT, va="center", rotation=90, color=GREY)
        for k, (name, letter, grpo, others) in enumerate(CHOICES):
            x = 30 + 124 * k
            axes.text(x + 58, 18, name, ha="center", fontsize=12, weight="bold")
            axes.text(x + 58, 42, letter, ha="center", fontsize=13, color=WINE)
            box(axes, x, 62, 116, 56, grpo, lit=True)
            for row, text in enumerate(others):
                box(axes, x, 130 + 45 * row, 116, 40, text)

    said = "; ".join(
        f"{name} ({letter}): {grpo}; others: {', '.join(others)}"
        for name, letter, grpo, others in CHOICES
    ).replace("\n", " ")
    return static_figure(
        build,
        size=(900, 270),
        alt=f"Seven choices. {said}.",
        caption="A method takes one box from every column. The upper row is GRPO.",
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


# where a method stands (CSS pixels, y down), and its name on the map
PLACES: dict[str, tuple[float, float, str]] = {
    "ppo": (62, 205, "PPO"),
    "grpo": (370, 205, "GRPO\nwithout KL"),
    "dapo": (370, 45, "DAPO"),
    "cispo": (838, 45, "CISPO"),
    "sapo": (838, 150, "SAPO"),
    "gspo": (838, 260, "GSPO"),
    "dr_grpo": (370, 365, "Dr. GRPO"),
    "dppo": (838, 365, "DPPO"),
}
# from, to, where the words stand, and what is exchanged: part -> in words
WAYS: tuple[tuple[str, str, tuple[float, float], dict[str, str]], ...] = (
    ("grpo", "ppo", (217, 205), {"advantage": "a critic", "weights": "all tokens alike"}),
    ("grpo", "dapo", (370, 122), {"surrogate": "edge 1.28", "weights": "all tokens alike"}),
    ("dapo", "cispo", (605, 45), {"surrogate": "capped weight"}),
    ("grpo", "sapo", (605, 177), {"surrogate": "soft edge"}),
    ("grpo", "gspo", (605, 233), {"surrogate": "a narrow band", "ratio": "per answer"}),
    ("grpo", "dr_grpo", (370, 287), {"advantage": "mean only", "weights": "constant length"}),
    (
        "dr_grpo",
        "dppo",
        (605, 365),
        {"surrogate": "capped weight", "ratio": "to the engine", "gates": "mask 0.15"},
    ),
)


def _plain(name: str) -> Objective:
    return ZOO[name].replace(terms=())


def changed_parts(start: str, end: str) -> list[str]:
    """The parts in which two methods of the zoo differ, their KL terms left out."""
    return [change.part for change in difference(_plain(start), _plain(end))]


def ways() -> Picture:
    """Methods as places, the parts that change as the words on the way from one to the next."""

    def build(figure, _):
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 900), ylim=(412, 0))
        axes.axis("off")
        for start, end, at, parts in WAYS:
            (x, y, _), (u, v, _) = PLACES[start], PLACES[end]
            axes.add_patch(
                FancyArrowPatch(
                    (x, y),
                    (u, v),
                    arrowstyle="-|>",
                    mutation_scale=15,
                    lw=3 if len(parts) == 1 else 1.6,
                    color=BLACK if len(parts) == 1 else GREY,
                    shrinkA=30,
                    shrinkB=44 if abs(u - x) > abs(v - y) else 20,
                )
            )
            words = "\n".join(f"{part}: {text}" for part, text in parts.items())
            axes.text(*at, words, ha="center", va="center", fontsize=TEXT,
                      weight="bold" if len(parts) == 1 else "normal",
                      bbox={"fc": "white", "ec": "none", "pad": 1.5})  # fmt: skip
        for name, (x, y, text) in PLACES.items():
            height = 44 if "\n" in text else 32
            box(axes, x - 52, y - height / 2, 104, height, text, lit=name == "grpo")

    said = "; ".join(
        f"{start} to {end}: " + ", ".join(f"{part} {text}" for part, text in parts.items())
        for start, end, _, parts in WAYS
    )
    return static_figure(
        build,
        size=(900, 412),
        alt=f"Ways between methods, KL left out. {said}.",
        caption="What is exchanged on the way. Black and bold: one single choice. KL terms and "
        "the loss of PPO's critic are left out.",
    )


LINES = {
    "SAPO": (BLACK, "-"),
    "GMPO": (PURPLE, "--"),
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
        axes.set_xlabel("how far the policy has moved (1: the batch of this course)", fontsize=TEXT)
        axes.set_ylabel("cosine of the two pushes", fontsize=TEXT)

    said = "; ".join(
        f"{name} against {beside[name]} {values[0]:.2f} to {values[-1]:.2f}"
        for name, values in cosines.items()
    )
    return static_figure(
        build,
        size=(900, 300),
        alt=f"Cosine of the pushes from a fresh batch to the running one. {said}.",
        caption="On a fresh batch relatives are one. They part as the batch is used again.",
    )
