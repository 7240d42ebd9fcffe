"""Does a weak check teach a model to forget, or does it only not stop it? Page 16.

    python -m rlnb.training.studies.three_pays FILE
    python -m rlnb.training.studies.three_pays FILE --penalty
    python -m rlnb.training.studies.three_pays FILE --nats

The sorting model of `sort_is_sorted` (shipped_runs) is trained with three pays: the right list,
any list in order, and a coin that pays 4 of 5 answers whatever they say. Each with the recorded
run's learning rate, and with a tenth of it for ten times as many steps. Kept: the share of
held-out problems solved, at every evaluation, of each seed. All start from one base, trained
first. One thread, on the CPU, ten minutes. With `--penalty`, fifteen minutes: without and with a KL
penalty (k3 in the loss), all three pays at the recorded rate, and the right list at a tenth of it.
With `--nats`, five minutes: runs at the recorded rate again, with their KL to the base.
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

__all__ = ["COIN", "main", "penalised", "solved", "three_pays", "with_nats"]

COIN = 0.8  # about what the weak check pays before training
SEEDS, BETAS = (0, 1, 2), (0.0, 0.1, 1.0)
LENGTHS = ((3e-4, 40), (3e-5, 400))  # learning rate, steps: the recorded run's, and a tenth


def solved(
    bases: Path, pay: str, rate: float, steps: int, seed: int, points: int = 4, beta: float = 0.0
) -> list[float]:
    """Share of held-out problems solved, before training and at `points` evaluations.

    pay: "right list", "in order" or "coin". beta: the strength of k3 in the loss, 0 for none.
    """
    records = _records(bases, pay, rate, steps, seed, points, beta)
    return [r["pass@1"] for r in records if r["record"] == "eval"]


def _records(
    bases: Path, pay: str, rate: float, steps: int, seed: int, points: int, beta: float
) -> list[dict]:
    run = SHIPPED_RUNS["sort_is_sorted"]
    coin = random.Random(seed)
    pays = {
        "right list": None,
        "in order": run.find_reward(),
        "coin": lambda problem, answer: float(coin.random() < COIN),
    }
    model, tokenizer = load(base_model(run.model, bases), device="cpu")
    return train(
        model,
        tokenizer,
        TASKS[run.task],
        run.objective.replace(terms=k3(beta)) if beta else run.objective,
        replace(run.recipe, seed=seed, steps=steps, learning_rate=rate, eval_every=steps // points),
        reward=pays[pay],
        model_name=origin(run.model),
    )


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


def with_nats(bases: Path) -> dict:
    """{"made", "runs": [{"pay", "beta", "seed", "nats", "solved"}, ...]}, at the recorded rate.

    solved: at every evaluation. nats: KL to the base per answer there, by k3 over the policy's own
    64 answers. Without a penalty the coin and "in order" are measured after each of the first seven
    steps. All other runs take 40 steps and four evaluations; their nats are means over the nine
    steps around, at the end over the last four. beta 0 stands for 1e-9, which moves nothing and
    makes the loop record a KL.
    """
    runs = []
    for pay in ("coin", "in order", "right list"):
        for beta in BETAS:
            short = beta == 0 and pay != "right list"
            steps, points, near = (8, 8, 0) if short else (40, 4, 4)
            for seed in SEEDS:
                records = _records(bases, pay, LENGTHS[0][0], steps, seed, points, beta or 1e-9)
                right = [r["pass@1"] for r in records if r["record"] == "eval"]
                kl = [r["kl"] * r["completions/mean_length"] for r in records if "kl" in r]
                # kl[i] is measured before step i + 1, on the policy of the evaluation after step i
                marks = range(0, steps + 1, steps // points)[: len(right) - short]
                around = [kl[max(m - near, 0) : m + near + 1] for m in marks]
                nats = [0.0, *(sum(few) / len(few) for few in around[1:])]
                right = right[: len(nats)]
                runs.append({"pay": pay, "beta": beta, "seed": seed,
                             "nats": [round(x, 3) for x in nats], "solved": right})  # fmt: skip
    made = "Dr. GRPO and k3, 64 answers a step, learning rate 3e-4, from one base"
    return {"made": made, "runs": runs}


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0."""
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.training.studies.three_pays", description=__doc__
    )
    parser.add_argument("file", type=Path, help="a new .json file")
    parser.add_argument("--penalty", action="store_true", help="the runs with a KL penalty")
    parser.add_argument("--nats", action="store_true", help="runs with their KL to the base")
    args = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        study = with_nats if args.nats else penalised if args.penalty else three_pays
        found = study(Path(folder))
    args.file.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
