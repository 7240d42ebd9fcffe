"""Shapes: (batch, token_rewards (B, T)) -> token_rewards, before advantages are computed.

What is added here is a reward: the baseline sees it, a division by std rescales it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch

from rlnb.objective.batch import Batch
from rlnb.objective.part import Part
from rlnb.objective.terms import kl_estimate

__all__ = ["kl_in_reward", "overlong", "reward_clip"]


def on_last_token(batch: Batch, per_row: torch.Tensor) -> torch.Tensor:
    """(B,) -> (B, T): the number on the last unmasked token of each row, 0 elsewhere.

    A fully masked row has none: its number stands on token 0, counts in its group's statistics,
    and trains nothing.
    """
    out = torch.zeros_like(batch.logprobs)
    steps = torch.arange(1, out.shape[1] + 1, device=out.device, dtype=out.dtype)
    last = (batch.completion_mask * steps).argmax(1, keepdim=True)
    return out.scatter(1, last, per_row.to(out.dtype).unsqueeze(1))


@dataclass(frozen=True, repr=False)
class kl_in_reward(Part):
    """Shape: r_t <- r_t - beta k(log pi_old - log ref)_t, before advantages are computed.

    With k1 this is the exact gradient of the sequence KL, downstream effects included; RLHF's PPO
    and TRL's RLOO put it here (Ziegler et al., arXiv 1909.08593). The penalty sits in the reward
    and carries no gradient of its own.
    """

    fits = "shape"
    beta: float = field(default=0.05, metadata={"always": True})
    estimator: Literal["k1", "k2", "k3"] = "k1"
    needs: ClassVar[tuple[str, ...]] = ("ref_logprobs",)

    def __call__(self, batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
        reference = batch.required("ref_logprobs", "kl_in_reward")
        penalty = kl_estimate(self.estimator, batch.anchor_logprobs - reference)
        return token_rewards - self.beta * torch.where(batch.mask, penalty, 0.0)


@dataclass(frozen=True, repr=False)
class overlong(Part):
    """Soft overlong punishment: r_i <- r_i + penalty(T_i), DAPO, arXiv 2503.14476, eq. 13.

    0 up to max_length - cache tokens, then linear down to -1 at max_length, -1 beyond. T_i counts
    unmasked tokens. factor scales it (verl's `penalty_factor`).

    >>> import torch
    >>> overlong(20480, 4096).penalty(torch.tensor([16384., 17408., 18432., 20480., 30000.]))
    tensor([ 0.0000, -0.2500, -0.5000, -1.0000, -1.0000])
    """

    fits = "shape"
    max_length: int = field(metadata={"always": True})
    cache: int = field(metadata={"always": True})
    factor: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.cache <= self.max_length:
            raise ValueError(
                f"cache must lie in (0, max_length={self.max_length}], the penalty "
                f"grows over its last `cache` tokens; got {self.cache}."
            )

    def penalty(self, lengths: torch.Tensor) -> torch.Tensor:
        """(B,) token counts -> (B,) numbers in [-factor, 0]."""
        over = (lengths - (self.max_length - self.cache)) / self.cache
        return 0.0 - self.factor * over.clamp(0, 1)  # 0.0 - 0, not the negative zero

    def __call__(self, batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
        return token_rewards + on_last_token(batch, self.penalty(batch.lengths))


@dataclass(frozen=True, repr=False)
class reward_clip(Part):
    """r_i <- clamp(r_i, low, high): TRL's `reward_clip_range` for RLOO."""

    fits = "shape"
    low: float = field(metadata={"always": True})
    high: float = field(metadata={"always": True})

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got {self.low} and {self.high}.")

    def __call__(self, batch: Batch, token_rewards: torch.Tensor) -> torch.Tensor:
        total = token_rewards.sum(1)
        return token_rewards + on_last_token(batch, total.clamp(self.low, self.high) - total)
