"""The push of an estimator on the decision to stop, measured without training.

Answers of the task `pick` stop or go on behind a verdict. The gradient of the policy term with
respect to the logit of going on is, for answer i with weights c and advantages A,

    push_i = sum_t c_it A_it (1[went on at t] - P(go on at t))      t: the tokens behind a verdict

Above 0 it lengthens answers. Its mean is 0 unless c A knows how long the answer became.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rlnb.objective import ZOO, Batch, Objective, constant_length, group_center
from rlnb.training.errors import BadInput
from rlnb.training.rewards import Reward
from rlnb.training.sampling.prompts import encode_prompts
from rlnb.training.sampling.sampler import Rollout, Sampling, sample
from rlnb.training.sampling.scoring import teacher_forced_logits
from rlnb.training.tasks import Problem, Task

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["ESTIMATORS", "Decisions", "Push", "Side", "sample_decisions", "stop_push"]

# GRPO's two divisors, taken away one at a time. On the command line:
# --objective rlnb.training.studies.stop_push:zscore_constant
grpo = ZOO["grpo"].replace(terms=())
mean_only = grpo.replace(advantage=group_center())
zscore_constant = grpo.replace(weights=constant_length())
ESTIMATORS: dict[str, Objective] = {
    "grpo": grpo, "mean_only": mean_only, "zscore_constant": zscore_constant,
    "dr_grpo": ZOO["dr_grpo"], "dapo": ZOO["dapo"],
}  # fmt: skip


@dataclass(frozen=True)
class Decisions:
    """N = batches x prompts x G answers. right (N,): what the task's verifier says. decided (N, T):
    a token behind a verdict; go_on (N, T) its P(go on), score (N, T) 1[went on] - P(go on), else 0.
    """

    rollout: Rollout
    problems: list[Problem]  # one per answer
    texts: list[str]
    right: Tensor
    decided: Tensor
    go_on: Tensor
    score: Tensor
    batches: int

    def summary(self) -> dict[str, float]:
        """pass@1, truncated share; of right and wrong answers, mean tokens and mean P(go on)."""
        cut = 1.0 - self.rollout.finished.float().mean().item()
        found = {"pass@1": self.right.float().mean().item(), "truncated": cut}
        for side, rows in (("right", self.right), ("wrong", ~self.right)):
            found[f"length/{side}"] = self.rollout.lengths[rows].float().mean().item()
            found[f"go_on/{side}"] = (self.go_on[rows].sum() / self.decided[rows].sum()).item()
        return found


@torch.no_grad()
def sample_decisions(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, task: Task, *, batches: int = 40,
    prompts: int = 16, num_generations: int = 8, seed: int = 0, max_new_tokens: int = 160,
) -> Decisions:  # fmt: skip
    """`batches` training steps' worth of answers, with P(go on) = 1 - P(end) from teacher forcing.

    160 tokens are more than twice what demonstrations have: reward 0 for truncation would itself be
    a push on length. Raises BadInput for a task without verdicts `:` and `;`, or for one batch.
    """
    if not {":", ";"} <= set(task.symbols):
        raise BadInput(f"task: {task.name!r} has no verdicts : and ; to stop behind; take 'pick'")
    if batches < 2:
        raise BadInput(f"batches: got {batches}, expected 2 or more, for a standard error")
    rng = random.Random(seed)
    asked = [task.problem(rng, "train") for _ in range(batches * prompts)]
    rollout = sample(
        model, encode_prompts(tokenizer, [p.prompt for p in asked]), num_generations,
        Sampling(max_new_tokens=max_new_tokens), eos_id=tokenizer.eos_token_id,
        pad_id=tokenizer.pad_token_id, generator=torch.Generator(model.device).manual_seed(seed),
    )  # fmt: skip
    problems, texts = [p for p in asked for _ in range(num_generations)], rollout.texts(tokenizer)
    tokens, mask = rollout.completion_ids, rollout.completion_mask
    graded = [task.verify(*pair) > 0 for pair in zip(problems, texts, strict=True)]
    right = torch.tensor(graded, device=tokens.device)
    verdicts = torch.tensor(tokenizer.convert_tokens_to_ids([":", ";"]), device=tokens.device)
    decided = mask & torch.isin(tokens.roll(1, 1), verdicts)
    decided[:, 0] = False  # roll put the last token there
    go_on = torch.zeros_like(rollout.logprobs)
    for rows in rollout.lengths.argsort().split(512):  # rows of like length: little padding
        logits = teacher_forced_logits(model, rollout, rows).float()
        go_on[rows, : logits.shape[1]] = 1.0 - logits.softmax(-1)[..., tokenizer.eos_token_id]
    score = (tokens != tokenizer.eos_token_id).float() - go_on
    go_on, score = (torch.where(decided, x, 0.0) for x in (go_on, score))
    return Decisions(rollout, problems, texts, right, decided, go_on, score, batches)


@dataclass(frozen=True)
class Side:
    """One number per batch, (batches,); their mean, and the standard error of the mean."""

    batches: Tensor

    @property
    def mean(self) -> float:
        """Over the batches."""
        return self.batches.mean().item()

    @property
    def error(self) -> float:
        """s / sqrt(batches), with Bessel's correction in s."""
        return (self.batches.std() / len(self.batches) ** 0.5).item()


@dataclass(frozen=True)
class Push:
    """What right and what wrong answers push, per answer of the batch (their sum is the whole)."""

    right: Side
    wrong: Side


def stop_push(decisions: Decisions, objective: Objective, reward: Reward | None = None) -> Push:
    """The batch mean of 1[right] push_i and of 1[wrong] push_i, batch by batch, in units of |c A|.

    The unit is the mean over all answers of |c A|, averaged over the answer's tokens: estimators of
    any scale compare. Each batch is prepared as a training step is; ratios are 1, so clipping plays
    no role. reward: (problem, text) -> number, the task's verifier when None; truncated answers 0.
    """
    rollout, rewards = decisions.rollout, decisions.right.float()
    if reward is not None:
        pairs = zip(decisions.problems, decisions.texts, strict=True)
        rewards = rewards.new_tensor([float(reward(*pair)) for pair in pairs])
    whole = Batch(
        rollout.logprobs, rollout.completion_mask, rewards * rollout.finished,
        rollout.num_generations, max_completion_length=rollout.sampling.max_new_tokens,
    )  # fmt: skip
    sides, unit = {True: [], False: []}, []
    for rows in torch.arange(len(rewards)).chunk(decisions.batches):
        step = objective.prepare(whole.rows(rows))
        scale = objective.weights(step.batch.cleaned(), step.totals) * step.advantages
        push = (scale * decisions.score[rows]).sum(1)
        unit.append((scale.abs().sum(1) / step.batch.lengths).mean())
        for side, values in sides.items():
            values.append(torch.where(decisions.right[rows] == side, push, 0.0).mean())
    scaled = {side: torch.stack(v) / torch.stack(unit).mean() for side, v in sides.items()}
    return Push(Side(scaled[True]), Side(scaled[False]))
