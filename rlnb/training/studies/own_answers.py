"""Imitation of one's own right answers, beside GRPO: as many answers, as many updates.

    python -m rlnb.training.studies.own_answers data/runs/chain_own_answers.json
    python -m rlnb.training.studies.own_answers data/runs/chain_own_answers_four.json --parts 4

A round draws what `chain_dr_grpo` draws in forty steps, 16 problems times 8 answers each step,
keeps the right answers, and makes forty updates on them, 128 answers each, as in supervised
fine-tuning. The next round draws from the result. Each round is evaluated like the runs of
`controls`, for each seed. With `--parts 4` the answers and updates of one round are split into four
rounds, each drawn from the model that the one before left; the optimizer starts anew in each.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

from rlnb.shipped import data_folder
from rlnb.training.evaluation import evaluate
from rlnb.training.metrics_file import environment
from rlnb.training.models.base_training import IGNORED, collate
from rlnb.training.models.loading import load
from rlnb.training.recipe import Recipe
from rlnb.training.sampling.prompts import encode_prompts
from rlnb.training.sampling.sampler import Sampling, sample
from rlnb.training.studies.command import to_complete
from rlnb.training.tasks import TASKS

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["ROUNDS", "fit", "main", "measure", "reports", "right_answers"]

ROUNDS, SEEDS = 3, (0, 1, 2)
Row = tuple[list[int], int]  # ids of prompt and answer, length of the prompt


def right_answers(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, recipe: Recipe, seed: int
) -> list[Row]:
    """The right ones of `recipe`'s answers, drawn from a model that stands still."""
    task, rng = TASKS["chain"], random.Random(seed)
    dice, rows = torch.Generator(model.device).manual_seed(seed), []
    ends = {"eos_id": tokenizer.eos_token_id, "pad_id": tokenizer.pad_token_id}
    for _ in range(recipe.steps):
        problems = [task.problem(rng, "train") for _ in range(recipe.prompts)]
        prompts = encode_prompts(tokenizer, [p.prompt for p in problems])
        said = sample(model, prompts, recipe.num_generations, Sampling(), generator=dice, **ends)
        for i, text in enumerate(said.texts(tokenizer)):
            problem = problems[i // recipe.num_generations]
            if said.finished[i] and task.verify(problem, text):
                prompt = encode_prompts(tokenizer, [problem.prompt], task=task)[0]
                answer = tokenizer(text, add_special_tokens=False)["input_ids"]
                rows.append((prompt + answer + [tokenizer.eos_token_id], len(prompt)))
    return rows


def fit(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: list[Row],
    recipe: Recipe,
    seed: int,
) -> None:
    """`recipe.steps` updates in place on shuffled rows, mean cross-entropy over answer tokens."""
    optimizer = torch.optim.AdamW(
        model.parameters(), recipe.learning_rate, recipe.betas, weight_decay=recipe.weight_decay
    )
    rng, order = random.Random(seed), []
    size = recipe.prompts * recipe.num_generations
    model.train()
    for _ in range(recipe.steps):
        while len(order) < size:
            again = list(range(len(rows)))
            rng.shuffle(again)
            order += again
        ids, labels = collate([rows[i] for i in order[:size]], tokenizer.pad_token_id)
        order = order[size:]
        logits = model(ids.to(model.device), use_cache=False).logits
        loss = F.cross_entropy(
            logits.flatten(0, 1), labels.flatten().to(model.device), ignore_index=IGNORED
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.max_grad_norm)
        optimizer.step()
    model.eval()


def reports(path: str | Path) -> list[list[dict[str, float]]]:
    """For each seed the reports of its rounds, with `kept`, the right answers of the round."""
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return [rounds for name, rounds in found.items() if name != "header"]


def measure(
    path: Path,
    recipe: Recipe,
    seeds: tuple[int, ...] = SEEDS,
    rounds: int = ROUNDS,
    prompts: int = 250,
    num_generations: int = 8,
) -> None:
    """Writes the seeds that `path` lacks. `prompts` and `num_generations` are `evaluate`'s."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for seed in seeds:
        if f"seed {seed}" in found:
            continue
        model, tokenizer = load(data_folder() / "model", device="cpu")
        done = []
        for k in range(rounds):
            rows = right_answers(model, tokenizer, recipe, seed=100 * k + seed)
            fit(model, tokenizer, rows, recipe, seed=100 * k + seed)
            report = evaluate(
                model, tokenizer, TASKS["chain"], prompts=prompts, num_generations=num_generations
            )
            done.append({"kept": len(rows)} | {n: round(v, 4) for n, v in report.items()})
            print(f"seed {seed}, round {k + 1}", done[-1], flush=True)
        header = {"task": "chain", "recipe": asdict(recipe)} | environment(model.device)
        found.setdefault("header", header)
        found[f"seed {seed}"] = done
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = to_complete("own_answers", __doc__)
    parser.add_argument("--parts", type=int, help="split one round's answers and updates")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    recipe, rounds = Recipe(eval_every=0, checkpoint_every=0), ROUNDS
    if args.parts:
        if args.parts < 1 or recipe.steps % args.parts:
            parser.error(f"--parts must divide {recipe.steps}, the updates of a round")
        recipe, rounds = replace(recipe, steps=recipe.steps // args.parts), args.parts
    measure(args.path, recipe, rounds=rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
