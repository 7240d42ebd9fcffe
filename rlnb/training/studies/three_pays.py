"""Does a weak check teach a model to forget, or does it only not stop it? Page 16.

    python -m rlnb.training.studies.three_pays FILE
    python -m rlnb.training.studies.three_pays FILE --penalty

The sorting model of `sort_is_sorted` (shipped_runs) is trained with three pays: the right list,
any list in order, and a coin that pays 4 of 5 answers whatever they say. Each with the recorded
run's learning rate, and with a tenth of it for ten times as many steps. Kept: the share of
held-out problems solved, at every evaluation, of each seed. All start from one base, trained
first. One thread, on the CPU, ten minutes. With `--penalty`, fifteen minutes: without and with a KL
penalty (k3 in the loss), all three pays at the recorded rate, and the right list at a tenth of it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from rlnb.objective import k3
from rlnb.training.loop import train
from rlnb.training.models.loading import load
from rlnb.training.studies.shipped_runs import SHIPPED_RUNS, base_model, origin
from rlnb.training.tasks import TASKS

__all__ = ["COIN", "main", "penalised", "solved", "three_pays"]

COIN = 0.8  # about what the weak check pays before training
SEEDS, BETAS = (0, 1, 2), (0.0, 0.1, 1.0)
LENGTHS = ((3e-4, 40), (3e-5, 400))  # learning rate, steps: the recorded run's, and a tenth


def solved(
    bases: Path, pay: str, rate: float, steps: int, seed: int, points: int = 4, beta: float = 0.0
) -> list[float]:
    """Share of held-out problems solved, before training and at `points` evaluations.

    pay: "right list", "in order" or "coin". beta: the strength of k3 in the loss, 0 for none.
    """
    run = SHIPPED_RUNS["sort_is_sorted"]
    coin = random.Random(seed)
    pays = {
        "right list": None,
        "in order": run.find_reward(),
        "coin": lambda problem, answer: float(coin.random() < COIN),
    }
    model, tokenizer = load(base_model(run.model, bases), device="cpu")
    records = train(
        model,
        tokenizer,
        TASKS[run.task],
        run.objective.replace(terms=k3(beta)) if beta else run.objective,
        replace(run.recipe, seed=seed, steps=steps, learning_rate=rate, eval_every=steps // points),
        reward=pays[pay],
        model_name=origin(run.model),
    )
    return [r["pass@1"] for r in records if r["record"] == "eval"]


def three_pays(bases: Path) -> dict:
    """{"made": a sentence, "runs": [{"pay", "learning_rate", "steps", "seed", "solved"}, ...]}."""
    runs = [
        {"pay": pay, "learning_rate": rate, "steps": steps, "seed": seed,
         "solved": solved(bases, pay, rate, steps, seed)}
        for rate, steps in LENGTHS
        for pay in ("right list", "in order", "coin")
        for seed in SEEDS
    ]  # fmt: skip
    made = f"Dr. GRPO, 64 answers a step, from {origin(SHIPPED_RUNS['sort_is_sorted'].model)}"
    return {"made": made, "runs": runs}


def penalised(bases: Path) -> dict:
    """As `three_pays`, with "beta" in each run; at a tenth of the rate only the right list."""
    fast, slow = LENGTHS
    studied = [(pay, *fast) for pay in ("in order", "coin", "right list")]
    runs = [
        {"pay": pay, "learning_rate": rate, "steps": steps, "beta": beta, "seed": seed,
         "solved": solved(bases, pay, rate, steps, seed, beta=beta)}
        for pay, rate, steps in (*studied, ("right list", *slow))
        for beta in BETAS
        for seed in SEEDS
    ]  # fmt: skip
    made = "Dr. GRPO and k3, 64 answers a step, from one base, trained as for three_pays"
    return {"made": made, "runs": runs}


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0."""
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.training.studies.three_pays", description=__doc__
    )
    parser.add_argument("file", type=Path, help="a new .json file")
    parser.add_argument("--penalty", action="store_true", help="the runs with a KL penalty")
    args = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        found = (penalised if args.penalty else three_pays)(Path(folder))
    args.file.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
