"""What a kept group costs as the policy gets better: in groups drawn, and in answers written."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import between, checked, one_of
from rlnb.classroom.figures import BLACK, GREY, ORANGE

__all__ = ["SIZES", "cheap_in_answers", "compute", "kept_groups_explorer"]

SIZES = (2, 4, 8, 16, 32, 64)
START = (-4.0, -2.0, 0.0, 2.0)  # logits of the four kinds of prompt
LATE = 6
CAPTION = (
    "Four kinds of prompt, equally many of each. Progress is added to the logit of each pass rate."
)


@checked(size=one_of(SIZES), progress=between(0, LATE))
def compute(size: int = 8, progress: float = 0) -> dict[str, Any]:
    """Chance that a group of `size` is mixed and the price of a kept one, for four kinds of prompt.

    Returns rates and teach (4,), groups (drawn per kept group), answers (written for it), and the
    arguments.

    >>> late = compute(8, 6)
    >>> round(late["groups"], 1), round(late["answers"])
    (5.0, 40)
    """
    rates = 1 / (1 + np.exp(-(np.array(START) + progress)))
    teach = 1 - rates**size - (1 - rates) ** size
    groups = float(1 / teach.mean())
    return {
        "size": size,
        "progress": progress,
        "rates": rates,
        "teach": teach,
        "groups": groups,
        "answers": groups * size,
    }


def build(figure, data):
    left = figure.add_axes((0.07, 0.2, 0.4, 0.68))
    right = figure.add_axes((0.66, 0.2, 0.31, 0.68))
    left.set(xlim=(-0.6, 3.6), ylim=(0, 1.09), xticks=(), yticks=(0, 0.25, 0.5, 0.75, 1))
    left.set_title("share of the groups that are mixed", fontsize=10.5, weight="bold")
    left.text(1.5, -0.24, "pass rate of the prompt", fontsize=10.5, ha="center")
    right.set(xlim=(1, 400), ylim=(1.6, -0.6), xscale="log")
    right.set_xticks((1, 10, 100), ("1", "10", "100"))
    right.set_yticks((0, 1), ("groups drawn", "answers written"))
    right.minorticks_off()
    right.set_title("price of one kept group (log scale)", fontsize=10.5, weight="bold")
    for axes in (left, right):
        axes.tick_params(labelsize=10.5)
    return {
        "teach": left.bar(range(4), [0] * 4, 0.6, color=GREY),
        "shares": [left.text(i, 0, "", ha="center", va="bottom", fontsize=10.5) for i in range(4)],
        "rates": [
            left.text(i, -0.1, "", ha="center", va="center", fontsize=10.5) for i in range(4)
        ],
        "price": right.barh((0, 1), [1, 1], 0.5, left=1, color=(BLACK, ORANGE)),
        "prices": [right.text(1, i, "", va="center", fontsize=11) for i in range(2)],
    }


def update(artists, data):
    for bar, text, share in zip(artists["teach"], artists["shares"], data["teach"], strict=True):
        bar.set_height(share)
        text.set(y=share + 0.01, text=f"{share:.2f}")
    for text, rate in zip(artists["rates"], data["rates"], strict=True):
        text.set_text(f"{rate:.3f}")
    prices = (data["groups"], data["answers"])
    for bar, text, price in zip(artists["price"], artists["prices"], prices, strict=True):
        bar.set_width(price - 1)
        text.set(x=price * 1.08, text=f"{price:.1f}")


def readout(data) -> str:
    return (
        f"G = {data['size']}: {100 * data['teach'].mean():.0f} % of groups are mixed; a kept one "
        f"costs {data['groups']:.1f} groups or {data['answers']:.0f} answers."
    )


def alt(data) -> str:
    kinds = ", ".join(
        f"{p:.3f}: {x:.2f}" for p, x in zip(data["rates"], data["teach"], strict=True)
    )
    start = f"Progress {data['progress']:g}. Pass rate and share of mixed groups, {kinds}."
    return f"{start} {readout(data)}"


def cheap_in_answers(data) -> bool:
    """Late, and fewer than 35 answers are written for a kept group."""
    return data["progress"] == LATE and data["answers"] < 35


def kept_groups_explorer() -> Explorer:
    """Group size, and how far the policy has come."""
    return Explorer(
        compute,
        build,
        update,
        {
            "progress": slider(0, 0, LATE, 1, "progress", "added to the logit of each pass rate"),
            "size": choice_slider(8, [(str(n), n) for n in SIZES], "group size G",
                                  "answers to one prompt"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 260),
    )  # fmt: skip
