"""Gradients without sampling noise: by enumeration of everything a toy policy can do."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations_with_replacement

import torch

from rlnb.objective import Objective
from rlnb.toys.policies import Reward, _Enumerable, outcome_rewards

__all__ = ["expected_gradient", "expected_reward", "true_gradient"]

LIMIT = 20_000


def expected_reward(policy: _Enumerable, reward: Reward) -> torch.Tensor:
    """J = sum_y pi(y) r(y), 0-d, with gradient."""
    return (policy.probabilities() * outcome_rewards(policy, reward)).sum()


def true_gradient(policy: _Enumerable, reward: Reward) -> torch.Tensor:
    """grad J with respect to `policy.logits`: the direction every estimator estimates.

    >>> from rlnb.toys import Bandit
    >>> true_gradient(Bandit([0.0, 0.0]), [1.0, 0.0]).tolist()
    [0.25, -0.25]
    """
    return torch.autograd.grad(expected_reward(policy, reward), policy.logits)[0]


def expected_gradient(
    policy: _Enumerable, reward: Reward, objective: Objective, num_generations: int
) -> torch.Tensor:
    """The mean of an estimator: E[-grad loss] over all groups of G answers from `policy`.

    An estimator is unbiased when this equals `true_gradient`. Groups are enumerated as multisets
    with their multinomial probability. Raises ValueError above 20,000 groups.
    """
    count = math.comb(len(policy) + num_generations - 1, num_generations)
    if count > LIMIT:
        raise ValueError(
            f"{len(policy)} outcomes make {count:,} groups of {num_generations}, "
            f"more than {LIMIT:,}. Take a smaller policy or group."
        )
    rewards = outcome_rewards(policy, reward)
    log_p = policy.probabilities().detach().log().tolist()
    total = torch.zeros_like(policy.logits)
    for group in combinations_with_replacement(range(len(policy)), num_generations):
        ways = math.factorial(num_generations)
        for repeats in Counter(group).values():
            ways //= math.factorial(repeats)
        loss = objective(policy.batch(group, rewards, num_generations)).loss
        (gradient,) = torch.autograd.grad(loss, policy.logits)
        total -= ways * math.exp(sum(log_p[i] for i in group)) * gradient
    return total
