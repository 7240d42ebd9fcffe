"""How far did the policy move: (batch, A) -> log-ratio (B, T), with gradient.

log rho_t = log pi_theta(y_t) - log pi_old(y_t). With `old_logprobs=None` the step is on-policy:
the ratio is exactly 1 and still carries the gradient of log pi.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch

from .batch import Batch
from .part import Part

__all__ = ["gmpo", "product", "sequence", "sequence_token", "token"]

Anchor = Literal["old", "sampling"]


class Anchored(Part):
    """A part with an `anchor`: the policy that is held to have sampled the tokens."""

    @property
    def needs(self) -> tuple[str, ...]:
        return ("sampling_logprobs",) if self.anchor == "sampling" else ()

    def check(self, batch: Batch) -> None:
        if self.anchor not in ("old", "sampling"):
            raise ValueError(f"anchor must be 'old' or 'sampling', got {self.anchor!r}.")

    def behaviour(self, batch: Batch) -> torch.Tensor:
        """(B, T) its log-probs, no gradient."""
        if self.anchor == "sampling":
            return batch.sampling_logprobs.detach()
        return batch.anchor_logprobs


@dataclass(frozen=True, repr=False)
class token(Anchored):
    """log rho_t, one per token: PPO, GRPO and most of the field.

    anchor: "old" compares with the trainer's own log-probs, "sampling" with the rollout engine's.
    """

    anchor: Anchor = "old"
    bare = True

    def per_token(self, batch: Batch) -> torch.Tensor:
        """(B, T) log pi_theta - log pi_anchor, 0 on masked tokens."""
        return batch.logprobs - self.behaviour(batch)

    def __call__(self, batch: Batch, advantages: torch.Tensor | None = None) -> torch.Tensor:
        return self.per_token(batch)


@dataclass(frozen=True, repr=False)
class sequence(token):
    """log s_i = (1/T_i) sum_t log rho_t, on every token of the row: GSPO, arXiv 2507.18071.

    A geometric mean: it measures movement per token and is not an importance weight.
    """

    def __call__(self, batch: Batch, advantages: torch.Tensor | None = None) -> torch.Tensor:
        mean = self.per_token(batch).sum(1) / batch.lengths.clamp(min=1)
        return batch.expand(mean)


@dataclass(frozen=True, repr=False)
class product(token):
    """sum_t log rho_t, on every token of the row: the true importance weight of the sequence.

    Unbiased and, for long answers, useless: its variance grows like (1 + chi^2)^T. TRL's RLOO
    trainer clips it. Use it with `sequence_mean`, which counts the repeated number once per row.
    """

    def __call__(self, batch: Batch, advantages: torch.Tensor | None = None) -> torch.Tensor:
        return batch.expand(self.per_token(batch).sum(1))


@dataclass(frozen=True, repr=False)
class sequence_token(token):
    """The value of `sequence` with the gradient of the token: GSPO-token, arXiv 2507.18071."""

    def __call__(self, batch: Batch, advantages: torch.Tensor | None = None) -> torch.Tensor:
        mean = (self.per_token(batch).sum(1) / batch.lengths.clamp(min=1)).detach()
        return batch.expand(mean) + batch.logprobs - batch.logprobs.detach()


@dataclass(frozen=True, repr=False)
class gmpo(Part):
    """(1/T_i) sum_t of log rho_t, each clipped first: GMPO, arXiv 2507.20673.

    A > 0: min(log rho, clip(log rho, -epsilon, high)); A <= 0: max of the same two. The clip
    comes before the mean, GSPO's after it. epsilon and high (`epsilon` when None) are widths in
    log space: 0.4 lets rho move between e^-0.4 = 0.67 and e^0.4 = 1.49.
    """

    epsilon: float = field(default=0.4, metadata={"always": True})
    high: float | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "high"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} must be at least 0, a width in log space; got {value}.")

    def __call__(self, batch: Batch, advantages: torch.Tensor) -> torch.Tensor:
        log_ratio = batch.logprobs - batch.anchor_logprobs
        high = self.epsilon if self.high is None else self.high
        banded = log_ratio.clamp(-self.epsilon, high)
        clipped = torch.where(advantages > 0, torch.minimum(log_ratio, banded),
                              torch.maximum(log_ratio, banded))
        return batch.expand(clipped.sum(1) / batch.lengths.clamp(min=1))
