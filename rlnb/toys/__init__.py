"""Worlds small enough to know the exact answer. Needs torch and numpy only."""

from .exact import expected_gradient, expected_reward, true_gradient
from .moments import Moments, estimator_moments
from .policies import Bandit, SequencePolicy, outcome_rewards
from .running import running_batch, running_group

__all__ = ["Bandit", "Moments", "SequencePolicy", "estimator_moments", "expected_gradient",
           "expected_reward", "outcome_rewards", "running_batch", "running_group", "true_gradient"]
