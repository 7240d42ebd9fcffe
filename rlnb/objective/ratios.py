"""How far did the policy move: (batch, A) -> log-ratio (B, T), with gradient.

log rho_t = log pi_theta(y_t) - log pi_old(y_t). With `old_logprobs=None` the step is on-policy:
the ratio is exactly 1 and still carries the gradient of log pi.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import torch

from rlnb.objective.batch import Batch
from rlnb.objective.part import Part

__all__ = [
    "fork_tokens",
    "gmpo",
    "product",
    "sequence",
    "sequence_token",
    "soft_sequence",
    "token",
    "topk_mix",
]

Anchor = Literal["old", "sampling"]


class Anchored(Part):
    """A part with an `anchor`: the policy that is held to have sampled the tokens."""

    anchor: Anchor

    @property
    def needs(self) -> tuple[str, ...]:
        return ("sampling_logprobs",) if self.anchor == "sampling" else ()

    def check(self, batch: Batch) -> None:
        if self.anchor not in ("old", "sampling"):
            raise ValueError(f"anchor must be 'old' or 'sampling', got {self.anchor!r}.")

    def behaviour(self, batch: Batch) -> torch.Tensor:
        """(B, T) its log-probs, no gradient."""
        if self.anchor == "sampling":
            return batch.required("sampling_logprobs", type(self).__name__).detach()
        return batch.anchor_logprobs


@dataclass(frozen=True, repr=False)
class token(Anchored):
    """log rho_t, one per token: PPO, GRPO and most of the field.

    anchor: "old" compares with the trainer's own log-probs, "sampling" with the rollout engine's.
    """

    fits = "ratio"
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

    fits = "ratio"
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
        clipped = torch.where(
            advantages > 0, torch.minimum(log_ratio, banded), torch.maximum(log_ratio, banded)
        )
        return batch.expand(clipped.sum(1) / batch.lengths.clamp(min=1))


@dataclass(frozen=True, repr=False)
class soft_sequence(token):
    """(1/T_i) sum_t log g(rho_t) with a soft gate g: the geometric mean of softly gated tokens.

    gate "sigmoid": g = (4/tau) sigmoid(tau (rho - 1)), SAPO's gate; "arctan": log g =
    arctan(tau log rho) / tau, so the mean stays within e^(+-pi / (2 tau)). With ratio() and
    sequence_mean this is GMPO's structure with SAPO's softness, as "soft sequence policy
    optimization" (arXiv 2602.19327) describes it. Its exact gate changed between versions and was
    not verified here: call a result SSPO-style. A second SSPO (subsentence-level, arXiv
    2511.04256) is another method.
    """

    tau: float = 1.0
    gate: Literal["sigmoid", "arctan"] = "sigmoid"

    def check(self, batch: Batch) -> None:
        super().check(batch)
        if self.gate not in ("sigmoid", "arctan"):
            raise ValueError(f"gate must be 'sigmoid' or 'arctan', got {self.gate!r}.")
        if self.tau <= 0:
            raise ValueError(f"tau must be above 0, it is a temperature; got {self.tau}.")

    def __call__(self, batch: Batch, advantages: torch.Tensor | None = None) -> torch.Tensor:
        log_ratio = self.per_token(batch)
        if self.gate == "sigmoid":
            soft = torch.nn.functional.logsigmoid(self.tau * torch.expm1(log_ratio))
            soft = soft + math.log(4 / self.tau)
        else:
            soft = torch.atan(self.tau * log_ratio) / self.tau
        total = torch.where(batch.mask, soft, 0.0).sum(1)
        return batch.expand(total / batch.lengths.clamp(min=1))


def fork_tokens(batch: Batch, quantile: float) -> torch.Tensor:
    """(B, T) bool: unmasked tokens whose entropy lies above the `quantile` of their own answer."""
    entropies = batch.required("entropies", "a fork token").detach()
    edge = torch.where(batch.mask, entropies, torch.nan).nanquantile(quantile, 1, keepdim=True)
    return batch.mask & (entropies > edge)


@dataclass(frozen=True, repr=False)
class topk_mix(token):
    """log rho_t, its gradient shared with the top K candidates on fork tokens of right answers.

    Where A > 0 and the token is a fork: d log rho = (1 - alpha) d log pi(y_t) + (alpha / K) sum_k
    d log pi(k-th likeliest); elsewhere that of log pi(y_t). The value is log rho throughout.
    SimKO, arXiv 2510.14807, as its authors' code has it (alpha 0.01, K 3): a right answer lifts
    its rivals a little too.
    """

    alpha: float = field(default=0.01, metadata={"always": True, "named": True})
    quantile: float = 0.8

    @property
    def needs(self) -> tuple[str, ...]:
        return (*super().needs, "topk_logprobs", "entropies")

    def __call__(self, batch: Batch, advantages: torch.Tensor | None = None) -> torch.Tensor:
        if advantages is None:
            raise ValueError("topk_mix mixes where A > 0 and needs advantages; pass (batch, A).")
        log_ratio = self.per_token(batch)
        rivals = batch.required("topk_logprobs", "topk_mix").mean(-1)
        shared = (1 - self.alpha) * batch.logprobs + self.alpha * rivals
        shared = log_ratio.detach() + shared - shared.detach()
        fork = fork_tokens(batch, self.quantile) & (advantages > 0)
        return torch.where(fork, shared, log_ratio)
