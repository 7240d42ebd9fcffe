"""Bytes of a run on its card: way for the backward pass, and a sentence when there are too few.

What is counted is counted by `studies.gpu_budget`, as in the memory explorer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from rlnb.training.errors import BadInput
from rlnb.training.run import Run
from rlnb.training.sampling.graph_decoder import make_way
from rlnb.training.sampling.sampler import Rollout
from rlnb.training.studies.gpu_budget import GB, memory, of_recipe, peak, shape_of

__all__ = ["OutOfMemory", "in_words", "make_way_to_train", "training_bytes"]

MARGIN = 1.15  # temporary copies, and blocks that are larger than what lies in them


class OutOfMemory(BadInput):
    """The card has fewer bytes than the run takes; a smaller one may fit."""


def training_bytes(run: Run, rollout: Rollout) -> float:
    """Bytes that the backward pass of a micro-batch of this rollout takes beside the models.

    Infinite where the model's configuration does not say what it keeps.
    """
    shape = shape_of(run.model.config)
    if shape is None:
        return float("inf")
    load, precision = of_recipe(run.recipe, rollout.prompt_ids.shape[1])
    load = replace(load, answer_tokens=rollout.completion_ids.shape[1])
    parts = memory(shape, load, precision)
    return MARGIN * len(run.modules) * (parts["activations"] + parts["logits"])


def make_way_to_train(run: Run, rollout: Rollout) -> int:
    """Gives up as much of the decoder's memory as the backward pass needs; the bytes given up."""
    if run.model.device.type != "cuda":
        return 0
    return make_way(run.model.device, training_bytes(run, rollout))


def _counted(run: Run) -> str:
    shape = shape_of(run.model.config)
    if shape is None:
        return ""
    parts = memory(shape, *of_recipe(run.recipe, 100))
    return f" (counted, with prompts of 100 tokens: {peak(parts) / GB:.1f} GB)"


@contextmanager
def in_words(run: Run) -> Iterator[None]:
    """Out of memory as one sentence, OutOfMemory, with what to make smaller."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        recipe, cures = run.recipe, []
        if not recipe.lora_r:
            cures.append("--lora-r 32 (which needs peft)")
        if recipe.sampler_dtype == "same" and recipe.dtype == "float32":
            cures.append("--sampler-dtype bfloat16")
        if not recipe.gradient_checkpointing:
            cures.append("--gradient-checkpointing")
        cures.append(f"--prompts {max(1, recipe.prompts // 2)}")
        cures.append(f"--max-completion-length {max(1, recipe.max_completion_length // 2)}")
        has = ""
        if run.model.device.type == "cuda":
            has = f" of {torch.cuda.mem_get_info(run.model.device)[1] / GB:.1f} GB"
        raise OutOfMemory(
            f"memory: the card{has} has too few bytes for {recipe.prompts} prompts x "
            f"{recipe.num_generations} answers of {recipe.max_completion_length} tokens in "
            f"micro-batches of {recipe.micro_batch}{_counted(run)}; make it smaller: "
            f"{', or '.join(cures)}"
        ) from error
