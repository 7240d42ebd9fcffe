"""Advantages that come with the batch are taken as they are."""

from __future__ import annotations

import torch

from rlnb.objective import ZOO, Batch, whiten


def test_given_advantages_are_not_whitened_again():
    given = torch.tensor([[3.0, 1.0], [0.5, -1.0]])
    batch = Batch(
        torch.full((2, 2), -1.0), torch.ones(2, 2), torch.tensor([1.0, 0.0]), 2, advantages=given
    )
    objective = ZOO["grpo"].replace(terms=(), credit=whiten())
    assert torch.equal(objective.prepare(batch).advantages, given)
    assert not torch.equal(objective.prepare(batch.replace(advantages=None)).advantages, given)
