"""Rewards and filters that the loop takes: the controls of an experiment.

A reward maps (problem, text) to a number; the loop's default is the task's own verifier. A filter
maps a batch to the groups that are trained on; the default keeps all.
"""

import random
from collections.abc import Callable

import torch
from torch import Tensor

from rlnb.objective import Batch
from rlnb.training.tasks import Problem

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
        return list(self.rng.getstate())

    def setstate(self, state: list) -> None:
        version, internal, gauss = state
        self.rng.setstate((version, tuple(internal), gauss))


def keep_all(batch: Batch) -> Tensor:
    """Every group: indices 0 ... prompts - 1."""
    return torch.arange(len(batch.rewards) // batch.num_generations)


def keep_mixed(batch: Batch) -> Tensor:
    """Groups whose rewards differ: DAPO's dynamic sampling, without drawing replacements."""
    groups = batch.grouped(batch.rewards)
    return (groups.amax(1) > groups.amin(1)).nonzero()[:, 0]
