"""Each part alone: hand numbers, corners, conventions."""

from __future__ import annotations

import math

import pytest
import torch

from rlnb.objective import (
    ZOO,
    Batch,
    Objective,
    batch_mean,
    batch_zscore,
    clip,
    constant_length,
    gae,
    group_center,
    group_zscore,
    k3,
    kl_estimate,
    kl_in_reward,
    leave_one_out,
    local_token_mean,
    logprob,
    prompt_mean,
    raw_reward,
    return_to_go,
    sequence_mean,
    sequence_sum,
    token_mean,
    token_sum,
    value_loss,
    whiten,
)


def rewards_batch(rewards, size, **fields):
    rewards = torch.tensor(rewards)
    zero = torch.zeros(len(rewards), 1, dtype=rewards.dtype)
    return Batch(zero.requires_grad_(), torch.ones(len(rewards), 1), rewards, size, **fields)


def advantages(part, rewards, size):
    return (
        Objective(part, logprob(), token_mean)
        .prepare(rewards_batch(rewards, size))
        .advantages[:, 0]
        .tolist()
    )


# ---- advantages


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


def test_reinforce_plus_plus_whitens_the_penalised_return_over_tokens():
    lp = torch.tensor([[-1.0, -2.0], [-1.0, -1.0]], requires_grad=True)
    ref = torch.tensor([[-2.0, -2.0], [-1.0, -3.0]])
    batch = Batch(lp, torch.ones(2, 2), torch.tensor([1.0, 0.0]), 1, ref_logprobs=ref)
    returns = torch.tensor([1 - 0.01, 1.0, -0.02, -0.02])
    want = (returns - returns.mean()) / returns.std()
    got = ZOO["reinforce_plus_plus"].prepare(batch).advantages.ravel()
    assert torch.allclose(got, want, atol=1e-6)


def test_raw_reward():
    assert advantages(raw_reward(), [2.0, -1.0], 1) == [2.0, -1.0]


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


def test_whitening_comes_after_the_critics_target():
    prepared = Objective(gae(1.0, 0.95), clip(0.2), token_mean, credit=whiten).prepare(
        critic_batch()
    )
    assert prepared.batch.returns[0].tolist() == pytest.approx([0.960750, 0.985, 1.0])
    assert prepared.advantages.mean().item() == pytest.approx(0, abs=1e-12)
    assert prepared.advantages.std().item() == pytest.approx(1, abs=1e-6)


# ---- surrogates


@pytest.mark.parametrize(
    ("rho", "a", "value", "slope"),
    [
        (1.5, 1.0, 1.2, 0.0),
        (0.5, 1.0, 0.5, 1.0),
        (1.5, -1.0, -1.5, -1.0),
        (0.5, -1.0, -0.8, 0.0),
        (1.1, 1.0, 1.1, 1.0),
        (0.9, -1.0, -0.9, -1.0),
        (0.1, -1.0, -0.8, 0.0),
        (100.0, -1.0, -100.0, -1.0),
    ],
)
def test_min_kills_only_the_improving_side(rho, a, value, slope):
    r = torch.tensor([[rho]], requires_grad=True)
    got = clip(0.2)(None, torch.tensor([[a]]), r.log())
    got.sum().backward()
    assert got.item() == pytest.approx(value)
    assert r.grad.item() == pytest.approx(slope)


def test_dual_clip_stops_the_bad_token_that_rose():
    r = torch.tensor([[4.0, 2.0, 4.0]], requires_grad=True)
    got = clip(0.2, dual=3.0)(None, torch.tensor([[-1.0, -1.0, 1.0]]), r.log())
    got.sum().backward()
    assert got[0].tolist() == pytest.approx([-3.0, -2.0, 1.2])
    assert r.grad[0].tolist() == pytest.approx([0.0, -1.0, 0.0])


def test_clip_higher_moves_only_the_upper_edge():
    r = torch.tensor([[1.25, 1.25, 0.75]], requires_grad=True)
    clip(0.2, high=0.28)(None, torch.tensor([[1.0, -1.0, -1.0]]), r.log()).sum().backward()
    assert r.grad[0].tolist() == [1.0, -1.0, 0.0]


