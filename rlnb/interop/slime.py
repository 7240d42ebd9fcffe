"""slime 0.3.1: what the arguments of its train.py compute. Defaults are the argument parser's.

Its averages are those of the whole optimizer step: each answer's mean, then the answers'; with
--calculate-per-token-loss one mean over all tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlnb.interop.vocabulary import Reader, Reading, refuse
from rlnb.objective import ratios, surrogates
from rlnb.objective.advantages import gae, group_center, group_zscore, raw_reward, return_to_go
from rlnb.objective.composition import Objective
from rlnb.objective.credit import whiten
from rlnb.objective.gates import engine_ratio, sequence_mask
from rlnb.objective.part import Advantage, Credit, Gate, Shape, Surrogate, Term
from rlnb.objective.ratios import Anchor
from rlnb.objective.shapes import kl_in_reward
from rlnb.objective.surrogates import clip
from rlnb.objective.terms import entropy_bonus, k1, k2, k3
from rlnb.objective.weights import sequence_mean, token_mean

__all__ = ["SLIME_DEFAULTS", "SLIME_WORDS", "from_slime"]

VERSION = "slime 0.3.1"
SLIME_DEFAULTS: dict[str, Any] = {
    "advantage_estimator": "grpo",
    "disable_rewards_normalization": False,
    "disable_grpo_std_normalization": False,
    "normalize_advantages": False,
    "gamma": 1.0,
    "lambd": 1.0,
    "loss_type": "policy_loss",
    "eps_clip": 0.2,
    "eps_clip_high": None,
    "eps_clip_c": None,
    "calculate_per_token_loss": False,
    "kl_coef": 0.0,
    "use_kl_loss": False,
    "kl_loss_coef": 0.0,
    "kl_loss_type": "k1",
    "use_unbiased_kl": False,
    "entropy_coef": 0.0,
    "use_tis": False,
    "tis_clip": 2.0,
    "tis_clip_low": 0.0,
    "use_opsm": False,
    "opsm_delta": 1e-4,
    "use_rollout_logprobs": False,
    "use_opd": False,
    "custom_loss_function_path": None,
    "custom_advantage_function_path": None,
    "custom_reward_post_process_path": None,
    "custom_tis_function_path": None,
    "custom_pg_loss_reducer_function_path": None,
}
SLIME_WORDS = frozenset(
    {
        *SLIME_DEFAULTS,
        "n_samples_per_prompt",
        "rollout_batch_size",
        "global_batch_size",
        "num_steps_per_rollout",
        "rollout_temperature",
        "rollout_top_p",
        "rollout_top_k",
        "dynamic_sampling_filter_path",
    }
)
GROUPED = ("grpo", "gspo", "cispo")
ESTIMATORS = (*GROUPED, "reinforce_plus_plus", "reinforce_plus_plus_baseline", "ppo")
KL = {"k1": k1, "k2": k2, "k3": k3, "low_var_kl": k3}


def from_slime(given: Mapping[str, Any]) -> Reading:
    """The objective of slime's words. Raises ValueError for an unknown value and Inexpressible for
    what no composition says (a function of one's own, distillation).

    >>> from_slime({"eps_clip_high": 0.28})
    Objective(group_zscore('bessel'), clip(0.2, high=0.28), sequence_mean)
    """
    words = Reader(VERSION, given, SLIME_DEFAULTS, SLIME_WORDS)
    for word in SLIME_DEFAULTS:
        if word.startswith("custom_") and words[word]:
            raise refuse("a composition", word, f"{words[word]} is a function of one's own.")
    if words["use_opd"]:
        raise refuse("a composition", "use_opd", "Its advantage holds a teacher's log-probs.")
    words.choice("loss_type", ("policy_loss",))
    kind = words.choice("advantage_estimator", ESTIMATORS)
    anchor: Anchor = "sampling" if words["use_rollout_logprobs"] else "old"
    advantage, credit, shape = _advantage(kind, words)
    ratio = ratios.sequence(anchor) if kind == "gspo" else ratios.token(anchor)
    made = Objective(
        advantage,
        _surrogate(kind, words),
        token_mean() if words["calculate_per_token_loss"] else sequence_mean(),
        ratio=ratio,
        shape=shape,
        credit=credit,
        gates=_gates(words, anchor),
        terms=_terms(words),
    )
    return words.reading(made)


def _surrogate(kind: str, words: Reader) -> Surrogate:
    low, high = words.number("eps_clip"), words.optional_number("eps_clip_high")
    if kind == "cispo":
        floor = 1 - low
        return surrogates.cispo(1 + (low if high is None else high), floor if floor > 0 else None)
    return clip(low, None if high == low else high, dual=words.optional_number("eps_clip_c"))


def _advantage(kind: str, words: Reader) -> tuple[Advantage, tuple[Credit, ...], tuple[Shape, ...]]:
    credit: tuple[Credit, ...] = (whiten(),) if words["normalize_advantages"] else ()
    beta = words.number("kl_coef")
    if kind in GROUPED:  # kl_coef is read and reaches nothing there
        if words["disable_rewards_normalization"]:
            return raw_reward(), credit, ()
        if words["disable_grpo_std_normalization"]:
            return group_center(), credit, ()
        return group_zscore("bessel", 1e-6), credit, ()
    estimator = {k1: "k1", k2: "k2", k3: "k3"}[KL[words.choice("kl_loss_type", KL)]]
    shape: tuple[Shape, ...] = (kl_in_reward(beta, estimator),) if beta else ()  # type: ignore
    if kind == "ppo":
        return gae(words.number("gamma"), words.number("lambd")), credit, shape
    if kind == "reinforce_plus_plus":
        return return_to_go(words.number("gamma")), credit, shape
    if beta:
        raise refuse("a composition", f"{kind} with kl_coef", "The KL follows the baseline there.")
    return group_center(), credit, ()


def _gates(words: Reader, anchor: Anchor) -> tuple[Gate, ...]:
    gates: list[Gate] = []
    if words["use_opsm"]:
        gates.append(sequence_mask(words.number("opsm_delta"), anchor=anchor))
    if words["use_tis"]:
        low = words.number("tis_clip_low")
        gates.append(engine_ratio("token", "truncate", low or None, words.number("tis_clip")))
    return tuple(gates)


def _terms(words: Reader) -> tuple[Term, ...]:
    terms: list[Term] = []
    coefficient = words.number("kl_loss_coef")
    if words["use_kl_loss"] and coefficient:
        part = KL[words.choice("kl_loss_type", KL)]
        if words["use_unbiased_kl"]:
            if part is not k3:
                raise refuse("a composition", "use_unbiased_kl with another estimator than k3")
            terms.append(k3(coefficient, corrected=True))
        else:
            terms.append(part(coefficient))
    if bonus := words.number("entropy_coef"):
        terms.append(entropy_bonus(bonus))
    return tuple(terms)
