"""The sign of an entropy bonus, which no parity case at coefficient 0 sees."""

from __future__ import annotations

import torch

from rlnb.objective import Batch, Objective, entropy_bonus, group_center, ratio, token_mean


def test_minimising_the_loss_raises_the_entropy():
    entropies = torch.tensor([[0.5, 1.0], [2.0, 0.1]], dtype=torch.float64, requires_grad=True)
    zeros = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    batch = Batch(zeros, torch.ones(2, 2), torch.tensor([1.0, 1.0]), 2, entropies=entropies)
    objective = Objective(group_center(), ratio(), token_mean, terms=entropy_bonus(0.1))
    loss = objective(batch).loss
    assert abs(loss.item() + 0.1 * 3.6 / 4) < 1e-12  # equal rewards: the bonus is all there is
    (gradient,) = torch.autograd.grad(loss, entropies)
    assert torch.allclose(gradient, torch.full_like(gradient, -0.1 / 4), atol=1e-12)
