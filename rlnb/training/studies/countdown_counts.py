"""A thousand answers to each held-out problem of Countdown, before, after and during training.

    python -m rlnb.training.studies.countdown_counts data/runs/countdown_counts.json

takes the models of `kept_answers countdown` (base and three seeds of `countdown_grpo`'s recipe) and
counts, of 1,024 fresh answers to each of the 64 problems, those that are right and those that were
cut off. On the way it notes entropy and pass@k of 64 answers at every tenth step. With 64 answers
pass@64 is one throw; with a thousand the curve is known to k = 256.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from rlnb.training.evaluation import pass_rate, summary
from rlnb.training.loop import train
from rlnb.training.metrics_file import environment
from rlnb.training.models.loading import load
from rlnb.training.sampling.sampler import Sampling
from rlnb.training.studies.command import to_complete
from rlnb.training.studies.kept_answers import SEEDS, STUDIES, Study
from rlnb.training.studies.shipped_runs import base_model
from rlnb.training.tasks import TASKS

__all__ = ["ANSWERS", "counted", "main", "measure"]

ANSWERS, ROUND, FIRST_SEED, EVERY = 1024, 64, 101, 10


def counted(path: str | Path) -> dict[str, dict[str, Any]]:
    """{"base": {"right": [...], "cut": [...]}, "seed 0": {..., "steps": [...], ...}, ...}"""
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return {name: row for name, row in found.items() if name != "header"}


def measure(
    path: Path,
    bases: Path,
    study: Study = STUDIES["countdown"],
    answers: int = ANSWERS,
    seeds: tuple[int, ...] = SEEDS,
    most: int | None = None,
) -> None:
    """Writes the models that `path` lacks, at most `most` of them."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    task, recipe = TASKS[study.task], replace(study.recipe, eval_every=0, checkpoint_every=0)
    sampling = Sampling(max_new_tokens=recipe.max_completion_length)
    names = [name for name in ("base", *(f"seed {s}" for s in seeds)) if name not in found]
    for name in names[:most]:
        model, tokenizer = load(base_model(study.task, bases), device="cpu")
        row: dict[str, list[float]] = {}

        def some(seed: int, model=model, tokenizer=tokenizer):
            return pass_rate(model, tokenizer, task, prompts=study.problems,
                             num_generations=min(ROUND, answers), sampling=sampling,
                             seed=seed)  # fmt: skip

        def look(record: dict[str, Any], row=row, some=some) -> None:
            if record["record"] != "step" or record["step"] % EVERY:
                return
            report = summary(task, some(study.seed))
            row.setdefault("steps", []).append(record["step"])
            for key in ("entropy", "pass@1", "pass@16"):
                row.setdefault(key, []).append(round(report.get(key, 0.0), 4))

        if name == "base":
            look({"record": "step", "step": 0})
        else:
            with_seed = replace(recipe, seed=int(name[5:]))
            train(model, tokenizer, task, study.objective, with_seed, progress=False, watch=look)
        right, cut = torch.zeros(study.problems), torch.zeros(study.problems)
        for i in range(answers // min(ROUND, answers)):
            said = some(FIRST_SEED + i)
            right += said.right.sum(1).cpu()
            cut += (~said.finished.bool()).sum(1).cpu()
        found.setdefault("header", {
            "task": study.task, "objective": repr(study.objective), "steps": recipe.steps,
            "answers": answers, **environment(model.device),
        })  # fmt: skip
        found[name] = {"right": right.int().tolist(), "cut": cut.int().tolist(), **row}
        path.write_text(json.dumps(found) + "\n", encoding="utf-8")
        print(name, f"pass@1 {right.mean().item() / answers:.3f}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = to_complete("countdown_counts", __doc__)
    parser.add_argument("--bases", type=Path, default=Path("runs-bases"), help="folder for bases")
    parser.add_argument("--most", type=int, default=None, help="at most so many models now")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    measure(args.path, args.bases, most=args.most)
    return 0


if __name__ == "__main__":
    sys.exit(main())
