"""The explorers, one module each, loaded when it is asked for: one explorer imports no other.

from rlnb.classroom import explorers                # nothing yet: no torch, no matplotlib
explorers.clip_explorer()                           # last expression of a cell

from rlnb.classroom.explorers.clip import compute   # the same numbers, no picture

Every module has a pure `compute` for printed tables; how they take bad entries: arguments.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlnb.classroom.explorers.answer_ratio import answer_ratio_explorer
    from rlnb.classroom.explorers.capped_reward import capped_reward_explorer
    from rlnb.classroom.explorers.clip import clip_explorer
    from rlnb.classroom.explorers.composer import composer_explorer
    from rlnb.classroom.explorers.cooled_base import cooled_base_explorer
    from rlnb.classroom.explorers.difficulty import difficulty_explorer
    from rlnb.classroom.explorers.engine_rules import engine_rules_explorer
    from rlnb.classroom.explorers.entropy_step import entropy_step_explorer
    from rlnb.classroom.explorers.five_runs import five_runs_explorer
    from rlnb.classroom.explorers.four_edges import four_edges_explorer
    from rlnb.classroom.explorers.full_card import full_card_explorer
    from rlnb.classroom.explorers.gae import gae_explorer
    from rlnb.classroom.explorers.gate_zoo import gate_zoo_explorer
    from rlnb.classroom.explorers.gpu_budget import gpu_budget_explorer
    from rlnb.classroom.explorers.group_advantage import group_advantage_explorer
    from rlnb.classroom.explorers.group_size import group_size_explorer
    from rlnb.classroom.explorers.kept_groups import kept_groups_explorer
    from rlnb.classroom.explorers.kl_directions import kl_explorer
    from rlnb.classroom.explorers.kl_estimators import kl_estimator_explorer
    from rlnb.classroom.explorers.kl_leash import kl_leash_explorer
    from rlnb.classroom.explorers.kl_pull import kl_pull_explorer
    from rlnb.classroom.explorers.length_drift import length_drift_explorer
    from rlnb.classroom.explorers.long_answers import long_answers_explorer
    from rlnb.classroom.explorers.loss_and_gradient import loss_and_gradient_explorer
    from rlnb.classroom.explorers.many_updates import many_updates_explorer
    from rlnb.classroom.explorers.micro_batches import micro_batches_explorer
    from rlnb.classroom.explorers.near_equal import std_explorer
    from rlnb.classroom.explorers.one_group import one_group_explorer
    from rlnb.classroom.explorers.one_pair import one_pair_explorer
    from rlnb.classroom.explorers.one_push import one_push_explorer
    from rlnb.classroom.explorers.one_token import one_token_explorer
    from rlnb.classroom.explorers.product_weight import product_weight_explorer
    from rlnb.classroom.explorers.prompt_weight import prompt_weight_explorer
    from rlnb.classroom.explorers.race_rates import race_rates_explorer
    from rlnb.classroom.explorers.rare_glitch import rare_glitch_explorer
    from rlnb.classroom.explorers.rare_token import rare_token_explorer
    from rlnb.classroom.explorers.recorded_run import recorded_run_explorer
    from rlnb.classroom.explorers.reuse import reuse_explorer
    from rlnb.classroom.explorers.rollouts import rollouts_explorer
    from rlnb.classroom.explorers.scaling_fit import scaling_fit_explorer
    from rlnb.classroom.explorers.shared_divisor import shared_divisor_explorer
    from rlnb.classroom.explorers.sharpen_or_learn import sharpen_or_learn_explorer
    from rlnb.classroom.explorers.slow_start import slow_start_explorer
    from rlnb.classroom.explorers.stale_queue import stale_queue_explorer
    from rlnb.classroom.explorers.three_pushes import three_pushes_explorer
    from rlnb.classroom.explorers.token_gates import token_gates_explorer
    from rlnb.classroom.explorers.token_rules import token_rules_explorer
    from rlnb.classroom.explorers.token_weights import token_weights_explorer
    from rlnb.classroom.explorers.turn_credit import turn_credit_explorer
    from rlnb.classroom.explorers.two_authors import two_authors_explorer
    from rlnb.classroom.explorers.uphill import uphill_explorer
    from rlnb.classroom.explorers.ways_to_be_right import ways_to_be_right_explorer
    from rlnb.classroom.explorers.which_rule import which_rule_explorer
    from rlnb.classroom.explorers.wrong_critic import wrong_critic_explorer

_HOME = {
    "answer_ratio_explorer": "answer_ratio",
    "capped_reward_explorer": "capped_reward",
    "clip_explorer": "clip",
    "composer_explorer": "composer",
    "cooled_base_explorer": "cooled_base",
    "difficulty_explorer": "difficulty",
    "engine_rules_explorer": "engine_rules",
    "entropy_step_explorer": "entropy_step",
    "five_runs_explorer": "five_runs",
    "four_edges_explorer": "four_edges",
    "full_card_explorer": "full_card",
    "gae_explorer": "gae",
    "gate_zoo_explorer": "gate_zoo",
    "gpu_budget_explorer": "gpu_budget",
    "group_advantage_explorer": "group_advantage",
    "group_size_explorer": "group_size",
    "kept_groups_explorer": "kept_groups",
    "kl_estimator_explorer": "kl_estimators",
    "kl_explorer": "kl_directions",
    "kl_leash_explorer": "kl_leash",
    "kl_pull_explorer": "kl_pull",
    "length_drift_explorer": "length_drift",
    "many_updates_explorer": "many_updates",
    "micro_batches_explorer": "micro_batches",
    "long_answers_explorer": "long_answers",
    "loss_and_gradient_explorer": "loss_and_gradient",
    "one_group_explorer": "one_group",
    "one_pair_explorer": "one_pair",
    "one_push_explorer": "one_push",
    "one_token_explorer": "one_token",
    "product_weight_explorer": "product_weight",
    "prompt_weight_explorer": "prompt_weight",
    "race_rates_explorer": "race_rates",
    "rare_glitch_explorer": "rare_glitch",
    "rare_token_explorer": "rare_token",
    "recorded_run_explorer": "recorded_run",
    "reuse_explorer": "reuse",
    "rollouts_explorer": "rollouts",
    "scaling_fit_explorer": "scaling_fit",
    "shared_divisor_explorer": "shared_divisor",
    "slow_start_explorer": "slow_start",
    "stale_queue_explorer": "stale_queue",
    "std_explorer": "near_equal",
    "sharpen_or_learn_explorer": "sharpen_or_learn",
    "three_pushes_explorer": "three_pushes",
    "token_gates_explorer": "token_gates",
    "token_rules_explorer": "token_rules",
    "token_weights_explorer": "token_weights",
    "turn_credit_explorer": "turn_credit",
    "two_authors_explorer": "two_authors",
    "uphill_explorer": "uphill",
    "ways_to_be_right_explorer": "ways_to_be_right",
    "which_rule_explorer": "which_rule",
    "wrong_critic_explorer": "wrong_critic",
}

__all__ = [
    "answer_ratio_explorer",
    "capped_reward_explorer",
    "clip_explorer",
    "composer_explorer",
    "cooled_base_explorer",
    "difficulty_explorer",
    "engine_rules_explorer",
    "entropy_step_explorer",
    "five_runs_explorer",
    "four_edges_explorer",
    "full_card_explorer",
    "gae_explorer",
    "gate_zoo_explorer",
    "gpu_budget_explorer",
    "group_advantage_explorer",
    "group_size_explorer",
    "kept_groups_explorer",
    "kl_estimator_explorer",
    "kl_explorer",
    "kl_leash_explorer",
    "kl_pull_explorer",
    "length_drift_explorer",
    "many_updates_explorer",
    "micro_batches_explorer",
    "long_answers_explorer",
    "loss_and_gradient_explorer",
    "one_group_explorer",
    "one_pair_explorer",
    "one_push_explorer",
    "one_token_explorer",
    "product_weight_explorer",
    "prompt_weight_explorer",
    "race_rates_explorer",
    "rare_glitch_explorer",
    "rare_token_explorer",
    "recorded_run_explorer",
    "reuse_explorer",
    "rollouts_explorer",
    "scaling_fit_explorer",
    "shared_divisor_explorer",
    "slow_start_explorer",
    "stale_queue_explorer",
    "std_explorer",
    "sharpen_or_learn_explorer",
    "three_pushes_explorer",
    "token_gates_explorer",
    "token_rules_explorer",
    "token_weights_explorer",
    "turn_credit_explorer",
    "two_authors_explorer",
    "uphill_explorer",
    "ways_to_be_right_explorer",
    "which_rule_explorer",
    "wrong_critic_explorer",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"There is no explorer named {name!r}; there are {sorted(_HOME)}.")
    return getattr(import_module(f"rlnb.classroom.explorers.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
