"""Whether a run can still learn: its numbers, its weights and what the model says are finite.

Asked after every step and before anything of it is kept. The model is asked one prompt: weights can
be finite and so large that what they compute is not. And they can be finite and good for nothing:
`Collapse` looks at the answers.
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

__all__ = ["Collapse", "diverged", "not_finite"]

LARGE = 0.05  # no rate that AdamW learns with; below it a run may recover, and is left alone
SILENT = 2  # steps in a row without a right answer and without a gradient
FEW = 32  # answers in such a step, or it may be chance


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


class Collapse:
    """Whether the first steps at a very large learning rate have destroyed a policy that could
    answer. `check` raises Diverged.

    The sign: some answers were right, then none of a whole step, and nothing pulls, twice in a row.
    """

    def __init__(self) -> None:
        self.right, self.at, self.silent = 0.0, 0, 0  # the best step, and what came since

    def check(self, run: Run, folder: Path | None, number: int, metrics: dict[str, float]) -> None:
        """Looks at the metrics of step `number`."""
        right = metrics["rewards/verify/mean"]
        if right > self.right:
            self.right, self.at = right, number
        nothing = right == metrics["reward"] == metrics.get("grad_norm", 0.0) == 0.0
        self.silent = self.silent + 1 if nothing and metrics["generated"] >= FEW else 0
        rate = metrics["learning_rate"]
        if rate < LARGE or not self.right or self.silent < SILENT:
            return
        first = number - self.silent + 1
        kept = [] if folder is None else checkpoints(folder)
        before = [path for path in kept if int(path.name.rpartition("-")[2]) < first - 1]
        where = f"; {before[-1].name!r} in {str(folder)!r} is from before" if before else ""
        raise Diverged(
            f"collapsed at step {first}: {self.right:.0%} of the answers of step {self.at} were "
            f"right, and none of steps {first} to {number}, whose gradient is 0 (learning rate "
            f"{rate:g}); nothing can be learned from here{where}; start anew with a smaller "
            "learning rate, 3e-4 for example"
        )


def diverged(run: Run, folder: Path | None, number: int, what: str) -> Diverged:
    """The error: at which step, what, and which checkpoint is from before."""
    kept = [] if folder is None else checkpoints(folder)
    where = f"; {kept[-1].name!r} in {str(folder)!r} is from before" if kept else ""
    return Diverged(
        f"diverged at step {number}: {what} is not finite (learning rate "
        f"{run.recipe.learning_rate:g}){where}; start anew with a smaller learning rate"
    )
