"""verl 0.9.1: what an actor and algorithm section computes, and an objective in its words.

Defaults are those of the shipped YAML. The trainer is assumed to pass the global batch size and
token count, as it does, so fully masked rows count. verl clamps log-ratios to +-20 (gspo: at +10)
and k3 to +-10; no such clamp is here, and inside them the two agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .. import ratios, surrogates
from ..advantages import (
    gae,
    greedy_baseline,
    group_center,
    group_zscore,
    leave_one_out,
    return_to_go,
)
from ..composition import Objective
from ..credit import whiten
from ..gates import clip_cov, divergence_mask, sequence_mask
from ..shapes import kl_in_reward, overlong
from ..surrogates import clip, logprob
from ..terms import absolute_kl, entropy_bonus, k1, k2, k3
from ..weights import (
    constant_length,
    padded_length,
    sequence_mean,
    sequence_sum,
    token_mean,
    token_sum,
)
from .vocabulary import Reader, Words, answer, as_words, known_words, refuse, refuse_all

__all__ = ["VERL_DEFAULTS", "VERL_SILENT", "from_verl", "to_verl"]

VERSION = "verl 0.9.1"

VERL_DEFAULTS: dict[str, Any] = {
    # actor_rollout_ref.actor
    "loss_agg_mode": "token-mean", "loss_scale_factor": None, "clip_ratio": 0.2,
    "clip_ratio_low": 0.2, "clip_ratio_high": 0.2, "clip_ratio_c": 3.0,
    "tau_pos": 1.0, "tau_neg": 1.05, "entropy_coeff": 0.0,
    "use_kl_loss": False, "kl_loss_coef": 0.001, "kl_loss_type": "low_var_kl",
    # actor_rollout_ref.actor.policy_loss
    "loss_mode": "vanilla", "clip_cov_ratio": 2e-4, "clip_cov_lb": 1.0, "clip_cov_ub": 5.0,
    "kl_cov_ratio": 2e-4, "ppo_kl_coef": 0.1,
    # algorithm
    "adv_estimator": "gae", "norm_adv_by_std_in_grpo": True, "gamma": 1.0, "lam": 1.0,
    "use_kl_in_reward": False, "kl_penalty": "kl", "kl_coef": 0.001, "rollout_is": None,
    "bypass_mode": False,
}
VERL_SILENT = known_words("verl") - VERL_DEFAULTS.keys()   # words that do not touch the loss
SECTIONS = ("policy_loss", "kl_ctrl", "rollout_correction")
# words that change the loss and that no composition says, with the value that switches them off
OFF = {"rollout_is": None, "rollout_rs": None, "use_pf_ppo": False}
MODES = ("vanilla", "gspo", "cispo", "sapo", "geo_mean", "dppo_tv", "dppo_kl", "clip_cov", "kl_cov",
         "gpg")
NOT_SAID = {"dro": "its quadratic penalty", "bypass_mode": "its rollout correction"}
AGGREGATIONS = ("token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean",
                "seq-mean-token-sum-norm")
ESTIMATORS = ("gae", "grpo", "rloo", "rloo_vectorized", "remax", "reinforce_plus_plus",
              "reinforce_plus_plus_baseline")
KL_WORDS = {"kl": k1, "k1": k1, "abs": absolute_kl, "mse": k2, "k2": k2, "low_var_kl": k3, "k3": k3}
WHITEN = whiten("bessel", 1e-8)
ROW = sequence_mean()   # verl adds 1e-8 to the length, a float32 count: 5 + 1e-8 is 5


def from_verl(config: Any = None, **keywords: Any) -> Objective:
    """The objective that verl 0.9.1 computes for its words, flat: loss_mode, clip_ratio_low, ...

    The words are those of `actor_rollout_ref.actor`, its `policy_loss`, and `algorithm`; the
    KL-in-reward coefficient is `kl_coef`. The sections policy_loss, kl_ctrl and rollout_correction
    may also be given whole. What is not given has the default of verl's YAML. The
    result's `.ignored` names the given words that do not touch the loss.

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
        raise refuse("a composition", f"loss_mode={words['loss_mode']!r}",
                     f"{NOT_SAID[words['loss_mode']]} is not a part here.".capitalize())
    mode = words.choice("loss_mode", MODES)
    weights = _weights(words)
    low, high = _band(words)
    anchor = "sampling" if words["bypass_mode"] else "old"
    surrogate, ratio, gates = _policy(mode, words, low, high, anchor)
    if mode in ("sapo", "geo_mean"):
        words.used -= {"loss_agg_mode", "loss_scale_factor"}
    if mode in ("sapo", "kl_cov", "gpg"):
        words.used -= {"clip_ratio", "clip_ratio_low", "clip_ratio_high"}
    policy_weights = ROW if mode in ("sapo", "geo_mean") else weights
    own = None if policy_weights == weights else weights   # KL and entropy keep loss_agg_mode

    terms: list[Any] = []
    if words["use_kl_loss"]:
        kind = words["kl_loss_type"]
        base = words.choice("kl_loss_type", (*KL_WORDS, *(w + "+" for w in KL_WORDS)))
        part = KL_WORDS[base.rstrip("+")]
        plus = kind.endswith("+") and part is not k2
        terms.append(part(words.number("kl_loss_coef"), straight_through=plus, weights=own))
    if coefficient := words.number("entropy_coeff"):
        terms.append(entropy_bonus(coefficient, weights=own))
    shape: tuple[Any, ...] = ()
    if words["use_kl_in_reward"]:
        if anchor != "old":
            raise refuse("a composition", "use_kl_in_reward with bypass_mode",
                         "Its penalty then takes the engine's log-probs. Use use_kl_loss.")
        if words.given.get("type") == "adaptive":
            raise refuse("a composition", "kl_ctrl.type='adaptive'",
                         "Its coefficient follows the measured KL. Set it to fixed.")
        kind = words.choice("kl_penalty", (*KL_WORDS, *(w + "+" for w in KL_WORDS))).rstrip("+")
        if kind == "abs":
            raise refuse("a composition", "kl_penalty='abs' in the reward")
        shape = (kl_in_reward(words.number("kl_coef"), KL_WORDS[kind].__name__),)
    advantage, credit = _advantage(words)
    made = Objective(advantage, surrogate, policy_weights, ratio=ratio, gates=gates,
                     terms=tuple(terms), shape=shape, credit=credit)
    return words.told(made)


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
    words.pop("_target_", None)   # hydra's, in any section
    return words


