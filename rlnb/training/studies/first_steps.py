"""How an answer to Countdown begins, before and after training, and whether that can end well.

    python -m rlnb.training.studies.first_steps data/runs/countdown_first_steps.json

takes the models of `kept_answers countdown` and looks at the first step that each of their 64
answers to each of the 64 held-out problems writes down, if it writes one: how many of a problem's
answers begin alike, and how many begin with a step from which the target can still be reached.
`needs_product` sorts the problems by whether adding and subtracting can do it, `settled` reads the
file, `by_problem` is the error of a mean over problems and seeds.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlnb.training.evaluation import held_out, pass_rate
from rlnb.training.metrics_file import environment
from rlnb.training.sampling.sampler import Sampling
from rlnb.training.studies.command import to_complete
from rlnb.training.studies.kept_answers import SEEDS, STUDIES, Study, trained
from rlnb.training.tasks import TASKS
from rlnb.training.tasks.countdown import Attempt, reaching
from rlnb.training.tasks.task import Problem

__all__ = [
    "agreement",
    "by_problem",
    "favourites",
    "first_step",
    "leading_steps",
    "main",
    "measure",
    "needs_product",
    "settled",
]

_STEP = re.compile(r"(\d+)([-+*])(\d+)=")


def first_step(text: str) -> str | None:
    """The first written step, sums and products in one order; None where none is written.

    >>> [first_step(text) for text in ("9-2=7,7*2=14so(9-2)*2", "9*2=18", "2*9=18", "so9+2+2")]
    ['9-2', '2*9', '2*9', None]
    """
    step = _STEP.match(text)
    if step is None:
        return None
    a, operator, b = step.groups()
    if operator != "-" and int(a) > int(b):
        a, b = b, a
    return f"{a}{operator}{b}"


def _ways(problem: Problem) -> list[Attempt]:
    numbers, target = problem.prompt.rstrip("?").split(":")
    return reaching([int(n) for n in numbers.split(",")], int(target))


def leading_steps(problems: int = 64) -> list[set[str | None]]:
    """For each of the first held-out problems: the first steps that can lead to the target.

    >>> sorted(leading_steps(3)[0])
    ['1*12', '1*2', '12-2']
    """
    found = held_out(TASKS["countdown"], problems)
    return [{first_step(str(way)) for way in _ways(problem)} for problem in found]


def needs_product(problems: int = 64) -> list[bool]:
    """For each of the first held-out problems: is there no way by adding and subtracting alone?

    >>> sum(needs_product())
    28
    """
    found = held_out(TASKS["countdown"], problems)
    return [all("*" in str(way) for way in _ways(problem)) for problem in found]


def settled(path: str | Path) -> dict[str, dict[str, Any]]:
    """{"base": {"written": [...], "commonest": [...], "leads": [...], "steps": [...]}, ...}, of a
    problem's 64 answers: those that write a first step, those that write the commonest one, those
    whose first step can still lead to the target; and {step: answers}, the commonest first.
    """
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return {name: row for name, row in found.items() if name != "header"}


def favourites(before: list[dict[str, int]], after: list[dict[str, int]]) -> tuple[float, float]:
    """Of the commonest step after training: the share of problems in which it was the commonest
    before, and its mean share of the first steps then.

    >>> favourites([{"1+2": 3, "2*3": 1}, {"4-1": 2}], [{"2*3": 4}, {"4-1": 4}])
    (0.5, 0.625)
    """
    then, part = 0.0, 0.0
    for old, new in zip(before, after, strict=True):
        favourite = max(new, key=new.get)  # the first of equals
        then += old.get(favourite, 0) == max(old.values())
        part += old.get(favourite, 0) / sum(old.values())
    return then / len(after), part / len(after)


def agreement(steps: list[dict[str, int]], draws: int = 2000, seed: int = 0) -> tuple[float, float]:
    """How often luck alone would change a problem's commonest step: the share of problems in which
    a second sample, drawn anew from the first one's shares, has the commonest of the first; and in
    which two such samples have the same. The shares are estimates, so the truth may lie lower.

    >>> agreement([{"1+2": 9}, {"4-1": 7}])
    (1.0, 1.0)
    """
    dice, first, both = np.random.default_rng(seed), 0.0, 0.0
    for counts in steps:
        n = np.array(list(counts.values()))
        top = dice.multinomial(n.sum(), n / n.sum(), size=draws).argmax(1)
        share = np.bincount(top, minlength=len(n)) / draws
        first, both = first + float(share[n.argmax()]), both + float((share**2).sum())
    return first / len(steps), both / len(steps)


def by_problem(gap: Sequence[float], problem: Sequence[int]) -> tuple[float, float]:
    """The mean of `gap` and two standard errors, where pairs of one problem are not independent.

    >>> by_problem([1.0, 1.0, 3.0, 3.0], [0, 0, 1, 1]), by_problem([1.0, 3.0], [0, 1])
    ((2.0, 2.0), (2.0, 2.0))
    """
    gaps = np.asarray(gap, dtype=float)
    place = np.unique(problem, return_inverse=True)[1]
    apart = np.bincount(place, gaps - gaps.mean())
    n = len(apart)
    error = 2 * (np.sum(apart**2) * n / (n - 1)) ** 0.5 / len(gaps)
    return float(gaps.mean()), float(error)


def measure(
    path: Path, bases: Path, study: Study = STUDIES["countdown"], seeds: tuple[int, ...] = SEEDS
) -> None:
    """Writes the models that `path` lacks."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    sampling = Sampling(max_new_tokens=study.recipe.max_completion_length)
    for name in ("base", *(f"seed {s}" for s in seeds)):
        if name in found:
            continue
        model, tokenizer = trained(study, name, bases)
        said = pass_rate(model, tokenizer, TASKS[study.task], prompts=study.problems,
                         num_generations=study.answers, sampling=sampling,
                         seed=study.seed)  # fmt: skip
        row: dict[str, Any] = {"written": [], "commonest": [], "leads": [], "steps": []}
        for i, problem in enumerate(said.problems):
            texts = said.texts[i * study.answers : (i + 1) * study.answers]
            steps = Counter(step for step in map(first_step, texts) if step)
            good = {first_step(str(way)) for way in _ways(problem)}
            row["written"].append(steps.total())
            row["commonest"].append(max(steps.values(), default=0))
            row["leads"].append(sum(n for step, n in steps.items() if step in good))
            row["steps"].append(dict(steps.most_common()))
        found.setdefault("header", {
            "task": study.task, "objective": repr(study.objective), "steps": study.recipe.steps,
            "answers": study.answers, **environment(model.device),
        })  # fmt: skip
        found[name] = row
        path.write_text(json.dumps(found) + "\n", encoding="utf-8")
        print(name, {key: sum(row[key]) for key in ("written", "commonest", "leads")}, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = to_complete("first_steps", __doc__)
    parser.add_argument("--bases", type=Path, default=Path("runs-bases"), help="folder for bases")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    measure(args.path, args.bases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
