"""Checks that name the mistake: `from rlnb import check; check.group_advantages(my_function)`.

One table, and nothing is imported before it is asked for, so that importing this costs no torch. A
check `some_name` is the `SOME_NAME` of its module in rlnb/classroom/exercises: an `Exercise`, a
`SilentBug` or a `NameThis`. A new one needs a line in the table. How a function is judged is in
rlnb/classroom/checking.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlnb.classroom.checking.judge import Check, judge
    from rlnb.classroom.checking.verdict import Verdict

# Page -> module of rlnb/classroom/exercises -> its checks, in the order of the pages.
PAGES = {
    "one_scalar_loss": {
        "own_draws": ("reverse_kl_push",),
        "sft": ("sft_loss", "silent_bug_one_scalar_loss"),
        "divergence": ("kl_divergence", "cross_entropy"),
    },
    "reinforce": {
        "likelihood": ("token_logprobs",),
        "softmax_push": ("logit_push",),
        "step_loss": ("step_loss", "silent_bug_reinforce"),
        "reinforce": ("reinforce_loss",),
        "groups": ("baseline_leave_one_out",),
    },
    "baselines": {
        "baselines": ("optimal_baseline", "noise_scale", "shared_baseline", "silent_bug_baselines")
    },
    "importance_sampling": {"weighting": ("importance_estimate", "effective_sample_size")},
    "kl": {
        "kl": ("k3",),
        "kl_slope": ("kl_slope",),
        "kl_reward": ("kl_in_reward", "silent_bug_kl"),
    },
    "ppo": {
        "ppo": ("surrogate_push", "silent_bug_ppo"),
        "clipping": ("surrogate_clip", "dual_clip"),
        "monitors": ("clip_fraction", "token_entropy"),
        "reuse_batch": ("reuse_batch",),
    },
    "critic": {"critic": ("tipping_lambda", "silent_bug_critic"), "credit": ("gae",)},
    "grpo": {
        "groups": ("group_advantages",),
        "largest_advantage": ("largest_advantage",),
        "group_order": ("silent_bug_grpo",),
        "grpo": ("grpo_loss",),
    },
    "grpo_biases": {
        "informative_groups": (
            "keep_informative",
            "silent_bug_grpo_biases",
            "name_this_grpo_biases",
        ),
        "two_divisors": ("prompt_weight", "stop_push"),
    },
    "dr_grpo": {
        "dr_grpo": ("switch_factor", "worker_losses"),
        "aggregation": (
            "token_mean",
            "constant_length",
            "prompt_mean",
            "silent_bug_dr_grpo",
            "name_this_dr_grpo",
        ),
    },
    "dapo": {
        "mixed_only": ("kept_reward", "refill_fates"),
        "dapo": ("overlong_penalty", "silent_bug_dapo", "name_this_dapo"),
    },
    "soft_trust_regions": {
        "soft_trust": ("cispo_loss", "sapo_gate"),
        "mass_moved": (
            "dppo_mask",
            "silent_bug_soft_trust_regions",
            "name_this_soft_trust_regions",
        ),
    },
    "gspo": {
        "outlier_length": ("outlier_length",),
        "sequence_level": ("sequence_ratio", "gspo_loss", "silent_bug_gspo", "name_this_gspo"),
    },
    "the_zoo": {
        "two_ratios": ("two_ratios",),
        "max_rl": ("max_rl_advantages",),
        "scaling": ("sigmoid_fit",),
        "retired_prompts": ("silent_bug_the_zoo",),
        "deepseek": ("name_this_the_zoo",),
    },
    "preferences": {
        "preferences": ("dpo_loss", "ipo_loss", "simpo_loss"),
        "reward_model": ("bradley_terry", "silent_bug_preferences"),
    },
    "rewards": {"rewards": ("best_of_n_kl", "keep_best", "several_rewards", "silent_bug_rewards")},
    "evaluation": {
        "evaluation": ("pass_at_k", "majority_vote", "entropy_change", "silent_bug_evaluation")
    },
    "agents": {
        "agents": ("observation_mask", "turn_advantages", "break_even_error"),
        "shared_desk": ("silent_bug_agents",),
    },
    "systems": {"systems": ("memory_bytes", "queue_age", "corrected_loss", "silent_bug_systems")},
    "interview": {"batch_loss": ("batch_loss",)},
    "grpo_for_real": {
        "run_log": ("later_loss", "run_log", "style_slope", "silent_bug_grpo_for_real")
    },
}
_EXERCISES = {
    name: module for page in PAGES.values() for module, names in page.items() for name in names
}
_ENGINE = {"Check": "judge", "judge": "judge", "Verdict": "verdict"}

__all__ = ["Check", "Verdict", "judge", *_EXERCISES]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"There is no check named {name!r}; there are {sorted(_EXERCISES)}.")
    return _loaded(name)


@cache
def _loaded(name: str) -> Any:
    """A part of the engine, or a check: one object, however often it is asked for."""
    if name in _ENGINE:
        return getattr(import_module(f"rlnb.classroom.checking.{_ENGINE[name]}"), name)
    content = import_module(f"rlnb.classroom.exercises.{_EXERCISES[name]}")
    return import_module("rlnb.classroom.checking.judge").as_check(getattr(content, name.upper()))


def __dir__() -> list[str]:
    return sorted(__all__)