def _band(words: Reader) -> tuple[float, float]:
    """clip_ratio_low and _high; `clip_ratio` is read only where one of them is null."""
    low = words.number("clip_ratio_low", optional=True)
    high = words.number("clip_ratio_high", optional=True)
    return (words.number("clip_ratio") if low is None else low,
            words.number("clip_ratio") if high is None else high)


def _policy(mode: str, words: Reader, low: float, high: float,
            anchor: Any) -> tuple[Any, Any, tuple]:
    """(surrogate, ratio, gates) of a loss_mode."""
    upper = None if high == low else high
    token = ratios.token(anchor)
    if mode == "vanilla":
        return clip(low, upper, dual=words.number("clip_ratio_c")), token, ()
    if mode == "gspo":
        return clip(low, upper), ratios.sequence_token(anchor), ()
    if mode == "cispo":
        floor = 1 - low
        return surrogates.cispo(1 + high, floor if floor > 0 else None), token, ()
    if mode == "sapo":
        return surrogates.sapo(words.number("tau_pos"), words.number("tau_neg")), token, ()
    if mode == "geo_mean":
        if anchor != "old":
            raise refuse("a composition", "loss_mode='geo_mean' with bypass_mode",
                         "gmpo compares with the trainer's old policy.")
        return surrogates.ratio(), ratios.gmpo(low, upper), ()
    if mode in ("dppo_tv", "dppo_kl"):
        cap = surrogates.cispo(words.number("clip_ratio_c"))
        return cap, token, (divergence_mask(low, upper, mode[-2:], anchor),)
    if mode == "clip_cov":
        gate = clip_cov(words.number("clip_cov_ratio"), words.number("clip_cov_lb"),
                        words.number("clip_cov_ub"), low, upper)
        return clip(low, upper), token, (gate,)
    if mode == "kl_cov":
        part = surrogates.kl_cov(words.number("kl_cov_ratio"), words.number("ppo_kl_coef"))
        return part, token, ()
    return logprob(), token, ()


