"""What a base model can do under its best prompt, and what it can do after training, per seed.

    python -m rlnb.training.controls data/runs/chain_controls.json

evaluates the shipped model, trains it with `chain_dr_grpo_seedN`'s recipe for each seed, evaluates
again, and writes one report after another. A run that was killed goes on with the report that is
missing. `split` says how much of a gain was there before.
"""

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from rlnb.objective import ZOO
from rlnb.training.errors import BadInput
from rlnb.training.evaluation import evaluate
from rlnb.training.loop import train
from rlnb.training.model import load
from rlnb.training.recipe import Recipe
from rlnb.training.record import environment
from rlnb.training.shipped import data_folder
from rlnb.training.tasks import TASKS

OBJECTIVE, TASK, SEEDS = "dr_grpo", "chain", (0, 1, 2)

Report = dict[str, float]


class Split(NamedTuple):
    """A gain in pass@1 as two parts, and what the style that was not chosen gained meanwhile.

    elicited: base with the style forced - base as it is: there before any training
    sharpened: trained - base with the style forced: fewer slips in that style
    other: the forced other style, trained - base: a skill that the reward would have had to teach
    """

    elicited: float
    sharpened: float
    other: float


def split(base: Report, trained: Report, *, style: str = "steps", other: str = "direct") -> Split:
    """The parts of trained["pass@1"] - base["pass@1"], from two reports of `evaluate`.

    elicited + sharpened is the whole gain. Raises BadInput for a report without these styles.

    >>> base = {"pass@1": 0.38, "forced/steps": 0.66, "forced/direct": 0.23}
    >>> now = {"pass@1": 0.92, "forced/steps": 0.92, "forced/direct": 0.24}
    >>> [round(part, 2) for part in split(base, now)]
    [0.28, 0.26, 0.01]
    """
    for name in (f"forced/{style}", f"forced/{other}"):
        if name not in base or name not in trained:
            raise BadInput(f"split: a report has no {name!r}; give two reports of `evaluate`")
    forced = base[f"forced/{style}"]
    return Split(
        elicited=forced - base["pass@1"],
        sharpened=trained["pass@1"] - forced,
        other=trained[f"forced/{other}"] - base[f"forced/{other}"],
    )


def reports(path: str | Path) -> dict[str, Report]:
    """{"base": report, "seed 0": report, ...} of a file that this module wrote."""
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return {name: report for name, report in found.items() if name != "header"}


def measure(path: Path, recipe: Recipe, seeds: tuple[int, ...] = SEEDS, **settings: int) -> None:
    """Writes the reports that `path` lacks, one after another. `settings` are `evaluate`'s."""
    folder, task = data_folder() / "model", TASKS[TASK]
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name in ("base", *(f"seed {seed}" for seed in seeds)):
        if name in found:
            continue
        model, tokenizer = load(folder)
        if name != "base":
            seed = int(name.removeprefix("seed "))
            train(model, tokenizer, task, ZOO[OBJECTIVE], replace(recipe, seed=seed))
        header = {"task": TASK, "objective": OBJECTIVE, "recipe": asdict(recipe), **settings}
        found.setdefault("header", header | environment(model.device))
        report = evaluate(model, tokenizer, task, **settings)
        found[name] = {key: round(value, 4) for key, value in report.items()}
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(name, found[name])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m rlnb.training.controls", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="the .json file to write or to complete")
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    measure(args.path, Recipe(steps=args.steps, eval_every=0, checkpoint_every=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
