"""OpenRLHF 0.11: what the arguments of train_ppo_ray compute.

Up to 0.10.1 an argument is `--eps_clip`, since then `--actor.eps_clip`; both are read, and called
by the older name here. The defaults are those of the argument parser. The reward's KL is subtracted
after the baseline, token by token, so that only `gae` and `reinforce` have it in a composition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlnb.interop.vocabulary import Reader, Reading, refuse
from rlnb.objective import ratios
from rlnb.objective.advantages import gae, group_center, group_zscore, leave_one_out, return_to_go
from rlnb.objective.composition import Objective
from rlnb.objective.credit import whiten
from rlnb.objective.gates import engine_ratio
from rlnb.objective.part import Advantage, Credit, Gate, Shape, Term, Weights
from rlnb.objective.shapes import kl_in_reward
from rlnb.objective.surrogates import clip
from rlnb.objective.terms import entropy_bonus, k1, k2, k3
from rlnb.objective.weights import local_token_mean, sequence_mean, token_mean

__all__ = ["OPENRLHF_DEFAULTS", "OPENRLHF_WORDS", "from_openrlhf", "older_name"]

VERSION = "OpenRLHF 0.11"
OPENRLHF_DEFAULTS: dict[str, Any] = {
    "advantage_estimator": "gae",
    "no_advantage_std_norm": False,
    "lambd": 1.0,
    "gamma": 1.0,
    "eps_clip": 0.2,
    "eps_clip_low_high": None,
    "dual_clip": None,
    "policy_loss_type": "ppo",
    "init_kl_coef": 0.01,
    "kl_target": None,
    "kl_estimator": "k1",
    "use_kl_loss": False,
    "entropy_loss_coef": None,
    "enable_vllm_is_correction": False,
    "vllm_is_correction_type": "tis",
    "vllm_is_truncated_threshold": [0.5, 5.0],
}
# since 0.10.2 -> the name before
NEWER = {
    "algo.advantage.estimator": "advantage_estimator",
    "algo.advantage.no_std_norm": "no_advantage_std_norm",
    "algo.advantage.lambd": "lambd",
    "algo.advantage.gamma": "gamma",
    "algo.advantage.is_correction_enable": "enable_vllm_is_correction",
    "algo.advantage.is_correction_type": "vllm_is_correction_type",
    "algo.advantage.is_correction_threshold": "vllm_is_truncated_threshold",
    "algo.kl.init_coef": "init_kl_coef",
    "algo.kl.target": "kl_target",
    "algo.kl.estimator": "kl_estimator",
    "algo.kl.use_loss": "use_kl_loss",
    "actor.eps_clip": "eps_clip",
    "actor.eps_clip_low_high": "eps_clip_low_high",
    "actor.dual_clip": "dual_clip",
    "actor.policy_loss_type": "policy_loss_type",
    "actor.entropy_coef": "entropy_loss_coef",
    "rollout.n_samples_per_prompt": "n_samples_per_prompt",
    "rollout.batch_size": "rollout_batch_size",
    "rollout.temperature": "temperature",
    "rollout.top_p": "top_p",
    "train.batch_size": "train_batch_size",
    "train.max_epochs": "max_epochs",
    "reward.clip_range": "reward_clip_range",
    "algo.dynamic_filtering_enable": "dynamic_filtering",
}
# words that touch no loss and that a rule or a reader may ask for
OPENRLHF_WORDS = frozenset({*OPENRLHF_DEFAULTS, *NEWER.values(), "step_averages"})
GROUPED = ("rloo", "reinforce_baseline", "group_norm", "dr_grpo")
KL = {"k1": k1, "k2": k2, "k3": k3}


def older_name(word: str) -> str:
    """`algo.kl.init_coef` -> `init_kl_coef`; a word without an older name is itself."""
    return NEWER.get(word, word)


def from_openrlhf(given: Mapping[str, Any]) -> Reading:
    """The objective of OpenRLHF's words, by their older names.

    step_averages: True for the versions since 0.10.4, whose means are those of the whole
    optimizer step; before, they are each micro-batch's. Raises ValueError for an unknown value and
    Inexpressible for what no composition says.

    >>> from_openrlhf({"advantage_estimator": "group_norm", "init_kl_coef": 0.0})
    Objective(group_zscore('bessel', eps=1e-09), clip(0.2), local_token_mean)
    """
    words = Reader(VERSION, given, OPENRLHF_DEFAULTS, OPENRLHF_WORDS)
    tokens: Weights = token_mean() if given.get("step_averages") else local_token_mean()
    estimator = words.choice("advantage_estimator", ("gae", "reinforce", *GROUPED))
    if words["kl_target"] is not None:
        raise refuse("a composition", "kl_target", "Its KL coefficient follows the measured KL.")
    beta = words.number("init_kl_coef")
    terms: list[Term] = []
    shape: tuple[Shape, ...] = ()
    sequence = words.choice("policy_loss_type", ("ppo", "gspo")) == "gspo"
    own = tokens if sequence else None
    if words["use_kl_loss"]:
        part = KL[words.choice("kl_estimator", KL)]
        terms += [part(beta, weights=own)] if beta > 0 else []
    elif beta > 0 and estimator in GROUPED:
        raise refuse(
            "a composition",
            f"{estimator} with init_kl_coef={beta:g} in the reward",
            "OpenRLHF subtracts this KL after the baseline, token by token. Write "
            "init_kl_coef=0.0, or use_kl_loss.",
        )
    elif beta > 0:
        shape = (kl_in_reward(beta, words.choice("kl_estimator", KL)),)  # type: ignore[arg-type]
    if coefficient := words.optional_number("entropy_loss_coef"):
        terms.append(entropy_bonus(coefficient, weights=own))
    advantage, credit = _advantage(estimator, words)
    made = Objective(
        advantage,
        _clip(words),
        sequence_mean() if sequence else tokens,
        ratio=ratios.sequence() if sequence else ratios.token(),
        shape=shape,
        credit=credit,
        gates=_gates(words, sequence),
        terms=tuple(terms),
    )
    return words.reading(made)


def _clip(words: Reader) -> clip:
    low, high = words.number("eps_clip"), None
    if words["eps_clip_low_high"] is not None:
        low, high = (float(x) for x in words["eps_clip_low_high"])
        high = None if high == low else high
    return clip(low, high, dual=words.optional_number("dual_clip"))


def _advantage(kind: str, words: Reader) -> tuple[Advantage, tuple[Credit, ...]]:
    if kind == "rloo":
        return leave_one_out(), ()
    if kind == "group_norm":
        return group_zscore("bessel", 1e-9), ()
    if kind == "dr_grpo":
        return group_center(), ()
    if words["no_advantage_std_norm"]:
        raise refuse("a composition", "no_advantage_std_norm", "It takes the batch's mean alone.")
    credit: tuple[Credit, ...] = (whiten("population", 1e-8),)
    if kind == "gae":
        return gae(words.number("gamma"), words.number("lambd")), credit
    if kind == "reinforce":
        return return_to_go(words.number("gamma")), credit
    return group_center(), credit


def _gates(words: Reader, sequence: bool) -> tuple[Gate, ...]:
    if not words["enable_vllm_is_correction"]:
        return ()
    if sequence:
        raise refuse("a composition", "gspo with enable_vllm_is_correction")
    kind = words.choice("vllm_is_correction_type", ("tis", "icepop", "seq-mask-tis"))
    if kind == "seq-mask-tis":
        raise refuse("a composition", "vllm_is_correction_type='seq-mask-tis'")
    low, high = (float(x) for x in words["vllm_is_truncated_threshold"])
    return (engine_ratio("token", "truncate" if kind == "tis" else "mask", low, high),)
