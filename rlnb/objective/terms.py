"""Beside the policy term: KL to a reference, value loss, entropy.

A term is a coefficient, a per-token quantity (B, T) that is minimised, and optionally weights of
its own (the objective's when None). With l = log pi_theta - log pi_ref on tokens from pi_theta:

    k1 = l                 unbiased value; as a loss its expected gradient is 0
    k2 = l^2 / 2           biased value;   as a loss it follows grad KL(pi || ref), per state
    k3 = exp(-l) - 1 + l   unbiased value, never negative; as a loss it follows grad KL(ref || pi)

Multiplied by the undetached ratio pi_theta / pi_old, k3 follows grad KL(pi || ref), on- and
off-policy (DeepSeek-V3.2, arXiv 2512.02556; TRL's `use_bias_correction_kl`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch

from rlnb.objective.batch import Batch
from rlnb.objective.part import Part, Weights, spell

__all__ = ["absolute_kl", "entropy_bonus", "k1", "k2", "k3", "kl_estimate", "term", "value_loss"]


def kl_estimate(kind: str, log_ratio: torch.Tensor) -> torch.Tensor:
    """k1, k2 or k3 of l = log pi_theta - log pi_ref, elementwise, in nats.

    >>> import torch
    >>> kl_estimate("k3", torch.tensor([0.0, 0.5]))
    tensor([0.0000, 0.1065])
    """
    if kind == "k1":
        return log_ratio
    if kind == "k2":
        return log_ratio.square() / 2
    if kind == "k3":
        return torch.expm1(-log_ratio) + log_ratio  # expm1: exact where the policies nearly agree
    if kind == "abs":
        return log_ratio.abs()
    raise ValueError(f"the estimator must be 'k1', 'k2' or 'k3' (or 'abs'), got {kind!r}.")


@dataclass(frozen=True)
class term(Part):
    """Any per-token function as a term: term(0.1, lambda batch: ...). Minimised."""

    fits = "terms"
    coefficient: float
    function: Callable[[Batch], torch.Tensor]
    weights: Weights | None = None

    def __call__(self, batch: Batch) -> torch.Tensor:
        return self.function(batch)

    def __repr__(self) -> str:
        more = "" if self.weights is None else f", {spell(self.weights)}"
        return f"term({self.coefficient!r}, {spell(self.function)}{more})"


@dataclass(frozen=True, repr=False)
class _Kl(Part):
    """corrected: False, True (times the undetached ratio), "sequence" (times the undetached
    sequence ratio: TRL at `importance_sampling_level="sequence"`) or "detached" (a known mistake:
    the gradient is again that of the uncorrected estimator, reweighted). straight_through: this
    estimator's value with k2's gradient (verl's "k1+", "k3+")."""

    fits = "terms"
    coefficient: float = field(default=0.04, metadata={"always": True})
    corrected: bool | Literal["detached", "sequence"] = False
    straight_through: bool = False
    weights: Weights | None = None
    needs: ClassVar[tuple[str, ...]] = ("ref_logprobs",)

    def __call__(self, batch: Batch) -> torch.Tensor:
        log_ratio = batch.logprobs - batch.required("ref_logprobs", self.kind).detach()
        value = kl_estimate(self.kind, log_ratio)
        if self.straight_through:
            slope = kl_estimate("k2", log_ratio)
            value = slope - slope.detach() + value.detach()
        if not self.corrected:
            return value
        moved = batch.logprobs - batch.anchor_logprobs
        if self.corrected == "sequence":
            moved = batch.expand(moved.sum(1) / batch.lengths.clamp(min=1))
        return (moved.detach() if self.corrected == "detached" else moved).exp() * value

    @property
    def kind(self) -> str:
        """The estimator's name, as `kl_estimate` takes it."""
        return type(self).__name__


class k1(_Kl):
    """log pi - log ref. As a loss it pulls nowhere on average: use it in the reward."""


class k2(_Kl):
    """(log pi - log ref)^2 / 2."""


class k3(_Kl):
    """ref/pi - 1 - log(ref/pi): GRPO's KL term (arXiv 2402.03300, eq. 4)."""


class absolute_kl(_Kl):
    """|log pi - log ref|: verl's "abs". An estimate of no KL; kept to read configurations."""

    kind = "abs"


@dataclass(frozen=True, repr=False)
class value_loss(Part):
    """(1/2) max{(V - R)^2, (clip(V, V_old +- clip) - R)^2}: the critic's loss.

    R is `Batch.returns`, or advantage + value, computed before any whitening. clip=None is the
    plain squared error. TRL's coefficient is 0.1 and clip 0.2.
    """

    fits = "terms"
    coefficient: float = field(default=0.1, metadata={"always": True})
    clip: float | None = 0.2
    weights: Weights | None = None
    needs: ClassVar[tuple[str, ...]] = ("values",)

    def check(self, batch: Batch) -> None:
        if batch.advantages is not None and batch.returns is None:
            raise ValueError(
                "value_loss needs Batch(returns=...) when advantages are given: "
                "they are the critic's target."
            )

    def __call__(self, batch: Batch) -> torch.Tensor:
        values = batch.required("values", "value_loss")
        returns = batch.required("returns", "value_loss")
        error = (values - returns).square()
        if self.clip is None:
            return error / 2
        old = batch.required("old_values", "value_loss")
        near = old + (values - old).clamp(-self.clip, self.clip)
        return torch.maximum(error, (near - returns).square()) / 2


@dataclass(frozen=True, repr=False)
class entropy_bonus(Part):
    """-H per token, so that minimising raises the entropy. Pass entropies that carry a gradient."""

    fits = "terms"
    coefficient: float = field(default=0.01, metadata={"always": True})
    weights: Weights | None = None
    needs: ClassVar[tuple[str, ...]] = ("entropies",)

    def __call__(self, batch: Batch) -> torch.Tensor:
        return -batch.required("entropies", "entropy_bonus")
