"""A silent bug in a group's advantages: means handed to the wrong prompt."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.silent_bug import SilentBug
from rlnb.classroom.exercises.groups import group_advantages

__all__ = ["SILENT_BUG_GRPO", "advantages"]


def _right(rewards: torch.Tensor, num_generations: int) -> torch.Tensor:
    return group_advantages(rewards, num_generations)


def advantages(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    mean = groups.mean(1).repeat(num_generations)
    std = groups.std(1, correction=0).repeat(num_generations)
    return (rewards - mean) / (std + 1e-6)


SILENT_BUG_GRPO = SilentBug(
    "silent_bug_grpo",
    _right,
    advantages,
    "`repeat` lays the means out as prompt 1, 2, 1, 2, ...; the rows come prompt by prompt. One "
    "prompt shows nothing, and the sum over a batch may still be 0. Keep (P, G) and broadcast.",
    hint="One prompt cannot show it. What must hold inside every group?",
)
