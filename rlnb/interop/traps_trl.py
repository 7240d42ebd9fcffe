"""TRL 1.16.0: what a GRPOConfig, RLOOConfig or GMPOConfig does that its reader may not expect.

One rule per entry, in the order in which they are printed. A rule whose word could not be read is
silent: its value is None, and numbers are compared only where `is_number` holds.
"""

from __future__ import annotations

from math import exp, log

from rlnb.interop.configuration import Configuration
from rlnb.interop.traps import Facts, Trap, facts_of, is_number, mixed, number
from rlnb.interop.traps_refused import REFUSALS
from rlnb.interop.trl import CLIPPED, TRL_DEFAULTS, TRL_RLOO_DEFAULTS

__all__ = ["TRL_TRAPS", "trl_facts"]

SUMMED = ("bnpo", "dr_grpo", "dapo", "cispo")  # these add up tokens before they average
PER_ROW = ("grpo", "sapo", "luspo", "dr_grpo")  # these divide by the number of rows
NOT_LOSS = {
    "gradient_accumulation_steps": 1,
    "num_iterations": 1,
    "num_generations": 8,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": None,
    "repetition_penalty": 1.0,
    "mask_truncated_completions": False,
}


def trl_facts(read: Configuration) -> Facts:
    """Words over defaults, and: kind, level, clipped, high (the upper half-width), steps (optimizer
    steps per generation, 1 meaning a ratio of exactly 1; None when not known)."""
    rloo = read.kind == "RLOOConfig"
    defaults = {**NOT_LOSS, **TRL_DEFAULTS}
    if rloo:
        defaults |= TRL_RLOO_DEFAULTS | {"num_generations": 2, "loss_type": None}
    if read.kind == "GMPOConfig":
        defaults |= {"epsilon": 0.4, "loss_type": None}
    c = facts_of(read, defaults)
    c["kind"] = read.kind.removesuffix("Config").lower()
    c["level"] = c.importance_sampling_level if c.kind == "grpo" else None
    c["clipped"] = c.kind == "grpo" and c.loss_type in CLIPPED
    c["high"] = c.epsilon if c.epsilon_high is None else c.epsilon_high
    accumulate, passes = c.gradient_accumulation_steps, c.num_iterations
    generation = c.steps_per_generation
    if generation is None and not {"steps_per_generation", "generation_batch_size"} & c.given:
        generation = accumulate
    c["generation"] = generation
    if all(isinstance(n, int) and n > 0 for n in (accumulate, passes, generation)):
        every = generation * passes
        c["steps"] = 1 if accumulate % every == 0 else max(2, round(every / accumulate))
    return c


