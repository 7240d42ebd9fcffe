"""What a model answers, problem by problem, before and after training.

    python -m rlnb.training.studies.kept_answers chain data/runs/chain_kept_answers.json
    python -m rlnb.training.studies.kept_answers countdown data/runs/countdown_kept_answers.json
    python -m rlnb.training.studies.kept_answers fresh data/runs/chain_fresh_answers.json
    python -m rlnb.training.studies.kept_answers cooled data/runs/countdown_cooled.json

samples many answers to each held-out problem from the base, trains it with a recorded run's recipe
for each seed, and samples again. Of every answer one character is kept: on `chain` the digit that
it ends in, on `countdown` 1 for right and 0 for wrong; a dot where the answer cannot be read or was
cut off. A problem is a line of characters. `kept` reads the file, `right_counts` counts, `fisher`
says whether two counts differ by more than chance. `fresh` are more answers of the base alone: what
was chosen by the others is judged by these. `cooled` are the models of `countdown`, greedy (T = 0)
and at seven temperatures.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path
from typing import Any

import torch

from rlnb.objective import ZOO, Objective
from rlnb.shipped import data_folder
from rlnb.training.evaluation import Answers, pass_rate
from rlnb.training.loop import train
from rlnb.training.metrics_file import environment
from rlnb.training.models.loading import load
from rlnb.training.recipe import Recipe
from rlnb.training.sampling.sampler import Sampling
from rlnb.training.studies.shipped_runs import COUNTDOWN, base_model, origin
from rlnb.training.tasks import TASKS

__all__ = ["STUDIES", "Study", "fisher", "kept", "main", "measure", "right_counts", "trained"]

SEEDS = (0, 1, 2)
NO_ANSWER = "."


def _digit(problem: Any, text: str, right: float) -> str:
    last = text.rpartition("so")[2]
    return last if len(last) == 1 and last in "0123456789" else NO_ANSWER


def _verdict(problem: Any, text: str, right: float) -> str:
    return "1" if right else "0"


@dataclass(frozen=True)
class Study:
    """A task, what is trained on it, how many problems and answers, and what is kept of one."""

    task: str
    objective: Objective
    recipe: Recipe
    problems: int
    answers: int
    letter: Callable[[Any, str, float], str]
    temperatures: tuple[float, ...] = (1.0,)
    seed: int = 99  # of the sampling
    trained: bool = True  # False: the base alone


_COUNTDOWN = Study("countdown", ZOO["grpo"].replace(terms=()), COUNTDOWN, 64, 64, _verdict)
STUDIES = {
    "chain": Study("chain", ZOO["dr_grpo"], Recipe(), 250, 32, _digit),
    "countdown": _COUNTDOWN,
    "temperature": replace(_COUNTDOWN, temperatures=(1.0, 0.5, 1.5, 2.0)),
    # the models of "countdown", greedy and sampled, on answers of their own
    "cooled": replace(_COUNTDOWN, temperatures=(0.0, 0.2, 0.35, 0.5, 0.7, 1.0, 1.25, 1.5), seed=98),
    "fresh": Study("chain", ZOO["dr_grpo"], Recipe(), 250, 288, _digit, seed=100, trained=False),
}


def kept(path: str | Path) -> tuple[str, dict[str, list[str]]]:
    """The right characters, one a problem, and {"base": lines, "seed 0": lines, ...}.

    Raises FileNotFoundError where there is no such file.
    """
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return found["right"], {k: v for k, v in found.items() if k not in ("header", "right")}


def right_counts(right: str, lines: list[str]) -> list[int]:
    """How many answers of each problem are right.

    >>> right_counts("71", ["7772", "0110"])
    [3, 2]
    """
    return [line.count(letter) for letter, line in zip(right, lines, strict=True)]


def fisher(a: int, b: int, n: int) -> float:
    """The p-value of Fisher's exact test, two-sided: a of n right before, b of n after.

    >>> round(fisher(3, 3, 4), 3), round(fisher(0, 4, 4), 4)
    (1.0, 0.0286)
    """
    rows = [comb(n, i) * comb(n, a + b - i) for i in range(max(0, a + b - n), min(n, a + b) + 1)]
    seen = comb(n, a) * comb(n, b)
    return sum(row for row in rows if row <= seen) / comb(2 * n, a + b)


def _lines(study: Study, answers: Answers) -> list[str]:
    size, letters = study.answers, []
    for i, text in enumerate(answers.texts):
        problem, place = answers.problems[i // size], (i // size, i % size)
        done = bool(answers.finished[place])
        one = study.letter(problem, text, answers.right[place].item())
        letters.append(one if done else NO_ANSWER)
    return ["".join(letters[i : i + size]) for i in range(0, len(letters), size)]


def trained(study: Study, name: str, bases: Path):
    """Model and tokenizer of "base", or of "seed 0": what the study's recipe makes of the base."""
    own = study.task == "countdown"
    where = base_model(study.task, bases) if own else data_folder() / "model"
    model, tokenizer = load(where, device="cpu")
    if name != "base":
        recipe = replace(study.recipe, seed=int(name[5:]), eval_every=0, checkpoint_every=0)
        train(model, tokenizer, TASKS[study.task], study.objective, recipe, progress=False)
    return model, tokenizer


def measure(study: Study, path: Path, bases: Path) -> None:
    """Writes what `path` lacks: the base, then a trained model for each seed."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    task, own = TASKS[study.task], study.task == "countdown"
    recipe = study.recipe
    for name in ("base", *(f"seed {seed}" for seed in SEEDS if study.trained)):
        rows = {name if T == 1 else f"{name}, T = {T}": T for T in study.temperatures}
        if rows.keys() <= found.keys():
            continue
        model, tokenizer = trained(study, name, bases)
        for row, T in rows.items():
            sampling = Sampling(temperature=T, max_new_tokens=recipe.max_completion_length)
            answers = pass_rate(model, tokenizer, task, prompts=study.problems,
                                num_generations=study.answers, sampling=sampling,
                                seed=study.seed)  # fmt: skip
            found.setdefault("header", {
                "task": study.task, "model": origin(study.task) if own else "data/model",
                "objective": repr(study.objective), "steps": recipe.steps, "answers": study.answers,
                **environment(model.device),
            })  # fmt: skip
            graded = "".join(p.answer for p in answers.problems)
            found.setdefault("right", "1" * study.problems if own else graded)
            found[row] = _lines(study, answers)
            path.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
            print(row, f"pass@1 {answers.right.mean().item():.3f}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.training.studies.kept_answers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("study", choices=sorted(STUDIES))
    parser.add_argument("path", type=Path, help="the .json file to write or to complete")
    parser.add_argument("--bases", type=Path, default=Path("runs-bases"), help="folder for bases")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    measure(STUDIES[args.study], args.path, args.bases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
