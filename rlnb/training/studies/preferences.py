"""Preference losses on the small model: what becomes of the chosen answer.

    python -m rlnb.training.studies.preferences data/runs/chain_preferences.json

The shipped model answers training prompts of `chain` eight times each; of every prompt that it got
both right and wrong, the first right and the first wrong answer make a pair. 256 pairs are the data
set; an arm trains the model on it with one loss of `rlnb.objective.preference`, 40 steps of 64
pairs, ten times through. "2,560 pairs" goes through that many once. "Fresh pairs" draws as many
from the model as it is now, 64 before each step: on-policy DPO, with the verifier as the judge.

Of each step are kept, as means over its pairs and before the update: loss, margin (with β = 0.1 in
every arm) and accuracy, and the log-probability of chosen and rejected answers against the start.
The file also has pass@1 on held-out problems: of the shipped model, and during training.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlnb.objective.preference import Pairs, dpo, dpo_nll, implicit_rewards
from rlnb.shipped import data_folder
from rlnb.training.evaluation import pass_rate
from rlnb.training.metrics_file import environment
from rlnb.training.models.loading import load
from rlnb.training.sampling.prompts import encode_prompts
from rlnb.training.sampling.sampler import Rollout, Sampling, sample
from rlnb.training.sampling.scoring import token_logprobs
from rlnb.training.studies.command import to_complete
from rlnb.training.tasks import TASKS

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["ARMS", "GRADED", "Arm", "draw_pairs", "main", "recorded", "train_arm"]

SEEDS, PAIRS, BATCH, STEPS, ASKED = (0, 1, 2), 256, 64, 40, 8
GRADED = (5, 10, 15, 20, 30, 40)  # steps after which the model answers held-out problems
KEPT = ("loss", "margin", "accuracy", "chosen", "rejected")


@dataclass(frozen=True)
class Arm:
    """One loss, its learning rate, how many pairs there are, and whether they are drawn anew."""

    loss: Callable[[Pairs], Tensor]
    learning_rate: float = 3e-4
    pairs: int = PAIRS
    fresh: bool = False


ARMS = {
    "DPO": Arm(dpo),
    "DPO + NLL": Arm(dpo_nll),
    "DPO, beta 1": Arm(lambda pairs: dpo(pairs, 1.0)),
    "NLL alone": Arm(lambda pairs: -pairs.chosen / pairs.lengths[0]),
    "DPO, 2,560 pairs": Arm(dpo, pairs=STEPS * BATCH),
    "DPO, fresh pairs": Arm(dpo, fresh=True),
}


def draw_pairs(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, rng: random.Random, pairs: int
) -> tuple[Rollout, int]:
    """2 `pairs` answers of the model to `chain`: right ones first, then a wrong one to each.

    And how many answers had to be drawn for them.
    """
    task, found = TASKS["chain"], []
    dice = torch.Generator(model.device).manual_seed(rng.randrange(2**31))
    parts: list[tuple[Rollout, list[tuple[int, int]]]] = []
    while sum(len(rows) for _, rows in parts) < pairs:
        asked = [task.problem(rng, "train") for _ in range(max(16, min(pairs, 512) // 2))]
        rollout = sample(
            model, encode_prompts(tokenizer, [p.prompt for p in asked]), ASKED, Sampling(),
            eos_id=tokenizer.eos_token_id, pad_id=tokenizer.pad_token_id, generator=dice,
        )  # fmt: skip
        texts = rollout.texts(tokenizer)
        right = [task.verify(asked[i // ASKED], text) > 0 for i, text in enumerate(texts)]
        rows = []
        for k in range(len(asked)):
            own = range(k * ASKED, (k + 1) * ASKED)
            good, bad = ([i for i in own if right[i] == side] for side in (True, False))
            if good and bad:
                rows.append((good[0], bad[0]))
        parts.append((rollout, rows))
    for rollout, rows in parts:
        found += [(rollout, *pair) for pair in rows]
    drawn = sum(len(rollout.finished) for rollout, _ in parts)
    return _joined(found[:pairs], tokenizer.pad_token_id), drawn


def _joined(found: list[tuple[Rollout, int, int]], pad_id: int) -> Rollout:
    """One rollout of 1 answer per row: the first indices of all triples, then the second ones."""
    rows = [(r, i) for r, i, _ in found] + [(r, j) for r, _, j in found]
    left = max(r.prompt_ids.shape[1] for r, _ in rows)
    right = max(r.completion_ids.shape[1] for r, _ in rows)

    def table(name: str, width: int, fill: float, front: bool) -> Tensor:
        out = []
        for rollout, i in rows:
            row = getattr(rollout, name)[i]
            more = row.new_full((width - len(row),), fill)
            out.append(torch.cat([more, row] if front else [row, more]))
        return torch.stack(out)

    return Rollout(
        table("prompt_ids", left, pad_id, True),
        table("prompt_mask", left, 0, True),
        table("completion_ids", right, pad_id, False),
        table("completion_mask", right, 0, False),
        table("logprobs", right, 0, False),
        table("entropies", right, 0, False),
        torch.stack([r.finished[i] for r, i in rows]),
        1,
        rows[0][0].sampling,
    )


def _pairs(model: PreTrainedModel, data: Rollout, picked: Tensor, ref: Tensor) -> Pairs:
    """The picked pairs under the model; ref (2 P, T) of all."""
    half = len(data.completion_ids) // 2
    rows = torch.cat([picked, picked + half])
    now, _ = token_logprobs(model, data, temperature=1.0, rows=rows)
    return Pairs.from_tokens(now, data.completion_mask[rows], ref[rows])


def _reference(model: PreTrainedModel, data: Rollout) -> Tensor:
    with torch.no_grad():
        every = torch.arange(len(data.completion_ids))
        parts = [
            token_logprobs(model, data, temperature=1.0, rows=rows)[0] for rows in every.split(256)
        ]
    return torch.cat(parts)


def train_arm(arm: Arm, seed: int, *, steps: int = STEPS) -> dict[str, Any]:
    """One run from the shipped model: KEPT as columns (steps,), pass@1 after each of GRADED, and
    how many answers were drawn to make its pairs."""
    model, tokenizer = load(data_folder() / "model")
    base, _ = load(data_folder() / "model")
    rng = random.Random(seed)
    data, drawn = draw_pairs(model, tokenizer, rng, BATCH if arm.fresh else arm.pairs)
    ref, order = _reference(base, data), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=arm.learning_rate, weight_decay=0.0)
    columns: dict[str, list[float]] = {name: [] for name in KEPT}
    held_out = []
    queue = torch.randperm(len(data.finished) // 2, generator=order)
    for step in range(1, steps + 1):
        if arm.fresh:
            if step > 1:
                data, more = draw_pairs(model, tokenizer, rng, BATCH)
                drawn, ref = drawn + more, _reference(base, data)
            picked = torch.arange(BATCH)
        else:
            if len(queue) < BATCH:
                queue = torch.randperm(len(data.finished) // 2, generator=order)
            picked, queue = queue[:BATCH], queue[BATCH:]
        found = _pairs(model, data, picked, ref)
        loss = arm.loss(found).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        chosen, rejected = found.log_ratios
        win, lose = implicit_rewards(found)
        for name, value in zip(
            KEPT, (loss, (win - lose).mean(), (win > lose).float().mean(), chosen.mean(),
                   rejected.mean()), strict=True,
        ):  # fmt: skip
            columns[name].append(float(f"{value.item():.4g}"))
        if step in GRADED:
            held_out.append(_held_out(model, tokenizer))
    return columns | {"pass@1": held_out, "answers": drawn}


def _held_out(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> float:
    right = pass_rate(model, tokenizer, TASKS["chain"], prompts=200, num_generations=4).right
    return float(f"{right.float().mean().item():.4g}")


def recorded(path: str | Path | None = None) -> dict[str, Any]:
    """The file, the shipped one by default: "header", then arm -> a run per seed."""
    path = data_folder() / "runs" / "chain_preferences.json" if path is None else Path(path)
    return json.loads(path.read_text(encoding="utf-8"))


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0. Writes what the file lacks."""
    parser = to_complete("preferences", __doc__)
    parser.add_argument("--arms", nargs="*", choices=list(ARMS), default=list(ARMS))
    parser.add_argument("--steps", type=int, default=STEPS)
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    if args.path.exists():
        found = json.loads(args.path.read_text(encoding="utf-8"))
    for name in args.arms:
        runs = found.setdefault(name, [])
        for seed in SEEDS[len(runs) :]:
            runs.append(train_arm(ARMS[name], seed, steps=args.steps))
            found.setdefault("header", {
                "task": "chain", "model": "data/model", "pairs": PAIRS, "batch": BATCH,
                "steps": args.steps, "graded": list(GRADED), "seeds": list(SEEDS),
                "learning_rate": Arm.learning_rate,
                "pass@1": _held_out(*load(data_folder() / "model")),
                **environment(torch.device("cpu")),
            })  # fmt: skip
            ordered = {"header": found["header"], **{k: v for k, v in found.items() if k in ARMS}}
            args.path.write_text(_text(ordered), encoding="utf-8")
            last = {key: runs[-1][key] for key in ("pass@1", "answers")}
            print(name, seed, last, flush=True)
    return 0


def _text(found: dict[str, Any]) -> str:
    """One line a run."""
    lines = [f' "header": {json.dumps(found["header"])}']
    for name, runs in found.items():
        if name != "header":
            rows = ",\n".join(f"  {json.dumps(run)}" for run in runs)
            lines.append(f" {json.dumps(name)}: [\n{rows}\n ]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
