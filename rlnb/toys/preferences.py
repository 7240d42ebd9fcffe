"""One prompt, three answers, and pairs of them: worlds in which DPO's outcome is known exactly.

The prompt may be answered "No", "Never" or "Yes". People who compare two answers decide by
Bradley-Terry: a beats b with chance sigma(r_a - r_b), with the hidden scores TASTE.

A policy with shared features has logits

    log pi_ref(y) + own_y + shared * TONE_y * tone

with four numbers to train: one of its own per answer, and `tone`, which all answers share as far as
they are gentle. shared = 0 is a table: an answer's logit is its own and nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from rlnb.objective.preference import Pairs

__all__ = [
    "ANSWERS",
    "REFERENCE",
    "TASTE",
    "TONE",
    "along_the_pair",
    "descend",
    "descend_on_draws",
    "kl_optimum",
    "tone_features",
    "win_chances",
]

ANSWERS = ("No", "Never", "Yes")
REFERENCE = (0.3, 0.5, 0.2)
TASTE = (2.0, 1.0, 0.0)
TONE = (0.0, -1.0, 1.0)  # "Never" is harsh, "Yes" the gentlest of the three


def kl_optimum(reference: Tensor, reward: Tensor, beta: float) -> Tensor:
    """pi_ref e^(r / beta) / Z, (K,): the policy with the largest E[r] - beta KL(pi || pi_ref).

    >>> kl_optimum(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 0.0]), 0.1)
    tensor([0.5000, 0.5000])
    """
    if not beta > 0:
        raise ValueError(f"beta must be above 0, got {beta!r}.")
    return (reference.log() + reward / beta).softmax(-1)


def win_chances(reward: Tensor) -> Tensor:
    """(K, K): entry [a, b] is sigma(r_a - r_b), the chance that a beats b."""
    return torch.sigmoid(reward[:, None] - reward[None, :])


def tone_features(shared: float, tone: Sequence[float] = TONE) -> Tensor:
    """(3, 4): by how much each of the four numbers moves each answer's logit."""
    last = shared * torch.tensor(tone, dtype=torch.float64)
    return torch.cat([torch.eye(3, dtype=torch.float64), last[:, None]], 1)


def along_the_pair(features: Tensor, reference: Tensor, gap: Tensor) -> Tensor:
    """Policies (n, K) where a loss of the gap alone leads, when "No" is preferred to "Never".

    features (K, D). Such a loss moves the parameters along d = phi_w - phi_l and nowhere else,
    whatever its shape: log-ratios grow by t phi d, and the gap h_w - h_l by t |d|^2. gap (n,) is
    how far it has come.

    >>> even = torch.full((3,), 1 / 3, dtype=torch.float64)
    >>> along_the_pair(tone_features(0.0), even, torch.zeros(1)).round(decimals=4).tolist()
    [[0.3333, 0.3333, 0.3333]]
    """
    d = features[0] - features[1]
    push = features @ d / d.square().sum()
    return (reference.log() + gap[:, None] * push).softmax(-1)


def descend(
    loss: Callable[[Pairs], Tensor],
    features: Tensor,
    reference: Tensor,
    *,
    rate: float = 0.5,
    steps: int = 1000,
) -> Tensor:
    """Plain gradient descent on one pair, "No" preferred to "Never": log pi, (steps + 1, K).

    loss takes `Pairs` of one pair; an answer counts as one token.
    """
    theta = torch.zeros(features.shape[1], dtype=features.dtype)
    ref, one, path = reference.log(), torch.ones(1), []
    for step in range(steps + 1):
        theta = theta.detach().requires_grad_()
        logp = (ref + features @ theta).log_softmax(-1)
        path.append(logp.detach())
        if step < steps:
            pair = Pairs(logp[:1], logp[1:2], ref[:1], ref[1:2], one, one)
            (slope,) = torch.autograd.grad(loss(pair).sum(), theta)
            theta = theta - rate * slope
    return torch.stack(path)


def descend_on_draws(
    features: Tensor,
    reference: Tensor,
    taste: Tensor,
    *,
    fresh: bool,
    beta: float = 0.1,
    rate: float = 1.0,
    steps: int = 2000,
) -> Tensor:
    """DPO where people with the scores `taste` compare two answers each step: (steps + 1, K).

    fresh: the two are drawn from the policy as it is now, two different ones. Otherwise they are
    always the first two answers. Exact means over draws and choices, no sampling noise.
    """
    count = len(reference)
    theta = torch.zeros(features.shape[1], dtype=features.dtype)
    given = torch.zeros(count, count, dtype=features.dtype)
    given[0, 1] = given[1, 0] = 0.5
    wins, other, path = win_chances(taste), 1 - torch.eye(count), []
    for _ in range(steps + 1):
        logp = (reference.log() + features @ theta).log_softmax(-1)
        path.append(logp)
        h, p = logp - reference.log(), logp.exp()
        drawn = p[:, None] * p[None] * other
        drawn = drawn / drawn.sum() if fresh else given
        push = drawn * wins * torch.sigmoid(beta * (h[None] - h[:, None]))
        theta = theta + rate * beta * (push - push.T).sum(1) @ features
    return torch.stack(path)
