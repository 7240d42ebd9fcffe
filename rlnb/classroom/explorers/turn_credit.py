"""How many trajectories a turn's credit needs: the final reward against a grader of turns."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import between, checked
from rlnb.classroom.figures import BLACK, GREY, ORANGE
from rlnb.toys.turns import additive_push, enough_trajectories

LONGEST, TOP = 64, 3000
CAPTION = (
    "Trajectories until the push on the first turn is twice as large as its spread. The dot is "
    "where you stand."
)


@checked(turns=between(2, LONGEST), error=between(0, 0.5))
def compute(turns: int = 8, error: float = 0.1) -> dict[str, Any]:
    """Trajectories needed at this horizon: by the final reward, and by a grader of turns.

    error: the share of its verdicts that the grader of turns turns round; at 0.5 it needs inf.

    >>> found = compute(32, 0.25)
    >>> found["final"], found["graded"]
    (124.0, 12.0)
    """
    return {
        "turns": turns,
        "error": error,
        "final": enough_trajectories(*additive_push(turns)),
        "graded": enough_trajectories(*additive_push(turns, "turn", error=round(error, 2))),
    }


def build(figure, data):
    axes = figure.add_axes((0.1, 0.18, 0.56, 0.78))
    axes.set(xscale="log", yscale="log", xlim=(1.9, LONGEST * 1.08), ylim=(0.8, TOP))
    axes.set_xticks([2, 4, 8, 16, 32, 64], ["2", "4", "8", "16", "32", "64"])
    axes.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    axes.minorticks_off()
    axes.tick_params(labelsize=10.5)
    axes.set_xlabel("turns T (log scale)", fontsize=10.5)
    axes.set_ylabel("trajectories needed (log scale)", fontsize=10.5)
    x = np.arange(2, LONGEST + 1)
    axes.plot(x, 4 * (x - 1.0), color=BLACK, lw=2.6)
    artists: dict[Any, Any] = {}
    (artists["graded"],) = axes.plot([], [], color=ORANGE, ls="--", lw=2.8)
    (artists["at"],) = axes.plot([], [], color=GREY, lw=1, ls=":")
    (artists["dots"],) = axes.plot([], [], "o", color=BLACK, ms=8, mfc="white", mew=2)
    for k, (name, color, line, title) in enumerate((
        ("final", BLACK, "-", "the sum of all turns"),
        ("turn", ORANGE, "--", "a grader of turns"),
    )):  # fmt: skip
        y = 0.86 - 0.32 * k
        axes.plot([1.03, 1.13], [y - 0.1] * 2, color=color, ls=line, lw=2.8, clip_on=False,
                  transform=axes.transAxes)  # fmt: skip
        axes.text(1.03, y, title, fontsize=11, weight="bold", transform=axes.transAxes)
        artists[name, "n"] = axes.text(1.16, y - 0.1, "", fontsize=11, va="center",
                                       transform=axes.transAxes)  # fmt: skip
    artists["winner"] = axes.text(1.03, 0.16, "", fontsize=11, transform=axes.transAxes)
    return artists


def update(artists, data):
    graded = min(data["graded"], TOP * 10)
    artists["graded"].set_data([1.9, LONGEST * 1.08], [graded, graded])
    artists["at"].set_data([data["turns"]] * 2, [0.8, TOP])
    artists["dots"].set_data([data["turns"]] * 2, [data["final"], graded])
    artists["final", "n"].set_text(f"{_count(data['final'])} trajectories")
    artists["turn", "n"].set_text(f"{_count(data['graded'])} trajectories")
    artists["winner"].set_text(_winner(data))


def _count(n: float) -> str:
    return "no number of" if np.isinf(n) else f"{n:.1f}" if n < 20 else f"{n:.0f}"


def _winner(data) -> str:
    if abs(data["final"] - data["graded"]) < 1e-9:
        return "equally many"
    first = "the grader of turns" if data["graded"] < data["final"] else "the sum"
    return f"fewer: {first}"


def readout(data) -> str:
    return (
        f"T = {data['turns']}, grader wrong in {data['error']:.0%}: the sum of all turns needs "
        f"{_count(data['final'])} trajectories, the grader of turns {_count(data['graded'])}; "
        f"{_winner(data)}."
    )


def alt(data) -> str:
    return f"Trajectories needed against the number of turns, log scales. {readout(data)}"


def careless_and_still_better(data) -> bool:
    """32 turns, and the worst grader that still needs fewer."""
    return data["turns"] == 32 and data["error"] > 0.405 and data["graded"] < data["final"]


def turn_credit_explorer() -> Explorer:
    """How many turns, and how often the grader of turns is wrong."""
    return Explorer(
        compute,
        build,
        update,
        {
            "turns": slider(8, 2, LONGEST, 1, "turns T", "the first turn's push is looked at"),
            "error": slider(0.1, 0.0, 0.5, 0.01, "grader wrong",
                            "the share of its verdicts on turns that are turned round"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 300),
    )  # fmt: skip