def _reuse(c: Facts) -> int:
    """The passes that make two optimizer steps of what is generated at once."""
    return 2 * max(1, c.gradient_accumulation_steps // c.generation)


def _cap(c: Facts) -> float:
    """The correction's upper edge: its old name, where that is set, overrules."""
    old = c.vllm_importance_sampling_cap
    return float(old if is_number(old) else c.vllm_importance_sampling_clip_max)


def _summed_sequence(c: Facts) -> bool:
    return c.level == "sequence" and c.loss_type in SUMMED


TRL_TRAPS: tuple[Trap, ...] = (
    *REFUSALS,
    Trap(
        "cispo_cap",
        lambda c: c.loss_type == "cispo" and is_number(c.high) and c.high < 1,
        lambda c: (
            f"loss_type='cispo' caps the weight at epsilon_high itself, here "
            f"{number(c.high)}{'' if c.epsilon_high is not None else ' (from epsilon)'}, not"
            f" at 1 + {number(c.high)}: a token that has not moved, ratio 1, already gets "
            f"{number(c.high)}, and so does nearly every other. Write epsilon_high=5.0."
        ),
    ),
    Trap(
        "loss_type_default",
        lambda c: c.kind == "grpo" and "loss_type" not in c.given,
        lambda c: (
            "loss_type is not set, and TRL's default is 'dapo': one mean over the tokens of "
            "the batch, so an answer of 1000 tokens weighs 10 times one of 100. For GRPO's "
            "own 1/T_i write loss_type='grpo'."
        ),
    ),
    Trap(
        "dr_grpo_std",
        lambda c: c.loss_type == "dr_grpo" and c.scale_rewards in ("group", True),
        lambda c: (
            "loss_type='dr_grpo' changes the denominator only; advantages are still divided "
            "by the group's std. One right answer in 8 gets 2.47 instead of Dr. GRPO's "
            "0.875. Write scale_rewards='none'."
        ),
    ),
    Trap(
        "no_kl",
        lambda c: c.loss_type == "grpo" and c.level == "token" and "beta" not in c.given,
        lambda c: (
            "beta is not set, and TRL's default is 0.0: no KL term and no reference model. "
            "DeepSeekMath's GRPO has 0.04. Write beta=0.04 for the paper's method, or "
            "beta=0.0 to say that you mean it."
        ),
    ),
    Trap(
        "dapo_band",
        lambda c: (
            c.loss_type == "dapo"
            and "loss_type" in c.given
            and c.level == "token"
            and "epsilon_high" not in c.given
        ),
        lambda c: (
            f"loss_type='dapo' sets the token mean and nothing else of DAPO: the upper edge "
            f"is still {number(1 + c.epsilon)}, not 1.28, and there is no dynamic sampling. "
            "Write epsilon_high=0.28; filtering equal groups is not in TRL."
        ),
    ),
    Trap(
        "kl_corrected",
        lambda c: c.kind == "grpo" and c.beta and "use_bias_correction_kl" not in c.given,
        lambda c: (
            f"with beta={number(c.beta)} the KL term is k3 times the ratio (DeepSeek-V3.2's "
            "correction, on by default): its gradient follows KL(pi || ref), GRPO's plain "
            "k3 follows KL(ref || pi). For the paper's term write "
            "use_bias_correction_kl=False."
        ),
    ),
    Trap(
        "sequence_epsilon",
        lambda c: (
            c.level == "sequence"
            and c.clipped
            and is_number(c.epsilon)
            and is_number(c.high)
            and max(c.epsilon, c.high) >= 0.01
        ),
        lambda c: (
            f"at sequence level the ratio is a geometric mean over the answer's tokens, so "
            f"it stays near 1, and a half-width of {number(max(c.epsilon, c.high))} is "
            f"{max(c.epsilon, c.high) / 3e-4:.0f} times GSPO's 3e-4: it practically never "
            "clips. "
            "Write epsilon=3e-4, epsilon_high=4e-4."
        ),
    ),
    Trap(
        "token_epsilon",
        lambda c: c.level == "token" and c.clipped and is_number(c.high) and c.high < 0.01,
        lambda c: (
            f"a band of {number(c.high)} belongs to GSPO's sequence ratio; token ratios "
            "move by 0.01 and more, so nearly every token that moves as it should is cut. "
            "Write importance_sampling_level='sequence', or epsilon=0.2."
        ),
    ),
    Trap(
        "sequence_summed",
        _summed_sequence,
        lambda c: (
            f"importance_sampling_level='sequence' with loss_type={c.loss_type!r} repeats "
            "the answer's value on each of its tokens and adds them up: an answer of 1000 "
            "tokens weighs 10 times one of 100. GSPO averages answers: write "
            "loss_type='grpo'."
        ),
    ),
    Trap(
        "luspo_token",
        lambda c: c.loss_type == "luspo" and c.level == "token",
        lambda c: (
            "loss_type='luspo' is meant for one ratio per answer; with "
            "importance_sampling_level='token' (the default) it is a plain sum over tokens. "
            "Write importance_sampling_level='sequence', epsilon=2e-3, "
            "epsilon_high=2.5e-3."
        ),
    ),
    Trap(
        "epsilon_high_is_edge",
        lambda c: c.clipped and is_number(c.high) and 1 <= c.high < 3,
        lambda c: (
            f"epsilon_high is added to 1: the upper edge is {number(1 + c.high)}. "
            + (
                f"For an edge of {number(c.high)} write epsilon_high={number(c.high - 1)}."
                if c.high > 1
                else "DAPO's edge of 1.28 is epsilon_high=0.28; for no upper edge, write "
                "epsilon_high=10000."
            )
        ),
    ),
    Trap(
        "delta_inside",
        lambda c: c.clipped and is_number(c.delta) and is_number(c.high) and c.delta <= 1 + c.high,
        lambda c: (
            f"delta={number(c.delta)} is not above the band's upper edge "
            f"{number(1 + c.high)}: for A > 0 the edge moves down to {number(c.delta)}, and "
            f"for A < 0 tokens above {number(1 + c.high)} lose the gradient that would pull "
            "them back. Write a cap well above the band, delta=4.0."
        ),
    ),
    Trap(
        "delta_unread",
        lambda c: c.kind == "grpo" and c.delta is not None and not c.clipped,
        lambda c: (
            f"delta is not read with loss_type={c.loss_type!r}, which has no clip: "
            f"delta={c.delta} changes nothing. Take it out, or use a clipped loss such as "
            "loss_type='dapo'."
        ),
    ),
    Trap(
        "epsilon_unread",
        lambda c: (
            (c.loss_type in ("sapo", "vespo") and {"epsilon", "epsilon_high"} & c.given)
            or (c.loss_type == "cispo" and "epsilon" in c.given and c.epsilon_high is not None)
        ),
        lambda c: {
            "cispo": "epsilon is not read with loss_type='cispo': there is only the cap, "
            "epsilon_high, and no lower edge at 0.8 or anywhere. Take it out.",
            "sapo": "epsilon and epsilon_high are not read with loss_type='sapo': its gate "
            "has sapo_temperature_pos=1.0 and sapo_temperature_neg=1.05. Take them "
            "out.",
            "vespo": "epsilon and epsilon_high are not read with loss_type='vespo': its "
            "weight has vespo_k_pos=2.0, vespo_lambda_pos=3.0 and two more. Take "
            "them out.",
        }[c.loss_type],
    ),
    Trap(
        "one_step",
        lambda c: (
            c.kind != "rloo"
            and c.steps == 1
            and not (c.loss_type == "cispo" and is_number(c.high) and c.high < 1)
            and (c.loss_type is not None or c.kind == "gmpo")
            and (
                c.given
                & {
                    "epsilon",
                    "epsilon_high",
                    "delta",
                    "importance_sampling_level",
                    "sapo_temperature_pos",
                    "sapo_temperature_neg",
                }
                or c.loss_type in ("cispo", "sapo", "vespo")
                or ("off_policy_mask_threshold" in c.given and c.use_vllm is False)
            )
        ),
        lambda c: (
            "one optimizer step per generation: the policy that samples is the one "
            "that is updated, so every ratio is exactly 1 and no clip, cap, gate or epsilon "
            "acts. "
            "At ratio 1 GRPO, DAPO, GSPO, CISPO and SAPO differ only in how they average. "
            f"For reuse write num_iterations={_reuse(c)}, or steps_per_generation above "
            f"gradient_accumulation_steps={c.gradient_accumulation_steps}."
        ),
    ),
    Trap(
        "many_steps",
        lambda c: (
            c.loss_type in ("dapo", "cispo", "vespo")
            and is_number(c.generation)
            and is_number(c.gradient_accumulation_steps)
            and c.generation > c.gradient_accumulation_steps
        ),
        lambda c: (
            f"steps_per_generation={c.generation} is above gradient_accumulation_steps="
            f"{c.gradient_accumulation_steps}, and loss_type={c.loss_type!r} divides each "
            "step by its share of the generation batch's tokens, not by its own: a step "
            "with 20 % more tokens than its share counts 20 % more. For equal steps write "
            "loss_type='grpo' or 'dr_grpo'."
        ),
    ),
    Trap(
        "truncated_rows",
        lambda c: (
            c.mask_truncated_completions is True
            and (c.loss_type in PER_ROW or c.kind in ("rloo", "gmpo"))
        ),
        lambda c: (
            "mask_truncated_completions=True empties a truncated answer but still counts "
            "its row: with 1 answer in 4 truncated the step is 3/4 as large, and the "
            "truncated answers' rewards still set the group's mean. For a divisor that "
            "shrinks with them write loss_type='dapo' in a GRPOConfig."
        ),
    ),
    Trap(
        "gmpo_log_epsilon",
        lambda c: c.kind == "gmpo" and is_number(c.epsilon) and (c.epsilon != 0.4 or c.high != 0.4),
        lambda c: (
            f"GMPOConfig's epsilon is in log space: epsilon={number(c.epsilon)} allows "
            f"ratios from {exp(-c.epsilon):.3f} to {exp(c.high):.3f}. The paper's 0.4 "
            "allows 0.670 to 1.492. Write epsilon=0.4."
        ),
    ),
    Trap(
        "gmpo_unread",
        lambda c: (
            c.kind == "gmpo"
            and c.given
            & {"loss_type", "importance_sampling_level", "delta", "use_bias_correction_kl"}
        ),
        lambda c: (
            "GMPO has its own ratio and its own mean and reads none of "
            + ", ".join(
                sorted(
                    c.given
                    & {"loss_type", "importance_sampling_level", "delta", "use_bias_correction_kl"}
                )
            )
            + ". Take them out: the run with 0 of them is the same."
        ),
    ),
    Trap(
        "rloo_beta",
        lambda c: c.kind == "rloo" and "beta" not in c.given,
        lambda c: (
            "beta is not set, and RLOOConfig's default is 0.05, not GRPOConfig's 0.0; it "
            "sits in the reward as a sum over the answer's tokens, so for 500 tokens it is "
            "500 times GRPO's per-token mean. Write beta=0.0 for no KL."
        ),
    ),
    Trap(
        "rloo_product",
        lambda c: c.kind == "rloo" and is_number(c.steps) and c.steps > 1,
        lambda c: (
            "RLOO's ratio is the product over the answer: 1000 tokens that each move up by "
            f"0.1 % make {exp(1000 * log(1.001)):.2f}, outside any band. With "
            f"{c.steps} steps per generation most answers are clipped; write "
            "num_iterations=1 with steps_per_generation unset."
        ),
    ),
    Trap(
        "engine_mask",
        lambda c: (
            c.kind == "grpo"
            and c.use_vllm is True
            and c.vllm_importance_sampling_correction
            and c.vllm_importance_sampling_mode == "sequence_mask"
            and is_number(c.vllm_importance_sampling_clip_max)
            and c.vllm_importance_sampling_clip_max > 0
        ),
        lambda c: (
            "use_vllm drops an answer whose probability differs too much between trainer "
            "and vLLM: above a product of "
            f"{number(_cap(c))} (mode 'sequence_mask'). Over "
            "1000 tokens that is a mean gap of "
            f"{log(_cap(c)) / 1000:.4f} nats, so long answers "
            "go first. For a cap per token write "
            "vllm_importance_sampling_mode='token_truncate'."
        ),
    ),
    Trap(
        "small_group",
        lambda c: is_number(c.num_generations) and 2 <= c.num_generations <= 4,
        lambda c: (
            f"num_generations={c.num_generations}"
            f"{'' if 'num_generations' in c.given else ' (the default)'}: a prompt solved "
            f"once in ten gives a mixed group only {mixed(0.1, c.num_generations)} of the "
            f"time, and an equal group teaches nothing. Write num_generations=8 "
            f"({mixed(0.1, 8)}) or 16 ({mixed(0.1, 16)})."
        ),
    ),
    Trap(
        "cut_distribution",
        lambda c: (
            (is_number(c.top_p) and c.top_p < 1)
            or (is_number(c.top_k) and c.top_k > 0)
            or (is_number(c.min_p) and c.min_p > 0)
            or (is_number(c.repetition_penalty) and c.repetition_penalty != 1)
        ),
        lambda c: (
            "sampling is cut (top_p, top_k, min_p or repetition_penalty) while the loss "
            "takes log-probs of the whole distribution, so even on fresh data the ratio is "
            "not that of the policy that sampled. Write top_p=1.0, top_k=0, min_p=None, "
            "repetition_penalty=1.0."
        ),
    ),
    Trap(
        "temperature",
        lambda c: is_number(c.temperature) and c.temperature != 1,
        lambda c: (
            f"temperature={number(c.temperature)} divides the logits in sampling and in the "
            "loss: what is trained is the policy at that temperature, and at 1.0 it is "
            "another one. Evaluate with the same, or write temperature=1.0."
        ),
    ),
)
