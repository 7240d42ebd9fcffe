"""Choice of style and skill within each style, while a run learns; with and without wrong answers.

    python -m rlnb.training.studies.style_curves data/runs/chain_style_curves.json

Trains with `chain_dr_grpo_seedN`'s recipe and writes at some steps, on held-out problems: `direct`,
the share d of direct answers, and `right/direct` and `right/steps`, the share of right ones among
each, so that pass@1 = d right/direct + (1 - d) right/steps. Beside it `RIGHT_ONLY`, the same loss
without a baseline: an answer whose reward is 0 has no gradient, so only the right ones are pushed.
Both draw from the new model at each step.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from rlnb.objective import ZOO, Objective, raw_reward
from rlnb.shipped import data_folder
from rlnb.training.evaluation import pass_rate
from rlnb.training.loop import train
from rlnb.training.metrics_file import environment
from rlnb.training.models.loading import load
from rlnb.training.recipe import Recipe
from rlnb.training.studies.command import to_complete
from rlnb.training.tasks import TASKS

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["ARMS", "RIGHT_ONLY", "curves", "main", "measure", "styles"]

RIGHT_ONLY = ZOO["dr_grpo"].replace(advantage=raw_reward())
ARMS, SEEDS = {"dr_grpo": ZOO["dr_grpo"], "right only": RIGHT_ONLY}, (0, 1, 2)
AT = (5, 10, 15, 20, 25, 30, 35, 40)
Row = dict[str, float]


def styles(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: int = 250,
    num_generations: int = 8,
) -> Row:
    """pass@1, the share of direct answers, and the share of right ones in each style."""
    answers = pass_rate(
        model, tokenizer, TASKS["chain"], prompts=prompts, num_generations=num_generations
    )
    direct = torch.tensor([text.startswith("so") for text in answers.texts]).view_as(answers.right)
    return {
        "pass@1": answers.right.mean().item(),
        "direct": direct.double().mean().item(),
        "right/direct": answers.right[direct].mean().item() if direct.any() else float("nan"),
        "right/steps": answers.right[~direct].mean().item(),
    }


def curves(path: str | Path, arm: str) -> list[list[Row]]:
    """For each seed the rows of one of ARMS, at step 0 first."""
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return [rows for name, rows in found.items() if name.startswith(f"{arm} ")]


def measure(path: Path, recipe: Recipe = Recipe(), at: tuple[int, ...] = AT, **size: int) -> None:  # noqa: B008
    """Writes the runs that `path` lacks; `size` is for `styles`."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for arm in ARMS:
        for seed in SEEDS:
            name = f"{arm} {seed}"
            if name in found:
                continue
            still = replace(recipe, seed=seed, eval_every=0, checkpoint_every=0)
            found[name] = _run(ARMS[arm], still, at, size)
            found.setdefault("header", {"at": list(at), **environment(torch.device("cpu"))})
            path.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
            print(name, found[name][-1], flush=True)


def _run(objective: Objective, recipe: Recipe, at: tuple[int, ...], size: dict[str, int]):
    """The rows of one run, at step 0 and at the steps `at`."""
    model, tokenizer = load(data_folder() / "model", device="cpu")
    rows: list[Row] = []

    def watch(record: dict[str, Any]) -> None:
        step = record.get("step", 0)  # the header has none
        if record["record"] == "header" or record["record"] == "step" and step in at:
            found = styles(model, tokenizer, **size)
            rows.append({"step": step} | {k: round(v, 4) for k, v in found.items()})

    train(model, tokenizer, TASKS["chain"], objective, recipe, watch=watch, progress=False)
    return rows


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = to_complete("style_curves", __doc__)
    torch.set_num_threads(1)
    measure(parser.parse_args(arguments).path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
