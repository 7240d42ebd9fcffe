"""The metrics of a step, each against a number by hand."""

from __future__ import annotations

import math

import pytest
import torch

from rlnb.objective import ZOO, Batch
from rlnb.objective.report import Metrics


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


def step(**fields):
    """Two answers of lengths 3 and 1; what stands on padding must not be seen."""
    given = dict(
        logprobs=torch.tensor([[-1.0, -2.0, -0.5], [-3.0, -9.0, -9.0]], requires_grad=True),
        completion_mask=torch.tensor([[1, 1, 1], [1, 0, 0]]),
        rewards=torch.tensor([1.0, 0.0]),
        num_generations=2,
    )
    return Batch(**(given | fields))


METHOD = ZOO["grpo"].replace(terms=())


def test_the_kl_metric_is_k3_of_policy_over_reference_per_token():
    """k3(l) = exp(-l) - 1 + l with l = log pi - log ref; k3(-l) is another number."""
    gap = torch.tensor([0.5, -0.25, 0.0, 1.0])
    reference = torch.tensor([[-1.5, -1.75, -0.5], [-4.0, -1.0, -1.0]])
    told = METHOD(step(ref_logprobs=reference)).metrics["kl"]
    assert told == pytest.approx((torch.expm1(-gap) + gap).mean().item())
    assert abs(told - (torch.expm1(gap) - gap).mean().item()) > 0.05


def test_entropy_is_a_mean_of_tokens_and_not_of_answers():
    entropies = torch.tensor([[0.3, 0.6, 0.9], [2.0, 7.0, 7.0]])
    assert METHOD(step(entropies=entropies)).metrics["entropy"] == pytest.approx(3.8 / 4)


def test_the_std_of_rewards_is_bessels_inside_each_group():
    batch = step(
        logprobs=torch.full((4, 1), -1.0, requires_grad=True),
        completion_mask=torch.ones(4, 1),
        rewards=torch.tensor([1.0, 0.0, 5.0, 5.0]),
    )
    metrics = METHOD(batch).metrics
    assert metrics["reward_std"] == pytest.approx(math.sqrt(0.5) / 2)
    assert metrics["frac_reward_zero_std"] == 0.5


def test_ratio_and_length_metrics_leave_padding_out():
    old = torch.tensor([[-1.0, -2.0, -1.0], [-3.5, -1.0, -1.0]])
    metrics = METHOD(step(old_logprobs=old)).metrics
    rho = torch.tensor([0.0, 0.0, 0.5, 0.5]).exp()
    assert metrics["ratio/max"] == pytest.approx(math.exp(0.5))
    assert metrics["ratio/min"] == 1 and metrics["ratio/mean"] == pytest.approx(rho.mean().item())
    lengths = [metrics[f"completions/{name}_length"] for name in ("min", "mean", "max")]
    assert lengths == [1, 2, 3]


def test_metrics_are_computed_from_what_they_are_given():
    """No objective: a cleaned batch, a log-ratio, and what a band cut."""
    batch = step().cleaned()
    moved = torch.tensor([[0.5, -0.7, -0.5], [0.0, 9.0, 9.0]])
    low, high = moved < -0.1, moved > 0.1
    metrics = Metrics(batch, moved, (low, high))
    assert (metrics["clip_ratio/low_mean"], metrics["clip_ratio/high_mean"]) == (0.5, 0.25)
    assert metrics["clip_ratio/region_mean"] == 0.75
    assert "clip_ratio/low_mean" not in Metrics(batch, moved)
