"""Pay for right direct answers alone, for ten times as long: does the small model learn them?

    python -m rlnb.training.studies.direct_only data/runs/chain_direct_only.json

chain_dr_grpo's recipe for 400 steps, with the verifier's reward for a direct answer and 0 for one
with steps. A row for each of STEPS: `forced/direct`, right ones of 8 forced direct answers to each
of 250 held-out problems, and the share `direct` of such answers when the style is free. Three
seeds, one after another; a killed run goes on with the seed that is missing (2 CPU minutes).
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from rlnb.objective import ZOO
from rlnb.shipped import data_folder
from rlnb.training.evaluation import pass_rate
from rlnb.training.loop import train
from rlnb.training.metrics_file import environment
from rlnb.training.models.loading import load
from rlnb.training.recipe import Recipe
from rlnb.training.studies.command import to_complete
from rlnb.training.tasks import TASKS, Problem

__all__ = ["SEEDS", "STEPS", "main", "measure", "reports", "right_and_direct"]

SEEDS = (0, 1, 2)
STEPS = (0, 20, 40, 100, 200, 400)


def right_and_direct(problem: Problem, text: str) -> float:
    """1.0 for a right answer without steps, 0.0 for any other.

    >>> problem = TASKS["chain"].parse("4+3-8=?")
    >>> [right_and_direct(problem, text) for text in ("so9", "4+3=7,7-8=9so9", "so8")]
    [1.0, 0.0, 0.0]
    """
    return TASKS["chain"].verify(problem, text) * text.startswith("so")


def reports(path: str | Path) -> list[list[dict[str, float]]]:
    """For each seed its rows, in the order of their steps."""
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return [found[f"seed {seed}"] for seed in SEEDS if f"seed {seed}" in found]


def measure(
    path: Path, at: tuple[int, ...] = STEPS, seeds: tuple[int, ...] = SEEDS, prompts: int = 250
) -> None:
    """Writes the seeds that `path` lacks; `at`: the steps that are looked at, the last one ends."""
    task, recipe = TASKS["chain"], Recipe(steps=at[-1], eval_every=0, checkpoint_every=0)
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for seed in seeds:
        if f"seed {seed}" in found:
            continue
        model, tokenizer = load(data_folder() / "model", device="cpu")
        found.setdefault("header", {"recipe": asdict(recipe)} | environment(model.device))
        rows: list[dict[str, float]] = []

        def look(record: dict[str, Any], model=model, tokenizer=tokenizer, rows=rows) -> None:
            step = 0 if record["record"] == "header" else record["step"]
            if record["record"] not in ("header", "step") or step not in at:
                return
            many = {"prompts": prompts, "num_generations": 8}
            forced = pass_rate(model, tokenizer, task, style="direct", **many).right
            texts = pass_rate(model, tokenizer, task, **many).texts
            direct = sum(text.startswith("so") for text in texts) / len(texts)
            rows.append({"step": step, "forced/direct": round(forced.mean().item(), 4),
                         "direct": round(direct, 4)})  # fmt: skip

        own = Recipe(steps=at[-1], eval_every=0, checkpoint_every=0, seed=seed)
        train(model, tokenizer, task, ZOO["dr_grpo"], own, reward=right_and_direct, watch=look)
        found[f"seed {seed}"] = rows
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"seed {seed}", rows[-1])


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    args = to_complete("direct_only", __doc__).parse_args(arguments)
    torch.set_num_threads(1)
    measure(args.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
