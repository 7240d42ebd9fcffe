"""How large a group: the noise of a step of so many answers, cut into groups of G.

    python -m rlnb.training.studies.group_noise data/runs/chain_group_noise.json

takes the shipped model before training, draws 32 answers to each of 512 problems, and keeps the
inner products of their scores (the gradient of log pi, summed over tokens). An answer's advantage
is its reward minus the mean of the others in its group. With N answers a step, N/G prompts drawn
independently and g the mean gradient,

    N Var / |g|^2  =  G between  +  within(G),       within(G) = answers + baseline / (G - 1)

`between` is how the prompts' gradients differ, `answers` and `baseline` what drawing answers adds;
all three are in units of |g|^2. The left side is least at G = 1 + sqrt(baseline / between).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlnb.shipped import data_folder
from rlnb.training.metrics_file import environment
from rlnb.training.tasks import TASKS

__all__ = ["SIZES", "best_size", "leave_one_out", "main", "measure", "noise", "parts", "shipped"]

SIZES = (2, 4, 8, 16, 32)
PROMPTS, ANSWERS, SEEDS = 512, 32, (0, 1, 2)


def leave_one_out(rewards: Tensor) -> Tensor:
    """Reward minus the mean of the others of the row.

    >>> leave_one_out(torch.tensor([[1.0, 0.0]])).tolist()
    [[1.0, -1.0]]
    """
    size = rewards.shape[1]
    return (rewards - rewards.mean(1, keepdim=True)) * size / (size - 1)


def parts(gram: Tensor, rewards: Tensor, mean_square: float) -> dict[str, Any]:
    """What `noise` needs, in units of |g|^2 = mean_square, every estimate without bias.

    gram (P, A, A): inner products of the scores of A answers to each of P prompts; rewards (P, A).
    Returns between and within, a number for each of SIZES up to A. The square of a prompt's mean
    gradient comes from two halves of its answers, which were drawn independently.
    """
    half = rewards.shape[1] // 2
    one, two = leave_one_out(rewards[:, :half]), leave_one_out(rewards[:, half:])
    cross = torch.einsum("xi,xij,xj->x", one, gram[:, :half, half:], two) / half**2
    own = cross.mean().item()
    within = []
    for size in (n for n in SIZES if n <= rewards.shape[1]):
        squares = []
        for first in range(0, rewards.shape[1] - size + 1, size):
            rows = slice(first, first + size)
            advantage = leave_one_out(rewards[:, rows])
            squares.append(
                torch.einsum("xi,xij,xj->x", advantage, gram[:, rows, rows], advantage) / size**2
            )
        within.append(size * (torch.stack(squares).mean().item() - own) / mean_square)
    return {"between": own / mean_square - 1, "within": within}


def noise(found: Mapping[str, Any]) -> list[float]:
    """N Var / |g|^2 for each size: the noise of one answer, in groups of that size.

    >>> noise({"between": 2.0, "within": [10.0, 7.0]})
    [14.0, 15.0]
    """
    within: Sequence[float] = found["within"]
    return [size * found["between"] + w for size, w in zip(SIZES, within, strict=False)]


def best_size(found: Mapping[str, Any]) -> float:
    """1 + sqrt(baseline / between), baseline from the smallest and the largest size.

    >>> round(best_size({"between": 2.0, "within": [30.0, 14.0]}), 2)  # 24/2: baseline is 24
    4.46
    """
    first, last = found["within"][0], found["within"][-1]
    share = 1 / (SIZES[0] - 1) - 1 / (SIZES[len(found["within"]) - 1] - 1)
    return 1 + ((first - last) / share / found["between"]) ** 0.5


def measure(seed: int, prompts: int = PROMPTS, answers: int = ANSWERS) -> dict[str, Any]:
    """`parts` of the shipped model on problems of the task chain, with pass@1 and |g|^2."""
    # here: they bring transformers, which a page that reads the shipped file does not need
    from rlnb.training.models.loading import load
    from rlnb.training.sampling.prompts import encode_prompts
    from rlnb.training.sampling.sampler import Sampling, sample

    model, tokenizer = load(data_folder() / "model", device="cpu")
    task, rng = TASKS["chain"], random.Random(seed)
    asked = [task.problem(rng, "train") for _ in range(prompts)]
    rollout = sample(
        model, encode_prompts(tokenizer, [p.prompt for p in asked]), answers,
        Sampling(max_new_tokens=72), eos_id=tokenizer.eos_token_id, pad_id=tokenizer.pad_token_id,
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    texts = rollout.texts(tokenizer)
    problems = [p for p in asked for _ in range(answers)]
    graded = [float(task.verify(*pair) > 0) for pair in zip(problems, texts, strict=True)]
    rewards = torch.tensor(graded, dtype=torch.float64).view(prompts, answers)
    weights = [p for p in model.parameters() if p.requires_grad]
    grams, total, squares = [], torch.zeros(sum(p.numel() for p in weights)), 0.0
    for x in range(prompts):
        scores = torch.stack([_score(model, rollout, x * answers + i, weights)
                              for i in range(answers)])  # fmt: skip
        grams.append((scores @ scores.T).double())
        push = (leave_one_out(rewards[x : x + 1]).float().T * scores).mean(0)
        total += push
        squares += push.double().square().sum().item()
    pairs = prompts * (prompts - 1)  # two different prompts are independent: no bias
    mean_square = (total.double().square().sum().item() - squares) / pairs
    return {
        "pass@1": rewards.mean().item(),
        "square of g": mean_square,
        **parts(torch.stack(grams), rewards, mean_square),
    }


def _score(model, rollout, row: int, weights: list[Tensor]) -> Tensor:
    """The gradient of one answer's log-probability in all weights, flat."""
    from rlnb.training.sampling.scoring import teacher_forced_logits

    rows = torch.tensor([row])
    logits = teacher_forced_logits(model, rollout, rows).float()
    ids = rollout.completion_ids[rows, : logits.shape[1]]
    logp = logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    logp = (logp * rollout.completion_mask[rows, : logits.shape[1]]).sum()
    found = torch.autograd.grad(logp, weights, allow_unused=True)
    return torch.cat([torch.zeros_like(w).flatten() if g is None else g.flatten()
                      for g, w in zip(found, weights, strict=True)])  # fmt: skip


def shipped(path: str | Path | None = None) -> list[dict[str, Any]]:
    """What `measure` found, a table for each seed; of the shipped file by default."""
    path = data_folder() / "runs" / "chain_group_noise.json" if path is None else Path(path)
    return list(json.loads(path.read_text("utf-8"))["seeds"].values())


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.training.studies.group_noise", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("file", type=Path, help="the JSON file to write")
    args = parser.parse_args(arguments)
    seeds: dict[str, Any] = {}
    for seed in SEEDS:
        found = measure(seed)
        kept = {k: v for k, v in found.items() if k != "within"}
        seeds[str(seed)] = {name: round(value, 4) for name, value in kept.items()}
        seeds[str(seed)]["within"] = [round(value, 2) for value in found["within"]]
        print(seed, [round(x) for x in noise(found)], round(best_size(found), 2), flush=True)
    content = {"task": "chain", "prompts": PROMPTS, "answers": ANSWERS,
               **environment(torch.device("cpu")), "seeds": seeds}  # fmt: skip
    args.file.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
