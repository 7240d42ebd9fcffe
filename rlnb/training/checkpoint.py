"""Checkpoints a killed run resumes from: safetensors and JSON, never pickle.

    OUT/checkpoint-000020/   a loadable model folder, and beside the weights
        optimizer.safetensors   AdamW's moments, one tensor per parameter and moment
        rng.safetensors         generator states
        state.json              step, token count, Python's random state, reward's and pool's state

A checkpoint is written under another name and renamed when complete, so a folder of that name is
whole. Older ones are removed after the rename.
"""

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, load_model, save_file
from torch import nn

from rlnb.training.errors import BadInput
from rlnb.training.model import save


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
    """Puts saved moments back. AdamW keeps its step counts on the CPU, its moments beside the
    parameter."""
    parameters = {name: parameter for parameter, name in names.items()}
    for key, value in tensors.items():
        name, _, moment = key.rpartition("::")
        if name not in parameters:
            raise BadInput(f"resume: the checkpoint has a moment of {name!r}, the model has not")
        where = "cpu" if moment == "step" else parameters[name].device
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
) -> Path:
    """Writes OUT/checkpoint-STEP and removes older ones. `modules` holds all that is trained."""
    final = out / f"checkpoint-{step:06d}"
    temporary = out / f".{final.name}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
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
    state = {"step": step, "rng": rng.getstate(), **extra}
    (temporary / "state.json").write_text(json.dumps(state), encoding="utf-8")
    for file in temporary.iterdir():  # on the disk before the rename says that it is complete
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    shutil.rmtree(final, ignore_errors=True)
    os.replace(temporary, final)
    for older in checkpoints(out):
        if older != final:
            shutil.rmtree(older, ignore_errors=True)
    return final


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
    state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    version, internal, gauss = state["rng"]
    rng.setstate((version, tuple(internal), gauss))
    return state
