"""With staleness a checkpoint keeps earlier weights; a resumed run needs them in order."""

from __future__ import annotations

import random
from collections import deque

import torch
from torch import nn

from rlnb.training import checkpoint


def test_more_than_ten_past_weights_come_back_oldest_first(fresh, tmp_path):
    model, tokenizer = fresh
    modules = nn.ModuleDict({"policy": model})
    parts = {
        "model": model,
        "modules": modules,
        "optimizer": torch.optim.AdamW(modules.parameters()),
        "rng": random.Random(0),
        "generator": torch.Generator(),
    }
    ages = [{"weight": torch.tensor([float(age)])} for age in range(12)]
    checkpoint.write(tmp_path, 1, tokenizer=tokenizer, extra={}, past=ages, **parts)
    past = deque()
    checkpoint.read(tmp_path, past=past, **parts)
    assert [weights["weight"].item() for weights in past] == list(range(12))
