"""What a token is worth: (batch, A, log-ratio) -> value (B, T), to be maximised."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch

from rlnb.objective.batch import Batch
from rlnb.objective.gates import covariance
from rlnb.objective.part import Part, Seam
from rlnb.objective.ratios import product

__all__ = ["cispo", "clip", "kl_cov", "logprob", "ratio", "sapo", "vespo"]


@dataclass(frozen=True, repr=False)
class logprob(Part):
    """A log pi: REINFORCE's surrogate. Its gradient is A grad log pi; its value means nothing."""

    fits = "surrogate"

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        return advantages * batch.logprobs


@dataclass(frozen=True, repr=False)
class ratio(Part):
    """rho A: the importance-weighted surrogate, unclipped. Gradient weight rho."""

    fits = "surrogate"

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        return log_ratio.exp() * advantages


@dataclass(frozen=True, repr=False)
class clip(Part):
    """min(rho A, clip(rho, 1 - epsilon, 1 + high) A): PPO, arXiv 1707.06347, eq. 7.

    epsilon: lower half-width of the band. high: upper one, `epsilon` when None (DAPO, arXiv
    2503.14476: 0.28). dual: c > 1 adds max(., c A) where A < 0 (arXiv 1912.09729; verl always
    applies it with 3.0). delta: TRL's form of the same, min(rho, delta) in the unclipped branch;
    above 1 + high the two are one function, and `from_trl` writes `dual`.

    The gradient weight on log pi is rho, and 0 in one corner per sign: A > 0 above the band,
    A < 0 below it. With `dual` also A < 0 above c.

    >>> import torch
    >>> rho = torch.tensor([[1.5, 0.5, 1.5, 0.5]])
    >>> A = torch.tensor([[1., 1., -1., -1.]])
    >>> clip(0.2)(None, A, rho.log())
    tensor([[ 1.2000,  0.5000, -1.5000, -0.8000]])
    """

    fits = "surrogate"
    epsilon: float = field(default=0.2, metadata={"always": True})
    high: float | None = None
    dual: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        if self.epsilon < 0:
            raise ValueError(
                f"epsilon must be at least 0, the lower edge is 1 - epsilon; got {self.epsilon}."
            )
        if self.high is not None and self.high < 0:
            raise ValueError(
                f"high must be at least 0, the upper edge is 1 + high; got {self.high}."
            )
        if self.dual is not None and self.dual <= 1:
            raise ValueError(
                f"dual must be above 1, or it would cut on-policy tokens; got {self.dual}."
            )
        if self.delta is not None and self.delta <= 0:
            raise ValueError(f"delta must be above 0, it caps the ratio; got {self.delta}.")

    @property
    def edges(self) -> tuple[float, float]:
        """(1 - epsilon, 1 + high)."""
        return 1 - self.epsilon, 1 + (self.epsilon if self.high is None else self.high)

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        rho = log_ratio.exp()
        free = rho if self.delta is None else rho.clamp(max=self.delta)
        value = torch.minimum(free * advantages, rho.clamp(*self.edges) * advantages)
        if self.dual is None:
            return value
        return torch.where(advantages < 0, torch.maximum(value, self.dual * advantages), value)

    def cut(
        self, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(low, high) bool (B, T): tokens whose gradient the band killed. Sign-aware, so that a
        token outside the band on its wrong side is not counted: it is alive."""
        rho, (low, high) = log_ratio.exp(), self.edges
        return (advantages < 0) & (rho < low), (advantages > 0) & (rho > high)


@dataclass(frozen=True, repr=False)
class cispo(Part):
    """sg[clamp(rho, floor, cap)] A log pi: the ratio weighs the token and is never differentiated.

    MiniMax-M1, arXiv 2506.13585. The gradient weight is min(rho, cap): bounded, and never 0.
    cap: 5.0 in ScaleRL (arXiv 2510.13786); MiniMax gives no number. TRL writes the cap itself into
    `epsilon_high`; verl clamps to [1 - clip_ratio_low, 1 + clip_ratio_high], so it has a floor.
    The value contains log pi and means nothing; compare gradients.

    >>> import torch
    >>> rho = torch.tensor([[0.5, 1.5, 9.0]])
    >>> cispo(5.0).weight(rho.log())
    tensor([[0.5000, 1.5000, 5.0000]])
    """

    fits = "surrogate"
    cap: float | None = field(default=5.0, metadata={"always": True})
    floor: float | None = None

    def __post_init__(self) -> None:
        for name in ("cap", "floor"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(
                    f"{name} must be above 0, it bounds the ratio itself; got {value}."
                    " None switches it off."
                )

    def weight(self, log_ratio: torch.Tensor) -> torch.Tensor:
        """(B, T) clamp(rho, floor, cap), no gradient."""
        rho = log_ratio.detach().exp()
        bounded = self.cap is not None or self.floor is not None
        return rho.clamp(self.floor, self.cap) if bounded else rho

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        return self.weight(log_ratio) * advantages * batch.logprobs


@dataclass(frozen=True, repr=False)
class sapo(Part):
    """f(rho) A with f(x) = (4/tau) sigmoid(tau (x - 1)): a clip without corners.

    tau is tau_pos where A > 0, else tau_neg. The gradient weight is rho sech^2(tau (rho - 1)/2):
    1 at rho = 1 for every tau, 1.57 at its peak (rho = 2.06, tau = 1), never 0. The value at
    rho = 1 is 2/tau. SAPO, arXiv 2511.20347.

    gate: other f of the same kind (arXiv 2602.19345), all with f(1) = f'(1) = 1; with d = x - 1:
    "erf" f' = exp(-tau^2 d^2 / 2), "arctan" f' = 1 / (1 + tau^2 d^2), "softsign" f' that to the
    power 3/2.

    >>> import torch
    >>> x, A = torch.tensor([[2.0]]), torch.ones(1, 1)
    >>> [round(sapo(gate=g)(None, A, x.log()).item(), 4) for g in ("sigmoid", "arctan")]
    [2.9242, 1.7854]
    """

    fits = "surrogate"
    tau_pos: float = field(default=1.0, metadata={"always": True, "named": True})
    tau_neg: float = field(default=1.05, metadata={"always": True})
    gate: Literal["sigmoid", "erf", "arctan", "softsign"] = "sigmoid"

    def __post_init__(self) -> None:
        for name in ("tau_pos", "tau_neg"):
            if getattr(self, name) <= 0:
                raise ValueError(
                    f"{name} must be above 0, it is a temperature; got {getattr(self, name)}."
                )
        if self.gate not in GATES:
            raise ValueError(f"gate must be one of {', '.join(GATES)}; got {self.gate!r}.")

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        tau = torch.where(
            advantages > 0,
            torch.full_like(advantages, self.tau_pos),
            torch.full_like(advantages, self.tau_neg),
        )
        return GATES[self.gate](log_ratio.exp() - 1, tau) * advantages


# f of the distance d = rho - 1
GATES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sigmoid": lambda d, tau: torch.sigmoid(tau * d) * (4 / tau),
    "erf": lambda d, tau: 1 + math.sqrt(math.pi / 2) / tau * torch.erf(tau * d / math.sqrt(2)),
    "arctan": lambda d, tau: 1 + torch.atan(tau * d) / tau,
    "softsign": lambda d, tau: 1 + d / (1 + (tau * d) ** 2).sqrt(),
}


@dataclass(frozen=True, repr=False)
class vespo(Part):
    """sg[W^k e^(lambda (1 - W))] A log pi, W = prod_t rho_t: stands beside ratio=product().

    (k, lambda) is (k_pos, lambda_pos) where A >= 0, else (k_neg, lambda_neg). The weight is 1 at
    W = 1, largest at W = k / lambda (2/3 and 3/2) and falls to 0 on both sides. VESPO, arXiv
    2602.10693. log W is clamped to [-18.42, 20].
    """

    fits = "surrogate"
    beside: ClassVar[Mapping[Seam, tuple[type, ...]]] = {"ratio": (product,)}
    k_pos: float = 2.0
    lambda_pos: float = 3.0
    k_neg: float = 3.0
    lambda_neg: float = 2.0

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        log_w = log_ratio.detach().clamp(-18.420680743952367, 20.0)  # log 1e-8
        positive = advantages >= 0
        k = torch.where(
            positive, torch.full_like(log_w, self.k_pos), torch.full_like(log_w, self.k_neg)
        )
        lam = torch.where(
            positive,
            torch.full_like(log_w, self.lambda_pos),
            torch.full_like(log_w, self.lambda_neg),
        ).clamp(min=1e-4)
        phi = (lam + k * log_w - lam * log_w.exp()).exp()
        return phi * advantages * batch.logprobs


@dataclass(frozen=True, repr=False)
class kl_cov(Part):
    """rho A, minus coefficient |log rho| on the `fraction` of tokens with the largest covariance.

    Cov_t = (A_t - mean A)(log pi_t - mean log pi) over the unmasked tokens of the rows at hand, so
    the result depends on the micro-batch. No PPO clip. KL-Cov, arXiv 2505.22617; verl's default
    coefficient is 0.1, the paper's 1.
    """

    fits = "surrogate"
    fraction: float = field(default=2e-4, metadata={"always": True})
    coefficient: float = 1.0
    silent: ClassVar[bool] = False
    batch_statistics: ClassVar[bool] = True

    def __call__(
        self, batch: Batch, advantages: torch.Tensor, log_ratio: torch.Tensor
    ) -> torch.Tensor:
        mask = batch.mask
        cov = covariance(batch, advantages)[mask]
        count = max(1, int(len(cov) * self.fraction))
        chosen = torch.zeros_like(cov)
        chosen[cov.topk(count).indices] = 1.0
        penalised = torch.zeros_like(advantages).masked_scatter(mask, chosen)
        return log_ratio.exp() * advantages - self.coefficient * penalised * log_ratio.abs()
