"""Who waits for whom: answers of random length, a trainer, and how far behind answers may be.

`slots` answers are written at once. A trainer takes `batch` finished answers, the first that are
done, works for `train` and so makes the next version of the policy. Answer number n (from 0) may be
begun while version v is the newest if

    n < (v + 1 + lag) * batch

With `in_order` the trainer takes the answers in the order in which they were begun, and waits for
the slowest of a batch: version n // batch learns from number n, so no age exceeds lag (rounded up).

lag = 0 is synchronous: every answer of a batch is begun by the version that learns from it, and the
next one waits. lag = 0.5 lets half a batch be begun ahead. AReaL, arXiv 2505.24298, limits
submission like this, with eta for lag. Time is in units of the mean answer; lengths are lognormal
with mean 1 and `tail` the std of their log. A slot always writes at the same speed, however many
others write, and new weights reach the slots at once and cost nothing: a model, not a measurement.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

__all__ = ["Answer", "Timeline", "lengths", "simulate", "stretched"]


@dataclass(frozen=True)
class Answer:
    """One answer: its slot, when it was begun and finished, by which version it was begun."""

    slot: int
    begun: float
    finished: float
    version: int


@dataclass(frozen=True)
class Timeline:
    """What happened. trained[v] are the answers that version v learned from, between
    steps[v] = (begin, end) of the trainer. written: all answers that were begun, in that order."""

    slots: int
    trained: tuple[tuple[Answer, ...], ...]
    steps: tuple[tuple[float, float], ...]
    written: tuple[Answer, ...]

    @property
    def time_per_step(self) -> float:
        """Mean over the second half of the steps, when the start is forgotten."""
        half = len(self.steps) // 2
        return (self.steps[-1][1] - self.steps[half - 1][1]) / (len(self.steps) - half)

    @property
    def busy(self) -> float:
        """Share of the slots' time in which they wrote, over the same steps."""
        half = len(self.steps) // 2
        low, high = self.steps[half - 1][1], self.steps[-1][1]
        wrote = sum(max(0.0, min(a.finished, high) - max(a.begun, low)) for a in self.written)
        return wrote / (self.slots * (high - low))

    @property
    def unused(self) -> float:
        """Answers begun and not yet taken at the moment of an update, mean over the same steps."""
        half = len(self.steps) // 2
        taken = {a: self.steps[v][0] for v, batch in enumerate(self.trained) for a in batch}
        counts = [
            sum(a.begun < end <= taken.get(a, np.inf) for a in self.written)
            for _, end in self.steps[half - 1 : -1]
        ]
        return float(np.mean(counts))

    @property
    def staleness(self) -> np.ndarray:
        """Versions between begin and use, of the answers of the second half: (n,) whole numbers."""
        half = len(self.steps) // 2
        return np.array([v - a.version for v in range(half, len(self.steps))
                         for a in self.trained[v]])  # fmt: skip


def lengths(n: int, tail: float, seed: int = 0) -> np.ndarray:
    """(n,) lognormal lengths with mean 1: exp(tail z - tail^2 / 2)."""
    return np.exp(tail * np.random.default_rng(seed).standard_normal(n) - tail**2 / 2)


def stretched(taken: Sequence[float], slots: int) -> tuple[float, float]:
    """(time until all are done, share of the slots' time that was used): every slot takes the next
    of `taken` as soon as it is free.

    >>> stretched([1.0, 1.0, 4.0, 1.0], 2)           # 1 1 1 beside 4
    (5.0, 0.7)
    """
    free = [0.0] * slots
    for length in taken:
        heapq.heapreplace(free, free[0] + length)
    end = max(free)
    return end, float(sum(taken)) / (slots * end)


def simulate(
    slots: int,
    batch: int,
    lag: float,
    tail: float,
    train: float = 0.5,
    steps: int = 24,
    seed: int = 0,
    in_order: bool = False,
) -> Timeline:
    """A run of `steps` trainer steps. in_order: the trainer takes the answers as they were begun,
    not as they are done. Raises ValueError for a number that makes no sense."""
    given = {"slots": (slots, 1), "batch": (batch, 1), "lag": (lag, 0), "tail": (tail, 0),
             "train": (train, 0), "steps": (steps, 2)}  # fmt: skip
    for name, (value, least) in given.items():
        if value < least:
            raise ValueError(f"{name} must be {least} or more, got {value}.")
    drawn = iter(lengths(ceil((steps + lag + 1) * batch), tail, seed))
    idle = list(range(slots))
    writing: list[tuple[float, int, Answer]] = []  # a heap by the time they finish
    ready: list[tuple[int, Answer]] = []  # in the order in which the trainer takes them
    trained: list[tuple[Answer, ...]] = []
    written: list[Answer] = []
    done: list[tuple[float, float]] = []
    now, begun, version, until = 0.0, 0, 0, None  # until: when the trainer is done, None: it waits
    while len(done) < steps:
        while idle and begun < (version + 1 + lag) * batch:
            answer = Answer(idle.pop(0), now, now + float(next(drawn)), version)
            heapq.heappush(writing, (answer.finished, begun, answer))
            written.append(answer)
            begun += 1
        last = (len(done) + 1) * batch  # in order: a batch is complete with all numbers below this
        if until is None and len(ready) >= batch and (not in_order or ready[batch - 1][0] < last):
            trained.append(tuple(answer for _, answer in ready[:batch]))
            del ready[:batch]
            until = now + train
            done.append((now, until))
            continue
        if until is not None and (not writing or until <= writing[0][0]):
            now, until, version = until, None, version + 1
            continue
        now, number, answer = heapq.heappop(writing)
        insort(idle, answer.slot)
        if in_order:
            insort(ready, (number, answer), key=lambda item: item[0])
        else:
            ready.append((number, answer))
    return Timeline(slots, tuple(trained), tuple(done), tuple(written))
