"""Whether a run can still learn: its numbers, its weights and what the model says are finite.

Asked after every step and before anything of it is kept. The model is asked one prompt: weights can
be finite and so large that what they compute is not.
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
    """What is not finite: a number of the step, a weight, an activation or a logit; None if all is.

    An activation is counted as its square, which is what a norm takes: from 1.8e19 on that is
    infinite in float32, and x / infinity a logit of 0 that looks healthy.
    """
    for name in ("loss", "grad_norm"):
        if not math.isfinite(metrics.get(name, 0.0)):
            return name
    if not all(parameter.isfinite().all() for parameter in run.modules.parameters()):
        return "a weight"
    problem = run.task.problem(random.Random(0), "train")
    ids = torch.tensor(encode_prompts(run.tokenizer, [problem.prompt], task=run.task))
    with run.precision():
        out = run.model(ids.to(run.model.device), use_cache=False, output_hidden_states=True)
    if not all(hidden.float().square().isfinite().all() for hidden in out.hidden_states):
        return "an activation"
    return None if out.logits.isfinite().all() else "a logit"


def diverged(run: Run, folder: Path | None, number: int, what: str) -> Diverged:
    """The error: at which step, what, and which checkpoint is from before."""
    kept = [] if folder is None else checkpoints(folder)
    where = f"; {kept[-1].name!r} in {str(folder)!r} is from before" if kept else ""
    return Diverged(
        f"diverged at step {number}: {what} is not finite (learning rate "
        f"{run.recipe.learning_rate:g}){where}; start anew with a smaller learning rate"
    )
