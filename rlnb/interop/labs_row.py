"""What a row of `rlnb.interop.labs` is, and the parts that only such rows need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch

from rlnb.objective.batch import Batch, Totals
from rlnb.objective.composition import Objective
from rlnb.objective.part import Part, Seam
from rlnb.objective.ratios import product

__all__ = [
    "Lab",
    "edge_weight",
    "engine_gap_squared",
    "inside_band",
    "mean_over_right",
    "old_gap_squared",
    "right_likelihood",
    "tapered",
]


@dataclass(frozen=True)
class Lab:
    """One published loss.

    near: the named method it is told against. letter: what the row stands on, "A" the authors'
    text or code, "B" a library's code or documentation, "C" readers' notes that agree. updates:
    optimizer steps per batch of answers, where printed. unknown: what was not printed. why_not: the
    sentence, where no composition says it (then `objective` is None). outside: what else the recipe
    does.
    """

    who: str
    objective: Objective | None
    near: str
    source: str
    letter: Literal["A", "B", "C"]
    updates: int | None = None
    unknown: tuple[str, ...] = ()
    outside: str = ""
    why_not: str = ""


def engine_gap_squared(batch: Batch) -> torch.Tensor:
    """(log pi - log engine)^2 of every token, (B, T): prime-rl's pull towards the sampler."""
    gap = batch.logprobs - batch.required("sampling_logprobs", "engine_gap_squared").detach()
    return gap.square()


def old_gap_squared(batch: Batch) -> torch.Tensor:
    """(log pi - log pi_old)^2 of every token, (B, T): Kimi K2.5's pull towards the old policy."""
    return (batch.logprobs - batch.anchor_logprobs).square()


def right_likelihood(batch: Batch) -> torch.Tensor:
    """-log pi on the tokens of right answers (reward above 0), else 0, (B, T)."""
    return torch.where(batch.expand(batch.rewards) > 0, -batch.logprobs, 0.0)


def mean_over_right(batch: Batch, totals: Totals) -> torch.Tensor:
    """Weights 1/N, N the tokens of right answers among the rows at hand; so not splittable."""
    right = batch.mask & (batch.expand(batch.rewards) > 0)
    return torch.ones_like(batch.completion_mask) / right.sum().clamp(min=1)


@dataclass(frozen=True, repr=False)
class inside_band(Part):
    """Gate: 1 where 1 - epsilon < rho < 1 + high, else 0, whatever the sign of the advantage.

    GLM-5's agentic loss and Kimi K2.5's; their bands are not printed. high is `epsilon` when None.
    """

    fits = "gates"
    epsilon: float = field(default=0.2, metadata={"always": True})
    high: float | None = None

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        rho = log_ratio.detach().exp()
        upper = self.epsilon if self.high is None else self.high
        return ((rho > 1 - self.epsilon) & (rho < 1 + upper)).to(advantages.dtype)


@dataclass(frozen=True, repr=False)
class edge_weight(Part):
    """PPO's clip with a gradient where it has none: GPPO 2508.07629, CE-GPPO 2509.20712.

    The gradient weight on A log pi is rho where the clip lets it through. Where the clip is silent
    it is low (1 - epsilon) for A < 0 and high (1 + band_high) for A > 0: GPPO has low = high = 1.
    dual: at A < 0 silent above it, as in `clip`.

    >>> import torch
    >>> rho, A = torch.tensor([[0.5, 1.5, 1.5]]), torch.tensor([[-1.0, 1.0, -1.0]])
    >>> edge_weight(0.2, low=0.5).weight(A, rho.log())
    tensor([[0.4000, 1.2000, 1.5000]])
    """

    fits = "surrogate"
    epsilon: float = field(default=0.2, metadata={"always": True})
    band_high: float | None = None
    low: float = 1.0
    high: float = 1.0
    dual: float | None = None

    def weight(self, advantages: torch.Tensor, log_ratio: torch.Tensor) -> torch.Tensor:
        """(B, T) the factor on A grad log pi, no gradient."""
        rho = log_ratio.detach().exp()
        upper = self.epsilon if self.band_high is None else self.band_high
        below, above = 1 - self.epsilon, 1 + upper
        out = torch.where((advantages < 0) & (rho < below), self.low * below, rho)
        out = torch.where((advantages > 0) & (rho > above), self.high * above, out)
        if self.dual is None:
            return out
        return torch.where((advantages < 0) & (rho > self.dual), 0.0, out)

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        return self.weight(advantages, log_ratio) * advantages * batch.logprobs


@dataclass(frozen=True, repr=False)
class tapered(Part):
    """sg[w] A log pi, w = 1 for A >= 0, else min(W, 1) with W = prod_t rho_t: TOPR 2503.14286.

    A right answer counts in full however far the policy has gone; a wrong one that has become
    unlikely counts less and less.
    """

    fits = "surrogate"
    beside: ClassVar[Mapping[Seam, tuple[type, ...]]] = {"ratio": (product,)}

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        weight = log_ratio.detach().clamp(max=0.0).exp()
        return torch.where(advantages < 0, weight, 1.0) * advantages * batch.logprobs
