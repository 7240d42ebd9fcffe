"""TRL 1.16's metrics of a micro-batch, under its names, for any objective."""

from __future__ import annotations

from typing import Any

import torch

from rlnb.objective import ratios, surrogates
from rlnb.objective.batch import Prepared
from rlnb.objective.composition import Objective
from rlnb.objective.terms import kl_estimate

__all__ = ["metrics_of"]


def metrics_of(objective: Objective, prepared: Prepared, accelerator: Any) -> dict[str, float]:
    """Name -> value over the micro-batches of all processes; every process must call it.

    entropy and kl in nats per token (kl is the KL term's own value where there is one, else k3 to
    the reference); clip_ratio/{low,high,region}_mean, low_min and high_max beside a PPO band,
    sign-aware, as shares of tokens, or of answers where the ratio is one per answer;
    cispo_clip_ratio, the share of tokens above the cap with A > 0; vespo/phi_seq_mean, the mean
    weight per answer. accelerator: what `reduce` and `gather` are asked of.
    """
    batch = prepared.batch.cleaned()
    mask, advantages = batch.completion_mask, prepared.advantages
    log_ratio = objective.ratio(batch, advantages).detach()
    per_answer = isinstance(objective.ratio, (ratios.sequence, ratios.product))

    def row_means(x: torch.Tensor) -> torch.Tensor:
        return (x * mask).sum(1) / mask.sum(1)

    def mean(x: torch.Tensor, per_answer: bool = False) -> float:
        if per_answer:  # the same number on all tokens of a row; 0 in a row without any
            total, count = row_means(x).nan_to_num().sum(), mask.new_tensor(float(len(x)))
        else:
            total, count = (x * mask).sum(), mask.sum()
        both = accelerator.reduce(torch.stack([total, count.to(total.dtype)]), reduction="sum")
        return float(both[0] / both[1].clamp(min=1.0))

    found: dict[str, float] = {}
    if batch.ref_logprobs is not None:
        terms = [t for t in objective.terms if "ref_logprobs" in getattr(t, "needs", ())]
        found["kl"] = mean(
            terms[0](batch).detach()
            if terms
            else kl_estimate("k3", batch.logprobs.detach() - batch.ref_logprobs)
        )
    if batch.entropies is not None:
        found["entropy"] = mean(batch.entropies.detach())
    surrogate = objective.surrogate
    if isinstance(surrogate, surrogates.clip):
        low, high = (x.to(mask.dtype) for x in surrogate.cut(advantages, log_ratio))
        found["clip_ratio/low_mean"] = mean(low, per_answer)
        found["clip_ratio/high_mean"] = mean(high, per_answer)
        found["clip_ratio/region_mean"] = mean(torch.maximum(low, high), per_answer)
        lows, highs = accelerator.gather(row_means(low)), accelerator.gather(row_means(high))
        found["clip_ratio/low_min"] = _extreme(lows, torch.min)
        found["clip_ratio/high_max"] = _extreme(highs, torch.max)
    elif isinstance(surrogate, surrogates.cispo) and surrogate.cap is not None:
        above = (log_ratio.exp() > surrogate.cap) & (advantages > 0)
        found["cispo_clip_ratio"] = mean(above.to(mask.dtype), per_answer)
    elif isinstance(surrogate, surrogates.vespo):
        # phi A log pi = phi where A log pi is 1 in size, with A's sign
        sign = torch.where(advantages >= 0, 1.0, -1.0).to(mask.dtype)
        phi = surrogate(batch.replace(logprobs=sign), sign, log_ratio)
        found["vespo/phi_seq_mean"] = mean(phi, per_answer=True)
    return found


def _extreme(values: torch.Tensor, which: Any) -> float:
    """min or max without the rows that are masked altogether; nan where all are."""
    real = values[~values.isnan()]
    return float(which(real)) if len(real) else float("nan")
