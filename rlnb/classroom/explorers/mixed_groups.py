"""How often a group teaches: its size against the pass rate of its prompt, at one budget."""

from __future__ import annotations

from typing import Any

from rlnb.classroom.explorer import Explorer, choice_slider
from rlnb.classroom.explorers.arguments import between, checked, one_of
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, POSITIVE

BUDGET = 128
SIZES = (2, 4, 8, 16, 32, 64, 128)
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
CAPTION = "128 answers to prompts of one difficulty, cut into groups of G. Expected numbers."


@checked(size=one_of(SIZES), rate=between(0, 1))
def compute(size: int = 8, rate: float = 0.5) -> dict[str, Any]:
    """128 answers with chance `rate` to be right, in groups of `size`.

    Returns share (of groups that hold both kinds), groups, mixed (expected number of groups that
    teach), right and wrong (expected numbers of right and of wrong answers in mixed groups), and
    the arguments.

    >>> round(compute(8, 0.02)["right"], 2), round(compute(64, 0.02)["right"], 2)
    (2.56, 2.56)
    """
    share = 1 - rate**size - (1 - rate) ** size
    return {
        "size": size,
        "rate": rate,
        "share": share,
        "groups": BUDGET // size,
        "mixed": share * BUDGET / size,
        "right": BUDGET * rate * (1 - rate ** (size - 1)),
        "wrong": BUDGET * (1 - rate) * (1 - (1 - rate) ** (size - 1)),
    }


def build(figure, data):
    axes = figure.add_axes((0.26, 0.2, 0.66, 0.76))
    names = ("groups that teach, of 100", "right answers pushed up", "wrong answers pushed down")
    axes.set(xlim=(0, 128), ylim=(2.6, -0.6), xticks=range(0, 129, 16))
    axes.set_yticks(range(3), names)
    axes.tick_params(labelsize=11)
    axes.set_xlabel("expected number (the lower two: of 128 answers)", fontsize=10.5)
    axes.axvline(100, ymin=0.69, ymax=0.99, color=GREY, lw=1, ls=(0, (4, 2)))
    return {
        "bars": axes.barh(range(3), [0, 0, 0], 0.6, color=(BLACK, POSITIVE, NEGATIVE)),
        "numbers": [axes.text(0, i, "", va="center", fontsize=11.5) for i in range(3)],
    }


def update(artists, data):
    values = (100 * data["share"], data["right"], data["wrong"])
    for bar, number, value in zip(artists["bars"], artists["numbers"], values, strict=True):
        bar.set_width(value)
        inside = value > 110
        number.set(
            x=value + (-1.5 if inside else 1.5),
            text=f"{value:.1f}" if value > 10 else f"{value:.2f}",
        )
        number.set(ha="right" if inside else "left", color="white" if inside else BLACK)


def readout(data) -> str:
    return (
        f"Pass rate {data['rate']:g}, {data['groups']} groups of {data['size']}: "
        f"{100 * data['share']:.1f} % of them teach. A lone right answer gets A = "
        f"{(data['size'] - 1) ** 0.5:.2f}."
    )


def alt(data) -> str:
    return (
        f"{readout(data)} Of 128 answers, {data['right']:.2f} right ones are pushed up and "
        f"{data['wrong']:.2f} wrong ones pushed down, in expectation."
    )


def hard_and_heard(data) -> bool:
    """Four in five groups teach on a prompt that is right once in fifty."""
    return data["rate"] == 0.02 and data["share"] >= 0.8


def mixed_groups_explorer() -> Explorer:
    """Group size and pass rate."""
    return Explorer(
        compute,
        build,
        update,
        {
            "size": choice_slider(8, [(str(n), n) for n in SIZES], "group size G",
                                  "answers to one prompt"),
            "rate": choice_slider(0.5, [(f"{p:g}", p) for p in RATES], "pass rate p",
                                  "chance that one answer is right"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 250),
    )  # fmt: skip