def test_on_policy_every_ratio_surrogate_has_reinforces_gradient():
    torch.manual_seed(0)
    lp = (-torch.rand(4, 5)).requires_grad_()
    batch = Batch(lp, torch.ones(4, 5), torch.tensor([1.0, 0.0, 0.0, 1.0]), 2)
    grads = [
        torch.autograd.grad(Objective(group_center(), s, token_mean)(batch).loss, lp)[0]
        for s in (logprob(), clip(0.2), clip(3e-4, high=4e-4, dual=3.0))
    ]
    assert torch.equal(grads[0], grads[1]) and torch.equal(grads[1], grads[2])


# ---- weights


def lengths_batch():
    lengths = torch.tensor([2, 6, 3, 1])
    mask = (torch.arange(6) < lengths[:, None]).double()
    lp = torch.zeros(4, 6, requires_grad=True)
    return Batch(
        lp,
        mask,
        torch.zeros(4),
        2,
        advantages=-torch.tensor([1.0, 2.0, 3.0, 5.0]),
        old_logprobs=torch.zeros(4, 6),
    )


@pytest.mark.parametrize(
    ("weights", "loss"),
    [
        (sequence_mean, 2.75),
        (token_mean, 28 / 12),
        (prompt_mean, 2.625),
        (constant_length(8), 0.875),
        (sequence_sum, 7.0),
        (token_sum, 28.0),
        (local_token_mean, 28 / 12),
    ],
)
def test_the_seven_aggregations(weights, loss):
    batch = lengths_batch()
    assert Objective(raw_reward(), clip(0.2), weights)(batch).loss.item() == pytest.approx(loss)


def test_per_token_weights():
    def per_row(weights):
        return Objective(raw_reward(), clip(0.2), weights)(lengths_batch()).weights[:, 0].tolist()

    assert per_row(sequence_mean) == pytest.approx([0.125, 1 / 24, 1 / 12, 0.25])
    assert per_row(token_mean) == pytest.approx([1 / 12] * 4)
    assert per_row(prompt_mean) == pytest.approx([1 / 16, 1 / 16, 1 / 8, 1 / 8])
    assert per_row(constant_length(8)) == pytest.approx([1 / 32] * 4)


def test_local_token_mean_with_one_prompt_per_micro_batch_is_the_prompt_mean():
    """And so it does not split: 2.625 against 2.3333 for the whole batch."""
    objective = Objective(raw_reward(), clip(0.2), local_token_mean)
    prepared = objective.prepare(lengths_batch())
    parts = [objective.loss(prepared.rows(i)).item() for i in ([0, 1], [2, 3])]
    assert sum(parts) / 2 == pytest.approx(2.625)
    assert sum(parts) != pytest.approx(28 / 12)


def test_a_fully_masked_row_counts_as_its_weights_say():
    batch = lengths_batch()
    mask = batch.completion_mask.clone()
    mask[3] = 0
    batch = batch.replace(completion_mask=mask)
    counted = Objective(raw_reward(), clip(0.2), sequence_mean)(batch).loss.item()
    dropped = Objective(raw_reward(), clip(0.2), sequence_mean(count_empty=False))(
        batch
    ).loss.item()
    assert counted == pytest.approx((1 + 2 + 3) / 4)
    assert dropped == pytest.approx((1 + 2 + 3) / 3)


def test_constant_length_never_takes_the_padded_width():
    batch = lengths_batch().replace(max_completion_length=10)
    loss = Objective(raw_reward(), clip(0.2), constant_length)(batch).loss
    assert loss.item() == pytest.approx(0.7)


# ---- terms

LOGITS = torch.tensor([0.3, -0.5, 1.1, 0.0], dtype=torch.float64)
REF_LOGITS = torch.tensor([0.1, 0.4, 0.2, 0.3], dtype=torch.float64).log()
REVERSE = [0.091325, -0.181437, 0.257102, -0.166990]
FORWARD = [0.126465, -0.298243, 0.304008, -0.132230]


def expected_term_gradient(term, old_logits=None):
    """E over actions of the term's gradient, by enumeration of the four actions."""
    logits = LOGITS.clone().requires_grad_()
    lp = logits.log_softmax(0)
    old = (LOGITS if old_logits is None else old_logits).log_softmax(0)
    batch = Batch(
        lp[:, None],
        torch.ones(4, 1),
        torch.zeros(4),
        1,
        ref_logprobs=REF_LOGITS.log_softmax(0)[:, None],
        old_logprobs=old[:, None].detach(),
    )
    (old.exp().detach() * term(batch)[:, 0]).sum().backward()
    return logits.grad.tolist()


