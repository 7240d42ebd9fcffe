"""ScaleRL's sigmoid: from how much compute on does the fit know the ceiling?"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import above, at_least, between, checked, echoing
from rlnb.classroom.figures import BLACK, BLUE, GREY, ORANGE, SKY, VERMILLION
from rlnb.toys.scaling import Sigmoid, ceiling_error, fit_sigmoids

__all__ = [
    "CAPTION",
    "KNOWN",
    "NOISES",
    "POINTS",
    "RUNS",
    "SEEN",
    "TRUE",
    "alt",
    "build",
    "compute",
    "scaling_fit_explorer",
    "update",
]

TRUE = Sigmoid(ceiling=0.6, exponent=1.5, midpoint=20.0, start=0.1)
POINTS = 100  # evaluations, equally spaced up to the whole compute
RUNS = 24  # runs behind the band; a seed is one more
SEEN = (6, 8, 10, 12, 15, 18, 22, 26, 30, 35, 41, 50, 62, 80, 100)
NOISES = (0.002, 0.005, 0.01, 0.02, 0.03)
LONGEST, SHOWN = 400.0, 140
KNOWN = 0.01  # a standard error below which the ceiling counts as known
CAPTION = (
    "Before the midpoint (20 %) almost any ceiling fits; from twice the midpoint on the fits close "
    "in. At noise 0.01 the ceiling is known to 0.01 from 77 % of the compute on, at 0.002 from "
    "36 %. Near the midpoint the sd of the 24 runs lies off the theory: their errors are skewed, "
    "and stop at 1. The true curve is an exact sigmoid here; a real one need not be."
)


@functools.cache
def _theory(noise: float) -> np.ndarray:
    """Standard error of the ceiling for 6, 7, ... POINTS points."""
    whole = np.arange(1.0, POINTS + 1)
    return np.array([ceiling_error(whole[:n], TRUE, noise) for n in range(SEEN[0], POINTS + 1)])


@functools.cache
def _others(seen: int, noise: float) -> np.ndarray:
    """(RUNS, 4) the fits behind the band; no seed moves them."""
    budget = np.arange(1.0, seen + 1)
    draws = np.random.default_rng(0).standard_normal((RUNS, POINTS))[:, :seen]
    return fit_sigmoids(budget, TRUE(budget) + noise * draws)


@echoing
@checked(seen=between(4, POINTS, "points"), noise=above(0), seed=at_least(0))
def compute(seen: int = 26, noise: float = 0.01, seed: int = 0) -> dict[str, Any]:
    """A run whose true curve is known, its first part, and the sigmoids that fit it.

    True: ceiling 0.6, start 0.1, exponent 1.5, midpoint 20 (thousand GPU hours); 100 evaluations
    up to 100, each with normal noise of standard deviation `noise`. `seen`: how many are known,
    so also the per cent of the compute. The fit keeps the ceiling at 1 or below.

    Returns `points` (seen,) of run `seed`; `fit`, its parameters (4,) in Sigmoid's order;
    `fits` (24, 4) of other runs; `curves` (25, 140) at `at`, the fit first; `ceiling` mean,
    `spread` sd over the 24, `at_bound` how many sit at 1; `error`, the standard error in theory;
    `known_from`, the first number of points with an error below 0.01, or None; the arguments.
    """
    budget = np.arange(1.0, seen + 1)
    clean = TRUE(budget)
    own = clean + noise * np.random.default_rng([1, seed]).standard_normal(POINTS)[:seen]
    every = np.vstack([fit_sigmoids(budget, own[None]), _others(seen, noise)])
    at = np.geomspace(1.0, LONGEST, SHOWN)
    share = 1 / (1 + (every[:, 2:3] / at) ** every[:, 1:2])
    ceilings = every[1:, 0]
    theory = _theory(noise)
    below = np.flatnonzero(theory < KNOWN)
    return {
        "budget": budget,
        "points": own,
        "fit": every[0],
        "fits": every[1:],
        "at": at,
        "curves": every[:, 3:4] + (every[:, :1] - every[:, 3:4]) * share,
        "ceiling": float(ceilings.mean()),
        "spread": float(ceilings.std()),
        "at_bound": int((ceilings > 1 - 1e-9).sum()),
        "error": ceiling_error(budget, TRUE, noise),
        "theory": theory,
        "known_from": int(below[0]) + SEEN[0] if len(below) else None,
        "reached": TRUE(float(seen)) / TRUE.ceiling,
    }


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    left = figure.add_axes((0.065, 0.3, 0.55, 0.6))
    right = figure.add_axes((0.715, 0.3, 0.27, 0.6))
    left.set(
        xscale="log",
        xlim=(1, LONGEST),
        ylim=(0, 1.03),
        ylabel="reward (pass rate)",
        xlabel="compute, thousand GPU hours (log scale)",
    )
    left.set_xticks([1, 3, 10, 20, 100, 400], ["1", "3", "10", "20", "100", "400"])
    left.minorticks_off()
    left.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    right.set(
        yscale="log",
        xlim=(0, POINTS),
        ylim=(1e-3, 1),
        xlabel="per cent of the compute seen",
        ylabel="error of the ceiling",
    )
    right.set_yticks([1e-3, 1e-2, 1e-1, 1], ["0.001", "0.01", "0.1", "1"])
    right.minorticks_off()
    at = data["at"]
    left.plot(at, TRUE(at), color=BLACK, lw=1.4, ls="--", label="true curve")
    left.axhline(TRUE.ceiling, color=GREY, lw=0.9, ls=":")
    left.text(1.1, TRUE.ceiling + 0.012, "true ceiling 0.60", fontsize=9, color=GREY)
    left.axvline(TRUE.midpoint, color=GREY, lw=0.9, ls=":")
    left.text(TRUE.midpoint * 1.04, 0.012, "midpoint", fontsize=9, color=GREY)
    right.axhline(KNOWN, color=GREY, lw=0.9, ls=":")
    right.axvline(TRUE.midpoint, color=GREY, lw=0.9, ls=":")
    artists = {
        "band": left.fill_between(at, at * 0, at * 0 + 1, color=SKY, alpha=0.45, lw=0),
        "fit": left.plot([], [], color=BLUE, lw=2.2)[0],
        "points": left.plot([], [], "o", ms=3.5, color=VERMILLION, mec="white", mew=0.3)[0],
        "theory": right.plot([], [], color=BLACK, lw=1.6)[0],
        "spread": right.plot([], [], "D", ms=8, color=ORANGE, mec="black", clip_on=False)[0],
    }
    for row in range(2):
        artists["text", row] = figure.text(0.065, 0.115 - 0.06 * row, "", fontsize=9.5)
    figure.legend(
        handles=[
            left.plot([], [], "o", ms=5, color=VERMILLION, label="seen, this seed")[0],
            left.plot([], [], color=BLUE, lw=2.2, label="its fit")[0],
            left.fill_between(
                [],
                [],
                [],
                color=SKY,
                alpha=0.45,
                lw=0,
                label=f"fits of {RUNS} runs, lowest to highest",
            ),
            left.plot([], [], color=BLACK, lw=1.4, ls="--", label="true")[0],
            right.plot([], [], color=BLACK, lw=1.6, label="error, theory")[0],
            right.plot(
                [], [], "D", ms=7, color=ORANGE, mec="black", ls="none", label=f"sd of the {RUNS}"
            )[0],
        ],
        loc="upper center",
        ncols=6,
        bbox_to_anchor=(0.52, 1.005),
        columnspacing=1.2,
        handlelength=1.8,
    )
    return artists


def update(artists, data):
    """The figure moved to new data."""
    at, curves = data["at"], data["curves"]
    low, high = curves[1:].min(0), curves[1:].max(0)
    outline = np.concatenate([np.stack([at, low], 1), np.stack([at, high], 1)[::-1]])
    artists["band"].set_verts([outline])
    artists["fit"].set_data(at, curves[0])
    artists["points"].set_data(data["budget"], data["points"])
    artists["theory"].set_data(np.arange(SEEN[0], POINTS + 1), data["theory"])
    artists["spread"].set_data([data["seen"]], [data["spread"]])
    first, second = _sentences(data)
    artists["text", 0].set_text(first)
    artists["text", 1].set_text(second)


def _sentences(data) -> tuple[str, str]:
    """Short: drawing the letters is most of the time of a move."""
    own, known = data["fit"], data["known_from"]
    since = f"below {KNOWN} from {known} % on" if known else f"never below {KNOWN}"
    return (
        f"seen {data['seen']} %, reward {data['reached']:.0%} of the ceiling.  "
        f"This fit: ceiling {own[0]:.3f}, exponent {own[1]:.2f}, midpoint {own[2]:.1f}",
        f"{RUNS} runs: ceiling {data['ceiling']:.3f} ± {data['spread']:.3f}, "
        f"{data['at_bound']} at the bound 1.  Theory: error {data['error']:.3f}, {since}",
    )


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    first, second = _sentences(data)
    return (
        f"Left: reward against compute on a log scale, the first {data['seen']} of {POINTS} "
        f"noisy points (sd {data['noise']:g}, seed {data['seed']}), their sigmoid, the range of "
        f"the fits of {RUNS} runs, and the true curve with ceiling 0.60. Right: the standard "
        f"error of the ceiling against the share seen. {first}. {second}.".replace("  ", " ")
    )


def scaling_fit_explorer() -> Explorer:
    """How much of the compute is seen, how noisy the evaluations are, and which run."""
    return Explorer(
        compute,
        build,
        update,
        {
            "seen": choice_slider(
                26,
                [(f"{n} %", n) for n in SEEN],
                "compute seen",
                "per cent of 100,000 GPU hours that the fit knows",
            ),
            "noise": choice_slider(
                0.01,
                [(f"{x:g}", x) for x in NOISES],
                "noise",
                "standard deviation of one evaluation",
            ),
            "seed": slider(0, 0, 20, 1, "seed", "which run is shown"),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 400),
    )
