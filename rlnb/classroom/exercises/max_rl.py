"""MaxRL: the advantage that divides by the group's mean score. Rewards are (B,)."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, mistake
from rlnb.classroom.exercises.groups import rewards_probe

__all__ = ["MAX_RL_ADVANTAGES", "max_rl_advantages"]

NO_SUCCESS = (
    "right where something is right; an all-wrong group is 0/0 here, nan for every "
    "parameter: such a group gets 0 (torch.where on the mean)"
)


def max_rl_advantages(
    rewards: torch.Tensor, num_generations: int, *, eps: float = 0.0, minus_one: bool = False
) -> torch.Tensor:
    """(r - mean) / mean inside each group, 0 where the mean is 0: (B,) -> (B,).

    MaxRL, arXiv 2602.02710. `minus_one` gives -1 to the answers of a group without a right one.
    """
    return _over(rewards, num_generations, lambda groups, mean: mean, eps, minus_one)


def _over(rewards, num_generations, divisor, eps=0.0, minus_one=False):
    groups = rewards.view(-1, num_generations)
    mean = groups.mean(1, keepdim=True)
    below = divisor(groups, mean) + eps
    some = (mean > 0) & (below > 0)
    out = (groups - mean) / torch.where(some, below, 1.0)
    nothing = torch.where(mean > 0, 0.0, -1.0 if minus_one else 0.0).expand_as(out)
    return torch.where(some, out, nothing.to(out.dtype)).reshape(-1)


@mistake(
    "divided by the std: that is GRPO, weight 1/sqrt(p(1-p)); MaxRL divides by the mean, weight 1/p"
)
def _over_the_std(rewards, num_generations, *, eps=0.0, minus_one=False):
    return _over(
        rewards,
        num_generations,
        lambda groups, mean: groups.std(1, correction=0, keepdim=True),
        eps,
        minus_one,
    )


@mistake(
    "only centred: that is Dr. GRPO, weight 1; the division by the group's mean is "
    "what makes it 1/p"
)
def _only_centred(rewards, num_generations, *, minus_one=False):
    return _over(
        rewards, num_generations, lambda groups, mean: torch.ones_like(mean), 0.0, minus_one
    )


@mistake("divided by the mean of the batch: then all prompts weigh alike; each group has its own p")
def _over_the_batch_mean(rewards, num_generations, *, eps=0.0, minus_one=False):
    return _over(
        rewards, num_generations, lambda groups, mean: groups.mean().expand_as(mean), eps, minus_one
    )


@mistake(
    "divided by the number of right answers: G times too small; the mean is that number over G"
)
def _over_the_count(rewards, num_generations, *, eps=0.0, minus_one=False):
    return _over(
        rewards, num_generations, lambda groups, mean: groups.sum(1, keepdim=True), eps, minus_one
    )


@mistake("divided by the share of wrong answers: upside down, easy prompts would weigh most")
def _over_the_failures(rewards, num_generations, *, eps=0.0, minus_one=False):
    return _over(rewards, num_generations, lambda groups, mean: 1 - mean, eps, minus_one)


@mistake("divided by the root of the mean: for rewards of 0 and 1 log p needs 1/p, the mean itself")
def _over_the_root(rewards, num_generations, *, eps=0.0, minus_one=False):
    return _over(rewards, num_generations, lambda groups, mean: mean.sqrt(), eps, minus_one)


@mistake(
    "r / mean, without a baseline: the same direction on average, more noise; "
    "subtract the mean first"
)
def _no_baseline(rewards, num_generations, *, eps=0.0):
    groups = rewards.view(-1, num_generations)
    mean = groups.mean(1, keepdim=True)
    return (groups / torch.where(mean > 0, mean + eps, 1.0)).reshape(-1)


@mistake("wrong neighbours: rows kG ... kG+G-1 answer one prompt, so view(-1, G), not view(G, -1)")
def _interleaved(rewards, num_generations, *, eps=0.0, minus_one=False):
    columns = rewards.view(num_generations, -1).T.reshape(-1)
    out = max_rl_advantages(columns, num_generations, eps=eps, minus_one=minus_one)
    return out.view(-1, num_generations).T.reshape(-1)


@mistake(
    "mean of the *others*: RLOO's habit; here the mean of the whole group is "
    "subtracted and divided by"
)
def _others_only(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    others = (groups.sum(1, keepdim=True) - groups) / (num_generations - 1)
    return ((groups - others) / torch.where(others > 0, others, 1.0)).reshape(-1)


@mistake(NO_SUCCESS)
def _not_guarded(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    mean = groups.mean(1, keepdim=True)
    return ((groups - mean) / mean).reshape(-1)


MAX_RL_ADVANTAGES = Exercise(
    name="max_rl_advantages",
    reference=max_rl_advantages,
    probes=(
        rewards_probe("two answers", [1, 0], 2),
        rewards_probe("one right of four", [1, 0, 0, 0], 4),
        rewards_probe("one right of three, two right of three", [1, 0, 0, 0, 1, 1], 3),
        rewards_probe("two prompts of four", [1, 0, 0, 0, 1, 1, 1, 0], 4),
        rewards_probe("all right, one right of two", [1, 1, 1, 0], 2),
        rewards_probe("all wrong beside one right of two", [0, 0, 0, 1], 2, NO_SUCCESS),
    ),
    conventions=(
        Convention(
            "-1 for the answers of an all-wrong group: the mean score is subtracted there, "
            "too, which keeps the G-th term; this page gives 0",
            {"minus_one": True},
        ),
        Convention(
            "1e-6 added to the mean, as in the authors' code; this page adds nothing", {"eps": 1e-6}
        ),
        Convention(
            "1e-8 added to the mean, as in open-instruct; this page adds nothing", {"eps": 1e-8}
        ),
    ),
    mistakes=(
        _over_the_std,
        _only_centred,
        _over_the_batch_mean,
        _over_the_count,
        _over_the_failures,
        _over_the_root,
        _no_baseline,
        _interleaved,
        _others_only,
        _not_guarded,
    ),
    hint="One prompt a line: view(-1, num_generations). Subtract the line's mean, divide by it. "
    "What is the mean when nothing is right, and what should such a line teach?",
)
