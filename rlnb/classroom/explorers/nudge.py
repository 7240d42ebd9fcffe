"""Measure a slope by nudging: a sampled reward before and after, the dice kept."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider
from rlnb.classroom.explorers.arguments import above, at_least, checked
from rlnb.classroom.figures import BLACK, GREY, ORANGE

__all__ = ["compute", "nudge_explorer", "small_and_right"]

START = np.array([0.2, 0.1, 0.4, 0.3])  # the page's policy; the first two answers are right
AT = float(np.log(START[0]))  # the logit of the first
OTHERS = float(1 - START[0])  # e^z of the other three, added
DRAWS = (1, 20, 100, 1000, 10_000)
NUDGES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
REACH = 2.6
GRID = np.linspace(AT - REACH, AT + REACH, 521)
TEXT = 10.5
CAPTION = (
    "A draw is right when its die, a number between 0 and 1, lies below the chance to be right. "
    "The same dice before and after the nudge. Orange: reward, and the slope measured between the "
    "two dots. Dashed: the expected reward."
)


def _chance(logit):
    """Chance of a right answer when the first logit is this."""
    first = np.exp(logit)
    return (first + START[1]) / (first + OTHERS)


@lru_cache(maxsize=8)
def _dice(draws: int):
    return np.sort(np.random.default_rng(3).random(draws))


def _reward(logit, draws: int):
    return np.searchsorted(_dice(draws), _chance(logit)) / draws


@checked(draws=at_least(1), nudge=above(0))
def compute(draws: int = 20, nudge: float = 1.0) -> dict[str, Any]:
    """The slope of the reward in one logit, measured from `draws` draws over a step of `nudge`.

    Returns logits (2,) and rewards (2,), before and after the nudge, measured and true slope,
    steps (521,) the mean reward against the logit with the same dice, and the arguments.

    >>> round(compute()["true"], 4)
    0.14
    """
    logits = np.array([AT - nudge / 2, AT + nudge / 2])
    rewards = _reward(logits, draws)
    right = START[0] + START[1]
    return {
        "draws": draws,
        "nudge": nudge,
        "logits": logits,
        "rewards": rewards,
        "measured": float(rewards[1] - rewards[0]) / nudge,
        "true": float(START[0] * (1 - right)),
        "steps": _reward(GRID, draws),
    }


def build(figure, data):
    axes = figure.add_axes((0.08, 0.19, 0.9, 0.77))
    axes.set(xlim=(GRID[0], GRID[-1]), ylim=(-0.04, 1.04), yticks=(0, 0.5, 1))
    axes.set_xticks(range(-4, 1))
    axes.tick_params(labelsize=TEXT)
    axes.set_xlabel("logit of “7”", fontsize=TEXT)
    axes.set_ylabel("mean reward of the draws", fontsize=TEXT)
    axes.plot(GRID, _chance(GRID), "--", color=BLACK, lw=1.8)
    axes.axvline(AT, color=GREY, lw=0.8, ls=":")
    return {
        "steps": axes.plot(GRID, GRID, color="#F3CF8B", lw=2.2, drawstyle="steps-mid")[0],
        "chord": axes.plot([0, 1], [0, 1], color=ORANGE, lw=2.6)[0],
        "ends": axes.plot([0, 1], [0, 1], "o", color=ORANGE, ms=8, mec=BLACK)[0],
    }


def update(artists, data):
    artists["steps"].set_ydata(data["steps"])
    x, y = data["logits"], data["rewards"]
    middle, reach = y.mean(), 1.2
    slope = data["measured"]
    artists["chord"].set_data(
        [AT - reach, AT + reach], [middle - slope * reach, middle + slope * reach]
    )
    artists["ends"].set_data(x, y)


def readout(data) -> str:
    return (
        f"measured slope {data['measured']:.3f}, true slope {data['true']:.3f} "
        f"({data['draws']:,} draws, nudge {data['nudge']:g})"
    )


def alt(data) -> str:
    before, after = data["rewards"]
    return (
        f"Mean reward of the draws against a logit, a staircase; between the two ends of the nudge "
        f"it goes from {before:.4f} to {after:.4f}: {readout(data)}."
    )


def small_and_right(data) -> bool:
    """A nudge of 0.1 or less, the slope within 10 %."""
    return data["nudge"] <= 0.1 and abs(data["measured"] / data["true"] - 1) <= 0.1


def nudge_explorer() -> Explorer:
    """How many draws, and how far the logit is moved."""
    return Explorer(
        compute,
        build,
        update,
        {
            "draws": choice_slider(
                20, [(f"{n:,}", n) for n in DRAWS], "draws", "each with a die that is kept"
            ),
            "nudge": choice_slider(
                1.0, [(f"{h:g}", h) for h in NUDGES], "nudge", "how far the logit is moved"
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 280),
    )
