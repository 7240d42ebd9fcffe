"""Three hundred batches in a row: what steps per batch, learning rate and the clip make of them.

The toy of page 06. A softmax over fifty answers; answer i is right with chance q_i. A batch is 64
answers, graded 0 or 1, and the advantage is the reward minus the batch's mean.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice_slider
from rlnb.classroom.explorers.arguments import above, at_least, checked
from rlnb.classroom.figures import BLACK, GREEN, GREY, WINE

__all__ = [
    "RATES", "alt", "build", "compute", "largest_that_holds", "readout", "reuse_explorer",
    "saved_without", "six_starts", "soonest", "update",
]  # fmt: skip

BATCHES, EARLY, ANSWERS, SEEDS, EPSILON, DUAL = 300, 30, 64, 40, 0.2, 3.0
SHOWN = 5  # thin lines of each rule
RIGHT = np.linspace(0.3, 0.7, 50)
STEPS = (1, 2, 4, 8, 14, 30)
RATES = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
RULES = ("no clip", "clip and min")
GRADERS = ("dice", "averaged", "exact")
LOOKS = {"no clip": (GREEN, "-"), "clip and min": (WINE, "--")}
STARTS = (99, 0, 1, 2, 3, 4)  # seeds of six starting policies; the first is the explorer's
ENOUGH = 0.65  # chance to be right at the end that the tasks ask for
CAPTION = (
    "300 batches of 64 answers, 40 seeds. Left: thick the mean, thin five seeds. Right: how many "
    "equally likely answers have the policy's entropy (its exponential; mean of the seeds)."
)


def _start(seed: int = STARTS[0]) -> np.ndarray:
    dice = torch.Generator().manual_seed(seed)
    return torch.randn(50, generator=dice, dtype=torch.float64).numpy()


def _log_softmax(z: np.ndarray) -> np.ndarray:
    z = z - z.max(1, keepdims=True)
    return z - np.log(np.exp(z).sum(1, keepdims=True))


def _pushing(rule: str, ratio: np.ndarray) -> tuple[np.ndarray | bool, np.ndarray | bool]:
    """Which copies that were graded right, and which that were graded wrong, still push."""
    if rule == "no clip":
        return True, True
    high, low = ratio <= 1 + EPSILON, ratio >= 1 - EPSILON
    if rule == "clip and min":
        return high, low
    if rule == "clip alone":
        return low & high, low & high
    if rule == "dual clip":
        return high, low & (ratio <= DUAL)
    raise ValueError(f"rule: no rule is called {rule!r}.")


@lru_cache(maxsize=256)
def _train(
    rule: str, steps: int, rate: float, starts: tuple[int, ...] = STARTS[:1],
    seeds: int = SEEDS, grader: str = "dice",
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Chance to be right and answers in play, (301, starts * seeds) each."""
    dice = np.random.default_rng(0)
    log_pi = _log_softmax(np.repeat([_start(seed) for seed in starts], seeds, axis=0))
    chance, alive = [], []
    for batch in range(BATCHES + 1):
        pi = np.exp(log_pi)
        chance.append(pi @ RIGHT)
        alive.append(np.exp(-(pi * log_pi).sum(1)))
        if batch == BATCHES:
            break
        drawn = dice.multinomial(ANSWERS, pi / pi.sum(1, keepdims=True))  # (rows, 50)
        right = dice.binomial(drawn, RIGHT)
        mean = right.sum(1, keepdims=True) / ANSWERS
        good, bad = right * (1 - mean) / ANSWERS, -(drawn - right) * mean / ANSWERS
        if grader != "dice":  # all copies of an answer have one advantage, so one sign
            net = good + bad
            if grader == "exact":
                paid = (drawn * RIGHT).sum(1, keepdims=True) / ANSWERS
                net = drawn * (RIGHT - paid) / ANSWERS
            good, bad = np.maximum(net, 0), np.minimum(net, 0)
        moved, ratio = np.zeros_like(log_pi), np.ones_like(log_pi)
        for _ in range(steps):
            up, down = _pushing(rule, ratio)
            push = ratio * (good * up + bad * down)
            moved = moved + rate * (push - push.sum(1, keepdims=True) * pi * ratio)
            ratio = np.exp(np.minimum(moved, 600))
            total = (pi * ratio).sum(1, keepdims=True)
            moved, ratio = moved - np.log(total), ratio / total
        log_pi = _log_softmax(log_pi + moved)
    return np.array(chance), np.array(alive)


def six_starts(
    rule: str, steps: int, rate: float, *, grader: str = "dice", seeds: int = 10
) -> np.ndarray:
    """Chance to be right after 300 batches, (6, seeds): six random starting policies.

    rule: "no clip", "clip alone", "clip and min" or "dual clip" (c = 3). steps, of size rate, are
    taken on each batch. grader: "dice" pays 0 or 1; "averaged" does too, but then all copies of one
    answer get their mean advantage; "exact" pays answer i its q_i. Raises ValueError for another
    rule or grader.
    """
    if grader not in GRADERS:
        raise ValueError(f"grader: expected one of {', '.join(GRADERS)}, got {grader!r}.")
    chance, _ = _train(rule, steps, float(rate), STARTS, seeds, grader)
    return chance[-1].reshape(len(STARTS), seeds)


