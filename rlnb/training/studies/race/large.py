"""One run of the shipped 0.3M models, as a run of the race: chain and pick."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from rlnb.objective import Objective
from rlnb.shipped import data_folder
from rlnb.training.recipe import Recipe

__all__ = ["LargeArm", "run_large"]

LAST = 10  # steps over which lengths are averaged


@dataclass(frozen=True)
class LargeArm:
    """A run of `rlnb.training.train`. There is one base for each task: seeds share it."""

    objective: Objective
    recipe: Recipe
    task: str = "chain"
    model: str = "model"
    ladder: str = "AdamW"


def run_large(arm: LargeArm, seed: int, rate: float) -> dict[str, Any]:
    """Trains and measures; a record like `small.run`'s. Takes 10 to 60 CPU seconds."""
    from rlnb.training.loop import train
    from rlnb.training.models.loading import load
    from rlnb.training.tasks import TASKS

    began = time.process_time()
    model, tokenizer = load(data_folder() / arm.model, device="cpu")
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
