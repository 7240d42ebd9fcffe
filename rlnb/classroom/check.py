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
    "01": {"divergence": ("kl_divergence", "cross_entropy", "silent_bug_01")},
    "02": {
        "likelihood": ("token_logprobs",),
        "reinforce": ("reinforce_loss",),
        "groups": ("baseline_leave_one_out",),
    },
    "03": {"baselines": ("optimal_baseline", "silent_bug_03")},
    "04": {
        "weighting": ("importance_estimate", "effective_sample_size"),
        "kl_reward": ("kl_in_reward", "silent_bug_04"),
    },
    "05": {
        "clipping": ("surrogate_clip", "dual_clip"),
        "ppo": ("surrogate_push", "silent_bug_ppo"),
        "credit": ("gae",),
        "critic": ("tipping_lambda", "silent_bug_critic"),
    },
    "06": {"groups": ("group_advantages",), "kl": ("k3",), "grpo": ("grpo_loss",)},
    "07": {"informative_groups": ("keep_informative", "silent_bug_07", "name_this_07")},
    "08": {
        "aggregation": (
            "token_mean",
            "constant_length",
            "prompt_mean",
            "silent_bug_08",
            "name_this_08",
        )
    },
    "09": {"dapo": ("overlong_penalty", "silent_bug_09", "name_this_09")},
    "10": {
        "soft_trust": ("cispo_loss", "sapo_gate"),
        "mass_moved": ("dppo_mask", "silent_bug_10", "name_this_10"),
    },
    "11": {"sequence_level": ("sequence_ratio", "gspo_loss", "silent_bug_11", "name_this_11")},
    "12": {
        "max_rl": ("max_rl_advantages",),
        "scaling": ("sigmoid_fit",),
        "retired_prompts": ("silent_bug_12",),
        "deepseek": ("name_this_12",),
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
