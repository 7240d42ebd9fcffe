"""Rewards before the baseline sees them: length penalty, clip, KL."""

from __future__ import annotations

import pytest
import torch
from worked import worked_batch

from rlnb.objective import (
    Batch,
    Objective,
    clip,
    gae,
    group_center,
    kl_in_reward,
    logprob,
    overlong,
    reward_clip,
    sequence_sum,
    token_mean,
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


def test_overlong_at_known_lengths():
    lengths = torch.tensor([16384.0, 17408.0, 18432.0, 20480.0, 30000.0])
    assert overlong(20480, 4096).penalty(lengths).tolist() == [0, -0.25, -0.5, -1, -1]
    assert "-0." not in str(overlong(20480, 4096).penalty(lengths[:1]).tolist())
    with pytest.raises(ValueError, match="cache must lie in"):
        overlong(10, 20)


def test_shapes_reach_the_baseline():
    batch = worked_batch()
    shaped = Objective(group_center(), logprob(), sequence_sum, shape=overlong(6, 4))
    # lengths 3 and 5: penalties -0.25 and -0.75, rewards 0.75 and -0.75
    assert shaped.prepare(batch).advantages[:, 0].tolist() == pytest.approx([0.75, -0.75])
    clipped = shaped.replace(shape=reward_clip(-0.5, 0.5))
    assert clipped.prepare(batch).advantages[:, 0].tolist() == pytest.approx([0.25, -0.25])
