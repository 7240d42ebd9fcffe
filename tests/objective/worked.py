"""The worked example: one prompt, two answers, rewards (1, 0), lengths 3 and 5."""

from __future__ import annotations

import torch

from rlnb.objective import Batch

OLD = [[0.50, 0.10, 0.80], [0.60, 0.05, 0.90, 0.30, 0.70]]
NEW = [[0.55, 0.14, 0.82], [0.45, 0.06, 0.88, 0.15, 0.72]]
REF = [[0.50, 0.12, 0.78], [0.58, 0.05, 0.91, 0.25, 0.70]]


def _log(rows, dtype):
    return torch.tensor([r + [1.0] * (5 - len(r)) for r in rows], dtype=dtype).log()


def worked_batch(dtype=torch.float64, **fields):
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    given = dict(
        old_logprobs=_log(OLD, dtype),
        ref_logprobs=_log(REF, dtype),
        sampling_logprobs=_log(OLD, dtype),
        max_completion_length=8,
    )
    return Batch(
        _log(NEW, dtype).requires_grad_(),
        mask,
        torch.tensor([1.0, 0.0], dtype=dtype),
        2,
        **(given | fields),
    )
