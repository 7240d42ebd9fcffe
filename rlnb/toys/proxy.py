"""Pushing on a proxy: what a grader's score selects, and what that is worth.

An answer has a worth, `gold`; the grader sees `score = gold + error`. The policy draws one of K
answers to a prompt, each with chance 1 / K, and is pushed towards high scores in one of two ways:

    best of N                draw N, keep the highest score; only the rank of a score matters
    KL-regularised optimum   weight e^(score / beta); its size matters too

KL of best of N: Stiennon et al. 2020 (arXiv 2009.01325), a bound: Beirami et al. 2024 (2401.01879).
Gold against KL: Gao et al. 2023 (2210.10760). Heavy tails: Kwa et al. 2024 (2407.14503).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = [
    "GAO_FORMS",
    "Grader",
    "answer_pool",
    "best_of_n_kl",
    "best_of_n_weights",
    "fit_gao",
    "group_pay",
    "kl_to_uniform",
    "pool_kl",
    "tilted_weights",
]

GLITCHES, SIZE, SMALL = 0.02, 10.0, 0.2  # the grader that is rarely, and then wildly, wrong
GAO_FORMS = {"d(a - b d)": lambda d: -(d**2), "d(a - b log d)": lambda d: -d * d.log()}


def answer_pool(prompts: int = 128, answers: int = 4096, seed: int = 0) -> tuple[Tensor, ...]:
    """gold, careless, glitchy: three (prompts, answers) tensors in float64.

    gold is standard normal. careless = gold + a normal error of std 1, on every answer. glitchy =
    gold + a normal error of std 0.2, but of std 10 on two answers of a hundred.
    """
    dice = torch.Generator().manual_seed(seed)

    def normal() -> Tensor:
        return torch.randn(prompts, answers, generator=dice, dtype=torch.float64)

    gold = normal()
    careless = gold + normal()
    glitch = torch.rand(prompts, answers, generator=dice, dtype=torch.float64) < GLITCHES
    glitchy = gold + torch.where(glitch, SIZE, SMALL) * normal()
    return gold, careless, glitchy


def best_of_n_weights(scores: Tensor, n: int) -> Tensor:
    """(..., K) chance that an answer is the best of n draws from the K, no two scores equal.

        w = (k / K)^n - ((k - 1) / K)^n,   k the rank of its score, 1 the lowest

    Raises ValueError for n below 1.

    >>> best_of_n_weights(torch.tensor([0.1, 0.9, 0.5, 0.3]), 2).tolist()
    [0.0625, 0.4375, 0.3125, 0.1875]
    """
    _positive(n)
    answers = scores.shape[-1]
    rank = scores.argsort(-1).argsort(-1).to(scores.dtype) + 1
    return (rank / answers) ** n - ((rank - 1) / answers) ** n


def tilted_weights(scores: Tensor, beta: float) -> Tensor:
    """(..., K) the optimum of E[score] - beta KL(policy || uniform): softmax(score / beta).

    >>> tilted_weights(torch.tensor([0.0, 1.0, 1.0]), 1.0).tolist()[0] < 1 / 3
    True
    """
    if not beta > 0:
        raise ValueError(f"beta must be above 0, got {beta}.")
    return (scores / beta).softmax(-1)


def group_pay(
    scores: Tensor, weights: Tensor, dice: torch.Generator, groups: int = 48, size: int = 8
) -> Tensor:
    """(P, K) what GRPO pays each answer: its z-score beside size - 1 opponents, mean of `groups`.

    scores (P, K); weights (P, K), the policy that writes the opponents, sums to 1. The std divides
    by `size`, so no pay is above sqrt(size - 1).

    >>> even = torch.full((1, 2), 0.5, dtype=torch.float64)
    >>> score = torch.tensor([[0.0, 9.0]], dtype=torch.float64)
    >>> pay = group_pay(score, even, torch.Generator().manual_seed(0))
    >>> pay[0, 0].item() < 0 < pay[0, 1].item() < 7**0.5
    True
    """
    seats, pay = weights.cumsum(1), torch.zeros_like(scores)
    for _ in range(groups):
        u = torch.rand(len(scores), size - 1, generator=dice, dtype=scores.dtype) * seats[:, -1:]
        drawn = torch.searchsorted(seats, u).clamp(max=scores.shape[1] - 1)
        others = scores.gather(1, drawn)
        mid = (others.sum(1, keepdim=True) + scores) / size
        square = ((others**2).sum(1, keepdim=True) + scores**2) / size
        pay += (scores - mid) / ((square - mid**2).clamp_min(0).sqrt() + 1e-4) / groups
    return pay


def kl_to_uniform(weights: Tensor) -> Tensor:
    """(...) KL(weights || 1 / K) in nats; weights (..., K) sum to 1, zeros allowed.

    >>> round(kl_to_uniform(torch.tensor([1.0, 0.0])).item(), 4)
    0.6931
    """
    answers = weights.shape[-1]
    logs = (weights.clamp_min(torch.finfo(weights.dtype).tiny) * answers).log()
    return (weights * logs).sum(-1)


def best_of_n_kl(n):
    """log n - (n - 1) / n in nats: exact where no score has probability, else an upper bound.

    n: a number or a tensor, 1 or more.

    >>> [round(best_of_n_kl(n), 3) for n in (1, 2, 4, 64, 1024)]
    [0.0, 0.193, 0.636, 3.175, 5.932]
    """
    _positive(n)
    log = n.log() if torch.is_tensor(n) else math.log(n)
    return log - (n - 1) / n


def pool_kl(chances: Tensor, n: int) -> Tensor:
    """Exact KL of best of n against a policy with few answers; chances (K,), lowest score first.

    The best of n is among the first k with chance C_k^n, C the running sum. At most
    `best_of_n_kl(n)`, and at most minus the log of the best answer's chance.

    >>> round(pool_kl(torch.tensor([0.5, 0.5]), 2).item(), 4), round(best_of_n_kl(2), 4)
    (0.1308, 0.1931)
    """
    _positive(n)
    top = chances.cumsum(0).clamp(max=1.0) ** n
    best = torch.diff(top, prepend=top.new_zeros(1))
    there = (best > 0) & (chances > 0)
    ratio = torch.where(there, best, 1.0) / torch.where(there, chances, 1.0)
    return (torch.where(there, best, 0.0) * ratio.log()).sum()


def _positive(n) -> None:
    if bool((torch.as_tensor(n) < 1).any()):
        raise ValueError(f"best of n needs n of at least 1, got {n}.")


@dataclass(frozen=True)
class Grader:
    """gold is standard normal; the error normal of std `small`, of std `size` on a share of them.

    share from 0 to 1; small and size above 0, in units of gold's std. Everything below is exact.

    >>> round(Grader(0.02, 10.0).accuracy(), 3), round(Grader(1.0, 1.0).accuracy(), 3)
    (0.922, 0.75)
    """

    share: float = GLITCHES
    size: float = SIZE
    small: float = SMALL

    @property
    def kinds(self) -> tuple[tuple[float, float], ...]:
        """(share, std of the error) of the two kinds of answers."""
        return ((1 - self.share, self.small), (self.share, self.size))

    def accuracy(self) -> float:
        """Chance that of two answers the better one scores higher.

        The difference of two golds has variance 2, that of two errors s^2 + t^2; for normal
        numbers the chance of one sign is 1/2 + asin(correlation) / pi.
        """
        return sum(
            p * q * (0.5 + math.asin((1 + (s * s + t * t) / 2) ** -0.5) / math.pi)
            for p, s in self.kinds
            for q, t in self.kinds
        )

    def density(self, score: Tensor) -> Tensor:
        """How often a score is seen, (n,)."""
        return self._parts(score).sum(0)

    def below(self, score: Tensor) -> Tensor:
        """Chance of a lower score, (n,)."""
        parts = [p / 2 * (1 + torch.erf(score / math.sqrt(2 * (1 + s * s)))) for p, s in self.kinds]
        return torch.stack(parts).sum(0)

    def worth(self, score: Tensor) -> Tensor:
        """E[gold | score], (n,): within one kind score / (1 + s^2); the kinds by their odds."""
        parts = self._parts(score)
        told = torch.stack([score / (1 + s * s) for _, s in self.kinds])
        return (parts * told).sum(0) / parts.sum(0)

    def best_of(self, n: int) -> float:
        """Mean gold of the best of n by score."""
        score, share = self._winners(n)
        return float((share * self.worth(score)).sum())

    def fooled(self, n: int) -> float:
        """How often the best of n is an answer whose error is of the large kind."""
        score, share = self._winners(n)
        parts = self._parts(score)
        return float((share * parts[1] / parts.sum(0)).sum())

    def _winners(self, n: int) -> tuple[Tensor, Tensor]:
        """(8000,) scores, and how often the best of n has each."""
        _positive(n)
        edge = 5 * math.sqrt(1 + max(s for p, s in self.kinds if p > 0) ** 2)
        score = torch.linspace(-edge, edge, 8001, dtype=torch.float64)
        share = self.below(score).pow(n).diff()
        return (score[1:] + score[:-1]) / 2, share / share.sum()

    def _parts(self, score: Tensor) -> Tensor:
        """(2, n) density of the score with each kind of error."""
        parts = []
        for p, s in self.kinds:
            variance = 1 + s * s
            peak = p / math.sqrt(2 * math.pi * variance)
            parts.append(peak * torch.exp(-(score**2) / (2 * variance)))
        return torch.stack(parts)


def fit_gao(distance: Tensor, gold: Tensor, form: str = "d(a - b d)") -> tuple[float, float]:
    """(a, b) by least squares; distance (n,) is sqrt(KL) above 0, gold (n,) minus gold at 0.

    form: a key of GAO_FORMS. Gao et al. use d(a - b d) for best of N and d(a - b log d) for RL.

    >>> d = torch.linspace(0.5, 3.0, 6, dtype=torch.float64)
    >>> [round(x, 6) for x in fit_gao(d, d * (1.5 - 0.4 * d))]
    [1.5, 0.4]
    """
    if form not in GAO_FORMS:
        raise ValueError(f"form must be one of {list(GAO_FORMS)}, got {form!r}.")
    table = torch.stack([distance, GAO_FORMS[form](distance)], 1)
    a, b = torch.linalg.lstsq(table, gold[:, None]).solution[:, 0].tolist()
    return a, b
