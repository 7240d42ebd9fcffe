"""Dynamic sampling late in training, where six groups of ten are silent.

    python -m rlnb.training.studies.late_refill data/runs/chain_late_refill.json

Each seed starts where its run `chain_dr_grpo` ends and trains on with a new optimizer, 8 groups a
step: "plain" takes the groups that come, "refilled" draws on until 8 are mixed. "wide" is the
control: 32 groups a step as they come, about as many answers as refilled writes for its 8.
Refilled has two bills, because its steps need the same groups either way: `rounds` counts the
answers of whole rounds of 8 prompts, as they were written; `single` those up to the last group that
it needed, as if prompts had been drawn one at a time, with nothing left over.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from rlnb.objective import ZOO
from rlnb.shipped import data_folder
from rlnb.training.loop import train
from rlnb.training.metrics_file import environment
from rlnb.training.models.loading import load
from rlnb.training.recipe import Recipe
from rlnb.training.rewards import mixed_groups
from rlnb.training.studies.command import to_complete
from rlnb.training.tasks import TASKS, Problem

__all__ = ["ARMS", "Bill", "main", "measure", "needed"]

SEEDS, RATES = (0, 1, 2), (1.5e-4, 3e-4, 6e-4, 1.2e-3)
LATE = Recipe(prompts=8, eval_prompts=250, eval_generations=8, eval_greedy=False,
              checkpoint_every=0)  # fmt: skip
ARMS = {
    "plain": replace(LATE, steps=80, eval_every=20),
    "refilled": replace(LATE, steps=36, eval_every=6, max_resample=30),
    "wide": replace(LATE, prompts=32, steps=36, eval_every=6),
}


def needed(rewards: torch.Tensor, size: int, wanted: int) -> int:
    """How many groups of `size` come up to and including the mixed one number `wanted`.

    All of them where there are fewer mixed ones.

    >>> needed(torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0]), size=2, wanted=2)
    3
    """
    mixed = mixed_groups(rewards, size)
    return int(mixed[wanted - 1]) + 1 if len(mixed) >= wanted else len(rewards) // size


@dataclass
class Bill:
    """Watches a run: a row per evaluation, with the updates and answers so far."""

    recipe: Recipe
    paid: list[float] = field(default_factory=list)  # since the last step, in the order drawn
    rounds: int = 0
    single: int = 0
    rows: list[dict[str, float]] = field(default_factory=list)

    def reward(self, problem: Problem, text: str) -> float:
        """The task's verdict, noted."""
        self.paid.append(TASKS["chain"].verify(problem, text))
        return self.paid[-1]

    def watch(self, record: dict[str, Any]) -> None:
        """A record of the loop."""
        size, wanted = self.recipe.num_generations, self.recipe.prompts
        if record["record"] == "step":
            rewards = torch.tensor(self.paid)
            self.paid.clear()
            self.rounds += len(rewards)
            refills = bool(self.recipe.max_resample)
            self.single += size * needed(rewards, size, wanted) if refills else len(rewards)
        elif record["record"] == "eval":
            self.rows.append({"updates": record["step"], "rounds": self.rounds,
                              "single": self.single, "pass@1": record["pass@1"]})  # fmt: skip


def measure(path: Path, first: Recipe = Recipe(eval_every=0, checkpoint_every=0)) -> None:  # noqa: B008
    """Writes the runs that `path` lacks."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for seed in SEEDS:
        names = {f"{arm}, {rate:g}, seed {seed}": (arm, rate) for arm in ARMS for rate in RATES}
        if names.keys() <= found.keys():
            continue
        model, tokenizer = load(data_folder() / "model", device="cpu")
        train(model, tokenizer, TASKS["chain"], ZOO["dr_grpo"], replace(first, seed=seed),
              progress=False)  # fmt: skip
        start = {name: value.clone() for name, value in model.state_dict().items()}
        for name, (arm, rate) in names.items():
            if name in found:
                continue
            model.load_state_dict(start)
            recipe = replace(ARMS[arm], learning_rate=rate, seed=100 + seed)
            bill = Bill(recipe)
            train(model, tokenizer, TASKS["chain"], ZOO["dr_grpo"], recipe,
                  reward=bill.reward, watch=bill.watch, progress=False)  # fmt: skip
            found.setdefault("header", environment(model.device))
            found[name] = bill.rows
            path.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
            print(name, bill.rows[0], bill.rows[-1], flush=True)


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = to_complete("late_refill", __doc__)
    torch.set_num_threads(1)
    measure(parser.parse_args(arguments).path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
