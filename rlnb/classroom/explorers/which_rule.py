"""How many of three hundred policies each correction leaves behind, by engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider
from rlnb.classroom.explorers.arguments import checked, one_of
from rlnb.classroom.figures import BLACK, GREY, WINE
from rlnb.classroom.left_behind import DRAWS, ENGINES, LASTS, RULES, SEEN, recorded

CAPTION = (
    "Policies of 300 below a reward of 0.8 after 60 steps. Dotted: without a correction; darker "
    "bars are beyond it. IcePop's wide band is a preset of verl and OpenRLHF, the narrow GLM-5's."
)
PLAIN, CAPPED = "no correction", "answer capped at 2"
SHOWN = [rule for rule in RULES if not rule.startswith("answer masked")]  # those the page explains


@checked(engine=one_of(ENGINES), lasts=one_of(LASTS))
def compute(engine: str = "mild: 20 % flipped", lasts: str = "the whole run") -> dict[str, Any]:
    """behind, by rule the policies below 0.8 after 60 steps, and the arguments.

    >>> compute("harsh: all flipped, far")["behind"]["no correction"]
    121
    """
    rows = recorded()[engine][lasts]
    behind = {rule: rows[rule]["lost"][0] for rule in SHOWN}
    return {"engine": engine, "lasts": lasts, "behind": behind}


def build(figure, data):
    axes = figure.add_axes((0.22, 0.17, 0.74, 0.79))
    axes.set(xlim=(0, DRAWS), ylim=(len(SHOWN) - 0.4, -0.6))
    axes.set_yticks(range(len(SHOWN)), SHOWN)
    axes.set_xlabel("policies left behind, of 300", fontsize=10.5)
    axes.tick_params(labelsize=10.5)
    at = np.arange(len(SHOWN))
    return {
        "bars": axes.barh(at, np.zeros(len(SHOWN)), 0.72, zorder=2),
        "counts": [axes.text(0, y, "", va="center", fontsize=10.5, zorder=3) for y in at],
        "plain": axes.axvline(0, color=BLACK, lw=1, ls=":"),
    }


def update(artists, data):
    counts, plain = data["behind"], data["behind"][PLAIN]
    rows = zip(artists["bars"], artists["counts"], counts.values(), strict=True)
    for bar, text, count in rows:
        bar.set_width(count)
        bar.set_facecolor(WINE if count > plain else GREY)
        text.set_text(str(count))
        text.set_x(count + 3)
    artists["plain"].set_xdata([plain, plain])


def readout(data) -> str:
    counts = data["behind"]
    return (
        f"Behind after {SEEN[0]} steps: {counts[PLAIN]} with no correction, "
        f"{counts['exact weight']} exact weight, {counts['TIS, cap 2']} TIS, {counts[CAPPED]} "
        "answer capped."
    )


def alt(data) -> str:
    each = ", ".join(f"{rule} {count}" for rule, count in data["behind"].items())
    return (
        f"Of {DRAWS} policies below 0.8 after {SEEN[0]} steps. Engine: {data['engine']}, "
        f"flips last {data['lasts']}. {each}."
    )


def which_rule_explorer() -> Explorer:
    """The engine, and how long its flips last."""
    return Explorer(
        compute,
        build,
        update,
        {
            "engine": choice_slider("mild: 20 % flipped", [(name, name) for name in ENGINES],
                                    "engine", "share of flipped prefixes; far: a larger gap"),
            "lasts": choice_slider("the whole run", [(name, name) for name in LASTS],
                                   "the flips last", "then others are drawn"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 270),
    )  # fmt: skip
