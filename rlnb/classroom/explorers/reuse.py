"""Thirty batches in a row: what steps per batch, learning rate and the clip make of them.

The toy of page 06. A softmax over fifty answers; answer i is right with chance q_i. A batch is 64
answers, graded 0 or 1, and the advantage is the reward minus the batch's mean.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice, choice_slider
from rlnb.classroom.explorers.arguments import above, at_least, checked, one_of
from rlnb.classroom.figures import BLACK, GREEN, GREY, WINE

__all__ = [
    "alt", "broken_with_clip", "build", "compute", "readout", "reuse_explorer", "saved_without",
    "update",
]  # fmt: skip

BATCHES, ANSWERS, SEEDS, EPSILON = 30, 64, 20, 0.2
SHOWN = 6  # thin lines
RIGHT = np.linspace(0.3, 0.7, 50)
STEPS = (1, 2, 4, 8, 14, 30)
RATES = (1.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
RULES = ("no clip", "clip and min")
COLORS = {"no clip": GREEN, "clip and min": WINE}
CAPTION = (
    "Left: 30 batches in a row; thick the mean of 20 seeds, thin six of them. Right: the largest "
    "ratio of each batch's own answers after its last step, middle of the seeds; grey: the band."
)


def _start() -> np.ndarray:
    dice = torch.Generator().manual_seed(99)
    return torch.randn(50, generator=dice, dtype=torch.float64).numpy()


def _log_softmax(z: np.ndarray) -> np.ndarray:
    z = z - z.max(1, keepdims=True)
    return z - np.log(np.exp(z).sum(1, keepdims=True))


@lru_cache(maxsize=256)
def _train(rule: str, steps: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Chance to be right (31, seeds); largest ratio of the batch's answers (30, seeds)."""
    dice = np.random.default_rng(0)
    log_pi = _log_softmax(np.tile(_start(), (SEEDS, 1)))
    chance, largest = [np.exp(log_pi) @ RIGHT], []
    for _ in range(BATCHES):
        pi = np.exp(log_pi)
        drawn = dice.multinomial(ANSWERS, pi / pi.sum(1, keepdims=True))  # (seeds, 50)
        right = dice.binomial(drawn, RIGHT)
        mean = right.sum(1, keepdims=True) / ANSWERS
        good, bad = right * (1 - mean) / ANSWERS, -(drawn - right) * mean / ANSWERS
        old = log_pi
        for _ in range(steps):
            ratio = np.exp(np.minimum(log_pi - old, 600))
            if rule == "no clip":
                push = ratio * (good + bad)
            else:
                push = ratio * (good * (ratio <= 1 + EPSILON) + bad * (ratio >= 1 - EPSILON))
            pi = np.exp(log_pi)
            log_pi = _log_softmax(log_pi + rate * (push - push.sum(1, keepdims=True) * pi))
        chance.append(np.exp(log_pi) @ RIGHT)
        moved = np.exp(np.minimum(log_pi - old, 600))
        largest.append(np.where(drawn > 0, moved, 0).max(1))
    return np.array(chance), np.array(largest)


@checked(rule=one_of(RULES), steps=at_least(1), rate=above(0))
def compute(rule: str = "no clip", steps: int = 30, rate: float = 10.0) -> dict[str, Any]:
    """Train 20 seeds for 30 batches, `steps` gradient steps of size `rate` on each.

    Returns chance (31, 20), the true chance of a right answer after each batch; largest (30,), the
    largest ratio among the batch's answers after its last step, middle of the seeds; end, the mean
    chance after the last batch; and the arguments.

    >>> compute("no clip", 30, 10)["end"] < compute("clip and min", 30, 10)["end"]
    True
    """
    chance, largest = _train(rule, int(steps), float(rate))
    return {
        "rule": rule, "steps": steps, "rate": rate, "chance": chance,
        "largest": np.median(largest, 1), "end": float(chance[-1].mean()),
    }  # fmt: skip


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    left = figure.add_axes((0.075, 0.18, 0.46, 0.77))
    left.set(xlim=(0, BATCHES), ylim=(0.28, 0.72), xticks=range(0, 31, 5))
    left.axhline(0.7, color=BLACK, lw=1, ls=":")
    left.text(0.4, 0.689, "the best of the fifty answers", fontsize=10.5, va="top")
    left.set_ylabel("chance to be right, exact", fontsize=11)
    right = figure.add_axes((0.63, 0.18, 0.35, 0.77))
    right.set(xlim=(0, BATCHES), yscale="log", ylim=(0.8, 200), xticks=range(0, 31, 10))
    right.set_yticks((1, 2, 5, 10, 100), ("1", "2", "5", "10", "100"))
    right.minorticks_off()
    right.axhspan(1 - EPSILON, 1 + EPSILON, color=GREY, alpha=0.35, lw=0)
    right.set_ylabel("largest ratio", fontsize=11)
    for axes in (left, right):
        axes.set_xlabel("batch", fontsize=11)
        axes.tick_params(labelsize=10.5)
    x = range(BATCHES + 1)
    return {
        "seeds": [left.plot(x, [0.5] * (BATCHES + 1), lw=0.8, alpha=0.6)[0] for _ in range(SHOWN)],
        "mean": left.plot(x, [0.5] * (BATCHES + 1), lw=3.2)[0],
        "largest": right.plot(x[1:], [1] * BATCHES, lw=2.6)[0],
    }


def update(artists, data):
    """The figure moved to new data."""
    color = COLORS[data["rule"]]
    for line, seed in zip(artists["seeds"], data["chance"].T, strict=False):
        line.set_ydata(seed)
        line.set_color(color)
    artists["mean"].set_ydata(data["chance"].mean(1))
    artists["largest"].set_ydata(np.clip(data["largest"], 0.8, 199))
    for name in ("mean", "largest"):
        artists[name].set_color(color)


def readout(data) -> str:
    """The numbers that change, as a sentence."""
    steps = "1 step" if data["steps"] == 1 else f"{data['steps']} steps"
    return (
        f"{data['rule']}, {steps} a batch, rate {data['rate']:g}: ends at {data['end']:.2f}; "
        f"largest ratio in the first batch {data['largest'][0]:.1f}"
    )


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    start = data["chance"][0, 0]
    return f"Chance to be right over thirty batches, start {start:.2f}. {readout(data)}."


def saved_without(data) -> bool:
    """Thirty steps a batch without a clip, and no ruin."""
    return data["rule"] == "no clip" and data["steps"] == 30 and data["end"] >= 0.6


def broken_with_clip(data) -> bool:
    """Thirty steps with the clip, and ruin all the same."""
    return data["rule"] == "clip and min" and data["steps"] == 30 and data["end"] < 0.57


def reuse_explorer() -> Explorer:
    """The rule, the steps on each batch, the learning rate."""
    return Explorer(
        compute,
        build,
        update,
        {
            "rule": choice("no clip", [(name, name) for name in RULES], "the rule",
                           "what each step climbs"),
            "steps": choice_slider(30, [(str(k), k) for k in STEPS], "steps a batch",
                                   "gradient steps on the same 64 answers"),
            "rate": choice_slider(10.0, [(f"{r:g}", r) for r in RATES], "learning rate",
                                  "size of a step"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 300),
    )  # fmt: skip
