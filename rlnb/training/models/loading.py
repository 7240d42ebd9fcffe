"""Any causal language model's files: read from a folder or from the hub, written to a folder.

A local folder is loaded without any network; `hub` says what else may be given.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from rlnb.training.errors import BadInput
from rlnb.training.models.adapters import base_of, with_adapters
from rlnb.training.models.device import pick_device
from rlnb.training.models.hub import model_folder
from rlnb.training.tasks import Task

__all__ = ["check_vocabulary", "load", "pick_device", "save"]


def load(
    name: str | Path, *, device: str = "auto", dtype: torch.dtype = torch.float32
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Any causal language model in transformers' layout, with its tokenizer.

    name: a folder, or a hub id, owner/name (`hub.model_folder`); of an adapter's folder, the base
    that it names, with the adapter merged into it. Weights come from safetensors alone and in
    `dtype`, float32 even where they are stored in bfloat16, because AdamW's small steps would be
    rounded away. No code that comes with a model is executed.

    Raises BadInput if the folder, its weights, its tokenizer, or the tokenizer's end-of-sequence
    token is missing, if transformers cannot read it, if the hub does not have it, or if there is
    no such device.
    """
    where, base = pick_device(device), base_of(Path(name))
    if base is not None:
        try:
            model, tokenizer = load(base, device=device, dtype=dtype)
        except BadInput as error:
            raise BadInput(
                f"{error} (the adapter in {str(name)!r} names it as its base)"
            ) from error
        return with_adapters(model, Path(name)).eval(), tokenizer
    path = model_folder(name)
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(path, **local)
            model = AutoModelForCausalLM.from_pretrained(
                path, dtype=dtype, use_safetensors=True, **local
            )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        first = str(error).strip().partition("\n")[0]
        raise BadInput(
            f"model: transformers cannot read {str(path)!r}: {first[:300]}; it must be a causal "
            "language model that transformers knows without code of its own"
        ) from error
    if tokenizer.eos_token_id is None:
        raise BadInput(f"model: the tokenizer in {str(path)!r} has no end-of-sequence token")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.unk_token or tokenizer.eos_token
    if path != Path(name):  # a hub id: what an adapter will name as its base
        model.name_or_path = str(name)
    return model.to(where).eval(), tokenizer


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, path: str | Path) -> None:
    """Weights as safetensors, configuration and tokenizer, in transformers' layout."""
    with _quiet():
        model.save_pretrained(path)
        tokenizer.save_pretrained(path)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' progress bars: a 1 MB file needs none, and the loop shows its own."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def check_vocabulary(tokenizer: PreTrainedTokenizerBase, task: Task) -> None:
    """Raises BadInput if the tokenizer cannot write some character the task needs."""
    lost = []
    for symbol in task.symbols:
        ids = tokenizer(symbol, add_special_tokens=False)["input_ids"]
        if not ids or tokenizer.unk_token_id in ids:
            lost.append(symbol)
    if lost:
        raise BadInput(
            f"task: {task.name!r} needs {' '.join(map(repr, lost))}, which the model's vocabulary "
            "cannot express; train a base model for this task or pick another task"
        )