@pytest.mark.parametrize(
    ("kind", "mean", "std"),
    [("k1", 0.414160, 0.810987), ("k2", 0.414614, 0.198584), ("k3", 0.414160, 0.388715)],
)
def test_values_of_the_kl_estimators(kind, mean, std):
    p = LOGITS.softmax(0)
    k = kl_estimate(kind, LOGITS.log_softmax(0) - REF_LOGITS.log_softmax(0))
    assert (p * k).sum().item() == pytest.approx(mean, abs=1e-6)
    assert ((p * k.square()).sum() - (p * k).sum() ** 2).sqrt().item() == pytest.approx(
        std, abs=1e-6
    )


def test_gradients_of_the_kl_estimators_as_losses():
    from rlnb.objective import k1, k2

    other = torch.tensor([0.0, 0.2, 0.6, -0.4])
    assert expected_term_gradient(k1(1.0)) == pytest.approx([0.0] * 4, abs=1e-12)
    assert expected_term_gradient(k2(1.0)) == pytest.approx(REVERSE, abs=1e-6)
    assert expected_term_gradient(k3(1.0)) == pytest.approx(FORWARD, abs=1e-6)
    assert expected_term_gradient(k3(1.0, corrected=True), other) == pytest.approx(
        REVERSE, abs=1e-6
    )
    assert expected_term_gradient(k3(1.0, corrected="detached"), other) == pytest.approx(
        FORWARD, abs=1e-6
    )


def test_kl_in_the_reward_is_subtracted_where_it_arises():
    """Reward-to-go of -0.1 k1 with a critic of zeros, lambda = 1."""
    values = torch.zeros(1, 3)
    lp = torch.tensor([[-1.0, -2.0, -3.0]], requires_grad=True)
    ref = torch.tensor([[-1.5, -1.5, -3.0]])
    batch = Batch(
        lp,
        torch.ones(1, 3),
        torch.ones(1),
        1,
        old_logprobs=lp.detach(),
        ref_logprobs=ref,
        values=values,
    )
    got = Objective(gae(1.0, 1.0), clip(0.2), token_mean, shape=kl_in_reward(0.1)).prepare(batch)
    assert got.advantages[0].tolist() == pytest.approx([1 - 0.1 * (0.5 - 0.5), 1 + 0.05, 1.0])


def test_value_loss_takes_the_worse_of_clipped_and_plain():
    values = torch.tensor([[1.0, 0.3]], requires_grad=True)
    batch = critic_batch(
        values=values, old_values=torch.tensor([[0.5, 0.3]]), returns=torch.tensor([[1.0, 1.0]])
    )
    batch = batch.replace(advantages=torch.zeros(1))
    loss = Objective(raw_reward(), clip(0.2), token_mean, terms=value_loss(1.0, clip=0.2))(
        batch
    ).loss
    # token 0: plain error 0, clipped value .7 -> .09; token 1: .49
    assert loss.item() == pytest.approx((0.09 + 0.49) / 2 / 2)
    loss.backward()
    assert values.grad[0].tolist() == pytest.approx([0.0, -0.35])


def test_metrics_count_only_cut_tokens():
    """Outside the band on the wrong side is alive, and not in the clip fraction."""
    rho = torch.tensor([[1.5, 0.5], [1.5, 0.5]])
    batch = Batch(
        rho.log() - 1,
        torch.ones(2, 2),
        torch.tensor([1.0, 0.0]),
        2,
        old_logprobs=torch.full((2, 2), -1.0),
    )
    metrics = ZOO["grpo"].replace(terms=())(batch).metrics
    assert metrics["clip_ratio/high_mean"] == 0.25 and metrics["clip_ratio/low_mean"] == 0.25
    assert metrics["clip_ratio/region_mean"] == 0.5
    assert metrics["reward_std"] == pytest.approx(math.sqrt(0.5))
    assert "kl" not in metrics and metrics["frac_reward_zero_std"] == 0
