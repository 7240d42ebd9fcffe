"""Checkpoints a killed run resumes from: safetensors and JSON, never pickle.

    OUT/checkpoint-000020/   a loadable model folder, and beside the weights
        optimizer.safetensors   AdamW's moments, one tensor per parameter and moment
        rng.safetensors         generator states
        past.safetensors        with staleness: the weights of earlier steps, "age::parameter"
        state.json              step, token count, Python's random state, reward's and pool's state

A checkpoint is written under another name and renamed when complete, so a folder of that name is
whole, however the process ended. Older ones are removed after the rename.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import deque
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, load_model, save_file
from torch import nn

from rlnb.training.errors import BadInput
from rlnb.training.models.loading import save

__all__ = ["checkpoints", "optimizer_tensors", "read", "restore_optimizer", "write"]


def optimizer_tensors(
    optimizer: torch.optim.Optimizer, names: dict[nn.Parameter, str]
) -> dict[str, torch.Tensor]:
    """The optimizer's state as {"parameter::moment": tensor}."""
    return {
        f"{names[parameter]}::{key}": value.detach().clone().contiguous()
        for parameter, state in optimizer.state.items()
        for key, value in state.items()
    }


def restore_optimizer(
    optimizer: torch.optim.Optimizer,
    names: dict[nn.Parameter, str],
    tensors: dict[str, torch.Tensor],
) -> None:
    """Puts saved moments back. AdamW keeps its moments beside the parameter, its step counts on
    the CPU; fused, those beside the parameter as well."""
    parameters = {name: parameter for parameter, name in names.items()}
    for key, value in tensors.items():
        name, _, moment = key.rpartition("::")
        if name not in parameters:
            raise BadInput(f"resume: the checkpoint has a moment of {name!r}, the model has not")
        apart = moment == "step" and not optimizer.defaults.get("fused")
        where = "cpu" if apart else parameters[name].device
        optimizer.state[parameters[name]][moment] = value.to(where)


def write(
    out: Path,
    step: int,
    *,
    model,
    tokenizer,
    modules: nn.ModuleDict,
    optimizer: torch.optim.Optimizer,
    rng: random.Random,
    generator: torch.Generator,
    extra: dict[str, Any],
    past: list[dict[str, torch.Tensor]] = [],  # noqa: B006  (read only)
) -> Path:
    """Writes OUT/checkpoint-STEP and removes older ones. `modules` holds all that is trained.

    past: weights of earlier steps, oldest first. Raises OSError if the disk is full or the folder
    read-only; the checkpoints that were there then are still there, and whole.
    """
    final = out / f"checkpoint-{step:06d}"
    temporary = out / f".{final.name}.tmp"
    for torn in out.glob(".checkpoint-*.tmp"):  # of a run that was killed while it wrote
        shutil.rmtree(torn, ignore_errors=True)
    save(model, tokenizer, temporary)
    names = {parameter: name for name, parameter in modules.named_parameters()}
    save_file(optimizer_tensors(optimizer, names), temporary / "optimizer.safetensors")
    if "critic" in modules:
        critic = {k: v.contiguous() for k, v in modules["critic"].state_dict().items()}
        save_file(critic, temporary / "critic.safetensors")
    states = {"sampler": generator.get_state(), "torch": torch.get_rng_state()}
    if generator.device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(generator.device)
    save_file(states, temporary / "rng.safetensors")
    if past:
        older = {f"{i}::{k}": v for i, weights in enumerate(past) for k, v in weights.items()}
        save_file(older, temporary / "past.safetensors")
    state = {"step": step, "rng": rng.getstate(), **extra}
    (temporary / "state.json").write_text(json.dumps(state), encoding="utf-8")
    for file in temporary.iterdir():  # on the disk before the rename says that it is complete
        _sync(file)
    shutil.rmtree(final, ignore_errors=True)
    os.replace(temporary, final)
    _sync(out)
    for older in checkpoints(out):
        if older != final:
            shutil.rmtree(older, ignore_errors=True)
    return final


def _sync(path: Path) -> None:
    """Waits until a file, or a folder's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checkpoints(out: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(p for p in out.glob("checkpoint-*") if (p / "state.json").is_file())


def read(
    out: Path,
    *,
    model,
    modules: nn.ModuleDict,
    optimizer: torch.optim.Optimizer,
    rng: random.Random,
    generator: torch.Generator,
    past: deque[dict[str, torch.Tensor]],
) -> dict[str, Any]:
    """Restores the newest checkpoint in place; returns state.json. BadInput if there is none."""
    found = checkpoints(out)
    if not found:
        raise BadInput(
            f"resume: there is no checkpoint in {str(out)!r}; start without --resume, in an "
            "empty folder"
        )
    folder = found[-1]
    load_model(model, folder / "model.safetensors", device=str(model.device))
    if "critic" in modules:
        modules["critic"].load_state_dict(load_file(folder / "critic.safetensors"))
    names = {parameter: name for name, parameter in modules.named_parameters()}
    restore_optimizer(optimizer, names, load_file(folder / "optimizer.safetensors"))
    states = load_file(folder / "rng.safetensors")
    generator.set_state(states["sampler"])
    torch.set_rng_state(states["torch"])
    if "cuda" in states and generator.device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], generator.device)
    past.clear()
    if (folder / "past.safetensors").is_file():
        weights: dict[int, dict[str, torch.Tensor]] = {}
        older = load_file(folder / "past.safetensors", device=str(model.device))
        for key, value in older.items():
            age, _, name = key.partition("::")
            weights.setdefault(int(age), {})[name] = value
        past.extend(weights[age] for age in sorted(weights))
    state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    version, internal, gauss = state["rng"]
    rng.setstate((version, tuple(internal), gauss))
    return state
