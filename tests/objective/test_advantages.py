"""Baselines by hand: each advantage alone, its corners and conventions."""

from __future__ import annotations

import math

import pytest
import torch
from worked import worked_batch

from rlnb.objective import (
    ZOO,
    Batch,
    Objective,
    batch_mean,
    batch_zscore,
    clip,
    gae,
    group_center,
    group_zscore,
    leave_one_out,
    logprob,
    max_rl,
    raw_reward,
    return_to_go,
    sequence_sum,
    token_mean,
    token_sum,
)
from rlnb.toys import Bandit, expected_gradient


def rewards_batch(rewards, size, **fields):
    rewards = torch.tensor(rewards)
    rewards = rewards if rewards.is_floating_point() else rewards.double()
    zero = torch.zeros(len(rewards), 1, dtype=rewards.dtype)
    return Batch(zero.requires_grad_(), torch.ones(len(rewards), 1), rewards, size, **fields)


def advantages(part, rewards, size):
    return (
        Objective(part, logprob(), token_mean)
        .prepare(rewards_batch(rewards, size))
        .advantages[:, 0]
        .tolist()
    )


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


def test_group_zscore_population_and_bessel():
    third = 1 / math.sqrt(3)
    assert advantages(group_zscore(eps=0.0), [1.0, 0.0, 0.0, 0.0], 4) == pytest.approx(
        [math.sqrt(3), -third, -third, -third], abs=1e-12
    )
    assert advantages(group_zscore("bessel", eps=0.0), [1.0, 0.0, 0.0, 0.0], 4) == pytest.approx(
        [1.5, -0.5, -0.5, -0.5], abs=1e-12
    )
    assert advantages(group_zscore(), [3.0, 1.0, 2.0, 0.0], 4) == pytest.approx(
        [1.341641, -0.447214, 0.447214, -1.341641], abs=2e-6
    )


def test_eps_is_added_to_the_std():
    assert advantages(group_zscore(eps=0.5), [1.0, 0.0], 2) == pytest.approx([0.5, -0.5], abs=1e-12)


def test_one_failure_among_sixteen():
    got = advantages(group_zscore(eps=0.0), [1.0] * 15 + [0.0], 16)
    assert got[-1] == pytest.approx(-math.sqrt(15), abs=1e-12)
    got = advantages(group_zscore("bessel", eps=0.0), [1.0] * 15 + [0.0], 16)
    assert got[-1] == pytest.approx(-15 / 4, abs=1e-12)


