"""What a model writes when only the order of its numbers is paid, page 16.

    python -m rlnb.training.studies.hacked_answers FILE

Repeats seed 0 of `sort_is_sorted` (shipped_runs), which trains its base first, and keeps what that
run drops: four held-out prompts and the answers to them at every evaluation. One thread, on the
CPU, a minute.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from rlnb.training.loop import train
from rlnb.training.models.loading import load
from rlnb.training.studies.shipped_runs import SHIPPED_RUNS, base_model, origin
from rlnb.training.tasks import TASKS

__all__ = ["answers", "main"]


def answers(bases: Path) -> dict:
    """{"made": a sentence, "answers": [{"step", "prompt", "completion", "reward"}, ...]}.

    reward is the task's own, the truth, not the weak one that was paid.
    """
    run = SHIPPED_RUNS["sort_is_sorted"]
    model, tokenizer = load(base_model(run.model, bases), device="cpu")
    task = TASKS[run.task]
    records = train(
        model,
        tokenizer,
        task,
        run.objective,
        replace(run.recipe, seed=0),
        reward=run.find_reward(),
        model_name=origin(run.model),
    )
    kept = ("step", "prompt", "completion", "reward")
    samples = [{name: r[name] for name in kept} for r in records if r["record"] == "sample"]
    return {"made": f"sort_is_sorted, seed 0, from {origin(run.model)}", "answers": samples}


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0."""
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.training.studies.hacked_answers", description=__doc__
    )
    parser.add_argument("file", type=Path, help="a new .json file")
    args = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        found = answers(Path(folder))
    args.file.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
