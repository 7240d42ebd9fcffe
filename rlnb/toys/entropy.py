"""What a step does to the entropy of a softmax policy, to first order, and what sharpening does.

With logits z, policy pi and entropy H = -sum_i pi_i log pi_i,

    dH = - Cov_pi(log pi, dz)                       any small step dz of the logits
       = - eta Cov_pi(log pi, A)                    where each logit moves by eta A

(Cui et al. 2025, arXiv 2505.22617, lemma 1 and theorem 2.) The plain policy gradient moves logit i
by eta pi_i (A_i - mean A) instead: `gradient_step`.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["covariance", "entropy", "gradient_step", "linear_change", "sharpened"]


def entropy(logits: Tensor) -> Tensor:
    """H in nats over the last dimension: (..., K) logits -> (...).

    >>> entropy(torch.zeros(4, dtype=torch.float64)).exp().item()
    4.0
    """
    return torch.special.entr(logits.softmax(-1)).sum(-1)


def covariance(pi: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Cov_pi(x, y) over the last dimension: weighed by pi. (..., K) each.

    >>> half = torch.tensor([0.5, 0.5])
    >>> covariance(half, torch.tensor([0.0, 2.0]), torch.tensor([0.0, 2.0])).item()
    1.0
    """
    x, y = (v - (pi * v).sum(-1, keepdim=True) for v in (x, y))
    return (pi * x * y).sum(-1)


def linear_change(logits: Tensor, step: Tensor) -> Tensor:
    """-Cov_pi(log pi, step): the first-order change of the entropy, (..., K) each -> (...), nats.

    >>> z = torch.tensor([1.0, 0.0], dtype=torch.float64)
    >>> up = torch.tensor([1e-6, 0.0], dtype=torch.float64)      # the likely one, likelier
    >>> linear_change(z, up).item() < 0
    True
    """
    return -covariance(logits.softmax(-1), logits.log_softmax(-1), step)


def gradient_step(logits: Tensor, advantages: Tensor, eta: float) -> Tensor:
    """eta pi (A - mean A under pi): the expected policy gradient on the logits, (..., K)."""
    pi = logits.softmax(-1)
    return eta * pi * (advantages - (pi * advantages).sum(-1, keepdim=True))


def sharpened(logits: Tensor, power: float) -> Tensor:
    """The policy of the answers to the given power, pi^power normalised: (..., K) logits -> pi.

    >>> pi = sharpened(torch.tensor([2.0, 1.0], dtype=torch.float64).log(), 2.0)
    >>> pi.numpy().round(4).tolist()                          # 2 to 1 becomes 4 to 1
    [0.8, 0.2]
    """
    return (power * logits).softmax(-1)
