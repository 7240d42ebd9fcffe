"""Rewards and filters that the loop takes: the controls of an experiment.

A reward maps (problem, text) to a number; the loop's default is the task's own verifier. A filter
maps a batch to the groups that are trained on; the default keeps all.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor

from rlnb.objective import Batch
from rlnb.training.errors import BadInput
from rlnb.training.tasks import Problem, Task

__all__ = ["CoinFlip", "Filter", "Reward", "WaitBonus", "keep_all", "keep_mixed", "mixed_groups"]

Reward = Callable[[Problem, str], float]
Filter = Callable[[Batch], Tensor]


class CoinFlip:
    """The wrong-verifier control: 1 or 0 with equal odds, whatever was answered.

    What still improves under it did not come from the verifier. `getstate` and `setstate` let a
    run resume in the middle of the coin's sequence.
    """

    name = "coin_flip"

    def __init__(self, seed: int = 0):
        self.rng = random.Random(seed)

    def __call__(self, problem: Problem, text: str) -> float:
        return float(self.rng.random() < 0.5)

    def getstate(self) -> list:
        """Where the coin's sequence stands, as JSON can hold it."""
        return list(self.rng.getstate())

    def setstate(self, state: list) -> None:
        """Goes on from what `getstate` gave, read back from JSON."""
        version, internal, gauss = state
        self.rng.setstate((version, tuple(internal), gauss))


class WaitBonus:
    """The verifier plus a tiny bonus per `wait`: verify + bonus min(number of `wait`, most).

    It stands for any small reward of style, format or length. With the defaults a right answer
    gets 1 to 1.10 and a wrong one 0 to 0.10, so no amount of it pays for a mistake; but in a group
    whose answers are all right, or all wrong, it is all that differs.

    >>> from rlnb.training.tasks import TASKS
    >>> reward = WaitBonus(TASKS["chain"])
    >>> problem = TASKS["chain"].parse("4+3=?")
    >>> reward(problem, "so7"), reward(problem, "4+3=6wait4+3=7so7"), reward(problem, "wait" * 99)
    (1.0, 1.01, 0.1)
    """

    name = "wait_bonus"

    def __init__(self, task: Task, bonus: float = 0.01, most: int = 10):
        if most < 0:
            raise BadInput(f"most: got {most}, expected 0 or more occurrences that are counted")
        self.task, self.bonus, self.most = task, bonus, most

    def __call__(self, problem: Problem, text: str) -> float:
        counted = min(text.count("wait"), self.most)
        return self.task.verify(problem, text) + self.bonus * counted


def keep_all(batch: Batch) -> Tensor:
    """Every group: indices 0 ... prompts - 1."""
    return torch.arange(len(batch.rewards) // batch.num_generations)


def mixed_groups(rewards: Tensor, size: int) -> Tensor:
    """Indices of the groups of `size` answers whose rewards differ."""
    groups = rewards.view(-1, size)
    return (groups.amax(1) > groups.amin(1)).nonzero()[:, 0]


def keep_mixed(batch: Batch) -> Tensor:
    """Groups whose rewards differ: DAPO's dynamic sampling, without drawing replacements."""
    return mixed_groups(batch.rewards, batch.num_generations)
