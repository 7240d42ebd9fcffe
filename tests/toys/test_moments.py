"""The instrument against brute force: every ordered step, one at a time."""

from __future__ import annotations

import math
from itertools import product as ordered

import pytest
import torch

from rlnb.objective import (
    ZOO,
    Objective,
    Part,
    batch_zscore,
    clip,
    group_center,
    group_zscore,
    k3,
    kl_in_reward,
    local_token_mean,
    logprob,
    prompt_mean,
    sequence,
    sequence_mean,
    sequence_sum,
    token_mean,
)
from rlnb.toys import Bandit, SequencePolicy, estimator_moments, moments, true_gradient


def policy(seed=0, **shape):
    made = SequencePolicy(**(dict(vocab=2, max_length=2) | shape))
    with torch.no_grad():
        made.logits.normal_(generator=torch.Generator().manual_seed(seed))
    return made


def graded(outcome):
    """Outcomes that share reward and length, so that classes really merge."""
    return float(outcome[0] == 0) + 0.5 * (len(outcome) > 1)


def binary(outcome):
    return float(outcome[0] == 0)


def brute_force(pi, reward, objective, size, old=None, ref=None):
    source = pi if old is None else old
    p = source.probabilities().detach()
    mean, second = torch.zeros_like(pi.logits), 0.0
    for group in ordered(range(len(pi)), repeat=size):
        weight = math.prod(p[i].item() for i in group)
        loss = objective(pi.batch(group, reward, size, old=old, ref=ref)).loss
        g = -torch.autograd.grad(loss, pi.logits)[0]
        mean += weight * g
        second += weight * g.square().sum().item()
    return mean, second - mean.square().sum().item()


OBJECTIVES = {
    "rloo": ZOO["rloo"],
    "dr_grpo": ZOO["dr_grpo"],
    "batch mean": ZOO["reinforce_batch_mean"],
    "grpo with KL": ZOO["grpo"],
    "token mean": ZOO["grpo"].replace(weights=token_mean),
    "local": Objective(group_zscore(), clip(0.1), local_token_mean),
    "prompt mean, sequence ratio": Objective(
        group_center(), clip(0.05), prompt_mean, ratio=sequence, terms=k3(0.1, corrected=True)
    ),
    "reinforce++": ZOO["reinforce_plus_plus"],
    "kl in reward": Objective(group_center(), logprob(), sequence_sum, shape=kl_in_reward(0.2)),
    "a part of one's own": Objective(
        lambda b, r: b.expand(r.sum(1) - r.sum(1).median()), logprob(), sequence_sum
    ),
}


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("off_policy", [False, True])
def test_moments_equal_brute_force(name, off_policy):
    pi, ref, objective = policy(0), policy(1), OBJECTIVES[name]
    old = policy(2) if off_policy else None
    mean, trace = brute_force(pi, graded, objective, 3, old, ref)
    got = estimator_moments(pi, graded, objective, 3, old_policy=old, ref_policy=ref)
    assert got.exact and torch.allclose(got.mean, mean, atol=1e-12)
    assert got.trace == pytest.approx(trace, abs=1e-12)


def test_merging_classes_changes_the_count_and_nothing_else(monkeypatch):
    pi = policy(0, max_length=3)
    merged = estimator_moments(pi, graded, ZOO["dr_grpo"], 3)
    monkeypatch.setattr(moments, "_couples_by_class", lambda objective: False)
    plain = estimator_moments(pi, graded, ZOO["dr_grpo"], 3)
    assert merged.groups < plain.groups
    assert torch.allclose(merged.mean, plain.mean, atol=1e-13)
    assert merged.trace == pytest.approx(plain.trace, abs=1e-13)


def test_named_baselines_exactly():
    """Leave-one-out is unbiased; the own sample costs exactly -grad J / G."""
    pi = policy(3)
    truth = true_gradient(pi, graded)
    assert torch.allclose(estimator_moments(pi, graded, ZOO["rloo"], 4).mean, truth, atol=1e-12)
    own = Objective(group_center(), logprob(), sequence_sum)
    for size in (2, 4, 6):
        bias = estimator_moments(pi, graded, own, size).bias
        assert torch.allclose(bias, -truth / size, atol=1e-12)


def test_batch_normalisation_with_one_prompt_is_grpo_and_with_two_is_not():
    pi = Bandit([0.3, -0.5, 1.1, 0.0])
    rewards = [1.0, 0.2, 0.0, 0.5]
    batch = Objective(batch_zscore(), clip(0.2), sequence_mean)
    group = ZOO["grpo"].replace(terms=())
    one = [estimator_moments(pi, rewards, o, 3) for o in (batch, group)]
    two = [estimator_moments(pi, rewards, o, 3, prompts=2) for o in (batch, group)]
    assert torch.allclose(one[0].mean, one[1].mean, atol=1e-12)
    assert not torch.allclose(two[0].mean, two[1].mean, atol=1e-3)


def test_two_prompts_of_their_own_halve_the_variance_of_nothing_shared():
    """Independent prompts, group baseline: the variances add, over P squared."""
    prompts = [Bandit([0.3, -0.5]), Bandit([1.0, 0.0, 0.2])]
    rewards = [[1.0, 0.0], [0.0, 1.0, 0.5]]
    own = Objective(group_center(), logprob(), sequence_sum)
    both = estimator_moments(prompts, rewards, own, 2)
    each = [estimator_moments(p, r, own, 2) for p, r in zip(prompts, rewards, strict=True)]
    assert both.trace == pytest.approx(sum(e.trace for e in each) / 4, abs=1e-12)
    assert torch.allclose(both.mean, torch.cat([e.mean for e in each]) / 2, atol=1e-12)


def test_beyond_the_limit_it_samples_and_says_so():
    pi = policy(0)
    exact = estimator_moments(pi, graded, ZOO["dr_grpo"], 4)
    sampled = estimator_moments(pi, graded, ZOO["dr_grpo"], 4, limit=3)
    assert exact.exact and not sampled.exact and "standard error" in str(sampled)
    assert (sampled.mean - exact.mean).norm() < 4 * sampled.standard_error
    assert abs(sampled.trace - exact.trace) < 4 * sampled.trace_error


@pytest.mark.parametrize("name", [n for n in ZOO if n not in ("ppo", "dppo_topk")])
def test_every_method_of_the_zoo_without_critic_or_candidates_is_served(name):
    reward = binary if name in ("maxrl", "mgpo") else graded
    got = estimator_moments(policy(0), reward, ZOO[name], 2, ref_policy=policy(1))
    assert got.exact and got.trace > 0 and got.cosine > 0


def test_remax_is_unbiased():
    """The greedy answer does not depend on the sample."""
    pi = policy(3)
    assert estimator_moments(pi, graded, ZOO["remax"], 2).bias.abs().max() < 1e-12


class coin(Part):
    random = True

    def __call__(self, batch, advantages, log_ratio):
        return torch.rand_like(advantages)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda p: estimator_moments(p, graded, ZOO["rloo"].replace(gates=coin()), 2), "random"),
        (lambda p: estimator_moments(p, graded, ZOO["ppo"], 2), "needs values"),
        (lambda p: estimator_moments(p, graded, ZOO["grpo"], 2), "pass ref_policy="),
        (
            lambda p: estimator_moments([p, p], [graded] * 2, ZOO["rloo"], 2, old_policy=p),
            "go with a single policy",
        ),
    ],
)
def test_what_the_instrument_refuses(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(policy())
