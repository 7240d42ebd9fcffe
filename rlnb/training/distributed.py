"""The same loop in several processes: they share the answers and the rows, and add up gradients.

    torchrun --nproc-per-node 2 -m rlnb.training.distributed grpo --out run --steps 10

Whatever `python -m rlnb.training` takes follows. Every process holds the whole model and the whole
rollout: it draws its share of the answers, gets those of the others, prepares the step as one
process would, and runs the passes over its share of the rows; the gradients are added before they
are clipped, so that all take the same optimizer step. Since the denominators belong to the step
(`Totals`), the sum is one process' gradient, whatever the split. Process 0 writes; the others keep
a folder of their own, which goes when they end. gloo on CPUs, tried with two; nccl on GPUs, not
tried. It is no sharded trainer: memory per process is that of one, a reference is scored by
everyone, and evaluations are repeated. For models that need sharding: rlnb.interop.trl_trainer.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Parameter
from torch.nn.functional import pad

from rlnb.objective import Objective
from rlnb.training.errors import BadInput
from rlnb.training.sampling.sampler import Rollout

__all__ = ["add_up", "connected", "draw_share", "main", "share", "shared", "world"]


def world() -> tuple[int, int]:
    """(rank, number of processes); (0, 1) where there is no process group."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def share(rows: Tensor) -> Tensor:
    """This process' rows: every n-th, so that sorted by length all get as many long ones."""
    rank, size = world()
    return rows[rank::size]


def add_up(parameters: Iterable[Parameter], sums: dict[str, float], merge: Any) -> dict[str, float]:
    """Adds the gradients of all processes in place, in one exchange per dtype; returns the metrics
    of all, put together by `merge`, a `Tally`, whose `add` knows sums from extremes."""
    _, size = world()
    if size == 1:
        return sums
    gradients = [p.grad for p in parameters if p.grad is not None]
    for dtype in sorted({g.dtype for g in gradients}, key=str):
        same = [g for g in gradients if g.dtype == dtype]
        flat = torch.cat([g.flatten() for g in same])
        dist.all_reduce(flat)
        for gradient, part in zip(same, flat.split([g.numel() for g in same]), strict=True):
            gradient.copy_(part.view_as(gradient))
    for found in _of_all(sums):
        for name, value in found.items():
            merge.add(name, value)
    return merge.sums


def shared(
    sampler: Callable[..., Rollout], model: torch.nn.Module, objective: Objective, prompts: int
) -> Callable[..., Rollout]:
    """The sampler of a run: in several processes one that draws a share and returns all answers.

    All weights become those of process 0. Raises BadInput for fewer prompts than processes, and for
    an objective whose parts draw numbers, which the processes would not draw alike.
    """
    _, size = world()
    if size == 1:
        return sampler
    if prompts < size:
        raise BadInput(f"prompts: got {prompts} for {size} processes, expected one each or more")
    for part in objective.parts:
        if getattr(part, "random", False):
            raise BadInput(
                f"objective: {part!r} draws random numbers, and {size} processes would each draw "
                "their own; take another part, or one process"
            )
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, 0)

    def sample(model: Any, prompts: list[list[int]], *given: Any, **named: Any) -> Rollout:
        rank, size = world()
        seed = _seed(named["generator"])
        mine = draw_share(sampler, rank, size, seed, model, prompts, *given, **named)
        return join(_of_all(mine), named["pad_id"])

    return sample


def draw_share(
    sampler: Callable[..., Rollout],
    rank: int,
    size: int,
    seed: int,
    model: Any,
    prompts: list[list[int]],
    *given: Any,
    generator: torch.Generator,
    **named: Any,
) -> Rollout:
    """The answers that process `rank` of `size` draws, from a generator of its own."""
    own = torch.Generator(generator.device).manual_seed(seed + rank)
    bounds = [len(prompts) * r // size for r in (rank, rank + 1)]
    return sampler(model, prompts[slice(*bounds)], *given, generator=own, **named)


def _seed(generator: torch.Generator) -> int:
    """Drawn alike by all, which keeps their generators alike: what a checkpoint saves is one."""
    device = generator.device
    return int(torch.randint(2**40, (1,), generator=generator, device=device))


def join(parts: list[Rollout], pad_id: int) -> Rollout:
    """Rollouts as one: prompts padded in front, completions behind."""
    before = max(part.prompt_ids.shape[1] for part in parts)
    behind = max(part.completion_ids.shape[1] for part in parts)
    columns: dict[str, Tensor] = {}
    for name, value in vars(parts[0]).items():
        if not torch.is_tensor(value):
            continue
        found = [getattr(part, name).to(value.device) for part in parts]
        fill = pad_id if name.endswith("_ids") else 0
        if name.startswith("prompt"):
            found = [pad(x, (before - x.shape[1], 0), value=fill) for x in found]
        elif value.ndim > 1:
            found = [pad(x, (0, behind - x.shape[1]), value=fill) for x in found]
        columns[name] = torch.cat(found)
    return replace(parts[0], **columns)


def _of_all(mine: Any) -> list[Any]:
    """The objects of all processes, in their order."""
    found: list[Any] = [None] * world()[1]
    dist.all_gather_object(found, mine)
    return found


@contextlib.contextmanager
def connected() -> Iterator[None]:
    """The process group that torchrun's variables describe; nothing without them."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def main(arguments: list[str] | None = None) -> int:
    """`python -m rlnb.training` in every process; only process 0 prints and writes to --out."""
    command = import_module("rlnb.training.__main__").main  # which imports this module's users
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    with connected(), contextlib.ExitStack() as stack:
        if world()[0] > 0:
            own = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run"
            arguments = _elsewhere(arguments, own)
            nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
            stack.enter_context(contextlib.redirect_stderr(nowhere))
        if world()[1] > 1:
            dist.barrier()  # the copies of a run to resume are whole before anyone writes to it
        return command(arguments)


def _elsewhere(arguments: list[str], folder: Path) -> list[str]:
    """The same command with --out at `folder`, where a run to resume is copied to."""
    flat = [part for word in arguments for part in _parts(word)]
    if "--out" not in flat[:-1]:
        return flat
    place = flat.index("--out") + 1
    if "--resume" in flat and Path(flat[place]).is_dir():
        shutil.copytree(flat[place], folder)
    return [*flat[:place], str(folder), *flat[place + 1 :]]


def _parts(word: str) -> list[str]:
    return word.split("=", 1) if word.startswith("--out=") else [word]


if __name__ == "__main__":
    sys.exit(main())
