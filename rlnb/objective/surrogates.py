"""What a token is worth: (batch, A, log-ratio) -> value (B, T), to be maximised."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from .batch import Batch
from .part import Part

__all__ = ["clip", "logprob", "ratio"]


@dataclass(frozen=True, repr=False)
class logprob(Part):
    """A log pi: REINFORCE's surrogate. Its gradient is A grad log pi; its value means nothing."""

    def __call__(self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor):
        return advantages * batch.logprobs


@dataclass(frozen=True, repr=False)
class ratio(Part):
    """rho A: the importance-weighted surrogate, unclipped. Gradient weight rho."""

    def __call__(self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor):
        return log_ratio.exp() * advantages


@dataclass(frozen=True, repr=False)
class clip(Part):
    """min(rho A, clip(rho, 1 - epsilon, 1 + high) A): PPO, arXiv 1707.06347, eq. 7.

    epsilon: lower half-width of the band. high: upper one, `epsilon` when None (DAPO, arXiv
    2503.14476: 0.28). dual: c > 1 adds max(., c A) where A < 0 (arXiv 1912.09729; verl always
    applies it with 3.0, TRL calls it `delta` and leaves it off).

    The gradient weight on log pi is rho, and 0 in one corner per sign: A > 0 above the band,
    A < 0 below it. With `dual` also A < 0 above c.

    >>> import torch
    >>> rho = torch.tensor([[1.5, 0.5, 1.5, 0.5]])
    >>> A = torch.tensor([[1., 1., -1., -1.]])
    >>> clip(0.2)(None, A, rho.log())
    tensor([[ 1.2000,  0.5000, -1.5000, -0.8000]])
    """

    epsilon: float = field(default=0.2, metadata={"always": True})
    high: float | None = None
    dual: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon must lie in [0, 1], the lower edge is 1 - epsilon; "
                             f"got {self.epsilon}.")
        if self.high is not None and self.high < 0:
            raise ValueError(f"high must be at least 0, the upper edge is 1 + high; "
                             f"got {self.high}.")
        if self.dual is not None and self.dual <= 1:
            raise ValueError(f"dual must be above 1, or it would cut on-policy tokens; "
                             f"got {self.dual}.")

    @property
    def edges(self) -> tuple[float, float]:
        """(1 - epsilon, 1 + high)."""
        return 1 - self.epsilon, 1 + (self.epsilon if self.high is None else self.high)

    def __call__(self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor):
        rho = log_ratio.exp()
        value = torch.minimum(rho * advantages, rho.clamp(*self.edges) * advantages)
        if self.dual is None:
            return value
        return torch.where(advantages < 0, torch.maximum(value, self.dual * advantages), value)

    def cut(self, advantages: torch.Tensor, log_ratio: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(low, high) bool (B, T): tokens whose gradient the band killed. Sign-aware, so that a
        token outside the band on its wrong side is not counted: it is alive."""
        rho, (low, high) = log_ratio.exp(), self.edges
        return (advantages < 0) & (rho < low), (advantages > 0) & (rho > high)
