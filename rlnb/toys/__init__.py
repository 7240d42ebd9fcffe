"""Worlds small enough to know the exact answer. Needs torch and numpy only."""

from .exact import expected_gradient, expected_reward, true_gradient
from .policies import Bandit, SequencePolicy, outcome_rewards
from .running import running_batch, running_group

__all__ = ["Bandit", "SequencePolicy", "expected_gradient", "expected_reward", "outcome_rewards",
           "running_batch", "running_group", "true_gradient"]
