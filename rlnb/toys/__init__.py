"""Worlds small enough to know the exact answer. Needs torch and numpy only."""

from __future__ import annotations

from rlnb.toys.exact import expected_gradient, expected_reward, true_gradient
from rlnb.toys.moments import Moments, estimator_moments
from rlnb.toys.policies import Bandit, SequencePolicy, outcome_rewards
from rlnb.toys.preferences import (
    along_the_pair,
    descend,
    descend_on_draws,
    kl_optimum,
    tone_features,
    win_chances,
)
from rlnb.toys.proxy import Grader, answer_pool, best_of_n_kl
from rlnb.toys.router import RouterPolicy, flipped
from rlnb.toys.running import running_batch, running_group
from rlnb.toys.scaling import Sigmoid, ceiling_error, fit_sigmoid, fit_sigmoids

__all__ = [
    "Bandit",
    "Grader",
    "Moments",
    "RouterPolicy",
    "SequencePolicy",
    "Sigmoid",
    "answer_pool",
    "best_of_n_kl",
    "along_the_pair",
    "ceiling_error",
    "descend",
    "descend_on_draws",
    "estimator_moments",
    "expected_gradient",
    "expected_reward",
    "fit_sigmoid",
    "fit_sigmoids",
    "flipped",
    "kl_optimum",
    "outcome_rewards",
    "running_batch",
    "running_group",
    "tone_features",
    "true_gradient",
    "win_chances",
]
