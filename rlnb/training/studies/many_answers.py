"""How often a model is right among many answers to a problem, before and after training.

    python -m rlnb.training.studies.many_answers data/runs/chain_many_answers.json

samples 32 answers to each held-out problem from the shipped model, trains it with
`chain_dr_grpo_seedN`'s recipe for each seed, and samples again; with `--right-only` nothing pushes
wrong answers (`style_curves.RIGHT_ONLY`). `solved` reads the file, `parts` which of the right
answers were direct and which were right in every step; `pass_at` is pass@k without bias (Chen et
al. 2021, arXiv 2107.03374, equation 1).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from rlnb.objective import ZOO, Objective
from rlnb.shipped import data_folder
from rlnb.training.errors import BadInput
from rlnb.training.evaluation import pass_at_k, pass_rate
from rlnb.training.loop import train
from rlnb.training.metrics_file import environment
from rlnb.training.models.loading import load
from rlnb.training.recipe import Recipe
from rlnb.training.studies.command import to_complete
from rlnb.training.studies.style_curves import RIGHT_ONLY
from rlnb.training.tasks import TASKS, Chain, Problem

__all__ = ["ANSWERS", "clean", "main", "measure", "parts", "pass_at", "rate", "shares", "solved"]

ANSWERS, PROMPTS, SEEDS = 32, 250, (0, 1, 2)
TAKEN_BACK = re.compile(r"\d[-+*]\d=\dwait,?")  # a step that is written again after it


def pass_at(k: int, right: Sequence[int], answers: int = ANSWERS) -> float:
    """Mean over problems of the chance that k of the `answers` hold a right one; k drawn without
    replacement. right: how many of each problem's answers were right.

    >>> pass_at(1, [1, 3], 4), pass_at(2, [1, 3], 4), pass_at(4, [0, 1], 4)
    (0.5, 0.75, 0.5)
    """
    if not 1 <= k <= answers:
        raise BadInput(f"pass_at: k is {k}, expected 1 to {answers}, the answers there are")
    return sum(pass_at_k(answers, c, k) for c in right) / len(right)


def clean(problem: Problem, text: str) -> bool:
    """Whether an answer to a `chain` problem ends right and writes every step, each of them right.

    A step that is taken back with `wait` does not count.

    >>> problem = TASKS["chain"].parse("4+3-8=?")
    >>> answers = ("4+3=7,7-8=9so9", "4+3=1wait4+3=7,7-8=9so9", "4+3=1,1-8=9so9", "so9")
    >>> [clean(problem, text) for text in answers]
    [True, True, False, False]
    """
    chain, body = Chain(), problem.prompt.removesuffix("=?")
    value, steps = body[0], []
    for operator, digit in zip(body[1::2], body[2::2], strict=True):
        asked = f"{value}{operator}{digit}="
        value = chain.parse(f"{asked}?").answer
        steps.append(asked + value)
    return TAKEN_BACK.sub("", text) == ",".join(steps) + "so" + problem.answer


def solved(path: str | Path) -> dict[str, list[int]]:
    """{"base": [...], "seed 0": [...], ...}: right answers of 32, problem by problem."""
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return {name: row for name, row in found.items() if name not in ("header", "parts")}


def parts(path: str | Path) -> dict[str, dict[str, list[int]]]:
    """{"base": {"direct": [...], "direct, right": [...], "clean": [...]}, ...}: of the same 32
    answers, how many were direct, direct and right, right in every step; problem by problem.
    """
    return json.loads(Path(path).read_text(encoding="utf-8"))["parts"]


def rate(right: Sequence[int], answers: int = ANSWERS) -> tuple[float, float]:
    """pass@1 and its standard error. The answers to one problem are alike, so problems are counted.

    >>> rate([4, 0], 4)
    (0.5, 0.5)
    """
    mean = sum(right) / len(right)
    variance = sum((c - mean) ** 2 for c in right) / (len(right) - 1) / len(right)
    return mean / answers, variance**0.5 / answers


def shares(path: str | Path, name: str, answers: int = ANSWERS) -> dict[str, float]:
    """{"d": share of direct answers, "direct": right among them, "steps": right among the others}.

    pass@1 = d direct + (1 - d) steps, exactly.
    """
    part, right = parts(path)[name], sum(solved(path)[name])
    direct, lucky = sum(part["direct"]), sum(part["direct, right"])
    every = len(part["direct"]) * answers
    return {
        "d": direct / every,
        "direct": lucky / direct,
        "steps": (right - lucky) / (every - direct),
    }


def measure(
    path: Path,
    recipe: Recipe,
    prompts: int = PROMPTS,
    answers: int = ANSWERS,
    objective: Objective = ZOO["dr_grpo"],
) -> None:
    """Writes what `path` lacks: the base, then a trained model for each seed."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    task = TASKS["chain"]
    for name in ("base", *(f"seed {seed}" for seed in SEEDS)):
        if name in found:
            continue
        model, tokenizer = load(data_folder() / "model")
        if name != "base":
            train(model, tokenizer, task, objective, replace(recipe, seed=int(name[5:])),
                  progress=False)  # fmt: skip
        found.setdefault("header", {"task": "chain", "objective": repr(objective),
                                    "answers": answers, **environment(model.device)})  # fmt: skip
        drawn = pass_rate(model, tokenizer, task, prompts=prompts, num_generations=answers)
        direct = torch.tensor([text.startswith("so") for text in drawn.texts])
        stepped = torch.tensor(
            [clean(drawn.problems[i // answers], text) for i, text in enumerate(drawn.texts)]
        )
        direct, stepped = (kind.view(-1, answers) for kind in (direct, stepped))
        table = {"direct": direct, "direct, right": direct * drawn.right, "clean": stepped}
        found[name] = [int(n) for n in drawn.right.sum(1)]
        found.setdefault("parts", {})[name] = {
            key: [int(n) for n in kind.sum(1)] for key, kind in table.items()
        }
        lines = [f" {json.dumps(key)}: {json.dumps(row)}" for key, row in found.items()]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        print(name, *(f"pass@{k} {pass_at(k, found[name], answers):.3f}" for k in (1, answers)))


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = to_complete("many_answers", __doc__)
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    parser.add_argument("--right-only", action="store_true")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    recipe = Recipe(steps=args.steps, eval_every=0, checkpoint_every=0)
    measure(args.path, recipe, objective=RIGHT_ONLY if args.right_only else ZOO["dr_grpo"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
