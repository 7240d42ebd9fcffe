"""The chain task in TRL with any objective: what the configurations here are for.

    accelerate launch --config_file accelerate_fsdp2.yaml train.py --objective maxrl \
        --config trl_vllm_colocate.yaml --output_dir run
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import datasets
from trl import GRPOConfig, TrlParser

from rlnb.interop.trl_trainer import ObjectiveTrainer
from rlnb.objective import ANNEX, ZOO
from rlnb.shipped import data_folder
from rlnb.training import TASKS, load
from rlnb.training.tasks import Problem


@dataclass
class Choices:
    """model: a folder or a hub id, the shipped model without one. objective: a named method."""

    model: str = ""
    objective: str = "dr_grpo"
    task: str = "chain"
    problems: int = 2048


def main() -> None:
    choices, args = TrlParser((Choices, GRPOConfig)).parse_args_and_config()
    task, rng = TASKS[choices.task], random.Random(args.seed)
    problems = [vars(task.problem(rng, "train")) for _ in range(choices.problems)]

    def verified(prompts, completions, answer, **_):
        rows = zip(prompts, completions, answer, strict=True)
        return [task.verify(Problem(prompt, right), text) for prompt, text, right in rows]

    model = choices.model or str(data_folder() / "model")
    ObjectiveTrainer(
        model,
        verified,
        args,
        datasets.Dataset.from_list(problems),
        processing_class=load(model)[1],
        objective={**ZOO, **ANNEX}[choices.objective],
    ).train()


if __name__ == "__main__":
    main()
