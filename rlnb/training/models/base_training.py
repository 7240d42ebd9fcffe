"""The base model: supervised training on a task's noisy demonstrations.

The result is meant to be mediocre. Its likeliest style is the one it is bad at, so that
reinforcement learning has something to elicit; `eval` shows the controls that say so.
"""

from __future__ import annotations

import random
import time
from math import isfinite
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from rlnb.training.errors import Diverged
from rlnb.training.models.device import pick_device
from rlnb.training.models.loading import check_vocabulary
from rlnb.training.models.small_model import build_model, build_tokenizer
from rlnb.training.recipe import BaseRecipe
from rlnb.training.sampling.prompts import encode_prompts
from rlnb.training.tasks import Task

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["IGNORED", "BaseRecipe", "collate", "demonstrations", "train_base"]

IGNORED = -100  # a label that cross_entropy leaves out


def demonstrations(
    tokenizer: PreTrainedTokenizerBase, task: Task, rng: random.Random, n: int
) -> list[tuple[list[int], int]]:
    """n training rows: the ids of prompt, demonstration and end token, and the prompt's length."""
    rows = []
    for _ in range(n):
        problem = task.problem(rng, "train")
        prompt = encode_prompts(tokenizer, [problem.prompt], task=task)[0]
        reply = tokenizer(task.demo(rng, problem), add_special_tokens=False)["input_ids"]
        rows.append((prompt + reply + [tokenizer.eos_token_id], len(prompt)))
    return rows


def collate(rows: list[tuple[list[int], int]], pad_id: int) -> tuple[Tensor, Tensor]:
    """Right-padded ids and next-token labels (rows, width - 1), prompts and padding ignored."""
    width = max(len(ids) for ids, _ in rows)
    ids = torch.full((len(rows), width), pad_id)
    labels = torch.full((len(rows), width), IGNORED)
    for i, (row, prompt) in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
        labels[i, prompt : len(row)] = torch.tensor(row[prompt:])
    return ids[:, :-1], labels[:, 1:]


def train_base(
    task: Task,
    recipe: BaseRecipe,
    *,
    start: tuple[PreTrainedModel, PreTrainedTokenizerBase] | None = None,
    device: str = "auto",
    progress: bool = True,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, dict[str, float]]:
    """Model, tokenizer, and {loss, cpu_time, tokens}. Raises BadInput on an inexpressible task.

    start: a model and its tokenizer to go on from, trained in place; None is a fresh model of
    the recipe's preset.

    The loss is the mean over all answer tokens of the step. Micro-batches are sorted by length, and
    each is divided by the token count of the whole step: a mean per micro-batch would weigh
    the tokens of short answers ten times more, and shift the mixture of styles.
    """
    model, tokenizer = start or (build_model(recipe.seed, recipe.preset), build_tokenizer())
    check_vocabulary(tokenizer, task)
    model = model.to(pick_device(device)).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), recipe.learning_rate, recipe.betas, weight_decay=recipe.weight_decay
    )
    rng, started, tokens, loss = random.Random(recipe.seed), time.process_time(), 0, 0.0
    with tqdm(range(recipe.steps), desc="base", disable=not progress) as bar:
        for step in bar:
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate(step)
            rows = sorted(
                demonstrations(tokenizer, task, rng, recipe.batch), key=lambda r: len(r[0])
            )
            answer_tokens = sum(len(ids) - prompt for ids, prompt in rows)
            size = -(-recipe.batch // recipe.micro_batches)
            optimizer.zero_grad()
            loss = 0.0
            for start in range(0, recipe.batch, size):
                ids, labels = collate(rows[start : start + size], tokenizer.pad_token_id)
                ids, labels = ids.to(model.device), labels.to(model.device)
                logits = model(ids, use_cache=False).logits
                part = F.cross_entropy(
                    logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum"
                )
                (part / answer_tokens).backward()
                loss += part.item() / answer_tokens
            if not isfinite(loss):
                raise Diverged(
                    f"diverged at step {step + 1}: the loss is not finite (learning rate "
                    f"{recipe.learning_rate:g}); start anew with a smaller learning rate"
                )
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.max_grad_norm)
            optimizer.step()
            tokens += answer_tokens
            bar.set_postfix(loss=f"{loss:.3f}")
    cpu = time.process_time() - started
    return model.eval(), tokenizer, {"loss": loss, "cpu_time": cpu, "tokens": tokens}
