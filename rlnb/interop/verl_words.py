"""An objective in verl 0.9.1's words: the other half of `verl`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlnb.interop.verl import AGGREGATIONS, ROW_MODES, VERSION, from_verl
from rlnb.interop.vocabulary import Words, answer, refuse, refuse_all
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
from rlnb.objective.gates import clip_cov, divergence_mask, sequence_mask
from rlnb.objective.part import Weights
from rlnb.objective.shapes import kl_in_reward, overlong
from rlnb.objective.surrogates import clip, logprob
from rlnb.objective.terms import absolute_kl, entropy_bonus, k1, k2, k3
from rlnb.objective.weights import constant_length

__all__ = ["to_verl"]

WEIGHT_WORDS = {
    "sequence_mean": "seq-mean-token-mean",
    "token_mean": "token-mean",
    "sequence_sum": "seq-mean-token-sum",
    "token_sum": "token-sum",
    "constant_length": "seq-mean-token-sum-norm",
    "padded_length": "seq-mean-token-sum-norm",
}
KL = (k1, k2, k3, absolute_kl)
KL_WORDS = {"k1": "kl", "k2": "mse", "k3": "low_var_kl", "abs": "abs"}


def to_verl(objective: Objective, *, strict: bool = False) -> Words:
    """verl 0.9.1's words, flat, for an objective; `.differences` says what they do not carry over.

    strict: refuse conventions too, so that from_verl(**to_verl(x, strict=True)).objective == x.
    Raises Inexpressible (a ValueError), with every part that has no word in verl and why; where
    each part has one, with those that verl does not put together.
    """
    refuse_all(VERSION, _missing(objective))
    words: dict[str, Any] = {}
    differences: list[str] = []
    _say_advantage(objective, words, differences)
    _say_policy(objective, words, differences)
    own = _say_weights(objective, words, differences)
    for term in objective.terms:
        if term.weights is not None and term.weights != own:
            raise refuse(VERSION, f"a term with weights of its own ({term!r})")
        if isinstance(term, entropy_bonus):
            words["entropy_coeff"] = term.coefficient
        elif isinstance(term, KL):
            words.update(
                use_kl_loss=True,
                kl_loss_coef=term.coefficient,
                kl_loss_type=KL_WORDS[term.kind] + ("+" if term.straight_through else ""),
            )
    for shape in objective.shape:
        if isinstance(shape, kl_in_reward):
            if words.get("bypass_mode"):
                raise refuse(
                    VERSION,
                    f"{shape!r} with ratio={objective.ratio!r}",
                    "With bypass_mode its penalty takes the engine's log-probs.",
                )
            words.update(
                use_kl_in_reward=True, kl_coef=shape.beta, kl_penalty=KL_WORDS[shape.estimator]
            )
        elif isinstance(shape, overlong):
            differences.append(
                "the overlong penalty is the reward manager's in verl: "
                f"overlong_buffer_cfg with len={shape.cache}, "
                f"penalty_factor={shape.factor}, max_resp_len={shape.max_length}."
            )
    return answer(VERSION, words, differences, objective, from_verl(**words).objective, strict)


def _missing(objective: Objective) -> Iterator[tuple[str, str]]:
    """(part, why) for each part that verl has nothing for, whatever stands beside it."""
    advantage, ratio = objective.advantage, objective.ratio
    if not isinstance(
        advantage, (gae, return_to_go, group_zscore, group_center, leave_one_out, greedy_baseline)
    ):
        yield (
            f"advantage={advantage!r}",
            "Of the baselines here it has gae, return_to_go, "
            "group_zscore, group_center, leave_one_out and greedy_baseline.",
        )
    elif isinstance(advantage, leave_one_out) and advantage.normalise:
        yield f"advantage={advantage!r}", "Its rloo has no std."
    surrogate = objective.surrogate
    if isinstance(surrogate, clip) and surrogate.delta is not None:
        yield f"surrogate={surrogate!r}", "Its dual clip is clip_ratio_c."
    elif isinstance(surrogate, surrogates.cispo) and surrogate.cap is None:
        yield f"surrogate={surrogate!r}", "Its cispo has a cap."
    elif isinstance(surrogate, surrogates.sapo) and surrogate.gate != "sigmoid":
        yield f"surrogate={surrogate!r}", "Its gate is the sigmoid."
    elif not isinstance(
        surrogate,
        (clip, logprob, surrogates.ratio, surrogates.cispo, surrogates.sapo, surrogates.kl_cov),
    ):
        yield (
            f"surrogate={surrogate!r}",
            "Of the surrogates here it has clip, cispo, sapo and kl_cov.",
        )
    if type(objective.weights).__name__ not in WEIGHT_WORDS:
        yield f"weights={objective.weights!r}", f"Its averages are {', '.join(AGGREGATIONS)}."
    if type(ratio) not in (ratios.token, ratios.sequence, ratios.sequence_token, ratios.gmpo):
        yield f"ratio={ratio!r}", "Its ratios are token, sequence_token (gspo) and gmpo (geo_mean)."
    for shape in objective.shape:
        if not isinstance(shape, (kl_in_reward, overlong)):
            yield f"shape={shape!r}", "In its reward it has the KL."
    for place, credit in enumerate(objective.credit):
        if not isinstance(credit, whiten) or place:
            yield f"credit={credit!r}", "Of the credit parts it has whitening."
    for gate in objective.gates:
        if isinstance(gate, divergence_mask) and gate.top_k:
            yield f"gates={gate!r}", "Its divergence is that of the sampled token."
        elif isinstance(gate, sequence_mask):
            yield f"gates={gate!r}", "Its rollout_rs masks whatever the sign of A."
        elif not isinstance(gate, (divergence_mask, clip_cov)):
            yield f"gates={gate!r}", "Its gates are divergence_mask and clip_cov."
    for term in objective.terms:
        if isinstance(term, KL):
            if term.corrected:
                yield f"terms={term!r}", "Its KL loss has no ratio in front."
        elif not isinstance(term, entropy_bonus):
            yield f"terms={term!r}", "Beside the policy it has a KL loss and an entropy bonus."


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
            differences.append(
                "verl has GSPO-token; with one advantage per answer value and gradient are GSPO's."
            )
    elif sequence:
        raise refuse(VERSION, f"{surrogate!r} on sequence ratios")
    elif isinstance(surrogate, clip) and len(gates) == 1 and isinstance(gates[0], clip_cov):
        gate = gates[0]
        words.update(
            loss_mode="clip_cov",
            clip_cov_ratio=gate.fraction,
            clip_cov_lb=gate.low,
            clip_cov_ub=gate.high,
        )
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
            differences.append(
                "verl's dual clip cannot be switched off; clip_ratio_c=1e9 keeps it out of reach."
            )
        else:
            words["clip_ratio_c"] = surrogate.dual
    elif isinstance(surrogate, surrogates.cispo) and surrogate.cap is not None:
        words["loss_mode"] = "cispo"
        _say_band(1.0 if surrogate.floor is None else 1 - surrogate.floor, surrogate.cap - 1, words)
    elif isinstance(surrogate, surrogates.sapo):
        words.update(loss_mode="sapo", tau_pos=surrogate.tau_pos, tau_neg=surrogate.tau_neg)
    elif isinstance(surrogate, surrogates.kl_cov):
        words.update(
            loss_mode="kl_cov", kl_cov_ratio=surrogate.fraction, ppo_kl_coef=surrogate.coefficient
        )
    elif isinstance(surrogate, surrogates.ratio):
        words.update(loss_mode="vanilla", clip_ratio_low=1.0, clip_ratio_high=1e9, clip_ratio_c=1e9)
        differences.append("an unclipped ratio is said as a band that nothing leaves.")
    else:
        words["loss_mode"] = "gpg"


def _say_weights(objective: Objective, words: dict, differences: list) -> Weights:
    """Writes loss_agg_mode; returns the weights a term may name as its own."""
    part = objective.weights
    averaged = type(part).__name__
    if words["loss_mode"] in ROW_MODES:
        if averaged != "sequence_mean":
            raise refuse(
                VERSION,
                f"{words['loss_mode']} with {averaged}",
                "It always takes the mean of each answer, then of the answers.",
            )
        own = next((t.weights for t in objective.terms if t.weights is not None), part)
        part, averaged = own, type(own).__name__
        if averaged not in WEIGHT_WORDS:
            raise refuse(VERSION, f"terms that are averaged by {part!r}")
    words["loss_agg_mode"] = WEIGHT_WORDS[averaged]
    if isinstance(part, constant_length):
        if part.length is None:
            differences.append(
                "set loss_scale_factor to your generation limit: without it verl "
                "divides by the padded width of each micro-batch."
            )
        else:
            words["loss_scale_factor"] = part.length
    return part


def _say_band(low: float, high: float | None, words: dict) -> None:
    words.update(clip_ratio_low=low, clip_ratio_high=low if high is None else high)
