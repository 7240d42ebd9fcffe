"""Averages: the weight of each token, and of rows without any."""

from __future__ import annotations

import pytest
import torch
from worked import worked_batch

from rlnb.objective import (
    Batch,
    Objective,
    clip,
    constant_length,
    group_center,
    local_token_mean,
    padded_length,
    prompt_mean,
    ratio,
    raw_reward,
    sequence_mean,
    sequence_sum,
    token_mean,
    token_sum,
)


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


def test_padded_length_follows_the_widest_row_and_does_not_split():
    objective = Objective(group_center(), ratio(), padded_length)
    prepared = objective.prepare(worked_batch())
    assert objective.evaluate(prepared).weights[0, 0].item() == pytest.approx(1 / (2 * 5))
    narrow = objective.replace(weights=constant_length(5))
    assert objective.loss(prepared).item() == pytest.approx(narrow.loss(prepared).item())


def test_a_minibatch_counts_its_prompts_and_not_its_rows():
    """Rows 0, 1 of one prompt and row 3 of another: P = 2, and 4 + 2 tokens in their groups."""
    lengths = torch.tensor([1, 3, 2, 2])
    mask = (torch.arange(3) < lengths[:, None]).double()
    batch = Batch(torch.zeros(4, 3), mask, torch.tensor([1.0, 0.0, 1.0, 0.0]), 2)
    part = Objective(group_center(), clip(0.2), prompt_mean).prepare(batch).minibatch([0, 1, 3])
    assert part.totals.prompts == 2 and part.totals.rows == 3
    weights = prompt_mean()(part.batch.cleaned(), part.totals)[:, 0].tolist()
    assert weights == pytest.approx([1 / (2 * 4), 1 / (2 * 4), 1 / (2 * 2)])
