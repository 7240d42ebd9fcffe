"""TRL 1.16.0: what a GRPOConfig, RLOOConfig or GMPOConfig computes; `trl_words` is the other way.

One optimizer step per rollout is assumed where TRL's denominators depend on it (`dapo`, `cispo`,
`vespo` divide by the tokens of the whole generation batch). A fully masked row contributes 0 here;
RLOO and GMPO in TRL add the constant -A_i / B for it, without gradient.
"""

from __future__ import annotations

from typing import Any, Literal

from rlnb.interop.vocabulary import Reader, Reading, as_words, known_words, refuse
from rlnb.objective import ratios, surrogates
from rlnb.objective.advantages import batch_zscore, group_center, group_zscore, leave_one_out
from rlnb.objective.composition import Objective
from rlnb.objective.gates import engine_ratio, sequence_mask, top_entropy
from rlnb.objective.part import Advantage, Gate, Ratio, Shape, Surrogate, Term, Weights
from rlnb.objective.shapes import kl_in_reward, reward_clip
from rlnb.objective.surrogates import clip
from rlnb.objective.terms import entropy_bonus, k3
from rlnb.objective.weights import (
    constant_length,
    local_token_mean,
    sequence_mean,
    sequence_sum,
    token_mean,
)

__all__ = ["TRL_DEFAULTS", "TRL_RLOO_DEFAULTS", "TRL_SILENT", "from_trl"]

VERSION = "TRL 1.16.0"
EPS = 1e-4  # added to every std

# the words of GRPOConfig that touch the loss, and their defaults
TRL_DEFAULTS: dict[str, Any] = {
    "loss_type": "dapo",
    "importance_sampling_level": "token",
    "scale_rewards": "group",
    "multi_objective_aggregation": "sum_then_normalize",
    "beta": 0.0,
    "use_bias_correction_kl": True,
    "epsilon": 0.2,
    "epsilon_high": None,
    "delta": None,
    "max_completion_length": 512,
    "off_policy_mask_threshold": None,
    "top_entropy_quantile": 1.0,
    "entropy_coef": 0.0,
    "use_adaptive_entropy": False,
    "sapo_temperature_pos": 1.0,
    "sapo_temperature_neg": 1.05,
    "vespo_k_pos": 2.0,
    "vespo_lambda_pos": 3.0,
    "vespo_k_neg": 3.0,
    "vespo_lambda_neg": 2.0,
    "use_vllm": False,
    "vllm_importance_sampling_correction": True,
    "vllm_importance_sampling_mode": "sequence_mask",
    "vllm_importance_sampling_clip_min": None,
    "vllm_importance_sampling_clip_max": 3.0,
}
TRL_SILENT = known_words("trl_grpo") - TRL_DEFAULTS.keys()  # words that do not touch the loss
TRL_RLOO_DEFAULTS: dict[str, Any] = {
    "beta": 0.05,
    "epsilon": 0.2,
    "epsilon_high": None,
    "normalize_advantages": False,
    "reward_clip_range": None,
}
LOSS_WEIGHTS: dict[str, Weights] = {  # loss_type -> how TRL averages it
    "grpo": sequence_mean(),
    "sapo": sequence_mean(),
    "bnpo": local_token_mean(),
    "dr_grpo": constant_length(),
    "dapo": token_mean(),
    "cispo": token_mean(),
    "vespo": token_mean(),
    "luspo": sequence_sum(),
}
CLIPPED = {"grpo", "bnpo", "dr_grpo", "dapo", "luspo"}  # the loss types with a PPO band
VLLM_MODES: dict[str, tuple[Literal["token", "sequence"], Literal["truncate", "mask"]]] = {
    "token_truncate": ("token", "truncate"),
    "token_mask": ("token", "mask"),
    "sequence_truncate": ("sequence", "truncate"),
    "sequence_mask": ("sequence", "mask"),
}


def from_trl(config: Any = None, *, trainer: str | None = None, **keywords: Any) -> Reading:
    """The objective that TRL 1.16.0 computes for a GRPOConfig, RLOOConfig or GMPOConfig.

    config: such an object, a mapping of its words, or keywords alone; what is not given has TRL's
    default. trainer: "grpo" (also taken from the object's class), "rloo" or "gmpo". The
    reading's `.objective` is the composition, its `.ignored` the given words without effect on it.

    Raises ValueError for an unknown word or value, with the nearest one, and for the settings no
    composition says (adaptive entropy, an entropy bonus over some of the tokens, several rewards
    normalised one by one).

    >>> from_trl(loss_type="dr_grpo", learning_rate=1e-6)
    Objective(group_zscore('bessel', eps=0.0001), clip(0.2), constant_length(512))
    without effect on the loss: learning_rate
    """
    words = as_words(config, keywords)
    trainer = words.pop("trainer", trainer)  # a mapping from to_trl has it
    if trainer is None:
        trainer = {"RLOOConfig": "rloo", "GMPOConfig": "gmpo"}.get(type(config).__name__, "grpo")
    if trainer == "grpo":
        return _grpo(words)
    if trainer == "gmpo":
        return _gmpo(words)
    if trainer == "rloo":
        return _rloo(words)
    raise ValueError(f"trainer must be 'grpo', 'rloo' or 'gmpo', got {trainer!r}.")


def _grpo(given: dict[str, Any]) -> Reading:
    words = Reader(VERSION, given, TRL_DEFAULTS, known_words("trl_grpo"))
    kind = words.choice("loss_type", LOSS_WEIGHTS)
    made = Objective(
        _advantage(words),
        _surrogate(kind, words),
        _weights(kind, words),
        ratio=_ratio(kind, words),
        gates=_gates(kind, words),
        terms=_terms(words),
    )
    return words.reading(made)


