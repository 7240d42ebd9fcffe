"""The real thing: a task with an exact verifier, a small model, a sampler, and a training loop.

    from rlnb.objective import ZOO
    from rlnb.training import TASKS, Recipe, evaluate, load, train

    model, tokenizer = load("data/model")
    evaluate(model, tokenizer, TASKS["chain"])          # pass@1 about 0.38
    train(model, tokenizer, TASKS["chain"], ZOO["dr_grpo"], Recipe(steps=40), out="run")

On the command line: python -m rlnb.training {base,grpo,eval,replay}. Rooms: tasks, model, base (the
starting model), sampler, recipe, rewards, critic, step and loop (training), evaluation, checkpoint,
record (runs as JSON lines), shipped (the data folder). Needs transformers, tokenizers, safetensors
and tqdm beside torch.
"""

from rlnb.training.base import BaseRecipe, train_base
from rlnb.training.errors import BadInput
from rlnb.training.evaluation import Answers, answer, evaluate, pass_at_k, pass_rate, summary
from rlnb.training.loop import train
from rlnb.training.model import build_model, build_tokenizer, encode_prompts, load, save
from rlnb.training.recipe import Recipe
from rlnb.training.record import METRICS, read, replay, series
from rlnb.training.rewards import CoinFlip, keep_all, keep_mixed
from rlnb.training.sampler import Rollout, Sampling, sample, token_logprobs
from rlnb.training.shipped import data_folder
from rlnb.training.tasks import TASKS, Chain, Problem, Task, held_out, is_held_out

__all__ = [
    "METRICS",
    "TASKS",
    "Answers",
    "BadInput",
    "BaseRecipe",
    "Chain",
    "CoinFlip",
    "Problem",
    "Recipe",
    "Rollout",
    "Sampling",
    "Task",
    "answer",
    "build_model",
    "build_tokenizer",
    "data_folder",
    "encode_prompts",
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
    "save",
    "series",
    "summary",
    "token_logprobs",
    "train",
    "train_base",
]
