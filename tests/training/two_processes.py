"""What tests/training/test_distributed.py runs under torchrun; process 0 writes what was found."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist

from rlnb.objective import ANNEX, ZOO
from rlnb.shipped import data_folder
from rlnb.training import TASKS, Recipe, load, sample
from rlnb.training import distributed as d
from rlnb.training.step import accumulate, collect, make_batch, start, step

RECIPE = Recipe(prompts=3, num_generations=4, max_completion_length=24, micro_batch=5, seed=1)


def begun(name: str, **options):
    torch.set_num_threads(1)
    model, tokenizer = load(data_folder() / "model")
    return start(model, tokenizer, TASKS["chain"], {**ZOO, **ANNEX}[name], RECIPE, **options)


def gradient_of(run, *parts) -> tuple[torch.Tensor, dict[str, float]]:
    run.optimizer.zero_grad(set_to_none=False)
    sums = accumulate(run, *parts)
    return torch.cat([p.grad.flatten() for p in run.modules.parameters()]).clone(), sums


def gradients(name: str) -> dict[str, float]:
    """Two processes beside one, on the same rollout: largest differences."""
    run = begun(name)
    rollout, problems, rewards, *_ = collect(run)
    prepared = run.objective.prepare(make_batch(run, rollout, problems, rewards))
    parts = rollout, prepared, torch.arange(len(rewards))
    both, sums = gradient_of(run, *parts)
    with mock.patch.object(d, "world", lambda: (0, 1)):
        one, alone = gradient_of(run, *parts)
    assert sums.keys() == alone.keys()
    return {
        "gradient": float((both - one).abs().max()),
        "size": float(one.abs().max()),
        "metrics": max(abs(sums[k] - alone[k]) for k in sums if sums[k] == sums[k]),
    }


def one_as_two(model, prompts, *given, generator, **named):
    """A sampler for one process that draws what two would."""
    seed = d._seed(generator)
    parts = [
        d.draw_share(sample, r, 2, seed, model, prompts, *given, generator=generator, **named)
        for r in (0, 1)
    ]
    return d.join(parts, named["pad_id"])


def trained(run, steps: int = 3) -> tuple[torch.Tensor, list[float]]:
    losses = [step(run)["loss"] for _ in range(steps)]
    return torch.cat([p.detach().flatten() for p in run.model.parameters()]), losses


def trainings() -> dict[str, float]:
    """Weights after three steps of two processes, and of one that draws the same answers."""
    two, losses = trained(begun("dapo", sampler=sample))
    found: list = [None, None]
    dist.all_gather_object(found, two)
    with mock.patch.object(d, "world", lambda: (0, 1)):
        one, alone = trained(begun("dapo", sampler=partial(one_as_two)))
    return {
        "weights": float((two - one).abs().max()),
        "between": float((found[0] - found[1]).abs().max()),
        "losses": max(abs(a - b) for a, b in zip(losses, alone, strict=True)),
        "size": max(map(abs, losses)),
    }


if __name__ == "__main__":
    with d.connected():
        said = {"processes": d.world()[1], "trainings": trainings()}
        said |= {name: gradients(name) for name in ("dr_grpo", "grpo", "gspo", "ppo", "dapo")}
        try:
            begun("clip_cov")
        except ValueError as error:
            said["random"] = str(error)
        if d.world()[0] == 0:
            Path(sys.argv[1]).write_text(json.dumps(said), encoding="utf-8")
