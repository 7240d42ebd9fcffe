"""verl 0.9.1: what an actor and algorithm section computes; `verl_words` is the other way.

Defaults are those of the shipped YAML. The trainer is assumed to pass the global batch size and
token count, as it does, so fully masked rows count. verl clamps log-ratios to +-20 (gspo: at +10)
and k3 to +-10; no such clamp is here, and inside them the two agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import Any, Literal

from rlnb.interop.vocabulary import Reader, Reading, as_words, known_words, refuse
from rlnb.objective import ratios, surrogates
from rlnb.objective.advantages import (
    gae,
    greedy_baseline,
    group_center,
    group_zscore,
    leave_one_out,
    return_to_go,
)
from rlnb.objective.composition import Objective
from rlnb.objective.credit import whiten
from rlnb.objective.gates import clip_cov, divergence_mask
from rlnb.objective.part import Advantage, Credit, Gate, Ratio, Shape, Surrogate, Term, Weights
from rlnb.objective.ratios import Anchor
from rlnb.objective.shapes import kl_in_reward
from rlnb.objective.surrogates import clip, logprob
from rlnb.objective.terms import absolute_kl, entropy_bonus, k1, k2, k3
from rlnb.objective.weights import (
    constant_length,
    padded_length,
    sequence_mean,
    sequence_sum,
    token_mean,
    token_sum,
)

__all__ = ["VERL_DEFAULTS", "VERL_SILENT", "from_verl"]

VERSION = "verl 0.9.1"

VERL_DEFAULTS: dict[str, Any] = {
    # actor_rollout_ref.actor
    "loss_agg_mode": "token-mean",
    "loss_scale_factor": None,
    "clip_ratio": 0.2,
    "clip_ratio_low": 0.2,
    "clip_ratio_high": 0.2,
    "clip_ratio_c": 3.0,
    "tau_pos": 1.0,
    "tau_neg": 1.05,
    "entropy_coeff": 0.0,
    "use_kl_loss": False,
    "kl_loss_coef": 0.001,
    "kl_loss_type": "low_var_kl",
    # actor_rollout_ref.actor.policy_loss
    "loss_mode": "vanilla",
    "clip_cov_ratio": 2e-4,
    "clip_cov_lb": 1.0,
    "clip_cov_ub": 5.0,
    "kl_cov_ratio": 2e-4,
    "ppo_kl_coef": 0.1,
    # algorithm
    "adv_estimator": "gae",
    "norm_adv_by_std_in_grpo": True,
    "gamma": 1.0,
    "lam": 1.0,
    "use_kl_in_reward": False,
    "kl_penalty": "kl",
    "kl_coef": 0.001,
    "rollout_is": None,
    "bypass_mode": False,
}
VERL_SILENT = known_words("verl") - VERL_DEFAULTS.keys()  # words that do not touch the loss
SECTIONS = ("policy_loss", "kl_ctrl", "rollout_correction")
# words that change the loss and that no composition says, with the value that switches them off
OFF = {"rollout_is": None, "rollout_rs": None, "use_pf_ppo": False}
MODES = (
    "vanilla",
    "gspo",
    "cispo",
    "sapo",
    "geo_mean",
    "dppo_tv",
    "dppo_kl",
    "clip_cov",
    "kl_cov",
    "gpg",
)
NOT_SAID = {"dro": "its quadratic penalty", "bypass_mode": "its rollout correction"}
AGGREGATIONS = (
    "token-mean",
    "token-sum",
    "seq-mean-token-sum",
    "seq-mean-token-mean",
    "seq-mean-token-sum-norm",
)
ESTIMATORS = (
    "gae",
    "grpo",
    "rloo",
    "rloo_vectorized",
    "remax",
    "reinforce_plus_plus",
    "reinforce_plus_plus_baseline",
)
KL_WORDS = {"kl": k1, "k1": k1, "abs": absolute_kl, "mse": k2, "k2": k2, "low_var_kl": k3, "k3": k3}
KL_CHOICES = (*KL_WORDS, *(word + "+" for word in KL_WORDS))
KL_ESTIMATORS: dict[type, Literal["k1", "k2", "k3"]] = {k1: "k1", k2: "k2", k3: "k3"}
WHITEN = whiten("bessel", 1e-8)
ROW = sequence_mean()  # verl adds 1e-8 to the length, a float32 count: 5 + 1e-8 is 5
FIXED_WEIGHTS: dict[str, Weights] = {
    "token-mean": token_mean(),
    "token-sum": token_sum(),
    "seq-mean-token-sum": sequence_sum(),
    "seq-mean-token-mean": ROW,
}
ROW_MODES = ("sapo", "geo_mean")  # loss modes whose policy term is averaged so, whatever is set


def from_verl(config: Any = None, **keywords: Any) -> Reading:
    """The objective that verl 0.9.1 computes for its words, flat: loss_mode, clip_ratio_low, ...

    The words are those of `actor_rollout_ref.actor`, its `policy_loss`, and `algorithm`; the
    KL-in-reward coefficient is `kl_coef`. The sections policy_loss, kl_ctrl and rollout_correction
    may also be given whole. What is not given has the default of verl's YAML. The
    reading's `.objective` is the composition, its `.ignored` the given words without effect on it.

    bypass_mode puts the rollout engine's log-probs in the place of the old ones. It is read as
    the trainer of `trainer.use_v1=True` reads it, the default; the older one would also replace
    loss_mode by a plain clip.

    Raises ValueError for an unknown word or value, with the nearest one, and for the settings no
    composition says (rollout correction, dro, estimators outside the course).

    >>> from_verl(adv_estimator="grpo")
    Objective(group_zscore('bessel'), clip(0.2, dual=3.0), token_mean)
    """
    words = Reader(VERSION, _flat(as_words(config, keywords)), VERL_DEFAULTS, known_words("verl"))
    for word, off in OFF.items():
        if words.given.get(word) not in (None, off):
            raise refuse("a composition", f"verl's {word}", f"Set it to {off}.")
    if words["loss_mode"] in NOT_SAID:
        raise refuse(
            "a composition",
            f"loss_mode={words['loss_mode']!r}",
            f"{NOT_SAID[words['loss_mode']]} is not a part here.".capitalize(),
        )
    mode = words.choice("loss_mode", MODES)
    anchor: Anchor = "sampling" if words["bypass_mode"] else "old"
    weights = ROW if mode in ROW_MODES else _weights(words)
    surrogate, ratio, gates = _policy(mode, words, anchor)
    terms, shape = _terms(mode, words), _shape(words, anchor)
    advantage, credit = _advantage(words)
    made = Objective(
        advantage,
        surrogate,
        weights,
        ratio=ratio,
        shape=shape,
        credit=credit,
        gates=gates,
        terms=terms,
    )
    return words.reading(made)


def _flat(given: Mapping[str, Any]) -> dict[str, Any]:
    """Given words with the sections that hold words of the loss opened, one level deep.

    `policy_loss.rollout_correction` is a copy that only bypass_mode reads.
    """
    words: dict[str, Any] = {}
    for word, value in given.items():
        if word in SECTIONS:
            words |= {k: v for k, v in as_words(value, {}).items() if k != "rollout_correction"}
        else:
            words[word] = value
    words.pop("_target_", None)  # hydra's, in any section
    return words


def _band(words: Reader) -> tuple[float, float]:
    """clip_ratio_low and _high; `clip_ratio` is read only where one of them is null."""
    low = words.optional_number("clip_ratio_low")
    high = words.optional_number("clip_ratio_high")
    return (
        words.number("clip_ratio") if low is None else low,
        words.number("clip_ratio") if high is None else high,
    )


def _policy(mode: str, words: Reader, anchor: Anchor) -> tuple[Surrogate, Ratio, tuple[Gate, ...]]:
    """(surrogate, ratio, gates) of a loss_mode."""
    token = ratios.token(anchor)
    if mode == "gpg":
        return logprob(), token, ()
    if mode == "sapo":
        return surrogates.sapo(words.number("tau_pos"), words.number("tau_neg")), token, ()
    if mode == "kl_cov":
        part = surrogates.kl_cov(words.number("kl_cov_ratio"), words.number("ppo_kl_coef"))
        return part, token, ()
    low, high = _band(words)
    upper = None if high == low else high
    if mode == "vanilla":
        top = words.number("clip_ratio_c")
        # verl clamps log-ratios at 20: a dual clip above e^20 is never reached
        return clip(low, upper, dual=top if top <= exp(20) else None), token, ()
    if mode == "gspo":
        return clip(low, upper), ratios.sequence_token(anchor), ()
    if mode == "cispo":
        floor = 1 - low
        return surrogates.cispo(1 + high, floor if floor > 0 else None), token, ()
    if mode == "geo_mean":
        if anchor != "old":
            raise refuse(
                "a composition",
                "loss_mode='geo_mean' with bypass_mode",
                "gmpo compares with the trainer's old policy.",
            )
        return surrogates.ratio(), ratios.gmpo(low, upper), ()
    if mode in ("dppo_tv", "dppo_kl"):
        cap = surrogates.cispo(words.number("clip_ratio_c"))
        kind: Literal["tv", "kl"] = "tv" if mode == "dppo_tv" else "kl"
        return cap, token, (divergence_mask(low, upper, kind, anchor),)
    gate = clip_cov(
        words.number("clip_cov_ratio"),
        words.number("clip_cov_lb"),
        words.number("clip_cov_ub"),
        low,
        upper,
    )
    return clip(low, upper), token, (gate,)


def _terms(mode: str, words: Reader) -> tuple[Term, ...]:
    terms: list[Term] = []
    if words["use_kl_loss"]:
        word = words.choice("kl_loss_type", KL_CHOICES)
        part = KL_WORDS[word.rstrip("+")]
        plus = word.endswith("+") and part is not k2
        own = _term_weights(mode, words)
        terms.append(part(words.number("kl_loss_coef"), straight_through=plus, weights=own))
    if coefficient := words.number("entropy_coeff"):
        terms.append(entropy_bonus(coefficient, weights=_term_weights(mode, words)))
    return tuple(terms)


def _term_weights(mode: str, words: Reader) -> Weights | None:
    """KL and entropy keep loss_agg_mode where the policy term does not; None: the policy's own."""
    if mode not in ROW_MODES:
        return None
    own = _weights(words)
    return None if own == ROW else own


