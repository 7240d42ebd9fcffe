"""What is optimised: every policy-gradient method as a composition of small parts.

    from rlnb.objective import ZOO, Objective, group_zscore, clip, sequence_mean, k3

    grpo = Objective(group_zscore(), clip(0.2), sequence_mean, terms=k3(0.04))
    out = grpo(batch)                  # out.loss, out.advantages, out.metrics ...

Needs torch and numpy only. Rooms: batch (the data), advantages, ratios, surrogates, weights,
terms (the parts), composition (Objective), zoo (the names).
"""

from .advantages import (
    batch_mean,
    batch_zscore,
    gae,
    greedy_baseline,
    group_center,
    group_zscore,
    leave_one_out,
    raw_reward,
    return_to_go,
    whiten,
)
from .batch import Batch, Prepared, Totals
from .composition import Difference, Explanation, Objective, Output, difference
from .part import Part
from .ratios import product, sequence, sequence_token, token
from .surrogates import clip, logprob, ratio
from .terms import entropy_bonus, k1, k2, k3, kl_estimate, kl_in_reward, term, value_loss
from .weights import (
    constant_length,
    local_token_mean,
    prompt_mean,
    sequence_mean,
    sequence_sum,
    token_mean,
    token_sum,
)
from .zoo import ZOO, closest, method, name_of

__all__ = [
    "ZOO", "Batch", "Difference", "Explanation", "Objective", "Output", "Part", "Prepared",
    "Totals", "batch_mean", "batch_zscore", "clip", "closest", "constant_length", "difference",
    "entropy_bonus", "gae", "greedy_baseline", "group_center", "group_zscore", "k1", "k2", "k3",
    "kl_estimate", "kl_in_reward", "leave_one_out", "local_token_mean", "logprob", "method",
    "name_of", "product", "prompt_mean", "ratio", "raw_reward", "return_to_go", "sequence",
    "sequence_mean", "sequence_sum", "sequence_token", "term", "token", "token_mean",
    "token_sum", "value_loss", "whiten",
]