def test_leave_one_out_is_the_centred_reward_times_g_over_g_minus_1():
    rewards = [0.3, 0.9, 0.1, 0.7, 0.2, 0.2]
    loo = advantages(leave_one_out(), rewards, 3)
    by_hand = [r - (sum(g) - r) / 2 for g in (rewards[:3], rewards[3:]) for r in g]
    assert loo == pytest.approx(by_hand, abs=1e-12)
    assert loo == pytest.approx([1.5 * a for a in advantages(group_center(), rewards, 3)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "part",
    [
        group_zscore(eps=0.0),
        group_zscore(eps=1e-8),
        group_center(),
        leave_one_out(),
        batch_zscore(eps=0.0),
        batch_zscore("group", eps=0.0),
    ],
)
def test_equal_rewards_give_exactly_zero(part, dtype):
    """Twelve rewards of 0.7: their mean is not 0.7 in binary, and noise must not become signal."""
    batch = Batch(
        torch.zeros(12, 1, dtype=dtype), torch.ones(12, 1), torch.full((12,), 0.7, dtype=dtype), 12
    )
    got = Objective(part, logprob(), token_mean).prepare(batch).advantages
    assert got.abs().max() == 0


def test_an_equal_group_beside_a_mixed_one_is_zero():
    got = advantages(group_zscore(eps=0.0), [0.7, 0.7, 0.7, 1.0, 0.0, 0.0], 3)
    assert got[:3] == [0, 0, 0] and got[3] == pytest.approx(math.sqrt(2))


def test_batch_parts():
    assert advantages(batch_mean(), [1.0, 0.0, 0.0, 1.0, 1.0, 1.0], 3) == pytest.approx(
        [1 / 3, -2 / 3, -2 / 3, 1 / 3, 1 / 3, 1 / 3]
    )
    z = advantages(batch_zscore(eps=0.0), [1.0, 0.0, 0.0, 1.0], 2)
    assert z == pytest.approx([1.0, -1.0, -1.0, 1.0])
    # group mean, batch std of the raw rewards: TRL's scale_rewards="batch" (with Bessel)
    lite = advantages(
        batch_zscore("group", "bessel", 1e-4), [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0], 4
    )
    assert lite[0] == pytest.approx(1.402859, abs=1e-6)
    assert lite[-1] == pytest.approx(-1.402859, abs=1e-6)


def test_remax_subtracts_the_greedy_answers_reward():
    batch = rewards_batch(
        [1.0, 0.0, 1.0, 0.0], 2, greedy_rewards=torch.tensor([1.0, 1.0, 0.0, 0.0])
    )
    assert ZOO["remax"].prepare(batch).advantages[:, 0].tolist() == [0.0, -1.0, 1.0, 0.0]


def test_return_to_go_discounts_what_is_still_to_come():
    """Token rewards .1 (tool) .2 1 with gamma = .5: 1, .2 + .5, .1 + .35."""
    lp = torch.zeros(1, 4, requires_grad=True)
    batch = Batch(
        lp,
        torch.tensor([[1.0, 0.0, 1.0, 1.0]]),
        torch.zeros(1),
        1,
        token_rewards=torch.tensor([[0.1, 9.0, 0.2, 1.0]]),
    )
    got = Objective(return_to_go(0.5), logprob(), token_mean).prepare(batch).advantages[0]
    assert got.tolist() == pytest.approx([0.45, 0.0, 0.7, 1.0])


def test_raw_reward():
    assert advantages(raw_reward(), [2.0, -1.0], 1) == [2.0, -1.0]


def test_gae_by_hand():
    prepared = Objective(gae(1.0, 0.95), clip(0.2), token_mean).prepare(critic_batch())
    assert prepared.advantages[0].tolist() == pytest.approx([0.760750, 0.485, 0.3])
    assert prepared.batch.returns[0].tolist() == pytest.approx([0.960750, 0.985, 1.0])


def test_gae_lambda_one_is_return_minus_value_and_lambda_zero_is_the_td_error():
    one = Objective(gae(1.0, 1.0), clip(0.2), token_mean).prepare(critic_batch()).advantages[0]
    zero = Objective(gae(1.0, 0.0), clip(0.2), token_mean).prepare(critic_batch()).advantages[0]
    assert one.tolist() == pytest.approx([0.8, 0.5, 0.3])
    assert zero.tolist() == pytest.approx([0.3, 0.2, 0.3])


def test_gae_discounts_by_gamma_and_credits_by_gamma_lambda():
    """delta = (.25, .13, .3); A = delta + .855 A_next. And lambda = 1 is .81 r - V."""
    got = Objective(gae(0.9, 0.95), clip(0.2), token_mean).prepare(critic_batch()).advantages[0]
    assert got.tolist() == pytest.approx([0.5804575, 0.3865, 0.3])
    one = Objective(gae(0.9, 1.0), clip(0.2), token_mean).prepare(critic_batch()).advantages[0]
    assert one.tolist() == pytest.approx([0.61, 0.4, 0.3])


def test_gae_steps_over_masked_tokens():
    """A tool's output in the middle and padding at the end change nothing, whatever they hold."""
    mask = torch.tensor([[1.0, 0.0, 1.0, 1.0, 0.0]])
    values = torch.tensor([[0.2, math.nan, 0.5, 0.7, math.inf]])
    got = (
        Objective(gae(1.0, 0.95), clip(0.2), token_mean)
        .prepare(critic_batch(mask, values))
        .advantages[0]
    )
    assert got.tolist() == pytest.approx([0.760750, 0, 0.485, 0.3, 0])


def test_normalised_leave_one_out():
    batch = worked_batch()
    got = Objective(leave_one_out(True, "bessel", 0.0), logprob(), token_sum).prepare(batch)
    assert got.advantages[:, 0].tolist() == pytest.approx([1 / math.sqrt(2), -1 / math.sqrt(2)])


def test_max_rl_divides_by_the_mean():
    assert advantages(max_rl(), [1, 0, 0, 0], 4) == [3, -1, -1, -1]
    assert advantages(max_rl(), [1, 1, 0, 0], 4) == [1, 1, -1, -1]
    assert advantages(max_rl(), [1, 1, 1, 1], 4) == [0] * 4


def test_max_rl_without_a_success_is_zero_or_minus_one():
    assert advantages(max_rl(), [0, 0], 2) == [0, 0]
    assert advantages(max_rl("minus_one"), [0, 0], 2) == [-1, -1]


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("p", [0.5, 0.2])
def test_max_rl_ascends_the_harmonic_sum_of_pass_at_k(size, p):
    """E[estimate] = grad sum_{k<=n} pass@k / k, n = G - 1 ("zero") or G ("minus_one")."""
    policy = Bandit([math.log(p), math.log((1 - p) * 0.7), math.log((1 - p) * 0.3)])
    success = policy.logits.softmax(-1)[0]
    for part, terms in ((max_rl(), size - 1), (max_rl("minus_one"), size)):
        target = sum((1 - (1 - success) ** k) / k for k in range(1, terms + 1))
        (truth,) = torch.autograd.grad(target, policy.logits, retain_graph=True)
        got = expected_gradient(
            policy, [1.0, 0.0, 0.0], Objective(part, logprob(), sequence_sum), size
        )
        assert torch.allclose(got, truth, atol=1e-12), part
        (other,) = torch.autograd.grad(
            target + (1 - (1 - success) ** (terms + 1)) / (terms + 1),
            policy.logits,
            retain_graph=True,
        )
        assert not torch.allclose(got, other, atol=1e-6)


def test_max_rl_refuses_graded_rewards():
    with pytest.raises(ValueError, match=r"takes rewards of 0 and 1; rewards\[1\] is 0.5"):
        ZOO["maxrl"](rows([1, 0.5], 2))


def test_scalerl_divides_by_one_std_of_the_centred_rewards():
    rewards = [1, 0, 0, 0, 1, 1, 1, 0]
    for part, big, small in (
        (batch_zscore("group", of="centred", eps=0), 1.732051, 0.577350),
        (batch_zscore("group", "bessel", of="centred", eps=0), 1.620185, 0.540062),
        (batch_zscore("group", "bessel", eps=1e-4), 1.402859, 0.467620),  # TRL
    ):
        want = [big, -small, -small, -small, small, small, small, -big]
        assert advantages(part, rewards, 4) == pytest.approx(want, abs=1e-6), part
