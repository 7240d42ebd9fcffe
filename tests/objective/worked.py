"""The worked example: one prompt, two answers, rewards (1, 0), lengths 3 and 5."""

import torch

from rlnb.objective import Batch

OLD = [[.50, .10, .80], [.60, .05, .90, .30, .70]]
NEW = [[.55, .14, .82], [.45, .06, .88, .15, .72]]
REF = [[.50, .12, .78], [.58, .05, .91, .25, .70]]


def _log(rows, dtype):
    return torch.tensor([r + [1.0] * (5 - len(r)) for r in rows], dtype=dtype).log()


def worked_batch(dtype=torch.float64, **fields):
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    given = dict(old_logprobs=_log(OLD, dtype), ref_logprobs=_log(REF, dtype),
                 sampling_logprobs=_log(OLD, dtype), max_completion_length=8)
    return Batch(_log(NEW, dtype).requires_grad_(), mask, torch.tensor([1.0, 0.0], dtype=dtype), 2,
                 **(given | fields))
