"""A model that is right once in a hundred learns from its own graded answers: what a start costs.

400 runs for every setting, all with the same random numbers, so that a run meets its first right
answer after the same number of answers whatever the setting is: until then nothing has moved it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice, choice_slider
from rlnb.classroom.explorers.arguments import above, checked, echoing, one_of
from rlnb.classroom.figures import BLACK, BLUE, GREY

__all__ = ["compute", "frugal", "slow_start_explorer"]

FIRST = np.array([0.006, 0.004, 0.5, 0.49])  # the page's second model; the first two are right
RUNS, BUDGET = 400, 3200  # runs side by side, answers each of them may write
SIZES = (1, 2, 4, 8, 16, 32, 64)
RATES = (0.25, 0.5, 1.0, 2.0, 4.0)
DIVISORS = {"all": "all answers (graded)", "right": "right ones (right_only)"}
GOOD, DONE = 0.9, 0.995  # the chance that is asked for; where a curve is long enough
TEXT = 10.5
CAPTION = (
    "Mean chance of a right answer over 400 runs; a dot where it passes 0.9. The axis of answers "
    "is logarithmic. Grey: the share of runs that have met a right answer of their own, the same "
    "for every setting."
)


@lru_cache(maxsize=1)
def _numbers():
    """A random number for each answer of each run, spread evenly over the runs: (RUNS, BUDGET)."""
    rng = np.random.default_rng(24)  # of 30 seeds the one whose _met is nearest to 1 - 0.99**N
    ranks = rng.permuted(np.tile(np.arange(RUNS), (BUDGET, 1)), axis=1).T
    return (ranks + rng.random((RUNS, BUDGET))) / RUNS


@lru_cache(maxsize=1)
def _met():
    """Share of runs with a right answer among their first N, for N = 1 ... BUDGET."""
    right = _numbers() < FIRST[:2].sum()
    return np.maximum.accumulate(right, axis=1).mean(0)


def _softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _climb(size: int, rate: float, divisor: str, taught: bool):
    """Mean chance of a right answer before and after each step."""
    z, chance = np.tile(np.log(FIRST), (RUNS, 1)), []
    for step in range(BUDGET // size + 1):
        pi = _softmax(z)
        own = pi[:, 0] + pi[:, 1]
        chance.append(own.mean())
        if chance[-1] > DONE or step == BUDGET // size:
            break
        u = _numbers()[:, step * size : (step + 1) * size]
        seven = 0.5 if taught else pi[:, :1]
        right = u <= 1 if taught else u < own[:, None]
        push = np.zeros_like(z)
        push[:, 0] = (u < seven).sum(1)
        push[:, 1] = right.sum(1) - push[:, 0]
        count = push.sum(1, keepdims=True)
        push -= count * pi
        z = z + rate * push / (size if divisor == "all" else np.maximum(count, 1))
    return np.array(chance)


def _passes(chance, size: int) -> int | None:
    """After how many answers the mean chance is 0.9."""
    there = np.flatnonzero(chance >= GOOD)
    return int(there[0]) * size if len(there) else None


@echoing
@checked(size=one_of(SIZES), rate=above(0), divisor=one_of(DIVISORS))
def compute(size: int = 8, rate: float = 0.5, divisor: str = "all") -> dict[str, Any]:
    """Means of 400 runs that start at a chance of 0.01, `size` answers a step, 3,200 in all.

    `divisor`: a step divides the pushes of the right answers by the number of "all" answers or of
    the "right" ones. Returns own and taught, the mean chance of a right answer before and after
    each step with own answers and with the teacher's (they end when they pass 0.995), passed and
    taught_passed, the answers after which the chance is 0.9 (None: not so far), met (3200,), the
    share of runs with a right answer among their first 1, 2, ... own ones, and the arguments.

    >>> compute()["passed"], compute(8, 0.5, "right")["passed"]
    (2128, 536)
    """
    own = _climb(size, rate, divisor, taught=False)
    taught = _climb(size, rate, divisor, taught=True)
    return {
        "own": own,
        "taught": taught,
        "passed": _passes(own, size),
        "taught_passed": _passes(taught, size),
        "met": _met(),
    }


def build(figure, data):
    axes = figure.add_axes((0.07, 0.18, 0.62, 0.77))
    axes.set_xscale("log")
    axes.set(xlim=(1, BUDGET), ylim=(0, 1.06), yticks=(0, 0.5, 0.9, 1))
    axes.set_xticks((1, 10, 100, 1000), ("1", "10", "100", "1,000"))
    axes.tick_params(labelsize=TEXT)
    axes.set_xlabel("answers per run", fontsize=TEXT)
    axes.set_ylabel("chance of a right answer", fontsize=TEXT)
    axes.axhline(GOOD, color=GREY, lw=0.8, ls=":")
    met = axes.plot(np.arange(1, BUDGET + 1), data["met"], color=GREY, ls="--", lw=2)[0]
    taught = axes.plot([1], [0], color=BLACK, lw=2.4, drawstyle="steps-post")[0]
    own = axes.plot([1], [0], color=BLUE, lw=3, drawstyle="steps-post")[0]
    handles = {
        "the teacher writes": taught,
        "the model writes": own,
        "runs that have met a\nright answer of their own": met,
    }
    axes.legend(handles.values(), handles.keys(), loc="upper left", bbox_to_anchor=(1.03, 0.95),
                fontsize=11, handlelength=2.6)  # fmt: skip
    dot = {"ls": "", "marker": "o", "ms": 9, "mec": BLACK}
    return {
        "taught": taught,
        "own": own,
        "taught_dot": axes.plot([], [], color=BLACK, **dot)[0],
        "own_dot": axes.plot([], [], color=BLUE, **dot)[0],
    }


def _along(chance, size: int):
    """Answers written at each step; the first model is drawn at 1, as a log axis has no 0."""
    return np.concatenate([[1], np.arange(1, len(chance)) * size]), chance


def update(artists, data):
    for name in ("taught", "own"):
        artists[name].set_data(*_along(data[name], data["size"]))
    for name, passed in (("taught_dot", data["taught_passed"]), ("own_dot", data["passed"])):
        chance = data[name.removesuffix("_dot")]
        at = [] if passed is None else [passed]
        artists[name].set_data(at, [chance[x // data["size"]] for x in at])


def _said(passed: int | None, size: int, whose: str) -> str:
    if passed is None:
        return f"not in {BUDGET:,} {whose} answers"
    return f"{passed:,} {whose} answers ({passed // size:,} steps)"


def readout(data) -> str:
    own = _said(data["passed"], data["size"], "own")
    return f"mean chance 0.9 after: {own}; {_said(data['taught_passed'], data['size'], 'teacher')}"


def alt(data) -> str:
    early, late = data["met"][[99, 299]]
    return (
        f"Mean chance of a right answer against answers per run, {data['size']} a step, rate "
        f"{data['rate']:g}, divided by the number of {DIVISORS[data['divisor']]}. "
        f"{readout(data).capitalize()}. A grey curve, the share of runs that have met a right "
        f"answer of their own, is {early:.2f} after 100 answers and {late:.2f} after 300."
    )


def frugal(data) -> bool:
    """A mean chance of 0.9 after 300 answers or fewer, and 25 steps or fewer."""
    passed = data["passed"]
    return passed is not None and passed <= 300 and passed // data["size"] <= 25


def slow_start_explorer() -> Explorer:
    """How many answers a step, how far a step goes, and by what it divides."""
    return Explorer(
        compute,
        build,
        update,
        {
            "size": choice_slider(
                8, [(str(n), n) for n in SIZES], "answers a step", "before the logits move"
            ),
            "rate": choice_slider(
                0.5, [(f"{r:g}", r) for r in RATES], "learning rate", "the length of a step"
            ),
            "divisor": choice(
                "all", [(said, name) for name, said in DIVISORS.items()], "divided by",
                "the number of answers that the sum of pushes is divided by",
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 285),
    )  # fmt: skip
