"""The explorers, one module each. Every module has a pure `compute` for printed tables.

from rlnb.classroom import explorers
explorers.clip_explorer()                           # last expression of a cell

from rlnb.classroom.explorers.clip import compute   # the same numbers, no picture
"""

from __future__ import annotations

from rlnb.classroom.explorers.answer_ratio import answer_ratio_explorer
from rlnb.classroom.explorers.baseline import baseline_explorer
from rlnb.classroom.explorers.baseline_variance import baseline_variance_explorer
from rlnb.classroom.explorers.clip import clip_explorer
from rlnb.classroom.explorers.composer import composer_explorer
from rlnb.classroom.explorers.difficulty import difficulty_explorer
from rlnb.classroom.explorers.gae import gae_explorer
from rlnb.classroom.explorers.gate_zoo import gate_zoo_explorer
from rlnb.classroom.explorers.gpu_budget import gpu_budget_explorer
from rlnb.classroom.explorers.group_advantage import group_advantage_explorer
from rlnb.classroom.explorers.kl_directions import kl_explorer
from rlnb.classroom.explorers.kl_estimators import kl_estimator_explorer
from rlnb.classroom.explorers.near_equal import std_explorer
from rlnb.classroom.explorers.one_token import one_token_explorer
from rlnb.classroom.explorers.rare_token import rare_token_explorer
from rlnb.classroom.explorers.recorded_run import recorded_run_explorer
from rlnb.classroom.explorers.rollouts import rollouts_explorer
from rlnb.classroom.explorers.scaling_fit import scaling_fit_explorer
from rlnb.classroom.explorers.token_gates import token_gates_explorer
from rlnb.classroom.explorers.token_weights import token_weights_explorer

__all__ = [
    "answer_ratio_explorer",
    "baseline_explorer",
    "baseline_variance_explorer",
    "clip_explorer",
    "composer_explorer",
    "difficulty_explorer",
    "gae_explorer",
    "gate_zoo_explorer",
    "gpu_budget_explorer",
    "group_advantage_explorer",
    "kl_estimator_explorer",
    "kl_explorer",
    "one_token_explorer",
    "rare_token_explorer",
    "recorded_run_explorer",
    "rollouts_explorer",
    "scaling_fit_explorer",
    "std_explorer",
    "token_gates_explorer",
    "token_weights_explorer",
]
