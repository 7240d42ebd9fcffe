"""What the value of a loss says: the lengths of right and of wrong answers, step by step.

    python -m rlnb.training.studies.loss_value data/runs/chain_loss_value.json

trains the shipped model with `chain_dr_grpo_seedN`'s recipe for each seed and keeps of every step
the loss and two mean lengths. On fresh answers every ratio is 1. So the value of a loss that weighs
all tokens alike is minus the mean of A times the length of the answer, over the constant: 0 where
right and wrong answers of a group are equally long, and 0 where a group's rewards are equal.
`from_lengths` is that number.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlnb.objective import ZOO
from rlnb.shipped import data_folder
from rlnb.training.loop import train
from rlnb.training.metrics_file import environment
from rlnb.training.models.loading import load
from rlnb.training.recipe import Recipe
from rlnb.training.tasks import TASKS

__all__ = ["from_lengths", "kept", "main", "measure"]

SEEDS = (0, 1, 2)
KEPT = {
    "loss": "loss",
    "right": "completions/mean_length_right",
    "wrong": "completions/mean_length_wrong",
}


def from_lengths(advantages: Tensor, lengths: Tensor, constant: float) -> float:
    """-mean(A T) / constant: the value of a loss with one constant per answer, every ratio being 1.

    advantages, lengths (B,), lengths in tokens.

    >>> from_lengths(torch.tensor([0.5, -0.5]), torch.tensor([30.0, 6.0]), 72)
    -0.08333333333333333
    """
    return -(advantages.double() * lengths.double()).mean().item() / constant


def measure(seed: int) -> dict[str, list[float | None]]:
    """Loss and mean length of right and wrong answers at every step; None where there is none."""
    model, tokenizer = load(data_folder() / "model", device="cpu")
    recipe = replace(Recipe(), seed=seed)
    records = train(model, tokenizer, TASKS["chain"], ZOO["dr_grpo"], recipe)
    steps = [record for record in records if record["record"] == "step"]
    return {
        name: [round(s[key], 4) if s.get(key) is not None else None for s in steps]
        for name, key in KEPT.items()
    }


def kept(path: str | Path | None = None) -> dict[int, dict[str, list[float | None]]]:
    """{seed: columns} of a file that this module wrote; the shipped one by default."""
    path = data_folder() / "runs" / "chain_loss_value.json" if path is None else Path(path)
    return {int(seed): rows for seed, rows in json.loads(path.read_text("utf-8"))["seeds"].items()}


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.training.studies.loss_value", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("file", type=Path, help="the JSON file to write")
    args = parser.parse_args(arguments)
    seeds: dict[str, Any] = {}
    for seed in SEEDS:
        seeds[str(seed)] = measure(seed)
        print(seed, seeds[str(seed)]["loss"][0], flush=True)
    content = {"recipe": "chain_dr_grpo", **environment(torch.device("cpu")), "seeds": seeds}
    args.file.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