def _shape(words: Reader, anchor: Anchor) -> tuple[Shape, ...]:
    if not words["use_kl_in_reward"]:
        return ()
    if anchor != "old":
        raise refuse(
            "a composition",
            "use_kl_in_reward with bypass_mode",
            "Its penalty then takes the engine's log-probs. Use use_kl_loss.",
        )
    if words.given.get("type") == "adaptive":
        raise refuse(
            "a composition",
            "kl_ctrl.type='adaptive'",
            "Its coefficient follows the measured KL. Set it to fixed.",
        )
    part = KL_WORDS[words.choice("kl_penalty", KL_CHOICES).rstrip("+")]
    if part is absolute_kl:
        raise refuse("a composition", "kl_penalty='abs' in the reward")
    estimator = KL_ESTIMATORS[part]
    return (kl_in_reward(words.number("kl_coef"), estimator),)


def _weights(words: Reader) -> Weights:
    mode = words.choice("loss_agg_mode", AGGREGATIONS)
    if mode != "seq-mean-token-sum-norm":
        return FIXED_WEIGHTS[mode]
    factor = words["loss_scale_factor"]
    return padded_length() if factor is None else constant_length(int(factor))


def _advantage(words: Reader) -> tuple[Advantage, tuple[Credit, ...]]:
    kind = words.choice("adv_estimator", ESTIMATORS)
    if kind == "gae":
        return gae(words.number("gamma"), words.number("lam")), (WHITEN,)
    if kind == "grpo":
        scaled = words["norm_adv_by_std_in_grpo"]
        return (group_zscore("bessel", 1e-6) if scaled else group_center()), ()
    if kind in ("rloo", "rloo_vectorized"):
        return leave_one_out(), ()
    if kind == "remax":
        if words["use_kl_in_reward"]:
            raise refuse(
                "a composition",
                "adv_estimator='remax' with use_kl_in_reward",
                "verl credits a token with the penalties still to come, greedy_baseline "
                "with all of them. Use use_kl_loss.",
            )
        return greedy_baseline(), ()
    if kind == "reinforce_plus_plus":
        return return_to_go(words.number("gamma")), (WHITEN,)
    return group_center(), (WHITEN,)
