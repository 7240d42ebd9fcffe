"""The recorded runs of data/runs that compare switches, and the commands that made them.

    python -m rlnb.training.studies.shipped_runs                        lists them
    python -m rlnb.training.studies.shipped_runs NAME [...]             records all seeds of these
    python -m rlnb.training.studies.shipped_runs NAME --seeds 0 --out DIR

A run that is already in DIR is left alone, so that a stopped command can be repeated. Runs that
start from a base model which is not shipped train it first, into DIR-bases. One thread, on the CPU.

What is kept of a run: its header, its evaluations, and of each step the metrics below, with four
significant digits, as columns (`metrics_file.pack`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from rlnb.objective import ZOO, Objective, cispo, entropy_bonus, group_center, overlong, ratio
from rlnb.shipped import data_folder
from rlnb.training.errors import BadInput
from rlnb.training.loop import train
from rlnb.training.metrics_file import line, pack
from rlnb.training.models.base_training import BaseRecipe, train_base
from rlnb.training.models.loading import load, save
from rlnb.training.recipe import Recipe
from rlnb.training.rewards import Reward
from rlnb.training.tasks import TASKS, weak_verifier

__all__ = [
    "BASES",
    "KEPT",
    "SHIPPED_RUNS",
    "ShippedRun",
    "base_model",
    "main",
    "make",
    "origin",
    "reduced",
]

KEPT = (
    "reward", "rewards/verify/mean", "frac_reward_zero_std", "groups/mixed", "groups/kept",
    "completions/mean_length", "completions/mean_length_right", "completions/mean_length_wrong",
    "completions/clipped_ratio", "entropy", "clip_ratio/low_mean", "clip_ratio/high_mean",
    "ratio/mean", "ratio/min", "ratio/max", "staleness", "generated", "grad_norm", "num_tokens",
    "cpu_time",
)  # fmt: skip

unclipped = ZOO["dr_grpo"].replace(surrogate=ratio())
capped = ZOO["dr_grpo"].replace(surrogate=cispo(1.28))
short = ZOO["dr_grpo"].replace(shape=overlong(72, 36))


@dataclass(frozen=True)
class ShippedRun:
    """One kind of run: what it trains with, on which seeds, from which model."""

    objective: Objective
    recipe: Recipe
    seeds: tuple[int, ...] = (0, 1, 2)
    task: str = "chain"
    model: str = "data/model"
    reward: str | None = None

    def find_reward(self) -> Reward | None:
        """The weak verifier it is paid by; None is the task's own."""
        return self.reward and weak_verifier(TASKS[self.task], self.reward)


BASES = {"sort": BaseRecipe(steps=260, batch=96), "countdown": BaseRecipe(steps=1200, batch=96)}

SMALL = Recipe(prompts=8, steps=40, eval_every=20, eval_prompts=100, checkpoint_every=0)
EIGHT = replace(SMALL, minibatches=4, num_iterations=2, learning_rate=2e-4, steps=20, eval_every=10)
REUSE = replace(EIGHT, eval_every=4)
ONCE = replace(REUSE, minibatches=1, num_iterations=1)
FAST = Recipe(steps=50, learning_rate=1e-3, checkpoint_every=0)  # else as chain_dr_grpo
PICK = Recipe(steps=80, eval_every=40, eval_prompts=100, checkpoint_every=0)
REFILL = replace(SMALL, max_resample=4, steps=24, eval_every=4)
SORT = replace(SMALL, eval_every=10, max_completion_length=24)
COUNTDOWN = Recipe(
    prompts=24, steps=90, max_completion_length=80, eval_every=90, eval_prompts=64,
    eval_generations=64, checkpoint_every=0,
)  # fmt: skip
DASHBOARD = replace(SMALL, eval_every=4)
SURROGATES = {"clip": ZOO["dr_grpo"], "cispo": capped, "no_clip": unclipped}