def soonest(rule: str, steps: int, level: float = ENOUGH) -> int:
    """Batches until the mean chance of the six starts first reaches `level`, at the best rate.

    The smallest number over RATES, ten seeds a start. Raises ValueError where no rate gets there.
    """
    found = []
    for rate in RATES:
        chance = _train(rule, steps, rate, STARTS, 10, "dice")[0].mean(1)
        if (chance >= level).any():
            found.append(int((chance >= level).argmax()))
    if not found:
        raise ValueError(f"level: no rate brings {rule} with {steps} steps to {level}.")
    return min(found)


@checked(steps=at_least(1), rate=above(0))
def compute(steps: int = 30, rate: float = 10.0) -> dict[str, Any]:
    """Train 40 seeds for 300 batches under both rules, `steps` steps of size `rate` on each batch.

    Returns chance and alive, rule -> (301, 40): the true chance of a right answer after each batch
    and the exponential of the policy's entropy; early and end, rule -> the mean chance after 30
    and after 300 batches; and the arguments.

    >>> data = compute(1, 10.0)     # one step: every ratio is 1, so the rules are one
    >>> data["end"]["no clip"] == data["end"]["clip and min"]
    True
    """
    runs = {rule: _train(rule, int(steps), float(rate)) for rule in RULES}
    return {
        "steps": steps, "rate": rate,
        "chance": {rule: chance for rule, (chance, _) in runs.items()},
        "alive": {rule: alive for rule, (_, alive) in runs.items()},
        "early": {rule: float(chance[EARLY].mean()) for rule, (chance, _) in runs.items()},
        "end": {rule: float(chance[-1].mean()) for rule, (chance, _) in runs.items()},
    }  # fmt: skip


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    left = figure.add_axes((0.07, 0.18, 0.45, 0.77))
    left.set(ylim=(0.28, 0.73))
    left.axhline(0.7, color=BLACK, lw=1, ls=":")
    left.text(1.1, 0.704, "the best of the fifty answers", fontsize=10.5, va="bottom")
    left.set_ylabel("chance to be right", fontsize=11)
    right = figure.add_axes((0.61, 0.18, 0.37, 0.77))
    right.set(yscale="log", ylim=(0.9, 50))
    right.set_yticks((1, 2, 5, 10, 20, 50), ("1", "2", "5", "10", "20", "50"))
    right.set_ylabel("answers in play", fontsize=11)
    for axes in (left, right):
        axes.set(xscale="log", xlim=(1, BATCHES))
        axes.set_xticks((1, 3, 10, 30, 100, 300), ("1", "3", "10", "30", "100", "300"))
        axes.minorticks_off()
        axes.axvline(EARLY, color=GREY, lw=0.8)
        axes.set_xlabel("batches (log scale)", fontsize=11)
        axes.tick_params(labelsize=10.5)
    x = range(1, BATCHES + 1)
    artists: dict[str, Any] = {}
    for rule, (color, line) in LOOKS.items():
        look = {"color": color, "ls": line}
        artists[f"seeds, {rule}"] = [
            left.plot(x, [0.5] * BATCHES, lw=0.8, alpha=0.5, **look)[0] for _ in range(SHOWN)
        ]
        artists[f"mean, {rule}"] = left.plot(x, [0.5] * BATCHES, lw=3.2, **look)[0]
        artists[f"alive, {rule}"] = right.plot(x, [1] * BATCHES, lw=3.2, label=rule, **look)[0]
    right.legend(fontsize=10.5, loc="upper right")
    return artists


def update(artists, data):
    """The figure moved to new data."""
    for rule in RULES:
        chance, alive = data["chance"][rule][1:], data["alive"][rule][1:]
        for line, seed in zip(artists[f"seeds, {rule}"], chance.T, strict=False):
            line.set_ydata(seed)
        artists[f"mean, {rule}"].set_ydata(chance.mean(1))
        artists[f"alive, {rule}"].set_ydata(alive.mean(1))


def readout(data) -> str:
    """The numbers that change, as a sentence."""
    steps = "1 step" if data["steps"] == 1 else f"{data['steps']} steps"
    ends = "; ".join(f"{rule} {data['early'][rule]:.2f}, {data['end'][rule]:.2f}" for rule in RULES)
    return f"{steps} a batch, rate {data['rate']:g}. After 30 and 300 batches: {ends}"


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    start = data["chance"]["no clip"][0, 0]
    left = ", ".join(f"{rule} {data['alive'][rule][EARLY].mean():.1f}" for rule in RULES)
    return (
        f"Chance to be right over 300 batches, start {start:.2f}. {readout(data)}. "
        f"Answers in play after 30 batches: {left}."
    )


def saved_without(data) -> bool:
    """Thirty steps a batch without a clip, and no ruin."""
    return data["steps"] == 30 and data["end"]["no clip"] >= ENOUGH


def largest_that_holds(data) -> bool:
    """Four steps a batch at the last rate on the slider at which PPO ends at 0.65 or more."""
    if data["steps"] != 4 or data["end"]["clip and min"] < ENOUGH:
        return False
    higher = [rate for rate in RATES if rate > data["rate"]]
    return not higher or compute(4, higher[0])["end"]["clip and min"] < ENOUGH


def reuse_explorer() -> Explorer:
    """The steps on each batch and the learning rate; both rules are drawn."""
    return Explorer(
        compute,
        build,
        update,
        {
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
