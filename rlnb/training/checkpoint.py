"""Checkpoints a killed run resumes from: safetensors and JSON, never pickle.

    OUT/checkpoint-000020/   a loadable model folder (with LoRA, the adapter's), and beside it
        optimizer.safetensors   AdamW's moments, one tensor per parameter and moment
        rng.safetensors         generator states
        past.safetensors        with staleness: the weights of earlier steps, "age::parameter"
        state.json              step, token count, Python's random state, reward's and pool's state,
                                the header of the run
        checksums.json          SHA-256 of every other file

A checkpoint is written under another name and renamed when complete, so a folder of that name is
whole, however the process ended. What happens to its files later, the checksums tell: the newest
and the one before it are kept, and a damaged one is not taken. Older ones are removed after the
rename.
"""

from __future__ import annotations

import hashlib
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
from rlnb.training.models.adapters import ADAPTER, has_adapters, merged, put_back_adapters
from rlnb.training.models.loading import save
from rlnb.training.run_folder import checkpoints

__all__ = [
    "checkpoints",
    "damage",
    "fingerprint",
    "is_final_model",
    "newest_good",
    "optimizer_tensors",
    "put_back",
    "read",
    "restore_optimizer",
    "state_of",
    "write",
    "write_model",
]

KEPT = 2  # the newest, and the one that is taken when that is damaged
CHECKSUMS = "checksums.json"


def optimizer_tensors(
    optimizer: torch.optim.Optimizer, names: dict[nn.Parameter, str]
) -> dict[str, torch.Tensor]:
    """The optimizer's state as {"parameter::moment": tensor}."""
    return {
        f"{names[parameter]}::{key}": torch.as_tensor(value).detach().clone().contiguous()
        for parameter, state in optimizer.state.items()
        for key, value in state.items()
    }


def restore_optimizer(
    optimizer: torch.optim.Optimizer,
    names: dict[nn.Parameter, str],
    tensors: dict[str, torch.Tensor],
) -> None:
    """Puts saved moments back. AdamW keeps its moments beside the parameter, its step counts on
    the CPU; fused, those beside the parameter as well; that of bitsandbytes counts in an int."""
    parameters = {name: parameter for parameter, name in names.items()}
    for key, value in tensors.items():
        name, _, moment = key.rpartition("::")
        if name not in parameters:
            raise BadInput(f"resume: the checkpoint has a moment of {name!r}, the model has not")
        apart = moment == "step" and not optimizer.defaults.get("fused")
        where = "cpu" if apart else parameters[name].device
        counted = moment == "step" and not isinstance(optimizer, torch.optim.AdamW)
        state = optimizer.state[parameters[name]]
        state[moment] = int(value) if counted else value.to(where)


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
    """Writes OUT/checkpoint-STEP and removes all but the one before. `modules` is all that trains.

    past: weights of earlier steps, oldest first. Raises OSError if the disk is full or the folder
    read-only; the checkpoints that were there then are still there, and whole.
    """
    final = out / f"checkpoint-{step:06d}"
    temporary = _empty(out / f".{final.name}.tmp")
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
    sums = {file.name: _sha256(file) for file in sorted(temporary.iterdir())}
    (temporary / CHECKSUMS).write_text(json.dumps(sums, indent=1), encoding="utf-8")
    _rename(temporary, final)
    # Any of a later step were found damaged when this run went on from an older one.
    found = checkpoints(out)
    kept = found[: found.index(final) + 1][-KEPT:]
    for path in found:
        if path not in kept:
            shutil.rmtree(path, ignore_errors=True)
    return final


def write_model(out: Path, model, tokenizer, merge: bool = False) -> Path:
    """Writes OUT/model, the final one, whole or not at all. Raises OSError as `write` does.

    With adapters that is the adapter's folder; merge: OUT/merged, a whole model, before it.
    """
    if merge:
        temporary = _empty(out / ".merged.tmp")
        save(merged(model), tokenizer, temporary)
        _rename(temporary, out / "merged")
    temporary = _empty(out / ".model.tmp")
    save(model, tokenizer, temporary)
    return _rename(temporary, out / "model")