def _weights(words: Reader) -> Any:
    mode = words.choice("loss_agg_mode", AGGREGATIONS)
    if mode != "seq-mean-token-sum-norm":
        return {"token-mean": token_mean(), "token-sum": token_sum(),
                "seq-mean-token-sum": sequence_sum(), "seq-mean-token-mean": ROW}[mode]
    factor = words["loss_scale_factor"]
    return padded_length() if factor is None else constant_length(int(factor))


def _advantage(words: Reader) -> tuple[Any, tuple]:
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
            raise refuse("a composition", "adv_estimator='remax' with use_kl_in_reward",
                         "verl credits a token with the penalties still to come, greedy_baseline "
                         "with all of them. Use use_kl_loss.")
        return greedy_baseline(), ()
    if kind == "reinforce_plus_plus":
        return return_to_go(words.number("gamma")), (WHITEN,)
    return group_center(), (WHITEN,)


# ---- the other way

WEIGHT_WORDS = {"sequence_mean": "seq-mean-token-mean", "token_mean": "token-mean",
                "sequence_sum": "seq-mean-token-sum", "token_sum": "token-sum",
                "constant_length": "seq-mean-token-sum-norm",
                "padded_length": "seq-mean-token-sum-norm"}


def to_verl(objective: Objective, *, strict: bool = False) -> Words:
    """verl 0.9.1's words, flat, for an objective; `.differences` says what they do not carry over.

    strict: refuse conventions too, so that from_verl(**to_verl(x, strict=True)) == x. Raises
    ValueError, with every part that has no word in verl and why; where each part has one, with
    those that verl does not put together.
    """
    refuse_all(VERSION, _missing(objective))
    words: dict[str, Any] = {}
    differences: list[str] = []
    _say_advantage(objective, words, differences)
    _say_policy(objective, words, differences)
    own = _say_weights(objective, words, differences)
    for part in objective.terms:
        if part.weights is not None and part.weights != own:
            raise refuse(VERSION, f"a term with weights of its own ({part!r})")
        if isinstance(part, entropy_bonus):
            words["entropy_coeff"] = part.coefficient
        else:
            name = {"k1": "kl", "k2": "mse", "k3": "low_var_kl", "abs": "abs"}[part.kind]
            words.update(use_kl_loss=True, kl_loss_coef=part.coefficient,
                         kl_loss_type=name + ("+" if part.straight_through else ""))
    for part in objective.shape:
        if isinstance(part, kl_in_reward):
            name = {"k1": "kl", "k2": "mse", "k3": "low_var_kl"}[part.estimator]
            if words.get("bypass_mode"):
                raise refuse(VERSION, f"{part!r} with ratio={objective.ratio!r}",
                             "With bypass_mode its penalty takes the engine's log-probs.")
            words.update(use_kl_in_reward=True, kl_coef=part.beta, kl_penalty=name)
        else:
            differences.append("the overlong penalty is the reward manager's in verl: "
                               f"overlong_buffer_cfg with len={part.cache}, "
                               f"penalty_factor={part.factor}, max_resp_len={part.max_length}.")
    return answer(VERSION, words, differences, objective, from_verl(**words), strict)


