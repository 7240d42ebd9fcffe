"""What happens to an advantage once it is known: whitening, prompt weights, length factors."""

from __future__ import annotations

import pytest
import torch

from rlnb.objective import (
    ANNEX,
    Batch,
    Objective,
    clip,
    entropy_shaped,
    gae,
    length_preference,
    mgpo_weight,
    press_top,
    token_mean,
    whiten,
)
from rlnb.toys import running_batch


def critic_batch(mask=None, values=None, **fields):
    values = torch.tensor([[0.2, 0.5, 0.7]]) if values is None else values
    mask = torch.ones_like(values) if mask is None else mask
    return Batch(
        torch.full_like(values, -0.1, requires_grad=True),
        mask,
        torch.ones(len(values)),
        1,
        values=values,
        **fields,
    )


def rows(rewards, size, **fields):
    """A batch of one-token answers with these rewards."""
    rewards = torch.tensor(rewards, dtype=torch.float64)
    zero = torch.zeros(len(rewards), 1, dtype=torch.float64)
    return Batch(zero.clone().requires_grad_(), zero + 1, rewards, size, **fields)


SIGNS = torch.tensor([1.0, -1.0], dtype=torch.float64)


def test_whitening_comes_after_the_critics_target():
    prepared = Objective(gae(1.0, 0.95), clip(0.2), token_mean, credit=whiten).prepare(
        critic_batch()
    )
    assert prepared.batch.returns[0].tolist() == pytest.approx([0.960750, 0.985, 1.0])
    assert prepared.advantages.mean().item() == pytest.approx(0, abs=1e-12)
    assert prepared.advantages.std().item() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("strength", "p", "weight"),
    [
        (4.0, 0.25, 0.592593),
        (1.0, 0.25, 0.877383),
        (1.0, 0.5, 1.0),
        (3.0, 0.0, 0.125),
        (3.0, 1.0, 0.125),
    ],
)
def test_mgpo_weight_of_an_accuracy(strength, p, weight):
    got = mgpo_weight(strength).of(torch.tensor(p, dtype=torch.float64)).item()
    assert got == pytest.approx(weight, abs=1e-6)


def test_entropy_bonus_keeps_the_sign_and_is_capped():
    H = torch.tensor([[0.5], [9.0], [0.1], [9.0]], dtype=torch.float64)
    batch = rows([0] * 4, 2, entropies=H)
    A = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]], dtype=torch.float64)
    got = entropy_shaped(0.4, 2.0)(batch, A)[:, 0].tolist()
    assert got == pytest.approx([1.2, 1.5, -0.96, -0.5])
    with pytest.raises(ValueError, match="kappa must be above 1"):
        entropy_shaped(0.4, 1.0)


@pytest.mark.parametrize(
    ("exponent", "want"),
    [
        (0.0, (1.0, 1.0)),
        (1.0, (0.889344, 1.110656)),
        (3.0, (0.677258, 1.322742)),
        (-1.0, (1.111, 0.889)),
    ],
)
def test_length_preference_of_lengths_3_and_5(exponent, want):
    lengths = torch.tensor([[3.0, 5.0]], dtype=torch.float64)
    got = length_preference(exponent, eps=0.0).factor(lengths)[0].tolist()
    assert got == pytest.approx(want, abs=1e-6 if exponent >= 0 else 0.02)
    assert sum(got) == pytest.approx(2)


def test_scaling_the_advantage_by_a_length_factor_is_scaling_the_loss():
    """The paper multiplies the clipped loss of an answer by f; f > 0 passes through the min."""
    batch = running_batch()
    plain = ANNEX["lambda_grpo"].replace(credit=())
    f = batch.expand(length_preference(1.0).factor(batch.grouped(batch.lengths))).detach()
    prepared = plain.evaluate(plain.prepare(batch))
    want = (prepared.weights * f * prepared.per_token_loss).sum()
    assert ANNEX["lambda_grpo"](batch).loss.item() == pytest.approx(want.item(), abs=1e-14)


def test_length_preference_refuses_a_base_below_zero():
    with pytest.raises(ValueError, match=r"\|z\| reaches 1.73, so \|r\| must be below 0.5774"):
        length_preference(1.0, r=0.6).check(rows([0] * 4, 4))


def test_simko_presses_the_likeliest_token_of_wrong_answers_at_forks():
    H = torch.tensor([[0.1, 0.9, 0.8], [0.1, 0.9, 0.8]], dtype=torch.float64)
    rank = torch.tensor([[0, 0, 0], [0, 0, 1]])
    ones = torch.ones(2, 3, dtype=torch.float64)
    batch = Batch(-ones, ones, torch.tensor([1.0, 0.0]), 2, entropies=H, sampled_rank=rank)
    A = ones * SIGNS[:, None]
    got = press_top(1.1, quantile=0.5)(batch, A)
    assert got.tolist() == [[1, 1, 1], [-1, -1.1, -1]]
