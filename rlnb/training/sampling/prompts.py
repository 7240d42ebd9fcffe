"""What a model is asked, token by token, and where its answer may end."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlnb.training.tasks import Problem, Task

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["encode_prompts", "end_ids", "longest_prompt"]


def encode_prompts(
    tokenizer: PreTrainedTokenizerBase,
    prompts: list[str],
    *,
    openings: list[str] | None = None,
    task: Task | None = None,
) -> list[list[int]]:
    """Token ids of each prompt, with whatever the tokenizer puts in front.

    A tokenizer with a chat template gets each prompt as a user's message, behind the task's
    `system` line if the task has that attribute, with the head of the reply at the end. (Without a
    system line some templates put in their own: Qwen2.5's says who Qwen is.)

    openings[i] is how answer i begins: behind the prompt, or in the reply.
    """
    texts, template = prompts, tokenizer.chat_template is not None
    if template:
        system = getattr(task, "system", None)
        before = [{"role": "system", "content": system}] if system else []
        texts = [
            tokenizer.apply_chat_template(
                [*before, {"role": "user", "content": prompt}],
                tokenize=False,
                add_generation_prompt=True,
            )
            for prompt in prompts
        ]
    if openings is not None:
        texts = [text + opening for text, opening in zip(texts, openings, strict=True)]
    # A template writes the special tokens itself; a second <bos> would be one the model never saw.
    return [tokenizer(text, add_special_tokens=not template)["input_ids"] for text in texts]


def longest_prompt(
    tokenizer: PreTrainedTokenizerBase, task: Task, problems: Sequence[Problem] | None = None
) -> int:
    """Tokens of the longest prompt: of these problems, or of 512 that the task draws.

    Of a task's own draws it is nearly always the longest there is; a longer one later costs time,
    not correctness.
    """
    if problems is None:
        rng = random.Random("longest prompt")
        problems = [task.problem(rng, "train") for _ in range(512)]
    return max(map(len, encode_prompts(tokenizer, [p.prompt for p in problems], task=task)))


def end_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """Every token that ends an answer: the tokenizer's, and those of generation_config.json.

    A chat model has several: <|im_end|> ends a reply, <|endoftext|> a document.
    """
    config = getattr(model, "generation_config", None)
    listed = getattr(config, "eos_token_id", None)
    listed = [] if listed is None else [listed] if isinstance(listed, int) else listed
    return tuple(sorted({tokenizer.eos_token_id, *listed}))
