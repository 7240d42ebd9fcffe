"""Expectations over groups by hand: how often each multiset of answers comes up."""

from __future__ import annotations

import torch

from rlnb.objective import ZOO
from rlnb.toys import Bandit, expected_gradient, true_gradient


def test_groups_of_four_are_counted_with_their_multinomial_probability():
    # Leave-one-out is unbiased, so any wrong count of AAAA, AAAB, ... shows in the mean.
    policy, reward = Bandit([0.3, -0.2, 0.1]), [1.0, 0.0, 0.5]
    found = expected_gradient(policy, reward, ZOO["rloo"], 4)
    assert torch.allclose(found, true_gradient(policy, reward), atol=1e-12)