SHIPPED_RUNS: dict[str, ShippedRun] = {
    "chain_rollouts": ShippedRun(ZOO["dr_grpo"], Recipe(record_rollouts=2), seeds=(0,)),
    "chain_8_updates_clip": ShippedRun(ZOO["dr_grpo"], EIGHT),
    "chain_8_updates_no_clip": ShippedRun(unclipped, EIGHT),
    "chain_reuse_8_clip": ShippedRun(ZOO["dr_grpo"], REUSE),
    "chain_reuse_8_no_clip": ShippedRun(unclipped, REUSE),
    "chain_reuse_1": ShippedRun(ZOO["dr_grpo"], ONCE),
    **{
        f"chain_reuse_1_lr_{k}x": ShippedRun(ZOO["dr_grpo"], replace(ONCE, learning_rate=k * 2e-4))
        for k in (2, 4, 8)
    },
    "chain_no_baseline": ShippedRun(ZOO["reinforce"], SMALL, seeds=tuple(range(6))),
    "chain_rloo": ShippedRun(ZOO["rloo"], SMALL, seeds=tuple(range(6))),
    "chain_stale_0": ShippedRun(ZOO["dr_grpo"], SMALL),
    **{
        f"chain_stale_{k}_{name}": ShippedRun(objective, replace(SMALL, staleness=k))
        for k in (4, 8, 1)
        for name, objective in SURROGATES.items()
    },
    "chain_lr_1e-3": ShippedRun(ZOO["dr_grpo"], FAST),
    "chain_refill": ShippedRun(ZOO["dr_grpo"], REFILL),
    **{
        f"chain_{name}_lr_{said}": ShippedRun(
            ZOO["dr_grpo"], replace(recipe, learning_rate=k * SMALL.learning_rate)
        )
        for name, recipe in (("plain", SMALL), ("refill", REFILL))
        for said, k in (("half", 0.5), ("2x", 2), ("4x", 4))
    },
    "sort_is_sorted": ShippedRun(
        ZOO["dr_grpo"], SORT, task="sort", model="sort", reward="is_sorted"
    ),
    "sort_verify": ShippedRun(ZOO["dr_grpo"], SORT, task="sort", model="sort"),
    "pick_overlong": ShippedRun(short, PICK, task="pick", model="data/model_pick"),
    "pick_dapo": ShippedRun(ZOO["dapo"], PICK, task="pick", model="data/model_pick"),
    "pick_mean_only": ShippedRun(
        ZOO["grpo"].replace(terms=(), advantage=group_center()),
        PICK, task="pick", model="data/model_pick",
    ),
    "dash_healthy": ShippedRun(ZOO["dr_grpo"], DASHBOARD),
    "dash_verifier": ShippedRun(ZOO["dr_grpo"], DASHBOARD, reward="contains"),
    "dash_rate": ShippedRun(ZOO["dr_grpo"], replace(DASHBOARD, learning_rate=3e-3)),
    "dash_entropy": ShippedRun(ZOO["dr_grpo"].replace(terms=entropy_bonus(-0.1)), DASHBOARD),
    "dash_cut": ShippedRun(ZOO["dr_grpo"], replace(DASHBOARD, max_completion_length=24)),
    "dash_stale": ShippedRun(unclipped, replace(DASHBOARD, staleness=8)),
    "countdown_grpo": ShippedRun(
        ZOO["grpo"].replace(terms=()), COUNTDOWN, task="countdown", model="countdown"
    ),
}  # fmt: skip


def reduced(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a shipped run keeps: all but samples, and of the steps KEPT, with four digits.

    Samples stay where training answers were recorded: that run is for the eye.
    """
    eye = any(record["record"] == "rollout" for record in records)
    out = []
    for record in records:
        if record["record"] == "sample" and not eye:
            continue
        if record["record"] == "step":
            kept = {name: record[name] for name in KEPT if name in record}
            kept = {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in kept.items()}
            record = {"record": "step", "step": record["step"], **kept}
        out.append(record)
    return pack(out)


def base_model(name: str, folder: Path, say: Callable[[str], None] = print) -> Path:
    """The folder of a base model that is not shipped, trained if it is not there."""
    path = folder / name
    if not (path / "model.safetensors").is_file():
        say(f"training the base model for {name}: {BASES[name].steps} steps")
        model, tokenizer, _ = train_base(TASKS[name], BASES[name], device="cpu")
        save(model, tokenizer, path)
    return path


def origin(name: str) -> str:
    """How a base model that is not shipped was made, for a header."""
    return f"{BASES[name].steps} supervised steps of {BASES[name].batch} on {name}, from scratch"


def make(name: str, seed: int, out: Path, bases: Path, progress: bool = True) -> Path:
    """Makes one run, unless it is there: OUT/NAME_seedN.jsonl. Raises BadInput on a name."""
    if name not in SHIPPED_RUNS:
        raise BadInput(f"shipped run: there is no {name!r}; known: {', '.join(SHIPPED_RUNS)}")
    path, wanted = out / f"{name}_seed{seed}.jsonl", SHIPPED_RUNS[name]
    if path.exists():
        return path
    own = wanted.model in BASES
    where = base_model(wanted.model, bases) if own else data_folder().parent / wanted.model
    model, tokenizer = load(where, device="cpu")
    said = origin(wanted.model) if own else wanted.model
    records = train(
        model,
        tokenizer,
        TASKS[wanted.task],
        wanted.objective,
        replace(wanted.recipe, seed=seed),
        reward=wanted.find_reward(),
        model_name=said,
        progress=progress,
    )
    temporary = path.with_suffix(".tmp")
    temporary.write_text("".join(map(line, reduced(records))), encoding="utf-8")
    temporary.replace(path)
    return path


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0, or 2 with one sentence on stderr when the input was bad."""
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.training.studies.shipped_runs", description=__doc__
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seeds", type=int, nargs="*", help="all of the run's without it")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder for the runs")
    args = parser.parse_args(arguments)
    for name in args.names or SHIPPED_RUNS:
        wanted = SHIPPED_RUNS.get(name)
        if not args.names:
            print(f"{name:24s} seeds {wanted.seeds}  {wanted.objective!r}")
            continue
        try:
            args.out.mkdir(parents=True, exist_ok=True)
            seeds = args.seeds if args.seeds is not None else wanted.seeds if wanted else (0,)
            for seed in seeds:
                bases = args.out.with_name(args.out.name + "-bases")
                print(make(name, seed, args.out, bases), flush=True)
        except BadInput as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
