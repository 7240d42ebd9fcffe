"""Recent methods: MaxRL's advantage, retirement that never comes, and a loss to recognise."""

from __future__ import annotations

import torch

from rlnb.classroom.exercises.exercise import Convention, Exercise, Mistake, Probe
from rlnb.classroom.exercises.name_this import NameThis
from rlnb.classroom.exercises.silent_bug import SilentBug

__all__ = ["MAX_RL_ADVANTAGES", "NAME_THIS_12", "SILENT_BUG_12", "max_rl_advantages", "retired"]

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


def _over_the_std(rewards, num_generations, *, eps=0.0, minus_one=False):
    return _over(
        rewards,
        num_generations,
        lambda groups, mean: groups.std(1, correction=0, keepdim=True),
        eps,
        minus_one,
    )


def _only_centred(rewards, num_generations, *, minus_one=False):
    return _over(
        rewards, num_generations, lambda groups, mean: torch.ones_like(mean), 0.0, minus_one
    )


def _over_the_batch_mean(rewards, num_generations, *, eps=0.0, minus_one=False):
    return _over(
        rewards, num_generations, lambda groups, mean: groups.mean().expand_as(mean), eps, minus_one
    )


def _over_the_count(rewards, num_generations, *, eps=0.0, minus_one=False):
    return _over(
        rewards, num_generations, lambda groups, mean: groups.sum(1, keepdim=True), eps, minus_one
    )


def _over_the_failures(rewards, num_generations, *, eps=0.0, minus_one=False):
    return _over(rewards, num_generations, lambda groups, mean: 1 - mean, eps, minus_one)


def _over_the_root(rewards, num_generations, *, eps=0.0, minus_one=False):
    return _over(rewards, num_generations, lambda groups, mean: mean.sqrt(), eps, minus_one)


def _no_baseline(rewards, num_generations, *, eps=0.0):
    groups = rewards.view(-1, num_generations)
    mean = groups.mean(1, keepdim=True)
    return (groups / torch.where(mean > 0, mean + eps, 1.0)).reshape(-1)


def _interleaved(rewards, num_generations, *, eps=0.0, minus_one=False):
    columns = rewards.view(num_generations, -1).T.reshape(-1)
    out = max_rl_advantages(columns, num_generations, eps=eps, minus_one=minus_one)
    return out.view(-1, num_generations).T.reshape(-1)


def _others_only(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    others = (groups.sum(1, keepdim=True) - groups) / (num_generations - 1)
    return ((groups - others) / torch.where(others > 0, others, 1.0)).reshape(-1)


def _not_guarded(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    mean = groups.mean(1, keepdim=True)
    return ((groups - mean) / mean).reshape(-1)


def _rewards(label: str, values: list[float], num_generations: int, catches: str = "") -> Probe:
    return Probe(
        label,
        {"rewards": torch.tensor(values, dtype=torch.float64), "num_generations": num_generations},
        catches,
    )


MAX_RL_ADVANTAGES = Exercise(
    name="max_rl_advantages",
    reference=max_rl_advantages,
    probes=(
        _rewards("two answers", [1, 0], 2),
        _rewards("one right of four", [1, 0, 0, 0], 4),
        _rewards("one right of three, two right of three", [1, 0, 0, 0, 1, 1], 3),
        _rewards("two prompts of four", [1, 0, 0, 0, 1, 1, 1, 0], 4),
        _rewards("all right, one right of two", [1, 1, 1, 0], 2),
        _rewards("all wrong beside one right of two", [0, 0, 0, 1], 2, NO_SUCCESS),
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
        Mistake(
            "divided by the std: that is GRPO, weight 1/sqrt(p(1-p)); MaxRL divides by the "
            "mean, weight 1/p",
            _over_the_std,
        ),
        Mistake(
            "only centred: that is Dr. GRPO, weight 1; the division by the group's mean is "
            "what makes it 1/p",
            _only_centred,
        ),
        Mistake(
            "divided by the mean of the batch: then all prompts weigh alike; each group has "
            "its own p",
            _over_the_batch_mean,
        ),
        Mistake(
            "divided by the number of right answers: G times too small; the mean is that "
            "number over G",
            _over_the_count,
        ),
        Mistake(
            "divided by the share of wrong answers: upside down, easy prompts would weigh most",
            _over_the_failures,
        ),
        Mistake(
            "divided by the root of the mean: for rewards of 0 and 1 log p needs 1/p, the mean "
            "itself",
            _over_the_root,
        ),
        Mistake(
            "r / mean, without a baseline: the same direction on average, more noise; "
            "subtract the mean first",
            _no_baseline,
        ),
        Mistake(
            "wrong neighbours: rows kG ... kG+G-1 answer one prompt, so view(-1, G), not "
            "view(G, -1)",
            _interleaved,
        ),
        Mistake(
            "mean of the *others*: RLOO's habit; here the mean of the whole group is "
            "subtracted and divided by",
            _others_only,
        ),
        Mistake(NO_SUCCESS, _not_guarded),
    ),
    hint="One prompt a line: view(-1, num_generations). Subtract the line's mean, divide by it. "
    "What is the mean when nothing is right, and what should such a line teach?",
)


def _retired(rewards, threshold=0.9):
    return rewards.mean((0, 2)) >= threshold


def retired(rewards, threshold=0.9):
    """rewards (steps, prompts, G), 0 or 1 -> (prompts,) bool: it leaves"""
    kept = rewards.amax(2) > rewards.amin(2)  # groups with a gradient
    right = (rewards.sum(2) * kept).sum(0)
    tried = kept.sum(0) * rewards.shape[2]
    return right / tried.clamp(min=1) >= threshold


SILENT_BUG_12 = SilentBug(
    name="silent_bug_12",
    right=_retired,
    broken=retired,
    story="Only groups that trained entered the history. A solved prompt gives all-right groups, "
    "which have no gradient: they never count, so it never retires.",
    hint="What does the history of a prompt look like that is solved every time?",
)

NAME_THIS_12 = NameThis(
    name="name_this_12",
    answer="deepseek_v3_2",
    also=("v3.2", "deepseek v3.2", "DeepSeek-V3.2", "deepseek_v32"),
    near={
        "grpo": "there a std divides, and the KL is not multiplied by the ratio",
        "dr_grpo": "the advantage is the same, but each answer is divided by its own length here, "
        "and there is a KL",
        "dppo": "it drops tokens, by how much probability moved; here a whole answer goes, by its "
        "mean log-ratio",
        "gspo": "the mean log-ratio is only asked whether the answer counts: the ratio is the "
        "token's",
        "dapo": "it has a std, one mean over tokens, a higher upper edge and no KL",
        "ppo": "a critic would give the advantage; here the group does",
    },
    story="no std, k3 times the ratio with its gradient, and wrong answers much less likely than "
    "when the engine sampled them are left out whole: DeepSeek-V3.2.",
)
