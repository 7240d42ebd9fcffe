"""How often a model is right among many answers to a problem, before and after training.

    python -m rlnb.training.studies.many_answers data/runs/chain_many_answers.json

samples 32 answers to each held-out problem from the shipped model, trains it with
`chain_dr_grpo_seedN`'s recipe for each seed, and samples again. Two counts a problem: answers that
end right, and answers that are *written out*, with every step of the problem right too. A guesser
of ten digits earns the first and hardly ever the second. `solved` reads the file, `pass_at` is
pass@k without bias (Chen et al. 2021, arXiv 2107.03374, equation 1).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from rlnb.objective import ZOO
from rlnb.shipped import data_folder
from rlnb.training.errors import BadInput
from rlnb.training.evaluation import pass_at_k, pass_rate
from rlnb.training.loop import train
from rlnb.training.metrics_file import environment
from rlnb.training.models.loading import load
from rlnb.training.recipe import Recipe
from rlnb.training.tasks import TASKS
from rlnb.training.tasks.chain import modulo_ten
from rlnb.training.tasks.task import Problem

__all__ = ["ANSWERS", "main", "measure", "pass_at", "solved", "written_out"]

ANSWERS, PROMPTS, SEEDS = 32, 250, (0, 1, 2)


def pass_at(k: int, right: Sequence[int], answers: int = ANSWERS) -> float:
    """Mean over problems of the chance that k of the `answers` hold a right one; k drawn without
    replacement. right: how many of each problem's answers were right.

    >>> pass_at(1, [1, 3], 4), pass_at(2, [1, 3], 4), pass_at(4, [0, 1], 4)
    (0.5, 0.75, 0.5)
    """
    if not 1 <= k <= answers:
        raise BadInput(f"pass_at: k is {k}, expected 1 to {answers}, the answers there are")
    return sum(pass_at_k(answers, c, k) for c in right) / len(right)


WRITTEN = "written out, "
REPAIRED = re.compile(r"\d[-+*]\d=\dwait")


def written_out(problem: Problem, text: str) -> bool:
    """Whether the answer has every step of the problem, all right, and the right end.

    A step that was taken back with `wait` does not count.

    >>> problem = TASKS["chain"].parse("4+3-8=?")
    >>> [written_out(problem, text) for text in ("4+3=7,7-8=9so9", "so9", "4+3=1,1-8=9so9")]
    [True, False, False]
    >>> written_out(problem, "4+3=1wait4+3=7,7-8=9so9")
    True
    """
    body = problem.prompt.removesuffix("=?")
    value, steps = int(body[0]), []
    for operator, digit in zip(body[1::2], body[2::2], strict=True):
        result = modulo_ten(value, operator, int(digit))
        steps.append(f"{value}{operator}{digit}={result}")
        value = result
    return REPAIRED.sub("", text) == ",".join(steps) + f"so{problem.answer}"


def solved(path: str | Path, written: bool = False) -> dict[str, list[int]]:
    """{"base": [...], "seed 0": [...], ...}: right answers of 32, problem by problem.

    written: only those that are `written_out`.
    """
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    rows = {name: row for name, row in found.items() if name != "header"}
    return {
        name.removeprefix(WRITTEN): row
        for name, row in rows.items()
        if name.startswith(WRITTEN) == written
    }


def measure(path: Path, recipe: Recipe, prompts: int = PROMPTS, answers: int = ANSWERS) -> None:
    """Writes what `path` lacks: the base, then a trained model for each seed."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    task = TASKS["chain"]
    for name in ("base", *(f"seed {seed}" for seed in SEEDS)):
        if name in found:
            continue
        model, tokenizer = load(data_folder() / "model")
        if name != "base":
            train(model, tokenizer, task, ZOO["dr_grpo"], replace(recipe, seed=int(name[5:])),
                  progress=False)  # fmt: skip
        found.setdefault("header", {"task": "chain", "objective": "dr_grpo", "answers": answers,
                                    **environment(model.device)})  # fmt: skip
        given = pass_rate(model, tokenizer, task, prompts=prompts, num_generations=answers)
        found[name] = [int(n) for n in given.right.sum(1)]
        found[WRITTEN + name] = [
            sum(written_out(problem, text) for text in given.texts[i * answers : (i + 1) * answers])
            for i, problem in enumerate(given.problems)
        ]
        lines = [f" {json.dumps(key)}: {json.dumps(row)}" for key, row in found.items()]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        print(name, *(f"pass@{k} {pass_at(k, found[name], answers):.3f}" for k in (1, answers)))


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.training.studies.many_answers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", type=Path, help="the .json file to write or to complete")
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    measure(args.path, Recipe(steps=args.steps, eval_every=0, checkpoint_every=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
