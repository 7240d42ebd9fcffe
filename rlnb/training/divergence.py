"""Whether a run can still learn: its numbers, its weights and what the model says are finite.

Asked after every step and before anything of it is kept. The model is asked one prompt: weights can
be finite and so large that the logits are not.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

import torch

from rlnb.training.errors import Diverged
from rlnb.training.run import Run
from rlnb.training.run_folder import checkpoints
from rlnb.training.sampling.prompts import encode_prompts

__all__ = ["diverged", "not_finite"]


@torch.no_grad()
def not_finite(run: Run, metrics: dict[str, float]) -> str | None:
    """What is not finite: a number of the step, a weight, or a logit; None if all is."""
    for name in ("loss", "grad_norm"):
        if not math.isfinite(metrics.get(name, 0.0)):
            return name
    if not all(parameter.isfinite().all() for parameter in run.modules.parameters()):
        return "a weight"
    problem = run.task.problem(random.Random(0), "train")
    ids = torch.tensor(encode_prompts(run.tokenizer, [problem.prompt], task=run.task))
    with run.precision():
        logits = run.model(ids.to(run.model.device), use_cache=False).logits
    return None if logits.isfinite().all() else "a logit"


def diverged(run: Run, folder: Path | None, number: int, what: str) -> Diverged:
    """The error: at which step, what, and which checkpoint is from before."""
    kept = [] if folder is None else checkpoints(folder)
    where = f"; {kept[-1].name!r} in {str(folder)!r} is from before" if kept else ""
    return Diverged(
        f"diverged at step {number}: {what} is not finite (learning rate "
        f"{run.recipe.learning_rate:g}){where}; start anew with a smaller learning rate"
    )
