"""The clip share is one of written tokens; padding and tool output are none."""

from __future__ import annotations

import math

import torch

from rlnb.objective import ZOO, Batch


def test_padding_is_not_in_the_denominator_of_the_clip_share():
    # A = 1 and -1. Row 0 writes 3 tokens, of which one rose above the band; row 1 one, which fell.
    moved = torch.tensor([[math.log(1.5), 0.0, 0.0, 0.0], [math.log(0.5), 0.0, 0.0, 0.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    old = torch.full((2, 4), -2.0)
    batch = Batch(old + moved, mask, torch.tensor([1.0, 0.0]), 2, old_logprobs=old)
    metrics = ZOO["dapo"](batch).metrics
    assert abs(metrics["clip_ratio/high_mean"] - 1 / 4) < 1e-12
    assert abs(metrics["clip_ratio/low_mean"] - 1 / 4) < 1e-12
    assert abs(metrics["clip_ratio/region_mean"] - 2 / 4) < 1e-12
