"""KL-Cov and Clip-Cov by hand: which tokens they choose, of four and one that is padding."""

from __future__ import annotations

import torch

from rlnb.objective import Batch, clip_cov, kl_cov
from rlnb.objective.gates import covariance


def row(*numbers):
    """(1, 5): four numbers, and 0 on the padding."""
    return torch.tensor([[*numbers, 0.0]], dtype=torch.float64)


def batch(logprobs):
    return Batch(logprobs, row(1, 1, 1, 1), torch.tensor([1.0]), 1)


def test_the_means_of_the_covariance_leave_padding_out():
    # mean A = 1, mean log p = -2: (2)(1), (0)(-1), (-1)(1), (-1)(-1)
    found = covariance(batch(row(-1, -3, -1, -3)), row(3, 1, 0, 0))
    assert found[0, :4].tolist() == [2.0, 0.0, -1.0, 1.0]


def test_kl_cov_takes_the_largest_covariance_and_not_the_largest_size():
    # deviations of A: 1, 0, -3, 2; of log p: 1, -1, 1, -1; covariances 1, 0, -3, -2
    advantages, moved = row(2, 1, -2, 3), row(0.5, 0.5, 0.5, 0.5)
    value = kl_cov(0.25, 2.0)(batch(row(-1, -3, -1, -3)), advantages, moved)
    penalty = moved.exp() * advantages - value
    assert torch.allclose(penalty[0, :4], row(2.0 * 0.5, 0, 0, 0)[0, :4], atol=1e-12)


def test_clip_cov_draws_among_the_tokens_that_the_band_left_alive():
    # all covariances are 2; the first token (A > 0, rho 1.65) and the last (A < 0, .61) are cut
    part = clip_cov(1.0, low=1.0, high=5.0, epsilon=0.2)
    gate = part(batch(row(-1, -1, -3, -3)), row(3, 3, -1, -1), row(0.5, 0.0, 0.0, -0.5))
    assert gate[0, :4].tolist() == [1.0, 0.0, 0.0, 1.0]
