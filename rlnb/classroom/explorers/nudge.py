"""Measure a slope by nudging: a sampled reward before and after, the dice kept.

Left, one throw of the dice. Right, what any other throw would read: the number of draws that change
from wrong to right within the nudge is binomial, so this is exact.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider
from rlnb.classroom.explorers.arguments import above, at_least, checked
from rlnb.classroom.figures import BLACK, GREY, ORANGE

__all__ = ["compute", "mostly_close", "nudge_explorer"]

START = np.array([0.2, 0.1, 0.4, 0.3])  # the page's policy; the first two answers are right
AT = float(np.log(START[0]))  # the logit of the first
OTHERS = float(1 - START[0])  # e^z of the other three, added
TRUE = float(START[0] * (1 - START[0] - START[1]))  # the slope of the expected reward
DRAWS = (1, 20, 100, 1000, 10_000)
NUDGES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
REACH = 4.3
GRID = np.linspace(AT - REACH, AT + REACH, 861)
CLOSE = 0.1  # how far off, relatively, a close reading is at most
BIN = 2 * CLOSE * TRUE  # so that the close readings are one bar
BINS = 21  # and one for all that is larger
NEAR = round(TRUE / BIN)  # the bar of the close ones
TEXT = 10.5
PALE_ORANGE = "#F3CF8B"
CAPTION = (
    "Left: a draw is right when its die, a number between 0 and 1, lies below the chance to be "
    "right; the slope is measured between the two dots, and the expected reward is dashed. Right: "
    "which slopes other dice would read. Dark: within 10 % of the true slope."
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


@lru_cache(maxsize=8)
def _log_choose(draws: int):
    """log of draws over k, for k from 0 to draws."""
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, draws + 1)))])
    return log_factorial[-1] - log_factorial - log_factorial[::-1]


def _shares(draws: int, nudge: float, chance: float):
    """How often a throw reads a slope of each bar, the last for all beyond: (BINS + 1,)."""
    k = np.arange(draws + 1)  # draws that the nudge turns from wrong to right
    log_pmf = _log_choose(draws) + k * np.log(chance) + (draws - k) * np.log1p(-chance)
    slopes = k / (draws * nudge)
    bars = np.floor(slopes / BIN + 0.5 + 1e-9).astype(int).clip(0, BINS)
    bars = np.where(np.abs(slopes - TRUE) <= CLOSE * TRUE + 1e-9, NEAR, bars)
    return np.bincount(bars, np.exp(log_pmf), minlength=BINS + 1)


@checked(draws=at_least(1), nudge=above(0))
def compute(draws: int = 20, nudge: float = 1.0) -> dict[str, Any]:
    """The slope of the reward in one logit, measured from `draws` draws over a step of `nudge`.

    Returns logits (2,) and rewards (2,), before and after the nudge, measured and true slope,
    chord, the mean of the measured slope over all throws, shares (22,) of all throws by the slope
    they read (bars of width 0.028, the first around 0, the last for all that is larger), close,
    the share within 10 % of the true slope, steps (861,) the mean reward against the logit with
    the same dice, and the arguments.

    >>> round(compute()["true"], 4), round(compute(100, 4.0)["close"], 2)
    (0.14, 0.69)
    """
    logits = np.array([AT - nudge / 2, AT + nudge / 2])
    rewards = _reward(logits, draws)
    chance = float(np.diff(_chance(logits))[0])
    shares = _shares(draws, nudge, chance)
    return {
        "draws": draws,
        "nudge": nudge,
        "logits": logits,
        "rewards": rewards,
        "measured": float(rewards[1] - rewards[0]) / nudge,
        "true": TRUE,
        "chord": chance / nudge,
        "shares": shares,
        "close": float(shares[NEAR]),
        "steps": _reward(GRID, draws),
    }


def build(figure, data):
    left = figure.add_axes((0.07, 0.19, 0.53, 0.7))
    left.set(xlim=(GRID[0], GRID[-1]), ylim=(-0.04, 1.04), yticks=(0, 0.5, 1))
    left.set_xticks(range(-5, 3))
    left.set_xlabel("logit of “7”", fontsize=TEXT)
    left.set_ylabel("mean reward of the draws", fontsize=TEXT)
    left.set_title("these dice", fontsize=TEXT, weight="bold")
    left.plot(GRID, _chance(GRID), "--", color=BLACK, lw=1.8)
    left.axvline(AT, color=GREY, lw=0.8, ls=":")
    right = figure.add_axes((0.69, 0.19, 0.29, 0.7))
    right.set(xlim=(-0.7, BINS + 0.9), ylim=(0, 1.12), yticks=(0, 0.5, 1))
    right.set_xticks((0, NEAR, 10, 15, BINS), ("0", f"{TRUE:.2f}", "0.28", "0.42", "more"))
    right.set_xlabel("slope that is read", fontsize=TEXT)
    right.set_ylabel("share of all throws", fontsize=TEXT)
    right.set_title("any other dice", fontsize=TEXT, weight="bold")
    for axes in (left, right):
        axes.tick_params(labelsize=TEXT)
    colors = [ORANGE if i == NEAR else PALE_ORANGE for i in range(BINS + 1)]
    edges = [BLACK if i == NEAR else GREY for i in range(BINS + 1)]
    return {
        "steps": left.plot(GRID, GRID, color=PALE_ORANGE, lw=2.2, drawstyle="steps-mid")[0],
        "chord": left.plot([0, 1], [0, 1], color=ORANGE, lw=2.6)[0],
        "ends": left.plot([0, 1], [0, 1], "o", color=ORANGE, ms=8, mec=BLACK)[0],
        "bars": right.bar(range(BINS + 1), [0] * (BINS + 1), 0.86, color=colors, ec=edges, lw=0.7),
        "value": right.text(NEAR, 0, "", ha="center", va="bottom", fontsize=12, weight="bold"),
    }


def update(artists, data):
    artists["steps"].set_ydata(data["steps"])
    x, y = data["logits"], data["rewards"]
    middle, reach = y.mean(), max(1.2, data["nudge"] / 2)
    slope = data["measured"]
    artists["chord"].set_data(
        [AT - reach, AT + reach], [middle - slope * reach, middle + slope * reach]
    )
    artists["ends"].set_data(x, y)
    for bar, share in zip(artists["bars"], data["shares"], strict=True):
        bar.set_height(share)
    artists["value"].set_text(f"{100 * data['close']:.0f} %")
    artists["value"].set_y(data["shares"][NEAR - 1 : NEAR + 2].max() + 0.02)


def readout(data) -> str:
    dice = "1 die" if data["draws"] == 1 else f"{data['draws']:,} dice"
    return (
        f"measured slope {data['measured']:.3f}, true slope {data['true']:.3f}; of all throws of "
        f"{dice}, {100 * data['close']:.0f} % come within 10 %"
    )


def alt(data) -> str:
    before, after = data["rewards"]
    return (
        f"Mean reward of the draws against a logit, a staircase; between the two ends of the nudge "
        f"of {data['nudge']:g} it goes from {before:.4f} to {after:.4f}. Beside it, how often any "
        f"other dice would read which slope: 0 in {100 * data['shares'][0]:.0f} % of the throws. "
        f"{readout(data).capitalize()}."
    )


def mostly_close(data) -> bool:
    """100 draws or fewer, and more than half of all throws within 10 % of the true slope."""
    return data["draws"] <= 100 and data["close"] > 0.5


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
        size=(900, 285),
    )
