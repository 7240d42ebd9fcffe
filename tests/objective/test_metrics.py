"""The metrics of a step, each against a number by hand."""

from __future__ import annotations

import math

import pytest
import torch

from rlnb.objective import ZOO, Batch


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