def _gmpo(given: dict[str, Any]) -> Reading:
    defaults = {**TRL_DEFAULTS, "epsilon": 0.4}
    words = Reader(VERSION, given, defaults, known_words("trl_grpo"))
    if _entropy_gate(words):
        raise refuse(
            "a composition",
            "GMPO with top_entropy_quantile below 1",
            "TRL takes the geometric mean over the kept tokens only.",
        )
    beta = words.number("beta")
    made = Objective(
        _advantage(words),
        surrogates.ratio(),
        sequence_mean(),
        terms=(k3(beta),) if beta else (),
        ratio=ratios.gmpo(*_band(words)),
    )
    return words.reading(made)


def _rloo(given: dict[str, Any]) -> Reading:
    words = Reader(VERSION + " RLOOConfig", given, TRL_RLOO_DEFAULTS, known_words("trl_rloo"))
    normalise = bool(words["normalize_advantages"])
    advantage = leave_one_out(True, "bessel", EPS) if normalise else leave_one_out()
    shape: list[Shape] = []
    bounds = words["reward_clip_range"]
    if bounds is not None:
        shape.append(reward_clip(*map(float, bounds)))
    if beta := words.number("beta"):
        shape.append(kl_in_reward(beta))
    made = Objective(
        advantage, clip(*_band(words)), sequence_mean(), ratio=ratios.product(), shape=tuple(shape)
    )
    return words.reading(made)


def _band(words: Reader) -> tuple[float, float | None]:
    """(epsilon, epsilon_high), the second None where the two are one number."""
    epsilon, high = words.number("epsilon"), words.optional_number("epsilon_high")
    return epsilon, None if high == epsilon else high


def _surrogate(kind: str, words: Reader) -> Surrogate:
    """Only the words of this loss_type are read; the others end in `ignored`."""
    if kind == "cispo":
        cap = words.optional_number("epsilon_high")
        return surrogates.cispo(words.number("epsilon") if cap is None else cap)
    if kind == "sapo":
        return surrogates.sapo(
            words.number("sapo_temperature_pos"), words.number("sapo_temperature_neg")
        )
    if kind == "vespo":
        return surrogates.vespo(
            *(words.number(f"vespo_{n}") for n in ("k_pos", "lambda_pos", "k_neg", "lambda_neg"))
        )
    epsilon, high = _band(words)
    delta = words.optional_number("delta")
    if delta is not None and delta > 1 + (epsilon if high is None else high):
        return clip(epsilon, high, dual=delta)
    return clip(epsilon, high, delta=delta)


def _weights(kind: str, words: Reader) -> Weights:
    if kind == "dr_grpo":
        return constant_length(int(words.number("max_completion_length")))
    return LOSS_WEIGHTS[kind]


def _level(words: Reader) -> str:
    return words.choice("importance_sampling_level", ("token", "sequence"))


def _ratio(kind: str, words: Reader) -> Ratio:
    if kind == "vespo":
        return ratios.product()
    return ratios.sequence() if _level(words) == "sequence" else ratios.token()


def _gates(kind: str, words: Reader) -> tuple[Gate, ...]:
    gates: list[Gate] = []
    vllm = bool(words["use_vllm"])
    threshold = words.optional_number("off_policy_mask_threshold")
    if threshold is not None:
        gates.append(sequence_mask(threshold, anchor="sampling" if vllm else "old"))
    gates += _entropy_gate(words)
    if vllm and words["vllm_importance_sampling_correction"]:
        if kind == "vespo":
            raise refuse(
                "a composition",
                "vespo with vllm_importance_sampling_correction",
                "TRL multiplies the correction into W; set it to False.",
            )
        level, how = VLLM_MODES[words.choice("vllm_importance_sampling_mode", VLLM_MODES)]
        gates.append(
            engine_ratio(
                level,
                how,
                words.optional_number("vllm_importance_sampling_clip_min"),
                words.optional_number("vllm_importance_sampling_clip_max"),
            )
        )
    return tuple(gates)


def _terms(words: Reader) -> tuple[Term, ...]:
    terms: list[Term] = []
    if beta := words.number("beta"):
        corrected = bool(words["use_bias_correction_kl"])
        by_sequence = corrected and _level(words) == "sequence"
        terms.append(k3(beta, corrected="sequence" if by_sequence else corrected))
    coefficient = words.number("entropy_coef")
    if words["use_adaptive_entropy"]:
        raise refuse(
            "a composition",
            "use_adaptive_entropy",
            "Its coefficient moves during training; set entropy_coef to a number.",
        )
    if coefficient and words.number("top_entropy_quantile") < 1:
        raise refuse(
            "a composition",
            "entropy_coef with top_entropy_quantile below 1",
            "TRL's bonus is then the mean over the kept tokens only; set one of the two.",
        )
    if coefficient:
        terms.append(entropy_bonus(coefficient, weights=local_token_mean()))
    return tuple(terms)


def _advantage(words: Reader) -> Advantage:
    words.choice("multi_objective_aggregation", ("sum_then_normalize",))
    scale = words["scale_rewards"]
    scale = {True: "group", False: "none"}.get(scale, scale) if isinstance(scale, bool) else scale
    if scale == "group":
        return group_zscore("bessel", EPS)
    if scale == "batch":
        return batch_zscore("group", "bessel", EPS)
    if scale == "none":
        return group_center()
    raise ValueError(
        f"scale_rewards must be 'group', 'batch' or 'none' in {VERSION}, got {scale!r}."
    )


def _entropy_gate(words: Reader) -> list[Gate]:
    quantile = words.number("top_entropy_quantile")
    return [top_entropy(quantile)] if quantile < 1 else []
