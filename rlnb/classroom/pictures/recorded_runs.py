"""Recorded runs on the pages. The data ship with the course; nothing is trained here.

Each function has a twin that returns its numbers, for the printed table beside the picture.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from rlnb.training import data_folder, read, series

__all__ = [
    "BONUS_RUNS",
    "CONTROL_RUNS",
    "LENGTH_RUNS",
    "RUNS",
    "all_right",
    "by_difficulty",
    "curve",
    "evaluated",
    "every_seed",
    "final",
    "length_gap",
    "lengths",
    "records",
    "running_mean",
    "seeds",
    "waits",
]

WINDOW = 5  # steps of the running mean in the length figure: a step has few right answers
LENGTH_RUNS = {"GRPO": "pick_grpo", "Dr. GRPO": "pick_dr_grpo"}
CONTROL_RUNS = {"GRPO, coin flip": "pick_coin_flip_grpo"}
BONUS_RUNS = {"z-score": "chain_wait_bonus_zscore", "mean only": "chain_wait_bonus_mean"}
RUNS = LENGTH_RUNS | CONTROL_RUNS | BONUS_RUNS
TYPES_RUNS = {"z-score": "types_zscore", "mean only": "types_mean"}


def seeds(run: str) -> list[int]:
    """The seeds that were recorded. Raises FileNotFoundError, in a sentence, when there is none."""
    found = sorted((data_folder() / "runs").glob(f"{run}_seed*.jsonl"))
    if not found:
        raise FileNotFoundError(f"no recorded run {run}_seedN.jsonl in data/runs: see its README.")
    return [int(path.stem.rpartition("seed")[2]) for path in found]


@lru_cache
def records(run: str, seed: int) -> tuple[dict[str, Any], ...]:
    """One recorded run, as its file says it."""
    return tuple(read(data_folder() / "runs" / f"{run}_seed{seed}.jsonl"))


def curve(run: str, seed: int, name: str) -> np.ndarray:
    """(steps,) of one metric of the step records; nan where a step does not have it."""
    found = series(records(run, seed), name)
    last = max(r["step"] for r in records(run, seed) if r["record"] == "step")
    return np.array([found.get(step, np.nan) for step in range(1, last + 1)], dtype=float)


def final(run: str, name: str = "pass@1", step: int | None = None) -> list[float]:
    """One metric of the last held-out evaluation, or of the one at `step`; one number a seed.

    run: a file of data/runs without its _seedN.jsonl. Its README has the command and the set-up.

    >>> final("chain_dr_grpo")
    [0.923, 0.936, 0.943]
    """
    out = []
    for seed in seeds(run):
        found = series(records(run, seed), name, kind="eval")
        out.append(round(found[max(found) if step is None else step], 4))
    return out


def evaluations(run: str, name: str = "pass@1") -> tuple[list[int], np.ndarray]:
    """The steps of the held-out evaluations, and one metric of theirs, (seeds, evaluations)."""
    found = [series(records(run, seed), name, kind="eval") for seed in seeds(run)]
    return sorted(found[0]), np.array([[one[step] for step in sorted(found[0])] for one in found])


def running_mean(values: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """Mean over the last `window` steps, nan left out; shorter at the start.

    >>> running_mean(np.array([1.0, np.nan, 3.0, 5.0]), 2).tolist()
    [1.0, 1.0, 3.0, 4.0]
    """
    out = []
    for i in range(len(values)):
        some = values[max(0, i - window + 1) : i + 1]
        some = some[~np.isnan(some)]
        out.append(some.mean() if len(some) else np.nan)
    return np.array(out)


def lengths(method: str) -> dict[str, np.ndarray]:
    """{"right": (seeds, steps), "wrong": ...}: mean length in tokens per step, each seed."""
    run = RUNS[method]
    return {
        kind: np.array([curve(run, seed, f"completions/mean_length_{kind}") for seed in seeds(run)])
        for kind in ("right", "wrong")
    }


def length_gap(method: str, first: int, last: int) -> list[float]:
    """Wrong minus right mean length over steps `first` ... `last`, one number a seed."""
    both = lengths(method)
    part = {kind: np.nanmean(table[:, first - 1 : last], axis=1) for kind, table in both.items()}
    return (part["wrong"] - part["right"]).tolist()


def every_seed(label: str, name: str) -> np.ndarray:
    """(seeds, steps) of one metric of the step records. `label`: a key of RUNS."""
    run = RUNS[label]
    return np.array([curve(run, seed, name) for seed in seeds(run)])


def waits(rule: str) -> np.ndarray:
    """(seeds, steps): mean number of `wait` in a sampled answer."""
    return every_seed(rule, "completions/mean_wait")


def all_right(rule: str) -> np.ndarray:
    """(seeds, steps): share of the groups whose answers were all right, whatever their bonus."""
    return every_seed(rule, "groups/all_pass")


def evaluated(label: str, name: str, when: Callable = max) -> np.ndarray:
    """(seeds,): one metric of the last held-out evaluation, or of the first with `when=min`."""
    run = RUNS[label]
    every = (series(records(run, seed), name, kind="eval") for seed in seeds(run))
    return np.array([found[when(found)] for found in every])


def by_difficulty(rule: str, step: int) -> np.ndarray:
    """(seeds, types): held-out pass@1 at `step`, hardest type of prompt first. On TYPES_RUNS."""
    run = TYPES_RUNS[rule]
    table = []
    for seed in seeds(run):
        found = next(r for r in records(run, seed) if r["record"] == "eval" and r["step"] == step)
        rates = {float(k.partition("/")[2]): v for k, v in found.items() if k.startswith("pass@1/")}
        table.append([rates[rate] for rate in sorted(rates)])
    return np.array(table)
