"""Several rewards on one answer: summed and then normalised, or normalised and then summed.

    sum_then_normalize    z-score, in the group, of sum_k w_k r_k       what GRPO does with a sum
    normalize_then_sum    sum_k w_k z-score(r_k), z-scored once more    GDPO, arXiv 2601.05242
                          over the batch

The words are TRL's (`multi_objective_aggregation`). The first cannot tell two answers apart whose
sums are equal, and a reward with a large spread drowns the others.
"""

from __future__ import annotations

from typing import Literal

import torch

__all__ = ["several_rewards"]

Order = Literal["sum_then_normalize", "normalize_then_sum"]


def several_rewards(
    rewards: torch.Tensor,
    num_generations: int,
    weights: torch.Tensor | None = None,
    order: Order = "sum_then_normalize",
    *,
    over_batch: bool = True,
    correction: int = 0,
    eps: float = 1e-6,
) -> torch.Tensor:
    """Advantages (B,) of answers with K rewards each, for `Batch(advantages=...)`.

    rewards (B, K), rows of one prompt together; weights (K,), ones without it. over_batch: GDPO's
    last z-score over the whole batch. correction: 0 divides by G, 1 is Bessel's (TRL's, with
    eps=1e-4). Where all values are equal the result is exactly 0. Raises ValueError for shapes
    that do not fit and an unknown order.

    >>> r = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    >>> [round(a, 4) for a in several_rewards(r, 4).tolist()]
    [0.0, 0.0, 1.4142, -1.4142]
    """
    if rewards.ndim != 2 or num_generations < 2 or len(rewards) % num_generations:
        raise ValueError(
            "rewards must be (B, K) with B a multiple of num_generations >= 2, got "
            f"{tuple(rewards.shape)} and {num_generations}."
        )
    if weights is None:
        weights = rewards.new_ones(rewards.shape[1])
    if weights.shape != (rewards.shape[1],):
        raise ValueError(
            f"weights must be ({rewards.shape[1]},), one per reward, got {tuple(weights.shape)}."
        )
    grouped = rewards.view(-1, num_generations, rewards.shape[1])
    if order == "sum_then_normalize":
        return _zscore(grouped @ weights, 1, correction, eps).reshape(-1)
    if order != "normalize_then_sum":
        raise ValueError(f"order must be one of {Order.__args__}, got {order!r}.")
    summed = (_zscore(grouped, 1, correction, eps) @ weights).reshape(-1)
    return _zscore(summed, 0, correction, eps) if over_batch else summed


def _zscore(x: torch.Tensor, dim: int, correction: int, eps: float) -> torch.Tensor:
    """(x - mean) / (std + eps) along dim, exactly 0 where all are equal."""
    spread = x.amax(dim, keepdim=True) != x.amin(dim, keepdim=True)
    centred = torch.where(spread, x - x.mean(dim, keepdim=True), torch.zeros_like(x))
    std = x.std(dim, keepdim=True, correction=correction)
    return centred / (torch.where(spread, std, torch.ones_like(std)) + eps)