def _missing(objective: Objective) -> Iterator[tuple[str, str]]:
    """(part, why) for each part that verl has nothing for, whatever stands beside it."""
    part, ratio = objective.advantage, objective.ratio
    if not isinstance(part, (gae, return_to_go, group_zscore, group_center, leave_one_out,
                             greedy_baseline)):
        yield (f"advantage={part!r}", "Of the baselines here it has gae, return_to_go, "
               "group_zscore, group_center, leave_one_out and greedy_baseline.")
    elif isinstance(part, leave_one_out) and part.normalise:
        yield f"advantage={part!r}", "Its rloo has no std."
    part = objective.surrogate
    if isinstance(part, clip) and part.delta is not None:
        yield f"surrogate={part!r}", "Its dual clip is clip_ratio_c."
    elif isinstance(part, surrogates.cispo) and part.cap is None:
        yield f"surrogate={part!r}", "Its cispo has a cap."
    elif isinstance(part, surrogates.sapo) and part.gate != "sigmoid":
        yield f"surrogate={part!r}", "Its gate is the sigmoid."
    elif not isinstance(part, (clip, logprob, surrogates.ratio, surrogates.cispo, surrogates.sapo,
                               surrogates.kl_cov)):
        yield f"surrogate={part!r}", "Of the surrogates here it has clip, cispo, sapo and kl_cov."
    if type(objective.weights).__name__ not in WEIGHT_WORDS:
        yield f"weights={objective.weights!r}", f"Its averages are {', '.join(AGGREGATIONS)}."
    if type(ratio) not in (ratios.token, ratios.sequence, ratios.sequence_token, ratios.gmpo):
        yield f"ratio={ratio!r}", "Its ratios are token, sequence_token (gspo) and gmpo (geo_mean)."
    for part in objective.shape:
        if not isinstance(part, (kl_in_reward, overlong)):
            yield f"shape={part!r}", "In its reward it has the KL."
    for place, part in enumerate(objective.credit):
        if not isinstance(part, whiten) or place:
            yield f"credit={part!r}", "Of the credit parts it has whitening."
    for part in objective.gates:
        if isinstance(part, divergence_mask) and part.top_k:
            yield f"gates={part!r}", "Its divergence is that of the sampled token."
        elif isinstance(part, sequence_mask):
            yield f"gates={part!r}", "Its rollout_rs masks whatever the sign of A."
        elif not isinstance(part, (divergence_mask, clip_cov)):
            yield f"gates={part!r}", "Its gates are divergence_mask and clip_cov."
    for part in objective.terms:
        if isinstance(part, (k1, k2, k3, absolute_kl)):
            if part.corrected:
                yield f"terms={part!r}", "Its KL loss has no ratio in front."
        elif not isinstance(part, entropy_bonus):
            yield f"terms={part!r}", "Beside the policy it has a KL loss and an entropy bonus."


def _say_advantage(objective: Objective, words: dict, differences: list) -> None:
    part = objective.advantage
    whitened = bool(objective.credit)
    if isinstance(part, gae):
        words.update(adv_estimator="gae", gamma=part.gamma, lam=part.lam)
        if not whitened:
            differences.append("verl's gae always whitens the advantages.")
    elif isinstance(part, return_to_go) and whitened:
        words.update(adv_estimator="reinforce_plus_plus", gamma=part.gamma)
    elif isinstance(part, group_center) and whitened:
        words["adv_estimator"] = "reinforce_plus_plus_baseline"
    elif whitened:
        raise refuse(VERSION, f"{part!r} with whitening")
    elif isinstance(part, (group_zscore, group_center)):
        words.update(adv_estimator="grpo", norm_adv_by_std_in_grpo=isinstance(part, group_zscore))
    elif isinstance(part, return_to_go):
        raise refuse(VERSION, f"{part!r} without whitening", "Its reinforce_plus_plus whitens.")
    else:
        words["adv_estimator"] = "rloo" if isinstance(part, leave_one_out) else "remax"


