"""An objective in TRL 1.16.0's words: the other half of `trl`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlnb.interop.trl import VERSION, from_trl
from rlnb.interop.vocabulary import Words, answer, refuse, refuse_all
from rlnb.objective import ratios, surrogates
from rlnb.objective.advantages import batch_zscore, group_center, group_zscore, leave_one_out
from rlnb.objective.composition import Objective
from rlnb.objective.gates import engine_ratio, sequence_mask, top_entropy
from rlnb.objective.part import Advantage, Gate, Surrogate
from rlnb.objective.shapes import kl_in_reward, overlong, reward_clip
from rlnb.objective.surrogates import clip, logprob
from rlnb.objective.terms import entropy_bonus, k3
from rlnb.objective.weights import constant_length, local_token_mean, sequence_mean, sequence_sum

__all__ = ["to_trl"]

WEIGHT_WORDS = {
    "sequence_mean": "grpo",
    "token_mean": "dapo",
    "local_token_mean": "bnpo",
    "constant_length": "dr_grpo",
    "sequence_sum": "luspo",
}
RATIOS = (ratios.token, ratios.sequence, ratios.sequence_token, ratios.product, ratios.gmpo)


def to_trl(objective: Objective, *, strict: bool = False) -> Words:
    """Keywords for TRL 1.16.0's GRPOConfig, with what they do not carry over in `.differences`.

    `trainer` is among them ("rloo", "gmpo") where another trainer is meant: take it out before
    handing the rest to its config. strict: refuse conventions too (std, eps), so that
    from_trl(**to_trl(x, strict=True)).objective == x.

    Raises Inexpressible (a ValueError), with every part that has no word in TRL and why; where
    each part has one, with the two that TRL does not put together.
    """
    refuse_all(VERSION, _missing(objective))
    words: dict[str, Any] = {}
    differences: list[str] = []
    if isinstance(objective.advantage, leave_one_out):
        _say_rloo(objective, objective.advantage, words, differences)
    elif isinstance(objective.ratio, ratios.gmpo):
        _say_gmpo(objective, objective.ratio, words)
    else:
        _say_grpo(objective, words, differences)
    return answer(VERSION, words, differences, objective, from_trl(**words).objective, strict)


def _missing(objective: Objective) -> Iterator[tuple[str, str]]:
    """(part, why) for each part that TRL says in no trainer, or not in this one."""
    advantage, ratio = objective.advantage, objective.ratio
    rloo = isinstance(advantage, leave_one_out)
    if isinstance(advantage, batch_zscore) and advantage.center == "group":
        if advantage.of != "rewards":
            yield (
                f"advantage={advantage!r}",
                "scale_rewards='batch' divides by the std of the raw "
                "rewards, which also holds the spread between prompts.",
            )
    elif not isinstance(advantage, (group_zscore, group_center, leave_one_out)):
        yield (
            f"advantage={advantage!r}",
            "Its baselines are the group mean, with or without "
            "a std, and leave-one-out in RLOOTrainer.",
        )
    surrogate = objective.surrogate
    if isinstance(surrogate, surrogates.cispo) and (
        surrogate.floor is not None or surrogate.cap is None
    ):
        yield f"surrogate={surrogate!r}", "Its cispo has a cap and no floor."
    elif isinstance(surrogate, surrogates.sapo) and surrogate.gate != "sigmoid":
        yield f"surrogate={surrogate!r}", "Its gate is the sigmoid."
    elif not isinstance(
        surrogate,
        (clip, logprob, surrogates.ratio, surrogates.cispo, surrogates.sapo, surrogates.vespo),
    ):
        yield f"surrogate={surrogate!r}", "Its losses are clip, cispo, sapo and vespo."
    if type(objective.weights).__name__ not in WEIGHT_WORDS:
        yield f"weights={objective.weights!r}", f"Its averages are {', '.join(WEIGHT_WORDS)}."
    if getattr(ratio, "anchor", "old") != "old":
        yield (
            f"ratio={ratio!r}",
            "Its ratio is against the trainer's old policy; the engine's "
            "log-probs only weigh or mask beside it.",
        )
    elif type(ratio) not in RATIOS:
        yield f"ratio={ratio!r}", "Its ratios are token, sequence, product (RLOO, vespo) and gmpo."
    for shape in objective.shape:
        if isinstance(shape, (kl_in_reward, reward_clip)) and not rloo:
            yield f"shape={shape!r}", "Only RLOOTrainer changes the reward."
        elif isinstance(shape, overlong) and shape.factor != 1:
            yield f"shape={shape!r}", "Its get_soft_overlong_punishment has no factor."
        elif not isinstance(shape, (kl_in_reward, reward_clip, overlong)):
            yield f"shape={shape!r}", "Only RLOOTrainer changes the reward."
    for credit in objective.credit:
        yield f"credit={credit!r}", "Nothing stands between its advantages and its loss."
    for gate in objective.gates:
        if not isinstance(gate, (sequence_mask, top_entropy, engine_ratio)):
            yield f"gates={gate!r}", "Its gates are sequence_mask, top_entropy and engine_ratio."
    for term in objective.terms:
        if isinstance(term, entropy_bonus):
            if not isinstance(term.weights, local_token_mean):
                yield f"terms={term!r}", "Its entropy bonus averages by local_token_mean."
            elif any(isinstance(gate, top_entropy) for gate in objective.gates):
                yield f"terms={term!r}", "Beside top_entropy its bonus is over the kept tokens."
        elif (
            not isinstance(term, k3)
            or term.weights is not None
            or term.straight_through
            or term.corrected == "detached"
        ):
            yield (
                f"terms={term!r}",
                "Its KL term is k3, with or without the ratio in front, and "
                "is averaged like the loss.",
            )


def _say_rloo(
    objective: Objective, advantage: leave_one_out, words: dict, differences: list
) -> None:
    words["trainer"] = "rloo"
    words["beta"] = 0.0
    if advantage.normalise:
        words["normalize_advantages"] = True
    for part in objective.shape:
        if isinstance(part, kl_in_reward) and part.estimator == "k1":
            words["beta"] = part.beta
        elif isinstance(part, reward_clip):
            words["reward_clip_range"] = [part.low, part.high]
        else:
            raise refuse(VERSION, f"shape={part!r} in its RLOOTrainer")
    if objective.terms or objective.gates:
        raise refuse(VERSION, "gates or terms in its RLOOTrainer")
    surrogate, weights = objective.surrogate, objective.weights
    if isinstance(surrogate, logprob) and isinstance(weights, sequence_sum):
        differences.append(
            "RLOOTrainer clips the product of ratios; with one optimizer step per "
            "rollout the ratio is 1 and the gradient is that of log pi."
        )
    elif (
        isinstance(surrogate, clip)
        and isinstance(weights, sequence_mean)
        and isinstance(objective.ratio, ratios.product)
        and surrogate.dual is None
        and surrogate.delta is None
    ):
        _say_band(surrogate.epsilon, surrogate.high, words)
    else:
        raise refuse(
            VERSION,
            "leave-one-out with anything but a clipped product of ratios",
            "Use leave_one_out() with clip(), ratio=product() and sequence_mean.",
        )


def _say_gmpo(objective: Objective, ratio: ratios.gmpo, words: dict) -> None:
    words["trainer"] = "gmpo"
    if (
        not isinstance(objective.surrogate, surrogates.ratio)
        or objective.gates
        or objective.shape
        or not isinstance(objective.weights, sequence_mean)
    ):
        raise refuse(VERSION, "gmpo ratios with anything but ratio() and sequence_mean")
    _say_advantage(objective.advantage, words)
    _say_band(ratio.epsilon, ratio.high, words)
    for part in objective.terms:
        if not isinstance(part, k3) or part.corrected or part.weights is not None:
            raise refuse(VERSION, f"terms={part!r} in its GMPOTrainer")
        words["beta"] = part.coefficient


def _say_grpo(objective: Objective, words: dict, differences: list) -> None:
    _say_advantage(objective.advantage, words)
    _say_surrogate(objective, words, differences)
    for shape in objective.shape:
        if isinstance(shape, overlong):
            differences.append(
                "the overlong penalty is a reward function in TRL: "
                f"get_soft_overlong_punishment({shape.max_length}, {shape.cache})."
            )
    for gate in objective.gates:
        _say_gate(gate, words)
    if words.get("use_vllm") and "vllm_importance_sampling_mode" not in words:
        words["vllm_importance_sampling_correction"] = False
    for term in objective.terms:
        if isinstance(term, entropy_bonus):
            words["entropy_coef"] = term.coefficient
        elif isinstance(term, k3):
            _say_kl(term, objective, words)


def _say_gate(gate: Gate, words: dict) -> None:
    if isinstance(gate, sequence_mask):
        words["off_policy_mask_threshold"] = gate.threshold
        if gate.anchor == "sampling":
            words["use_vllm"] = True
    elif isinstance(gate, top_entropy):
        words["top_entropy_quantile"] = gate.quantile
    elif isinstance(gate, engine_ratio):
        words.update(
            use_vllm=True,
            vllm_importance_sampling_mode=f"{gate.level}_{gate.kind}",
            vllm_importance_sampling_clip_min=gate.low,
            vllm_importance_sampling_clip_max=gate.high,
        )


def _say_kl(term: k3, objective: Objective, words: dict) -> None:
    words.update(beta=term.coefficient, use_bias_correction_kl=bool(term.corrected))
    if not term.corrected:
        return
    by_sequence = term.corrected == "sequence"
    if words["loss_type"] == "vespo":
        words["importance_sampling_level"] = "sequence" if by_sequence else "token"
    level = words.get("importance_sampling_level", "token")
    if by_sequence != (level == "sequence"):
        raise refuse(
            VERSION,
            f"{term!r} beside ratio={objective.ratio!r}",
            "It corrects the KL by the ratio of importance_sampling_level.",
        )


def _say_advantage(part: Advantage, words: dict) -> None:
    words["scale_rewards"] = {group_zscore: "group", group_center: "none"}.get(type(part), "batch")


def _say_surrogate(objective: Objective, words: dict, differences: list) -> None:
    surrogate, weights, ratio = objective.surrogate, objective.weights, objective.ratio
    if isinstance(ratio, ratios.sequence_token):
        differences.append(
            "TRL has the sequence ratio; with one advantage per answer GSPO-token "
            "has the same value and gradient."
        )
    if isinstance(ratio, (ratios.sequence, ratios.sequence_token)):
        words["importance_sampling_level"] = "sequence"
    averaged = type(weights).__name__
    if (own := _loss_of_its_own(surrogate)) is not None:
        kind, wanted, extra = own
        if averaged != wanted:
            raise refuse(VERSION, f"{surrogate!r} with {averaged}", f"It averages by {wanted}.")
        if isinstance(ratio, ratios.product) != (kind == "vespo"):
            raise refuse(VERSION, f"{surrogate!r} with ratio={ratio!r}")
        words.update(loss_type=kind, **extra)
        return
    if isinstance(ratio, ratios.product):
        raise refuse(VERSION, "a clipped product of ratios outside its RLOOTrainer")
    words["loss_type"] = WEIGHT_WORDS[averaged]
    if isinstance(weights, constant_length) and weights.length is not None:
        words["max_completion_length"] = weights.length
    if isinstance(surrogate, clip):
        _say_band(surrogate.epsilon, surrogate.high, words)
        if surrogate.dual is not None:
            if surrogate.dual <= surrogate.edges[1]:
                raise refuse(
                    VERSION,
                    f"surrogate={surrogate!r}",
                    "Its delta is a dual clip only above 1 + epsilon_high.",
                )
            words["delta"] = surrogate.dual
        elif surrogate.delta is not None:
            words["delta"] = surrogate.delta
    elif isinstance(surrogate, surrogates.ratio):
        words.update(epsilon=1.0, epsilon_high=1e9)
        differences.append("an unclipped ratio is said as a band that nothing leaves.")
    else:
        differences.append(
            "TRL has no log-prob surrogate; with one optimizer step per rollout the "
            "ratio is 1 and the gradient is the same."
        )


def _loss_of_its_own(surrogate: Surrogate) -> tuple[str, str, dict[str, Any]] | None:
    """(loss_type, its average, its words) where TRL has a loss_type for the surrogate alone."""
    if isinstance(surrogate, surrogates.cispo):
        return "cispo", "token_mean", {"epsilon_high": surrogate.cap}
    if isinstance(surrogate, surrogates.sapo):
        words = {
            "sapo_temperature_pos": surrogate.tau_pos,
            "sapo_temperature_neg": surrogate.tau_neg,
        }
        return "sapo", "sequence_mean", words
    if isinstance(surrogate, surrogates.vespo):
        names = ("k_pos", "lambda_pos", "k_neg", "lambda_neg")
        return "vespo", "token_mean", {f"vespo_{n}": getattr(surrogate, n) for n in names}
    return None


def _say_band(epsilon: float, high: float | None, words: dict) -> None:
    words["epsilon"] = epsilon
    if high is not None:
        words["epsilon_high"] = high
