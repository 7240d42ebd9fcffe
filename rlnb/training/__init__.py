"""The real thing: a task with an exact verifier, a small model, a sampler, and a training loop.

    from rlnb.objective import ZOO
    from rlnb.training import TASKS, Recipe, data_folder, evaluate, load, train

    model, tokenizer = load(data_folder() / "model")
    evaluate(model, tokenizer, TASKS["chain"])          # pass@1 about 0.38
    train(model, tokenizer, TASKS["chain"], ZOO["dr_grpo"], Recipe(steps=40), out="run")

On the command line: python -m rlnb.training {base,grpo,eval,replay}. What stands here is the path
of one step:

    recipe        the numbers of a run; recipe_by_size, those that a real model begins with
    prompt_pool   which prompts are asked, when not all of them
    run           what a run holds between steps, and how it is put together
    rollouts      draw answers, verify them, make the batch
    rewards       what is paid besides the verifier; which groups are kept
    update        the optimizer steps of one rollout
    step          one rollout and its update
    memory        way for the backward pass; a sentence when a card has too few bytes
    loop          steps, evaluations, records, checkpoints
    divergence    is everything finite, before anything is kept
    evaluation, metrics_file, checkpoint      what a run is asked, and what it writes
    run_folder, dashboards                    where it writes, alone; who else is shown its records
    named, question_files   what the command line may name: ours, your module's, your file

and what it uses lies in folders: `tasks` (problems with exact verifiers), `models` (where models
come from, number formats, the critic, the base training), `sampling` (drawing answers and scoring
them), `studies` (what was measured with all this: the runs in data/runs, the controls, the push on
the decision to stop, memory and time on a GPU).

Every name is loaded on first use. Tasks, recorded runs and the data folder need no more than the
standard library; training needs torch, transformers, tokenizers, safetensors and tqdm.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "rlnb.shipped": ("data_folder",),
    "rlnb.training.dashboards": ("dashboard",),
    "rlnb.training.errors": ("BadInput", "Diverged"),
    "rlnb.training.evaluation": (
        "Answers", "answer", "evaluate", "pass_at_k", "pass_rate", "summary",
    ),
    "rlnb.training.loop": ("train",),
    "rlnb.training.metrics_file": ("METRICS", "read", "replay", "series"),
    "rlnb.training.models.base_training": ("train_base",),
    "rlnb.training.models.loading": ("load", "save"),
    "rlnb.training.models.presets": ("PRESETS",),
    "rlnb.training.models.small_model": ("build_model", "build_tokenizer"),
    "rlnb.training.prompt_pool": ("PromptPool",),
    "rlnb.training.question_files": ("questions",),
    "rlnb.training.recipe": ("BaseRecipe", "Recipe"),
    "rlnb.training.recipe_by_size": ("recipe_for",),
    "rlnb.training.rewards": ("CoinFlip", "WaitBonus", "keep_all", "keep_mixed"),
    "rlnb.training.sampling.prompts": ("encode_prompts", "end_ids"),
    "rlnb.training.sampling.sampler": ("Rollout", "Sampling", "sample"),
    "rlnb.training.sampling.scoring": ("token_logprobs",),
    "rlnb.training.studies.stop_push": (
        "ESTIMATORS", "Decisions", "Push", "sample_decisions", "stop_push",
    ),
    "rlnb.training.tasks": (
        "TASKS", "WEAK", "ArithmeticText", "Chain", "Countdown", "CountdownText", "Pick",
        "Problem", "Questions", "Sort", "Task", "Types", "corpus", "held_out", "is_held_out",
        "weak_verifier",
    ),
}  # fmt: skip
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"rlnb.training has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
