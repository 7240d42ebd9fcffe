"""The running group: one prompt, four answers, carried through every page of the course.

Half right, half wrong, and 3 + 5 = 2 + 6 tokens, so that everything can be done by hand. The
token probabilities were chosen so that every rule of the zoo decides differently somewhere:

    row 0  ratio 1.25   A > 0   above 1.2, below 1.28: clip cuts it, clip-higher does not
    row 1  ratio 0.75   A > 0   outside the band on the wrong side: alive
           ratio 6.00   A > 0   a rare token that rose: cut by every clip, capped by CISPO
    row 2  ratio 3.50   A < 0   a bad token that rose: only dual clip stops it
           .92 -> .74   A < 0   ratio .804, inside the band, yet .18 of mass moved
    row 3  ratio 0.70   A < 0   already pushed down: cut
           .0001 -> .0002       ratio 2, and nothing moved
"""

from __future__ import annotations

import torch

from rlnb.objective import Batch

__all__ = ["running_batch", "running_group"]

# probabilities of the sampled tokens under the old, the current and the reference policy
OLD = (
    (0.50, 0.10, 0.80),
    (0.60, 0.02, 0.90, 0.30, 0.70),
    (0.10, 0.92),
    (0.60, 0.05, 0.40, 0.25, 0.0001, 0.70),
)
NEW = (
    (0.55, 0.125, 0.84),
    (0.45, 0.12, 0.88, 0.42, 0.72),
    (0.35, 0.74),
    (0.42, 0.055, 0.36, 0.31, 0.0002, 0.66),
)
REF = (
    (0.48, 0.12, 0.78),
    (0.58, 0.03, 0.91, 0.25, 0.70),
    (0.12, 0.90),
    (0.62, 0.04, 0.42, 0.24, 0.0002, 0.72),
)
REWARDS = (1.0, 1.0, 0.0, 0.0)

# the second prompt of running_batch(): one right answer in four, uneven lengths
OLD_2 = (
    (0.40, 0.70, 0.55, 0.90),
    (0.30,),
    (0.80, 0.60, 0.50, 0.45, 0.70, 0.20, 0.95),
    (0.50, 0.85),
)
NEW_2 = (
    (0.46, 0.72, 0.70, 0.91),
    (0.27,),
    (0.78, 0.54, 0.52, 0.40, 0.66, 0.26, 0.96),
    (0.36, 0.83),
)
REF_2 = (
    (0.42, 0.68, 0.50, 0.90),
    (0.31,),
    (0.80, 0.62, 0.48, 0.47, 0.71, 0.18, 0.94),
    (0.52, 0.86),
)
REWARDS_2 = (1.0, 0.0, 0.0, 0.0)


def running_group(dtype: torch.dtype = torch.float64) -> Batch:
    """One prompt, G=4, rewards 1 1 0 0, lengths 3 5 2 6. `logprobs` requires grad."""
    return _batch(OLD, NEW, REF, REWARDS, dtype)


def running_batch(dtype: torch.dtype = torch.float64, *, complete: bool = False) -> Batch:
    """The running group and a second prompt: rewards 1 0 0 0, lengths 4 1 7 2.

    complete: with every other field that a method of the zoo or the annex asks for. The rollout
    engine agrees with the trainer (`sampling_logprobs` = `old_logprobs`); a token of probability p
    had three rivals that shared the rest as 6 : 3 : 1 and now share it as 4 : 5 : 1, which gives
    ranks, entropies and the three likeliest candidates; the critic says 0.5 everywhere; the greedy
    answer is right to the first prompt and wrong to the second.
    """
    batch = _batch(OLD + OLD_2, NEW + NEW_2, REF + REF_2, REWARDS + REWARDS_2, dtype)
    return _completed(batch) if complete else batch


def _batch(old, new, ref, rewards, dtype: torch.dtype) -> Batch:
    width = max(len(row) for row in new)
    mask = torch.tensor([[1.0] * len(r) + [0.0] * (width - len(r)) for r in new], dtype=dtype)

    def log(rows) -> torch.Tensor:
        padded = [list(row) + [1.0] * (width - len(row)) for row in rows]
        return torch.tensor(padded, dtype=dtype).log()

    return Batch(
        log(new).requires_grad_(),
        mask,
        torch.tensor(rewards, dtype=dtype),
        4,
        old_logprobs=log(old),
        ref_logprobs=log(ref),
        max_completion_length=8,
    )


def _completed(batch: Batch) -> Batch:
    before = batch.required("old_logprobs", "running_batch")
    old = _candidates(before, (0.6, 0.3, 0.1))
    new = _candidates(batch.logprobs, (0.4, 0.5, 0.1))
    # the old policy's three likeliest
    order = old.argsort(dim=-1, descending=True, stable=True)[..., :3]
    now = new.detach()
    half = torch.full_like(before, 0.5)
    return batch.replace(
        sampling_logprobs=before,
        entropies=-torch.xlogy(now, now).sum(-1),
        sampled_rank=(old[..., 1:] > old[..., :1]).sum(-1),
        topk_logprobs=new.gather(-1, order).log(),
        old_topk_logprobs=old.gather(-1, order).log(),
        values=half,
        old_values=half,
        greedy_rewards=torch.tensor([1.0] * 4 + [0.0] * 4, dtype=half.dtype),
    )


def _candidates(logprobs: torch.Tensor, shares: tuple[float, ...]) -> torch.Tensor:
    """(B, T) log p -> (B, T, 4): p and three rivals that share 1 - p."""
    p = logprobs.exp()
    rest = (1 - p).clamp(min=1e-12)  # 0 on padding, where log 0 would send nan backwards
    return torch.stack((p, *(rest * share for share in shares)), -1)