def _say_policy(objective: Objective, words: dict, differences: list) -> None:
    surrogate, ratio, gates = objective.surrogate, objective.ratio, objective.gates
    mask = gates[0] if len(gates) == 1 and isinstance(gates[0], divergence_mask) else None
    anchor = getattr(ratio, "anchor", "old")
    if anchor == "sampling":
        words["bypass_mode"] = True
    sequence = isinstance(ratio, (ratios.sequence, ratios.sequence_token))
    if isinstance(ratio, ratios.gmpo):
        if not isinstance(surrogate, surrogates.ratio) or gates:
            raise refuse(VERSION, "gmpo ratios with anything but ratio()")
        words["loss_mode"] = "geo_mean"
        _say_band(ratio.epsilon, ratio.high, words)
    elif isinstance(surrogate, clip) and sequence and not gates:
        if surrogate.dual is not None or surrogate.delta is not None:
            raise refuse(VERSION, "a dual clip on sequence ratios")
        words["loss_mode"] = "gspo"
        _say_band(surrogate.epsilon, surrogate.high, words)
        if not isinstance(ratio, ratios.sequence_token):
            differences.append("verl has GSPO-token; with one advantage per answer value and "
                               "gradient are GSPO's.")
    elif sequence:
        raise refuse(VERSION, f"{surrogate!r} on sequence ratios")
    elif isinstance(surrogate, clip) and len(gates) == 1 and isinstance(gates[0], clip_cov):
        gate = gates[0]
        words.update(loss_mode="clip_cov", clip_cov_ratio=gate.fraction, clip_cov_lb=gate.low,
                     clip_cov_ub=gate.high)
        _say_band(surrogate.epsilon, surrogate.high, words)
    elif isinstance(surrogate, surrogates.cispo) and mask:
        if surrogate.floor is not None:
            raise refuse(VERSION, f"{surrogate!r} with {mask!r}", "Its dppo has a cap, no floor.")
        if mask.anchor != anchor:
            raise refuse(VERSION, f"{mask!r} with ratio={ratio!r}", "Its dppo has one anchor.")
        words.update(loss_mode=f"dppo_{mask.kind}", clip_ratio_c=surrogate.cap)
        _say_band(mask.low, mask.high, words)
    elif gates:
        raise refuse(VERSION, f"gates={gates!r} with {surrogate!r}")
    elif isinstance(surrogate, clip):
        words["loss_mode"] = "vanilla"
        _say_band(surrogate.epsilon, surrogate.high, words)
        if surrogate.dual is None:
            words["clip_ratio_c"] = 1e9
            differences.append("verl's dual clip cannot be switched off; clip_ratio_c=1e9 keeps it "
                               "out of reach.")
        else:
            words["clip_ratio_c"] = surrogate.dual
    elif isinstance(surrogate, surrogates.cispo):
        words["loss_mode"] = "cispo"
        _say_band(1.0 if surrogate.floor is None else 1 - surrogate.floor, surrogate.cap - 1, words)
    elif isinstance(surrogate, surrogates.sapo):
        words.update(loss_mode="sapo", tau_pos=surrogate.tau_pos, tau_neg=surrogate.tau_neg)
    elif isinstance(surrogate, surrogates.kl_cov):
        words.update(loss_mode="kl_cov", kl_cov_ratio=surrogate.fraction,
                     ppo_kl_coef=surrogate.coefficient)
    elif isinstance(surrogate, surrogates.ratio):
        words.update(loss_mode="vanilla", clip_ratio_low=1.0, clip_ratio_high=1e9, clip_ratio_c=1e9)
        differences.append("an unclipped ratio is said as a band that nothing leaves.")
    else:
        words["loss_mode"] = "gpg"


def _say_weights(objective: Objective, words: dict, differences: list) -> Any:
    """Writes loss_agg_mode; returns the weights a term may name as its own."""
    part = objective.weights
    averaged = type(part).__name__
    if words["loss_mode"] in ("sapo", "geo_mean"):
        if averaged != "sequence_mean":
            raise refuse(VERSION, f"{words['loss_mode']} with {averaged}",
                         "It always takes the mean of each answer, then of the answers.")
        own = next((t.weights for t in objective.terms if t.weights is not None), part)
        part, averaged = own, type(own).__name__
        if averaged not in WEIGHT_WORDS:
            raise refuse(VERSION, f"terms that are averaged by {part!r}")
    words["loss_agg_mode"] = WEIGHT_WORDS[averaged]
    if averaged == "constant_length":
        if part.length is None:
            differences.append("set loss_scale_factor to your generation limit: without it verl "
                               "divides by the padded width of each micro-batch.")
        else:
            words["loss_scale_factor"] = part.length
    return part


def _say_band(low: float, high: float | None, words: dict) -> None:
    words.update(clip_ratio_low=low, clip_ratio_high=low if high is None else high)
