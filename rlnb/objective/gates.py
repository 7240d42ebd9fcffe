"""Gates: (batch, A, log-ratio) -> factor (B, T) on the policy term, never differentiated.

A gate decides how much of a token's policy gradient is let through; KL and other terms do not pass
through it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch

from rlnb.objective.batch import Batch
from rlnb.objective.part import Part
from rlnb.objective.ratios import Anchor, Anchored

__all__ = [
    "clip_cov",
    "covariance",
    "divergence_mask",
    "engine_ratio",
    "sequence_mask",
    "top_entropy",
]


def covariance(batch: Batch, advantages: torch.Tensor) -> torch.Tensor:
    """(A_t - mean A)(log pi_t - mean log pi) over the unmasked tokens at hand, (B, T), detached."""
    mask, lp = batch.mask, batch.logprobs.detach()
    return (advantages - advantages[mask].mean()) * (lp - lp[mask].mean())


@dataclass(frozen=True, repr=False)
class divergence_mask(Anchored):
    """0 where the token's probability moved too far and is being pushed further; DPPO's mask.

    DPPO, arXiv 2602.04879, with p and q the sampled token's probability now and then:
    A > 0 is dropped when p > q and D > high, A <= 0 when p < q and D > low. D is |p - q| for
    kind "tv" (0.15 in the authors' scripts) and the KL of the two-way split
    q log(q/p) + (1-q) log((1-q)/(1-p)) for "kl" (0.05). high is `low` when None.

    top_k: take D over the candidates of `old_topk_logprobs`, the sampled token where it is none of
    them (`sampled_rank` of K or more), and one bucket for the rest; TV = (1/2) sum |p_k - q_k|. It
    refines the two-way split, so D never falls below the two-way one. The sampled token still
    gives the direction.
    """

    fits = "gates"
    low: float = field(default=0.15, metadata={"always": True})
    high: float | None = None
    kind: Literal["tv", "kl"] = "tv"
    anchor: Anchor = "old"
    top_k: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        more = ("topk_logprobs", "old_topk_logprobs", "sampled_rank")
        return (*super().needs, *(more if self.top_k else ()))

    def check(self, batch: Batch) -> None:
        super().check(batch)
        if self.kind not in ("tv", "kl"):
            raise ValueError(f"kind must be 'tv' or 'kl', got {self.kind!r}.")

    def divergence(self, batch: Batch) -> torch.Tensor:
        """(B, T) D, detached: a probability for "tv", nats for "kl"."""
        p, q = batch.logprobs.detach().exp()[..., None], self.behaviour(batch).exp()[..., None]
        if self.top_k:
            now = batch.required("topk_logprobs", "divergence_mask").detach()
            old = batch.required("old_topk_logprobs", "divergence_mask")
            rank = batch.required("sampled_rank", "divergence_mask")
            alone = (rank >= now.shape[-1])[..., None]
            p = torch.cat((now.exp(), torch.where(alone, p, 0.0)), -1)
            q = torch.cat((old.exp(), torch.where(alone, q, 0.0)), -1)
        p = torch.cat((p, (1 - p.sum(-1, keepdim=True)).clamp(min=0)), -1)
        q = torch.cat((q, (1 - q.sum(-1, keepdim=True)).clamp(min=0)), -1)
        if self.kind == "tv":
            return (p - q).abs().sum(-1) / 2
        # 1e-8 keeps an empty rest finite
        return (q * (q.clamp(min=1e-38).log() - p.clamp(min=1e-38).log()))[..., :-1].sum(-1) + q[
            ..., -1
        ] * ((q[..., -1] + 1e-8) / (p[..., -1] + 1e-8)).log()

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        log_p, log_q, moved = batch.logprobs.detach(), self.behaviour(batch), self.divergence(batch)
        high = self.low if self.high is None else self.high
        dropped = torch.where(
            advantages > 0, (log_p > log_q) & (moved > high), (log_p < log_q) & (moved > self.low)
        )
        return (~dropped).to(advantages.dtype)


@dataclass(frozen=True, repr=False)
class sequence_mask(Anchored):
    """0 on a whole answer when A < 0 and (1/T_i) sum_t log(pi_old/pi_theta) > threshold.

    DeepSeek-V3.2, arXiv 2512.02556; TRL's `off_policy_mask_threshold` (it suggests 0.5). A bad
    answer that has already become unlikely teaches nothing more.
    """

    fits = "gates"
    threshold: float = field(default=0.5, metadata={"always": True})
    anchor: Anchor = "old"

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        gap = (self.behaviour(batch) - batch.logprobs.detach()).sum(1) / batch.lengths.clamp(min=1)
        return ((advantages >= 0) | (batch.expand(gap) <= self.threshold)).to(advantages.dtype)


@dataclass(frozen=True, repr=False)
class engine_ratio(Part):
    """omega = pi_old (trainer) / pi (rollout engine): corrects for the engine's other numerics.

    level "token" or "sequence" (the product over the answer). Outside [low, high] omega is cut to
    the edge (kind "truncate", TIS) or set to 0 (kind "mask", MIS and IcePop). TRL's default is
    sequence, mask, high 3.0.
    """

    fits = "gates"
    level: Literal["token", "sequence"] = "sequence"
    kind: Literal["truncate", "mask"] = "mask"
    low: float | None = None
    high: float | None = 3.0
    needs: ClassVar[tuple[str, ...]] = ("sampling_logprobs",)

    def check(self, batch: Batch) -> None:
        if self.level not in ("token", "sequence"):
            raise ValueError(f"level must be 'token' or 'sequence', got {self.level!r}.")
        if self.kind not in ("truncate", "mask"):
            raise ValueError(f"kind must be 'truncate' or 'mask', got {self.kind!r}.")

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        gap = batch.anchor_logprobs - batch.required("sampling_logprobs", "engine_ratio")
        omega = (batch.expand(gap.sum(1)) if self.level == "sequence" else gap).exp()
        low = 0.0 if self.low is None else self.low
        high = float("inf") if self.high is None else self.high
        if self.kind == "truncate":
            return omega.clamp(low, high)
        return torch.where((omega < low) | (omega > high), 0.0, omega)


@dataclass(frozen=True, repr=False)
class top_entropy(Part):
    """1 on the `quantile` of tokens with the highest entropy, 0 on the rest: arXiv 2506.01939.

    The threshold is taken over the unmasked tokens at hand, so it depends on the micro-batch; the
    denominators still count every token. TRL's `top_entropy_quantile`.
    """

    fits = "gates"
    quantile: float = field(default=0.2, metadata={"always": True})
    needs: ClassVar[tuple[str, ...]] = ("entropies",)
    batch_statistics: ClassVar[bool] = True

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        entropies = batch.required("entropies", "top_entropy").detach().float()
        edge = torch.quantile(entropies[batch.mask], 1 - self.quantile)
        return (batch.mask & (entropies >= edge)).to(advantages.dtype)


@dataclass(frozen=True, repr=False)
class clip_cov(Part):
    """0 on a few random tokens whose covariance lies between low and high: Clip-Cov.

    arXiv 2505.22617. Of the tokens that the band [1 - epsilon, 1 + band_high] has not cut and
    with low < Cov < high, max(1, fraction x tokens) lose their gradient. Random
    (`Batch.generator`), and over the rows at hand: not splittable. The authors run it with
    epsilon = 1 (a band of [0, 2]); verl's default is 0.2.
    """

    fits = "gates"
    fraction: float = field(default=2e-4, metadata={"always": True})
    low: float = 1.0
    high: float = 5.0
    epsilon: float = 0.2
    band_high: float | None = None
    random: ClassVar[bool] = True
    batch_statistics: ClassVar[bool] = True

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        rho, upper = (
            log_ratio.detach().exp(),
            self.epsilon if self.band_high is None else self.band_high,
        )
        banded = rho.clamp(1 - self.epsilon, 1 + upper)
        cut = banded * advantages < rho * advantages
        cov = covariance(batch, advantages)
        places = (batch.mask & ~cut & (cov > self.low) & (cov < self.high)).nonzero()
        count = max(1, int(self.fraction * batch.mask.sum()))
        order = torch.randperm(len(places), generator=batch.generator)[:count].to(places.device)
        out = torch.ones_like(advantages)
        out[places[order, 0], places[order, 1]] = 0.0
        return out
