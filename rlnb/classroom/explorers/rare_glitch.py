"""A grader that is sharp on most answers and wild on a few: what its scores tell and select."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice_slider
from rlnb.classroom.explorers.arguments import between, checked, echoing, one_of
from rlnb.classroom.figures import BLACK, BLUE, GREY, ORANGE, WINE
from rlnb.toys.proxy import Grader

SHARES = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
SIZES = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0)
DRAWS = tuple(2**k for k in range(11))
SCORES = np.linspace(0, 12, 241)
TEXT = 10.5
CAPTION = (
    "Left: what a score says about gold, and in grey which scores the best of N has. Right: gold "
    "of the best of N; dotted, the same grader without glitches."
)


@cache
def _curve(share: float, size: float) -> tuple[float, ...]:
    grader = Grader(share, size)
    return tuple(grader.best_of(n) for n in DRAWS)


@echoing
@checked(share=between(0, 1), size=between(0.1, 100), n=one_of(DRAWS))
def compute(share: float = 0.02, size: float = 10.0, n: int = 64) -> dict[str, Any]:
    """The error has std 0.2, and std `size` on a `share` of the answers; gold has std 1.

    worth (241,): E[gold | score] over SCORES. seen (241,): density of the best of n's score.
    curve (11,): gold of the best of DRAWS. picked: of the best of n. accuracy: on pairs.
    fooled: how often the best of n is a glitch. peak: the
    N of DRAWS with the highest gold.

    >>> d = compute()
    >>> round(d["picked"], 2), round(d["accuracy"], 3), d["peak"]
    (1.41, 0.922, 32)
    """
    grader = Grader(share, size)
    score = torch.tensor(SCORES)
    seen = n * grader.below(score) ** (n - 1) * grader.density(score)
    curve = np.array(_curve(share, size))
    return {
        "worth": grader.worth(score).numpy(),
        "seen": seen.numpy(),
        "curve": curve,
        "picked": float(curve[DRAWS.index(n)]),
        "accuracy": grader.accuracy(),
        "fooled": grader.fooled(n),
        "peak": DRAWS[int(curve.argmax())],
    }


def build(figure, data):
    left = figure.add_axes((0.07, 0.2, 0.4, 0.75))
    left.set(xlim=(0, 12), ylim=(0, 4.2))
    left.set_xlabel("score", fontsize=TEXT)
    left.set_ylabel("gold to expect", fontsize=TEXT)
    left.text(11.9, 2.95, "grey: scores of the best of N", color=GREY, fontsize=TEXT, ha="right")
    right = figure.add_axes((0.56, 0.2, 0.42, 0.75))
    right.set(xlim=(-0.3, 10.3), ylim=(0, 4.2))
    right.set_xticks(range(0, 11, 2), [str(2**k) for k in range(0, 11, 2)])
    right.set_xlabel("N, answers to choose from", fontsize=TEXT)
    right.set_ylabel("gold of the best of N", fontsize=TEXT)
    for axes in (left, right):
        axes.tick_params(labelsize=TEXT)
    clean = np.array(_curve(0.0, 1.0))
    right.plot(range(11), clean, color=GREY, ls=":", lw=1.8)
    return {
        "seen": left.plot(SCORES, SCORES * 0, color=GREY, lw=1.2, ls="--")[0],
        "worth": left.plot(SCORES, SCORES * 0, color=BLUE, lw=2.8)[0],
        "curve": right.plot(range(11), clean, color=ORANGE, lw=2.8)[0],
        "dot": right.plot([0], [0], "o", color=BLACK, ms=9)[0],
        "picked": right.text(0, 0, "", fontsize=11.5, weight="bold", ha="center"),
        "fooled": left.text(11.9, 3.4, "", fontsize=11.5, ha="right"),
        "accuracy": left.text(11.9, 3.85, "", fontsize=11.5, weight="bold", ha="right",
                              color=WINE),
    }  # fmt: skip


def update(artists, data):
    artists["worth"].set_ydata(data["worth"])
    height = data["seen"] / data["seen"].max()
    artists["seen"].set_ydata(1.2 * height)
    artists["curve"].set_ydata(data["curve"])
    at = DRAWS.index(data["n"])
    artists["dot"].set_data([at], [data["picked"]])
    artists["picked"].set_text(f"{data['picked']:.2f}")
    artists["picked"].set_position((min(max(at, 0.4), 9.7), data["picked"] + 0.25))
    artists["accuracy"].set_text(f"right on {100 * data['accuracy']:.1f} % of pairs")
    artists["fooled"].set_text(f"{100 * data['fooled']:.0f} % of the winners are glitches")


def readout(data) -> str:
    return (
        f"Right on {100 * data['accuracy']:.1f} % of pairs. Best of {data['n']}: gold "
        f"{data['picked']:.2f}, {100 * data['fooled']:.0f} % are glitches. "
        f"Highest at N = {data['peak']}: {data['curve'].max():.2f}. "
        f"Best of 4: {data['curve'][DRAWS.index(4)]:.2f}."
    )


def alt(data) -> str:
    listed = ", ".join(f"{n}: {g:.2f}" for n, g in zip(DRAWS, data["curve"], strict=True))
    return (
        f"Glitches of std {data['size']:g} on {100 * data['share']:g} % of the answers. "
        f"{readout(data)} A score of 2 stands for gold {data['worth'][40]:.2f}, of 8 for "
        f"{data['worth'][160]:.2f}. Gold of the best of N, {listed}."
    )


def accurate_and_ruinous(data) -> bool:
    """Right on at least 93.2 % of pairs, and the best of 1,024 is worth less than that of 4."""
    return data["accuracy"] >= 0.932 and data["n"] == 1024 and data["picked"] < data["curve"][2]


def rare_glitch_explorer() -> Explorer:
    """How many glitches, how large, and the best of how many."""
    return Explorer(
        compute,
        build,
        update,
        {
            "share": choice_slider(
                0.02, [(f"{100 * q:g} %", q) for q in SHARES], "glitches", "share of the answers"
            ),
            "size": choice_slider(
                10.0, [(f"{s:g}", s) for s in SIZES], "size of a glitch",
                "std of the error, where gold has std 1",
            ),
            "n": choice_slider(64, [(str(n), n) for n in DRAWS], "N", "answers to choose from"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 290),
    )  # fmt: skip
