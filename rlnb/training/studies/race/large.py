"""One run of a 0.3M model, as a run of the race: chain and pick.

The shipped models are seed 0 of `python -m rlnb.training base`. Other bases are the same command
with another seed; they are made where a row asks for them, and are not shipped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from rlnb.objective import Objective
from rlnb.shipped import data_folder
from rlnb.training.recipe import BaseRecipe, Recipe

__all__ = ["LargeArm", "base_folder", "make_bases", "run_large"]

LAST = 10  # steps over which lengths are averaged


@dataclass(frozen=True)
class LargeArm:
    """A run of `rlnb.training.train`.

    bases: seeds of the warm starts, run s takes the (s mod n)-th; none: the shipped model.
    """

    objective: Objective
    recipe: Recipe
    task: str = "chain"
    model: str = "model"
    ladder: str = "AdamW"
    bases: tuple[int, ...] = ()


def base_folder(arm: LargeArm, seed: int, made: Path) -> Path:
    """The model that run `seed` of the arm starts from; `made` holds those that do not ship."""
    if not arm.bases:
        return data_folder() / arm.model
    return made / f"{arm.task}_{arm.bases[seed % len(arm.bases)]}"


def make_bases(arms: Iterable[LargeArm], made: Path) -> dict[str, dict[str, float]]:
    """Trains the bases that are missing, 220 CPU seconds each; base -> its loss, CPU and tokens."""
    from rlnb.training.models.base_training import train_base
    from rlnb.training.models.loading import save
    from rlnb.training.tasks import TASKS

    torch.set_num_threads(1)
    found = {}
    for task, seed in sorted({(arm.task, seed) for arm in arms for seed in arm.bases}):
        folder = made / f"{task}_{seed}"
        note = folder / "spent.json"
        if not note.is_file():
            model, tokenizer, spent = train_base(
                TASKS[task], BaseRecipe(seed=seed), device="cpu", progress=False
            )
            save(model, tokenizer, folder)
            note.write_text(json.dumps(spent), encoding="utf-8")  # last: the base is whole
        found[folder.name] = json.loads(note.read_text(encoding="utf-8"))
    return found


def run_large(arm: LargeArm, seed: int, rate: float, made: Path = Path("bases")) -> dict[str, Any]:
    """Trains and measures; a record like `small.run`'s. Takes 10 to 60 CPU seconds."""
    from rlnb.training.loop import train
    from rlnb.training.models.loading import load
    from rlnb.training.tasks import TASKS

    began = time.process_time()
    model, tokenizer = load(base_folder(arm, seed, made), device="cpu")
    recipe = replace(arm.recipe, seed=seed, learning_rate=rate)
    records = train(model, tokenizer, TASKS[arm.task], arm.objective, recipe, progress=False)
    steps = [r for r in records if r["record"] == "step"]
    tests = [r for r in records if r["record"] == "eval"]
    right, wrong = (
        [v for r in steps[-LAST:] if (v := r.get(f"completions/mean_length_{name}")) is not None]
        for name in ("right", "wrong")
    )
    answers = recipe.prompts * recipe.num_generations

    def measured(evaluation: dict[str, Any]) -> dict[str, float]:
        return {"pass@1": evaluation["pass@1"], "entropy": evaluation["entropy"]}

    measures = measured(tests[-1])
    if right and wrong:
        means = sum(wrong) / len(wrong), sum(right) / len(right)
        measures |= {
            "wrong minus right length": means[0] - means[1],
            "right length": means[1],
            "wrong length": means[0],
        }
    return {
        "measures": {k: round(v, 5) for k, v in measures.items()},
        "start": measured(tests[0]),
        "curve": [[t["step"] * answers, t["step"], t["pass@1"]] for t in tests[1:]],
        "seen": {
            "mixed": round(sum(r["groups/mixed"] for r in steps) / len(steps), 3),
            # a step whose groups are all silent has no ratio
            "largest": float(f"{max(r.get('ratio/max', 1.0) for r in steps):.3g}"),
        },
        "updates": len(steps),
        "cpu": round(time.process_time() - began, 2),
    }