def is_final_model(out: Path, folder: Path) -> bool:
    """Whether OUT/model holds the weights of this checkpoint: then the run has nothing left to do.

    It is written after the last checkpoint, and a lengthened run has one of fewer steps.
    """
    sums = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
    weights = {
        n: s
        for n, s in sums.items()
        if n.startswith(("model", ADAPTER)) and n.endswith(".safetensors")
    }
    files = [out / "model" / name for name in weights]
    return bool(files) and all(
        file.is_file() and _sha256(file) == weights[file.name] for file in files
    )


def _empty(temporary: Path) -> Path:
    """The name to write under, free of what a run that was killed while it wrote has left."""
    for torn in (*temporary.parent.glob(".checkpoint-*.tmp"), temporary):
        shutil.rmtree(torn, ignore_errors=True)
    return temporary


def _rename(temporary: Path, final: Path) -> Path:
    """Gives a folder its name once all of it is on the disk."""
    for file in temporary.iterdir():
        _sync(file)
    shutil.rmtree(final, ignore_errors=True)
    os.replace(temporary, final)
    _sync(final.parent)
    return final


def _sync(path: Path) -> None:
    """Waits until a file, or a folder's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(weights: dict[str, torch.Tensor]) -> str:
    """Tells one frozen model from another: names, shapes and the first values of every weight."""
    found = hashlib.sha256()
    for name, value in weights.items():
        few = value.detach().flatten()[:64].to("cpu", torch.float64)
        found.update(f"{name} {tuple(value.shape)} {few.tolist()}\n".encode())
    return found.hexdigest()[:16]


def damage(folder: Path) -> str | None:
    """What is wrong with a checkpoint, in a few words; None if every file is as it was written."""
    try:
        sums = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
        for name, expected in sums.items():
            if not (folder / name).is_file():
                return f"{name} is missing"
            if _sha256(folder / name) != expected:
                return f"{name} is not what was written"
    except FileNotFoundError:
        return f"{CHECKSUMS} is missing"
    except (OSError, ValueError, AttributeError) as error:
        return f"a file cannot be read ({getattr(error, 'strerror', None) or CHECKSUMS})"
    if "state.json" not in sums:
        return f"{CHECKSUMS} is not what was written"
    return None


def newest_good(out: Path) -> tuple[Path, list[str]]:
    """(the newest undamaged checkpoint, a phrase about each newer one that is damaged).

    Raises BadInput if there is none.
    """
    told = []
    for folder in reversed(checkpoints(out)):
        wrong = damage(folder)
        if wrong is None:
            return folder, told
        told.append(f"{folder.name} is damaged ({wrong})")
    if told:
        raise BadInput(
            f"resume: no checkpoint in {str(out)!r} can be used: {'; '.join(told)}; start again in "
            "an empty folder"
        )
    raise BadInput(
        f"resume: there is no checkpoint in {str(out)!r}; start without --resume, in an empty "
        "folder"
    )


def state_of(folder: Path) -> dict[str, Any]:
    """state.json of a checkpoint that is not damaged."""
    return json.loads((folder / "state.json").read_text(encoding="utf-8"))


def read(out: Path, **parts: Any) -> dict[str, Any]:
    """Restores the newest good checkpoint in place; returns state.json. BadInput without one."""
    folder, _ = newest_good(out)
    put_back(folder, **parts)
    return state_of(folder)


def put_back(
    folder: Path,
    *,
    model,
    modules: nn.ModuleDict,
    optimizer: torch.optim.Optimizer,
    rng: random.Random,
    generator: torch.Generator,
    past: deque[dict[str, torch.Tensor]],
) -> None:
    """Restores one checkpoint in place. Raises BadInput if the model is of another shape."""
    try:
        if has_adapters(model):
            put_back_adapters(model, folder / ADAPTER)
        else:
            load_model(model, folder / "model.safetensors", device=str(model.device))
        if "critic" in modules:
            modules["critic"].load_state_dict(load_file(folder / "critic.safetensors"))
    except (RuntimeError, FileNotFoundError) as error:
        raise BadInput(
            f"resume: the weights in {str(folder)!r} are those of another model; repeat the "
            "command that started the run, with its --model"
        ) from error
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
    version, internal, gauss = state_of(folder)["rng"]
    rng.setstate((version, tuple(internal), gauss))
