"""Credit: (batch, A (B, T)) -> A (B, T). What happens to an advantage once it is known.

On whole groups, once per step, without gradient; whatever depends on a group stands here, so that
micro-batches stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch

from rlnb.objective.advantages import Std
from rlnb.objective.batch import Batch
from rlnb.objective.part import Part
from rlnb.objective.ratios import fork_tokens

__all__ = ["entropy_shaped", "length_preference", "mgpo_weight", "press_top", "whiten"]


@dataclass(frozen=True, repr=False)
class whiten(Part):
    """Credit: (A - mean) / sqrt(var + eps) over all unmasked tokens of the step.

    PPO for language models does it after GAE; the critic's target is computed before. TRL and
    verl use Bessel's variance, OpenRLHF the population's.
    """

    fits = "credit"
    std: Std = "bessel"
    eps: float = 1e-8
    conventions: ClassVar[tuple[str, ...]] = ("std", "eps")

    def __call__(self, batch: Batch, advantages: torch.Tensor) -> torch.Tensor:
        if self.std not in ("population", "bessel"):
            raise ValueError(f"std must be 'population' or 'bessel', got {self.std!r}.")
        valid, tokens = batch.mask.to(advantages.dtype), batch.mask.sum()
        deviation = advantages - (advantages * valid).sum() / tokens
        degrees = (tokens - int(self.std == "bessel")).clamp(min=1)
        spread = (deviation.square() * valid).sum() / degrees
        return torch.where(batch.mask, deviation / (spread + self.eps).sqrt(), 0.0)


@dataclass(frozen=True, repr=False)
class mgpo_weight(Part):
    """A <- e^(-strength D) A with D = p log(p / 0.5) + (1-p) log((1-p) / 0.5), p = group accuracy.

    1 at p = 1/2, 2^-strength at p = 0 and 1: prompts near one half count more. MGPO (VibeThinker,
    arXiv 2511.06221); rewards of 0 and 1. The paper's strength was not verified here; three public
    implementations use 4. strength 0 is no weight.

    >>> import torch
    >>> round(mgpo_weight(4.0).of(torch.tensor([0.25]))[0].item(), 4)
    0.5926
    """

    fits = "credit"
    strength: float = field(default=4.0, metadata={"always": True})

    def check(self, batch: Batch) -> None:
        if bool(((batch.rewards < 0) | (batch.rewards > 1)).any()):
            raise ValueError(
                "mgpo_weight reads the group mean as an accuracy and takes rewards "
                f"between 0 and 1; got {float(batch.rewards.min())} to "
                f"{float(batch.rewards.max())}."
            )

    def of(self, accuracy: torch.Tensor) -> torch.Tensor:
        """The weight of a prompt with this accuracy, elementwise."""
        wrong = 1 - accuracy
        apart = torch.xlogy(accuracy, 2 * accuracy) + torch.xlogy(wrong, 2 * wrong)
        return (-self.strength * apart).exp()

    def __call__(self, batch: Batch, advantages: torch.Tensor) -> torch.Tensor:
        weight = self.of(batch.grouped(batch.rewards).mean(1, keepdim=True))
        each = weight.expand(-1, batch.num_generations).to(advantages.dtype)
        return batch.expand(each) * advantages


@dataclass(frozen=True, repr=False)
class entropy_shaped(Part):
    """A_t <- A_t + min(alpha H_t, |A_t| / kappa): a bonus where the policy was unsure.

    H_t in nats, detached; kappa > 1 keeps the sign of A_t. "Reasoning with exploration", arXiv
    2506.14758; alpha 0.4 and kappa 2 are what public GRPO runs use. A wrong answer's unsure tokens
    are pressed less.
    """

    fits = "credit"
    alpha: float = field(default=0.4, metadata={"always": True})
    kappa: float = 2.0
    needs: ClassVar[tuple[str, ...]] = ("entropies",)

    def __post_init__(self) -> None:
        if self.kappa <= 1:
            raise ValueError(
                f"kappa must be above 1, or the bonus could turn the sign of an "
                f"advantage; got {self.kappa}."
            )

    def __call__(self, batch: Batch, advantages: torch.Tensor) -> torch.Tensor:
        entropies = batch.required("entropies", "entropy_shaped").detach()
        bonus = torch.minimum(self.alpha * entropies, advantages.abs() / self.kappa)
        return advantages + bonus


@dataclass(frozen=True, repr=False)
class length_preference(Part):
    """A_i <- f_i A_i with f = G softmax(h^exponent), h_i = 1 + r z_i, z the group's z-scores
    of the lengths.

    lambda-GRPO, arXiv 2510.06870, where the exponent (lambda) is a parameter trained with the
    policy; here it is a number, because its gradient follows whichever length has the smaller
    loss. exponent 0: f = 1. Above 0 long answers count more, below 0 short ones. f sums to G; as
    it is positive, scaling A by it is scaling the answer's loss. r = 1/9 is from secondary sources.
    """

    fits = "credit"
    exponent: float = field(default=1.0, metadata={"always": True})
    r: float = 1 / 9
    eps: float = 1e-6
    conventions: ClassVar[tuple[str, ...]] = ("eps",)

    def check(self, batch: Batch) -> None:
        most = (batch.num_generations - 1) ** 0.5
        if abs(self.r) * most >= 1:
            raise ValueError(
                f"r must keep 1 + r z above 0: with num_generations="
                f"{batch.num_generations} |z| reaches {most:.2f}, so |r| must be "
                f"below {1 / most:.4f}; got {self.r}."
            )

    def factor(self, lengths: torch.Tensor) -> torch.Tensor:
        """(P, G) lengths -> (P, G) factors with mean 1 per prompt."""
        spread = lengths.std(1, keepdim=True, correction=0) + self.eps
        h = 1 + self.r * (lengths - lengths.mean(1, keepdim=True)) / spread
        return lengths.shape[1] * torch.softmax(h**self.exponent, dim=1)

    def __call__(self, batch: Batch, advantages: torch.Tensor) -> torch.Tensor:
        return batch.expand(self.factor(batch.grouped(batch.lengths))) * advantages


@dataclass(frozen=True, repr=False)
class press_top(Part):
    """A <- factor A on fork tokens of wrong answers (A < 0) where the likeliest token was sampled.

    SimKO's half for wrong answers, arXiv 2510.14807; `ratios.topk_mix` is the half for right ones.
    Fork tokens: entropy above the `quantile` of their own answer.
    """

    fits = "credit"
    factor: float = field(default=1.1, metadata={"always": True})
    quantile: float = 0.8
    needs: ClassVar[tuple[str, ...]] = ("entropies", "sampled_rank")

    def __call__(self, batch: Batch, advantages: torch.Tensor) -> torch.Tensor:
        likeliest = batch.required("sampled_rank", "press_top") == 0
        hit = fork_tokens(batch, self.quantile) & likeliest & (advantages < 0)
        return torch.where(hit, self.factor * advantages, advantages)
