"""How far a step moves the entropy, and what the covariance says beforehand.

    python -m rlnb.training.studies.entropy_law data/runs/entropy_law.json

trains the shipped model on `chain` and measures at every step, on the contexts of that step's own
answers, the entropy of the next token before and after the update. Beside it stand

    per_token   the mean over tokens of (log pi + H) A. E[log pi] is -H in every context, so this
                is the covariance of log pi and A, context by context, from one sample each
    in_batch    the covariance of log pi and A over all tokens of the step, as Clip-Cov takes it
    above       the share of tokens for which that product is above 0.2
    linear      gradient of the mean entropy times the step of the weights: first order, exactly

`alone` is one step from the base on one prompt, 300 prompts, where the covariance has either sign.
`arms` of it are trained with the switches that act on entropy; of the first step's tokens it keeps
a table (text, log pi, H, A), for the eye.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlnb.objective import ZOO, Objective, clip_cov, entropy_bonus, top_entropy
from rlnb.shipped import data_folder
from rlnb.training.evaluation import pass_rate, summary
from rlnb.training.metrics_file import environment
from rlnb.training.models.loading import load
from rlnb.training.recipe import Recipe
from rlnb.training.rollouts import collect, make_batch, rows_of
from rlnb.training.run import Run, prepare, start
from rlnb.training.sampling.sampler import Rollout
from rlnb.training.sampling.scoring import token_logprobs
from rlnb.training.studies.command import to_complete
from rlnb.training.tasks import TASKS
from rlnb.training.update import update

__all__ = ["ARMS", "law", "main", "measure", "measured_step"]

SEEDS = (0, 1, 2)
RECIPE = Recipe(prompts=8, steps=40, eval_every=0, checkpoint_every=0)
PLAIN = ZOO["dr_grpo"]
LOW = 0.2  # of a token's covariance; verl's clip_cov draws 0.02 % between 1 and 5
ARMS: dict[str, Objective] = {
    "plain": PLAIN,
    "2 % of tokens, covariance above 0.2": PLAIN.replace(  # after Clip-Cov; its numbers are others
        gates=clip_cov(0.02, low=LOW, high=100.0, epsilon=1.0)
    ),
    "2 % of tokens at random": PLAIN.replace(  # its control: any covariance will do
        gates=clip_cov(0.02, low=-100.0, high=100.0, epsilon=1.0)
    ),
    "80/20": PLAIN.replace(gates=top_entropy(0.2)),
    "entropy bonus 0.01": PLAIN.replace(terms=entropy_bonus(0.01)),
}  # fmt: skip
ALONE = {"alone": 1.0, "alone, a tenth of the rate": 0.1}  # name -> part of the learning rate
SHOWN = 16  # answers of the first step that are kept token by token


def _entropies(run: Run, rollout: Rollout, gradient: bool = False) -> tuple[Tensor, Tensor]:
    with torch.set_grad_enabled(gradient):
        return token_logprobs(
            run.model, rollout, temperature=run.recipe.temperature, entropy_gradient=gradient
        )


def measured_step(run: Run, shown: list[dict[str, Any]] | None = None) -> dict[str, float]:
    """One on-policy step; its covariances, and the entropy in nats per token before and after."""
    drawn = collect(run)
    rollout, mask = drawn.rollout, drawn.rollout.completion_mask
    batch = make_batch(run, rollout, drawn.problems, drawn.rewards)
    rows = rows_of(torch.arange(len(drawn.problems)), run.recipe.num_generations)
    prepared = prepare(run.objective, batch)
    weights = [p for p in run.model.parameters() if p.requires_grad]
    logp, entropy = _entropies(run, rollout, gradient=True)
    slope = torch.autograd.grad(entropy[mask].mean(), weights, allow_unused=True)
    logp, entropy = logp.detach(), entropy.detach()
    before = [p.detach().clone() for p in weights]
    found = update(run, rollout, prepared, rows)
    moved = sum(
        (g * (p.detach() - b)).sum().item()
        for g, p, b in zip(slope, weights, before, strict=True)
        if g is not None
    )
    after = _entropies(run, rollout)[1]
    A = prepared.advantages[mask]
    lp, H = logp[mask], entropy[mask]
    batchwise = (lp - lp.mean()) * (A - A.mean())
    if shown is not None:
        _keep(shown, run, rollout, logp, entropy, prepared.advantages, drawn.problems)
    return {
        "reward": drawn.verified.mean().item(),
        "before": H.mean().item(),
        "after": after[mask].mean().item(),
        "per_token": ((lp + H) * A).mean().item(),
        "in_batch": batchwise.mean().item(),
        "above": (batchwise > LOW).double().mean().item(),
        "linear": moved,
        "grad_norm": found["grad_norm"],
    }


def _keep(shown, run, rollout, logp, entropy, advantages, problems) -> None:
    lengths, size = rollout.lengths.tolist(), run.recipe.num_generations
    for i in range(min(SHOWN, len(lengths))):
        n = lengths[i]
        shown.append({
            "prompt": problems[i // size].prompt,
            "tokens": run.tokenizer.convert_ids_to_tokens(rollout.completion_ids[i, :n].tolist()),
            "logp": [round(x, 3) for x in logp[i, :n].tolist()],
            "entropy": [round(x, 3) for x in entropy[i, :n].tolist()],
            "advantage": round(advantages[i, 0].item(), 3),
        })  # fmt: skip


def _alone(part: float, prompts: int = 300) -> dict[str, list[float]]:
    """A step from the base for each prompt whose group is neither all right nor all wrong."""
    model, tokenizer = load(data_folder() / "model", device="cpu")
    base = {k: v.clone() for k, v in model.state_dict().items()}
    recipe = replace(RECIPE, prompts=1, learning_rate=part * RECIPE.learning_rate)
    steps = []
    for seed in range(100, 100 + prompts):
        model.load_state_dict(base)
        run = start(model, tokenizer, TASKS["chain"], PLAIN, replace(recipe, seed=seed))
        steps.append(measured_step(run))
    mixed = [s for s in steps if 0 < s["reward"] < 1]
    return {k: [float(f"{s[k]:.4g}") for s in mixed] for k in mixed[0]}


def measure(path: Path) -> None:
    """Writes what `path` lacks: every arm and seed, tokens of the first step, steps alone."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    task = TASKS["chain"]
    for name, objective in ARMS.items():
        for seed in SEEDS:
            if f"{name}, seed {seed}" in found:
                continue
            model, tokenizer = load(data_folder() / "model", device="cpu")
            run = start(model, tokenizer, task, objective, replace(RECIPE, seed=seed))
            first: list[dict[str, Any]] | None = [] if name == "plain" and seed == 0 else None
            steps = [measured_step(run, first if k == 0 else None) for k in range(RECIPE.steps)]
            report = summary(task, pass_rate(model, tokenizer, task, num_generations=8))
            found.setdefault("header", {
                "task": "chain", "model": "data/model", "prompts": RECIPE.prompts,
                "learning_rate": RECIPE.learning_rate, **environment(model.device),
            })  # fmt: skip
            if first:
                found["tokens"] = first
            columns = {k: [float(f"{s[k]:.4g}") for s in steps] for k in steps[0]}
            at_end = {k: round(report[k], 4) for k in ("pass@1", "pass@8", "entropy")}
            found[f"{name}, seed {seed}"] = {"objective": repr(objective), **columns, "end": at_end}
            path.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")
            print(name, seed, at_end, flush=True)
    for name, part in ALONE.items():
        if name not in found:
            found[name] = _alone(part)
            path.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")


def law(path: str | Path) -> dict[str, Any]:
    """The file: {"plain, seed 0": {"before": [...], "after": [...], ...}, ..., "tokens": [...]}."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module; exit status 0."""
    parser = to_complete("entropy_law", __doc__)
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    measure(args.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
