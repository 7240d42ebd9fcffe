"""The toys: complete enumeration, exact gradients, and a running group that is what it says."""

from __future__ import annotations

import pytest
import torch

from rlnb.objective import ZOO, Objective, clip, group_center, logprob, sequence_mean, sequence_sum
from rlnb.toys import (
    Bandit,
    SequencePolicy,
    expected_gradient,
    expected_reward,
    running_batch,
    running_group,
    true_gradient,
)


def random_policy(seed=0, **shape):
    policy = SequencePolicy(**shape)
    with torch.no_grad():
        policy.logits.normal_(generator=torch.Generator().manual_seed(seed))
    return policy


@pytest.mark.parametrize(("vocab", "max_length", "count"), [(2, 3, 15), (1, 4, 5), (3, 2, 13)])
def test_outcomes_are_all_of_them_and_sum_to_one(vocab, max_length, count):
    policy = random_policy(vocab=vocab, max_length=max_length)
    assert len(set(policy.outcomes)) == count
    assert policy.probabilities().sum().item() == pytest.approx(1, abs=1e-12)
    assert policy.lengths.tolist() == [len(o) for o in policy.outcomes]
    assert all(policy.truncated(o) == (policy.stop not in o) for o in policy.outcomes)


def test_a_sequence_probability_by_hand():
    policy = random_policy(vocab=2, max_length=3)
    table = policy.logits.log_softmax(1)
    i = policy.outcomes.index((0, 1, 2))
    hand = (
        table[policy.states[()], 0]
        + table[policy.states[(0,)], 1]
        + table[policy.states[(0, 1)], 2]
    )
    assert policy.probabilities()[i].item() == pytest.approx(hand.exp().item())


def test_true_gradient_agrees_with_finite_differences():
    policy = random_policy(3, vocab=2, max_length=2)
    reward = [float(i % 3) for i in range(len(policy))]
    exact = true_gradient(policy, reward)
    for i in range(policy.logits.shape[0]):
        for j in range(policy.logits.shape[1]):
            values = []
            for step in (1e-5, -1e-5):
                twin = policy.copy()
                twin.logits.data[i, j] += step
                values.append(expected_reward(twin, reward).item())
            assert (values[0] - values[1]) / 2e-5 == pytest.approx(exact[i, j].item(), abs=1e-9)


def test_reinforce_and_rloo_are_unbiased_and_the_own_sample_costs_one_over_g():
    policy = random_policy(1, vocab=2, max_length=2)
    reward = [1.0, 0.2, 0.0, 0.5, 1.0, 0.0, 0.3]
    truth = true_gradient(policy, reward)
    for name in ("reinforce", "rloo"):
        assert torch.allclose(expected_gradient(policy, reward, ZOO[name], 2), truth, atol=1e-12)
    own = Objective(group_center(), logprob(), sequence_sum)
    for size in (2, 3):
        assert torch.allclose(
            expected_gradient(policy, reward, own, size), truth * (size - 1) / size, atol=1e-12
        )


def test_the_sequence_mean_is_not_the_policy_gradient():
    policy = random_policy(1, vocab=2, max_length=2)
    reward = [1.0, 0.2, 0.0, 0.5, 1.0, 0.0, 0.3]
    biased = expected_gradient(policy, reward, ZOO["rloo"].replace(weights=sequence_mean), 2)
    truth = true_gradient(policy, reward)
    assert torch.nn.functional.cosine_similarity(biased.ravel(), truth.ravel(), 0) < 0.999


def test_bandit_gradient_by_hand():
    """p (1 - p) for two arms, one of which pays."""
    p = Bandit([0.4, 0.0]).probabilities()[0].item()
    assert true_gradient(Bandit([0.4, 0.0]), [1.0, 0.0]).tolist() == pytest.approx(
        [p * (1 - p), -p * (1 - p)]
    )


def test_sampling_is_seeded_and_follows_the_probabilities():
    bandit = Bandit([0.0, 1.0, 2.0])
    draws = [bandit.sample(20_000, torch.Generator().manual_seed(0)) for _ in range(2)]
    assert torch.equal(*draws)
    share = torch.bincount(draws[0]) / 20_000
    assert torch.allclose(share, bandit.probabilities().detach(), atol=0.015)


def test_a_toy_batch_trains_the_toy():
    policy, old = random_policy(0), random_policy(1)
    batch = policy.batch([0, 3, 9, 14], lambda o: float(len(o)), 4, old=old, ref=old)
    ZOO["grpo"](batch).loss.backward()
    assert policy.logits.grad.abs().sum() > 0 and old.logits.grad is None
    assert batch.rewards.tolist() == [1.0, 3.0, 3.0, 3.0] and batch.max_completion_length == 3


def test_running_group_is_as_the_course_says():
    group = running_group()
    assert group.rewards.tolist() == [1, 1, 0, 0] and group.lengths.tolist() == [3, 5, 2, 6]
    both = running_batch()
    assert both.rewards.tolist() == [1, 1, 0, 0, 1, 0, 0, 0]
    assert both.lengths.tolist() == [3, 5, 2, 6, 4, 1, 7, 2]
    assert torch.equal(both.logprobs[:4, :6], group.logprobs)


def test_every_gate_decides_differently_somewhere_on_the_running_group():
    group = running_group()
    gates = {
        name: Objective(group_center(), part, sequence_mean).explain(group).gate
        for name, part in {
            "clip": clip(0.2),
            "higher": clip(0.2, high=0.28),
            "dual": clip(0.2, dual=3.0),
        }.items()
    }
    alive = {name: (g != 0) & group.mask for name, g in gates.items()}
    assert (alive["clip"] != alive["higher"]).any() and (alive["clip"] != alive["dual"]).any()
    rho = (group.logprobs - group.old_logprobs).exp()[group.mask]
    assert rho.max() > 5 and rho.min() < 0.8
    moved = (group.logprobs.exp() - group.old_logprobs.exp()).abs()[group.mask]
    assert ((moved > 0.15) & (rho > 0.8) & (rho < 1.2)).any()  # inside the band, yet far
    assert ((moved < 1e-3) & (rho > 1.9)).any()  # outside the band, yet nowhere


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: SequencePolicy(vocab=20, max_length=6), "too many to enumerate"),
        (lambda: SequencePolicy(vocab=0), "at least 1"),
        (lambda: Bandit([1.0]), "at least 2 arms"),
        (lambda: true_gradient(Bandit(3), [1.0, 0.0]), "3 numbers"),
        (lambda: SequencePolicy(logits=torch.zeros(2, 2)), "logits must hold 7 x 3"),
        (
            lambda: expected_gradient(SequencePolicy(), lambda o: 1.0, ZOO["rloo"], 8),
            "more than 20,000",
        ),
    ],
)
def test_bad_toys_get_one_clear_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
