"""What a base model can do under its best prompt, and what it can do after training, per seed.

    python -m rlnb.training.studies.controls data/runs/chain_controls.json

evaluates the shipped model, trains it with `chain_dr_grpo_seedN`'s recipe for each seed, evaluates
again, and writes one report after another; then the same with a coin for a verifier and 20 steps. A
run that was killed goes on with the report that is missing. `--coins-only` leaves the verifier's
runs out, and the learning rate and the answers of a step can be given. `split` says how much of a
gain was there before, `mixture` what each part of it does alone, `right` how often each problem was
solved.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from rlnb.objective import ZOO
from rlnb.shipped import data_folder
from rlnb.training.errors import BadInput
from rlnb.training.evaluation import evaluate, pass_rate
from rlnb.training.loop import train
from rlnb.training.metrics_file import environment
from rlnb.training.models.loading import load
from rlnb.training.recipe import Recipe
from rlnb.training.rewards import CoinFlip
from rlnb.training.sampling.sampler import Sampling
from rlnb.training.studies.command import to_complete
from rlnb.training.tasks import TASKS

__all__ = ["Split", "main", "measure", "mixture", "reports", "right", "split"]

OBJECTIVE, TASK, SEEDS = "dr_grpo", "chain", (0, 1, 2)
COIN_STEPS = 20  # as in chain_coin_flip_seedN

Report = dict[str, float]


class Split(NamedTuple):
    """A gain in pass@1 as two parts, and what the style that was not chosen gained meanwhile.

    elicited: base with the style forced - base as it is: measured without any training
    sharpened: trained - base with the style forced: the rest, whatever it is made of
    other: the forced other style, trained - base; not a part of the gain
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


def mixture(report: Report, trained: Report | None = None, change: tuple[str, ...] = ()) -> float:
    """p = d a_direct + (1 - d) a_steps of a report, the entries in `change` taken from `trained`.

    `change` names entries of a report: "direct" (the share d), "forced/direct", "forced/steps".
    Raises BadInput for another name.

    >>> base = {"direct": 0.6, "forced/direct": 0.2, "forced/steps": 0.7}
    >>> now = {"direct": 0.0, "forced/direct": 0.2, "forced/steps": 0.9}
    >>> [round(mixture(base, now, c), 2) for c in ((), ("direct",), ("forced/steps",))]
    [0.4, 0.7, 0.48]
    """
    names = ("direct", "forced/direct", "forced/steps")
    if any(name not in names for name in change):
        raise BadInput(f"mixture: change names {change}; expected some of {', '.join(names)}")
    d, direct, steps = (trained[n] if n in change and trained else report[n] for n in names)
    return d * direct + (1 - d) * steps


def reports(path: str | Path, kind: str = "seed") -> dict[str, Report]:
    """{"base": report, "seed 0": report, ...} of a file that this module wrote; kind "coin" gives
    the runs whose verifier throws a coin.
    """
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return {
        name: report
        for name, report in found.items()
        if name == "base" or name.startswith(f"{kind} ")
    }


def right(path: str | Path) -> dict[str, dict[str, list[int]]]:
    """{"base": {"free": [...], "direct": [...], "steps/greedy": [...]}, "seed 0": ...}: how many of
    a held-out problem's answers were right, problem by problem (8 answers, greedy 1).
    """
    found = json.loads(Path(path).read_text(encoding="utf-8"))["right"]
    return {
        name: {style: list(map(int, digits)) for style, digits in row.items()}
        for name, row in found.items()
    }


def _solved(model, tokenizer, task, prompts: int, num_generations: int) -> dict[str, str]:
    """A digit for each problem; the answers are those that `evaluate` counts."""
    assert num_generations < 10
    cold = Sampling(temperature=0.0)
    ways = {
        "free": {"num_generations": num_generations},
        "direct": {"num_generations": num_generations, "style": "direct"},
        "steps/greedy": {"num_generations": 1, "style": "steps", "sampling": cold},
    }
    counts = {
        name: pass_rate(model, tokenizer, task, prompts=prompts, **way).right.sum(1)
        for name, way in ways.items()
    }
    return {name: "".join(str(int(n)) for n in count) for name, count in counts.items()}


def _train(model, tokenizer, recipe: Recipe, seed: int, *, coin: bool) -> float:
    """Trains in place. Returns how far all weights together had moved after COIN_STEPS steps, or
    after the last one.
    """
    start, moved = [p.detach().clone() for p in model.parameters()], 0.0

    def look(record: dict[str, Any]) -> None:
        nonlocal moved
        if record["record"] == "step" and record["step"] <= COIN_STEPS:
            gaps = (p.detach() - p0 for p, p0 in zip(model.parameters(), start, strict=True))
            moved = sum((gap**2).sum().item() for gap in gaps) ** 0.5

    steps = COIN_STEPS if coin else recipe.steps
    train(
        model,
        tokenizer,
        TASKS[TASK],
        ZOO[OBJECTIVE],
        replace(recipe, seed=seed, steps=steps),
        reward=CoinFlip(seed) if coin else None,
        watch=look,
    )
    return moved


def measure(
    path: Path,
    recipe: Recipe,
    seeds: tuple[int, ...] = SEEDS,
    coins: tuple[int, ...] = (),
    prompts: int = 250,
    num_generations: int = 8,
) -> None:
    """Writes the reports that `path` lacks, one after another. `prompts` and `num_generations` are
    `evaluate`'s; `coins` are the seeds that train on a coin. A report of a run has `moved`, how far
    the weights were from the base's after 20 steps.
    """
    folder, task = data_folder() / "model", TASKS[TASK]
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    names = ["base", *(f"seed {seed}" for seed in seeds), *(f"coin {seed}" for seed in coins)]
    size = {"prompts": prompts, "num_generations": num_generations}
    for name in names:
        if name in found:
            continue
        model, tokenizer = load(folder)
        moved = None
        if name != "base":
            kind, seed = name.split()
            moved = _train(model, tokenizer, recipe, int(seed), coin=kind == "coin")
        header = {"task": TASK, "objective": OBJECTIVE, "recipe": asdict(recipe)}
        found.setdefault("header", header | environment(model.device))
        report = evaluate(model, tokenizer, task, **size)
        found[name] = {key: round(value, 4) for key, value in report.items()}
        if moved is not None:
            found[name]["moved"] = round(moved, 4)
        found.setdefault("right", {})[name] = _solved(model, tokenizer, task, **size)
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(name, found[name])


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = to_complete("controls", __doc__)
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    parser.add_argument("--learning-rate", type=float, default=Recipe.learning_rate)
    parser.add_argument("--prompts", type=int, default=Recipe.prompts)
    parser.add_argument("--num-generations", type=int, default=Recipe.num_generations)
    parser.add_argument("--coins-only", action="store_true")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    recipe = Recipe(
        steps=args.steps, learning_rate=args.learning_rate, prompts=args.prompts,
        num_generations=args.num_generations, eval_every=0, checkpoint_every=0,
    )  # fmt: skip
    measure(args.path, recipe, seeds=() if args.coins_only else SEEDS, coins=SEEDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
