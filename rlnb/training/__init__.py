"""The real thing: a task with an exact verifier, a small model, a sampler, and a training loop.

    from rlnb.objective import ZOO
    from rlnb.training import TASKS, Recipe, evaluate, load, train

    model, tokenizer = load("data/model")
    evaluate(model, tokenizer, TASKS["chain"])          # pass@1 about 0.38
    train(model, tokenizer, TASKS["chain"], ZOO["dr_grpo"], Recipe(steps=40), out="run")

On the command line: python -m rlnb.training {base,grpo,eval,replay}. Rooms: tasks, model, presets
and hub (where models come from), prompts (chat templates, end tokens), base (the starting model),
sampler, decode (the same for a GPU), scoring, precision, recipe, rewards, pool, critic, run,
rollouts, update, step and loop (training), evaluation, checkpoint, record (runs as JSON lines),
recordings (the commands behind data/runs), controls (what was there before training), budget
(memory and time bounds), shipped (the data folder), push (what an estimator does to the decision to
stop, without training). Needs transformers, tokenizers, safetensors and tqdm beside torch.
"""

from __future__ import annotations

from rlnb.training.base import BaseRecipe, train_base
from rlnb.training.errors import BadInput
from rlnb.training.evaluation import Answers, answer, evaluate, pass_at_k, pass_rate, summary
from rlnb.training.loop import train
from rlnb.training.model import build_model, build_tokenizer, load, save
from rlnb.training.pool import Pool
from rlnb.training.presets import PRESETS
from rlnb.training.prompts import encode_prompts, end_ids
from rlnb.training.push import ESTIMATORS, Decisions, Push, sample_decisions, stop_push
from rlnb.training.recipe import Recipe
from rlnb.training.record import METRICS, read, replay, series
from rlnb.training.rewards import CoinFlip, WaitBonus, keep_all, keep_mixed
from rlnb.training.sampler import Rollout, Sampling, sample
from rlnb.training.scoring import token_logprobs
from rlnb.training.shipped import data_folder
from rlnb.training.tasks import (
    TASKS,
    WEAK,
    ArithmeticText,
    Chain,
    Countdown,
    CountdownText,
    Pick,
    Problem,
    Sort,
    Task,
    Types,
    corpus,
    held_out,
    is_held_out,
    weak_verifier,
)

__all__ = [
    "ESTIMATORS",
    "METRICS",
    "PRESETS",
    "TASKS",
    "WEAK",
    "Answers",
    "ArithmeticText",
    "BadInput",
    "BaseRecipe",
    "Chain",
    "CoinFlip",
    "Countdown",
    "CountdownText",
    "Decisions",
    "Pick",
    "Pool",
    "Problem",
    "Push",
    "Recipe",
    "Rollout",
    "Sampling",
    "Sort",
    "Task",
    "Types",
    "WaitBonus",
    "answer",
    "build_model",
    "build_tokenizer",
    "corpus",
    "data_folder",
    "encode_prompts",
    "end_ids",
    "evaluate",
    "held_out",
    "is_held_out",
    "keep_all",
    "keep_mixed",
    "load",
    "pass_at_k",
    "pass_rate",
    "read",
    "replay",
    "sample",
    "sample_decisions",
    "save",
    "series",
    "stop_push",
    "summary",
    "token_logprobs",
    "train",
    "train_base",
    "weak_verifier",
]
