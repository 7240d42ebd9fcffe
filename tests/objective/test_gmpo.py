"""GMPO's ratio by hand: every token is clipped on one side, in log space, before the mean."""

from __future__ import annotations

import torch

from rlnb.objective import Batch, gmpo

# log rho of two answers of two tokens: one token rose by 1 nat, the other fell by 1
MOVED = [[1.0, -1.0], [1.0, -1.0]]
ADVANTAGES = torch.tensor([[1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)


def log_ratio(part):
    """(log s per row, its gradient with respect to the log-probabilities)."""
    old = torch.full((2, 2), -2.0, dtype=torch.float64)
    now = (old + torch.tensor(MOVED, dtype=torch.float64)).requires_grad_()
    batch = Batch(now, torch.ones(2, 2), torch.tensor([1.0, 0.0]), 2, old_logprobs=old)
    out = part(batch, ADVANTAGES)
    (gradient,) = torch.autograd.grad(out[:, 0].sum(), now)
    return out[:, 0].tolist(), gradient.tolist()


def test_only_the_side_that_goes_on_improving_is_clipped():
    value, gradient = log_ratio(gmpo(0.4))
    # A > 0: min(1, .4) and min(-1, -.4); A <= 0: max(1, .4) and max(-1, -.4)
    assert value == [(0.4 - 1.0) / 2, (1.0 - 0.4) / 2]
    assert gradient == [[0.0, 0.5], [0.5, 0.0]]


def test_the_upper_width_is_its_own():
    value, _ = log_ratio(gmpo(0.4, 0.3))
    assert value == [(0.3 - 1.0) / 2, (1.0 - 0.4) / 2]
