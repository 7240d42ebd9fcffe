"""What is optimised: every policy-gradient method as a composition of small parts.

    from rlnb.objective import ZOO, Objective, group_zscore, clip, sequence_mean, k3

    grpo = Objective(group_zscore(), clip(0.2), sequence_mean, terms=k3(0.04))
    out = grpo(batch)                  # out.loss, out.advantages, out.metrics ...

Needs torch only, and nothing else of this package. Rooms: batch (the data); advantages, shapes,
credit, ratios, surrogates, gates, weights, terms (the parts) and part (their signatures);
composition (Objective); several (more than one reward); zoo and annex (the named methods); naming
(what a composition is called, and what changes it); report (metrics, and a table per token). Apart
from them all: preference (losses on pairs of answers: reward models, DPO and its family).
"""

from __future__ import annotations

from rlnb.objective.advantages import (
    batch_mean,
    batch_zscore,
    gae,
    greedy_baseline,
    group_center,
    group_zscore,
    leave_one_out,
    max_rl,
    raw_reward,
    return_to_go,
)
from rlnb.objective.annex import ANNEX
from rlnb.objective.batch import Batch, Prepared, Totals
from rlnb.objective.composition import Objective, Output
from rlnb.objective.credit import entropy_shaped, length_preference, mgpo_weight, press_top, whiten
from rlnb.objective.gates import clip_cov, divergence_mask, engine_ratio, sequence_mask, top_entropy
from rlnb.objective.naming import (
    Change,
    Difference,
    closest,
    difference,
    distance,
    method,
    name_of,
    neighbours,
)
from rlnb.objective.part import Part
from rlnb.objective.preference import (
    Pairs,
    bradley_terry,
    conservative_dpo,
    dpo,
    dpo_nll,
    dpo_shift,
    implicit_rewards,
    ipo,
    kto,
    kto_reference_point,
    normalized_dpo,
    normalized_ipo,
    robust_dpo,
    simpo,
)
from rlnb.objective.ratios import (
    gmpo,
    product,
    sequence,
    sequence_token,
    soft_sequence,
    token,
    topk_mix,
)
from rlnb.objective.report import Explanation
from rlnb.objective.several import several_rewards
from rlnb.objective.shapes import kl_in_reward, overlong, reward_clip
from rlnb.objective.surrogates import cispo, clip, kl_cov, logprob, ratio, sapo, vespo
from rlnb.objective.terms import (
    absolute_kl,
    entropy_bonus,
    k1,
    k2,
    k3,
    kl_estimate,
    term,
    value_loss,
)
from rlnb.objective.turns import observation_mask, turn_advantages
from rlnb.objective.weights import (
    constant_length,
    local_token_mean,
    padded_length,
    prompt_mean,
    sequence_mean,
    sequence_sum,
    token_mean,
    token_sum,
)
from rlnb.objective.zoo import ZOO

__all__ = [
    "ANNEX",
    "ZOO",
    "Batch",
    "Change",
    "Difference",
    "Explanation",
    "Objective",
    "Output",
    "Pairs",
    "Part",
    "Prepared",
    "Totals",
    "absolute_kl",
    "batch_mean",
    "batch_zscore",
    "bradley_terry",
    "cispo",
    "clip",
    "clip_cov",
    "closest",
    "conservative_dpo",
    "constant_length",
    "difference",
    "distance",
    "divergence_mask",
    "dpo",
    "dpo_nll",
    "dpo_shift",
    "engine_ratio",
    "entropy_bonus",
    "entropy_shaped",
    "gae",
    "gmpo",
    "greedy_baseline",
    "group_center",
    "group_zscore",
    "implicit_rewards",
    "ipo",
    "k1",
    "k2",
    "k3",
    "kl_cov",
    "kl_estimate",
    "kl_in_reward",
    "kto",
    "kto_reference_point",
    "leave_one_out",
    "length_preference",
    "local_token_mean",
    "logprob",
    "max_rl",
    "method",
    "mgpo_weight",
    "name_of",
    "neighbours",
    "observation_mask",
    "normalized_dpo",
    "normalized_ipo",
    "overlong",
    "padded_length",
    "press_top",
    "product",
    "prompt_mean",
    "ratio",
    "raw_reward",
    "return_to_go",
    "reward_clip",
    "robust_dpo",
    "sapo",
    "sequence",
    "sequence_mask",
    "sequence_mean",
    "sequence_sum",
    "sequence_token",
    "several_rewards",
    "simpo",
    "soft_sequence",
    "term",
    "token",
    "token_mean",
    "token_sum",
    "top_entropy",
    "topk_mix",
    "turn_advantages",
    "value_loss",
    "vespo",
    "whiten",
]
