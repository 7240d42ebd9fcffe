"""From what was learnt to the words that set it: TRL, verl, OpenRLHF, slime, prime-rl.

    python -m rlnb.interop handoff

A row names a choice, the page that explains it, and what each trainer calls it. Where the choice
lies in the loss, `part` is the seam of an objective and `is_` the part that the words must give:
the tests read each row's words with `from_trl`, `from_verl` and the others, and compare. None: the
trainer has no word for it. An empty entry: it does so without being asked.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlnb.objective.advantages import group_center, leave_one_out
from rlnb.objective.gates import engine_ratio
from rlnb.objective.ratios import sequence
from rlnb.objective.surrogates import cispo, clip
from rlnb.objective.terms import k3
from rlnb.objective.weights import constant_length, sequence_mean, token_mean

__all__ = ["HANDOFF", "TRAINERS", "Row", "handoff"]

Words = Mapping[str, Any] | None
TRAINERS = {
    "trl": "TRL 1.16.0: GRPOConfig",
    "verl": "verl 0.9.1: write_verl gives the whole paths",
    "openrlhf": "OpenRLHF 0.11: train_ppo_ray, names up to 0.10.1",
    "slime": "slime 0.3.1: train.py, with dashes",
    "prime_rl": "prime-rl 0.8: TOML, as read in its code",
}


@dataclass(frozen=True)
class Row:
    """One choice. part: the seam of an objective, "" where it lies outside the loss. needs: words
    that the trainer wants beside, so that its own composition can be read."""

    choice: str
    page: str
    part: str
    is_: Any
    trl: Words
    verl: Words
    openrlhf: Words
    slime: Words
    prime_rl: Words
    note: str = ""
    needs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


_GROUP = {"openrlhf": {"advantage_estimator": "group_norm", "init_kl_coef": 0.0}}

HANDOFF: tuple[Row, ...] = (
    Row("leave the std out of the advantage", "09", "advantage", group_center(),
        {"scale_rewards": "none"}, {"norm_adv_by_std_in_grpo": False},
        {"advantage_estimator": "dr_grpo"}, {"disable_grpo_std_normalization": True}, {},
        needs={"verl": {"adv_estimator": "grpo"}, "openrlhf": {"init_kl_coef": 0.0}}),
    Row("the mean of the other answers as baseline", "03", "advantage", leave_one_out(),
        None, {"adv_estimator": "rloo"}, {"advantage_estimator": "rloo"}, None, None,
        "TRL has a trainer of its own for it, RLOOTrainer.",
        needs={"openrlhf": {"init_kl_coef": 0.0}}),
    Row("each answer's own mean (GRPO's 1/T)", "09", "weights", sequence_mean,
        {"loss_type": "grpo"}, {"loss_agg_mode": "seq-mean-token-mean"}, None, {}, None,
        needs={"verl": {"adv_estimator": "grpo"}}),
    Row("one mean over all tokens", "10", "weights", token_mean(),
        {"loss_type": "dapo"}, {"loss_agg_mode": "token-mean"}, {},
        {"calculate_per_token_loss": True}, {},
        "OpenRLHF: since 0.10.4; before, each micro-batch's mean.",
        needs={"verl": {"adv_estimator": "grpo"},
               "openrlhf": {**_GROUP["openrlhf"], "step_averages": True}}),
    Row("a constant in the place of the length", "10", "weights", constant_length(),
        {"loss_type": "dr_grpo"},
        {"loss_agg_mode": "seq-mean-token-sum-norm", "loss_scale_factor": 1024.0}, None, None, None,
        "Without loss_scale_factor verl takes the padded width.",
        needs={"verl": {"adv_estimator": "grpo"}}),
    Row("a higher upper edge of the clip", "11", "surrogate", clip(0.2, high=0.28),
        {"epsilon_high": 0.28}, {"clip_ratio_high": 0.28}, {"eps_clip_low_high": [0.2, 0.28]},
        {"eps_clip_high": 0.28}, None, "A distance from 1 everywhere: 0.28, not 1.28. prime-rl has "
        "no clip; it masks tokens whose probability moved by more than 0.2.",
        needs={"verl": {"adv_estimator": "grpo"}, **_GROUP}),
    Row("CISPO: cap the ratio, keep the gradient", "12", "surrogate", cispo,
        {"loss_type": "cispo"}, {"loss_mode": "cispo"}, None, {"advantage_estimator": "cispo"},
        None, "The caps' defaults differ: set them.", needs={"verl": {"adv_estimator": "grpo"}}),
    Row("one ratio per answer (GSPO)", "13", "ratio", sequence,
        {"importance_sampling_level": "sequence"}, {"loss_mode": "gspo"},
        {"policy_loss_type": "gspo"}, {"advantage_estimator": "gspo"}, None,
        "And a band of some 3e-4: none of them changes it for you.",
        needs={"verl": {"adv_estimator": "grpo"}, **_GROUP}),
    Row("a KL in the loss, k3", "05", "terms", k3(0.04),
        {"beta": 0.04, "use_bias_correction_kl": False},
        {"use_kl_loss": True, "kl_loss_coef": 0.04, "kl_loss_type": "low_var_kl"},
        {"use_kl_loss": True, "kl_estimator": "k3", "init_kl_coef": 0.04},
        {"use_kl_loss": True, "kl_loss_coef": 0.04, "kl_loss_type": "k3"}, None,
        needs={"verl": {"adv_estimator": "grpo"},
               "openrlhf": {"advantage_estimator": "group_norm"}}),
    Row("cut trainer over engine at 2", "19", "gates", engine_ratio,
        None, None,
        {"enable_vllm_is_correction": True, "vllm_is_truncated_threshold": [0.0, 2.0]},
        {"use_tis": True, "tis_clip": 2.0}, None,
        "TRL: vllm_importance_sampling_correction, on by default; verl: rollout_correction; both "
        "outside the loss that is read here. prime-rl masks instead.", needs=_GROUP),
    Row("answers to a prompt", "08", "", None,
        {"num_generations": 8}, {"rollout.n": 8}, {"n_samples_per_prompt": 8},
        {"n_samples_per_prompt": 8}, None, "prime-rl: not read."),
    Row("updates on one batch of answers", "06", "", None,
        {"num_iterations": 2, "steps_per_generation": 4},
        {"ppo_epochs": 2, "ppo_mini_batch_size": 64},
        {"max_epochs": 2, "train_batch_size": 64}, {"num_steps_per_rollout": 4}, None,
        "With one update the clip never acts. prime-rl counts how far the engine runs ahead."),
    Row("drop silent groups and draw others", "11", "", None,
        None, {"filter_groups.enable": True}, {"dynamic_filtering": True},
        {"dynamic_sampling_filter_path": "module.function"}, None,
        "verl: in the DAPO trainer only."),
    Row("temperature of the answers", "04", "", None,
        {"temperature": 1.0}, {"rollout.temperature": 1.0}, {"temperature": 1.0},
        {"rollout_temperature": 1.0}, None, "Score with the one you sampled with."),
)  # fmt: skip


def handoff() -> str:
    """The table as text, at most 88 columns."""
    lines = [f"{name:<9} {what}" for name, what in TRAINERS.items()]
    for row in HANDOFF:
        where = f"   ({row.part}, page {row.page})" if row.part else f"   (page {row.page})"
        lines += ["", row.choice + where]
        for name in TRAINERS:
            words = getattr(row, name)
            lines += textwrap.wrap(_told(words), 88, initial_indent=f"  {name:<9} ",
                                   subsequent_indent=" " * 12, break_on_hyphens=False)  # fmt: skip
        if row.note:
            lines += textwrap.wrap(row.note, 88, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)


def _told(words: Words) -> str:
    if words is None:
        return "no word"
    return ", ".join(f"{k}={v!r}" for k, v in words.items()) or "without being asked"
