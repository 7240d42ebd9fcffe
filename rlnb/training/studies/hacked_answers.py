"""What a model writes when only the order of its numbers is paid, page 16.

    python -m rlnb.training.studies.hacked_answers FILE

Repeats seed 0 of `sort_is_sorted` (shipped_runs), which trains its base first, and keeps what that
run drops: four held-out prompts and the answers to them at every evaluation. Before that it counts
how often the base's answers are paid, by how many of the given numbers they keep. One thread, on
the CPU, two minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from rlnb.training.loop import train
from rlnb.training.models.loading import load
from rlnb.training.sampling.prompts import encode_prompts
from rlnb.training.sampling.sampler import Sampling, sample
from rlnb.training.studies.shipped_runs import SHIPPED_RUNS, base_model, origin
from rlnb.training.tasks import TASKS

__all__ = ["answers", "main", "paid_before"]


def paid_before(bases: Path, prompts: int = 512) -> dict[str, list[int]]:
    """Given numbers that an answer keeps -> [answers, paid ones], of the base, 8 to a prompt."""
    run = SHIPPED_RUNS["sort_is_sorted"]
    model, tokenizer = load(base_model(run.model, bases), device="cpu")
    task, paid, rng = TASKS[run.task], run.find_reward(), random.Random(0)
    asked = [task.problem(rng, "train") for _ in range(prompts)]
    rollout = sample(
        model, encode_prompts(tokenizer, [p.prompt for p in asked]), 8,
        Sampling(max_new_tokens=run.recipe.max_completion_length), eos_id=tokenizer.eos_token_id,
        pad_id=tokenizer.pad_token_id, generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    found: dict[int, list[int]] = {}
    for i, text in enumerate(rollout.texts(tokenizer)):
        given = Counter(asked[i // 8].prompt.rstrip("?").split(","))
        tally = found.setdefault((given & Counter(text.split(","))).total(), [0, 0])
        tally[0] += 1
        tally[1] += paid(asked[i // 8], text) > 0
    return {str(kept): found[kept] for kept in sorted(found)}


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
        found = answers(Path(folder)) | {"paid_before": paid_before(Path(folder))}
    args.file.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
