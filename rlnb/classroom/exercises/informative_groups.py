"""Groups with a signal: which prompts have answers that can be told apart. Rewards are (B,)."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, mistake
from rlnb.classroom.checking.name_this import NameThis
from rlnb.classroom.checking.silent_bug import SilentBug
from rlnb.classroom.exercises.groups import rewards_probe

__all__ = [
    "KEEP_INFORMATIVE",
    "NAME_THIS_GRPO_BIASES",
    "SILENT_BUG_GRPO_BIASES",
    "advantages",
    "keep_informative",
]

RESIDUE = (
    "right for 0 and 1; twelve rewards of 0.7 are kept: their rounded mean is not 0.7, so "
    "the std is not 0. Compare the largest with the smallest"
)


def keep_informative(
    rewards: torch.Tensor, num_generations: int, *, per_answer: bool = False
) -> torch.Tensor:
    """max != min in each group: (B,) -> (P,) bool. `per_answer` repeats it to (B,)."""
    groups = rewards.view(-1, num_generations)
    kept = groups.amax(1) != groups.amin(1)
    return kept.repeat_interleave(num_generations) if per_answer else kept


def _loop_mean(groups: torch.Tensor) -> torch.Tensor:
    """(P, G) -> (P, 1), added one after the other: the same bits on every machine."""
    total = torch.zeros_like(groups[:, :1])
    for i in range(groups.shape[1]):
        total = total + groups[:, i : i + 1]
    return total / groups.shape[1]


@mistake(RESIDUE)
def _std_above_zero(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    return (groups - _loop_mean(groups)).square().sum(1).sqrt() > 0


@mistake(
    "a threshold is a second eps: it calls 0 and 1e-12 equal, and twelve float32 rewards of 700.1, "
    "whose std is 6e-5, different. Ask without a mean"
)
def _std_above_small(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    return (groups - _loop_mean(groups)).square().mean(1).sqrt() > 1e-6


@mistake(
    "this keeps every group with something right: when all are right there is nothing "
    "to compare either"
)
def _any_right(rewards, num_generations):
    return (rewards.view(-1, num_generations) > 0).any(1)


@mistake(
    "mean > 0 asks for something positive: all right has mean 1 and no signal, graded "
    "rewards may be negative"
)
def _mean_above_zero(rewards, num_generations):
    return rewards.view(-1, num_generations).mean(1) > 0


@mistake("this drops only what is all right: all wrong teaches a group as little")
def _not_all_right(rewards, num_generations):
    return (rewards.view(-1, num_generations) != 1).any(1)


@mistake(
    "0 < mean < 1 is right for 0 and 1 only: graded rewards can all be 0.5, or differ around 2"
)
def _between_zero_and_one(rewards, num_generations):
    mean = rewards.view(-1, num_generations).mean(1)
    return (mean > 0) & (mean < 1)


@mistake("this asks for a 1 and a 0: graded rewards may have neither, and differ")
def _exactly_right_and_wrong(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    return (groups == 1).any(1) & (groups == 0).any(1)


@mistake("upside down: these are the groups to drop")
def _inverted(rewards, num_generations):
    return ~keep_informative(rewards, num_generations)


@mistake("wrong neighbours: rows kG ... kG+G-1 answer one prompt, so view(-1, G), not view(G, -1)")
def _interleaved(rewards, num_generations):
    groups = rewards.view(num_generations, -1)
    return groups.amax(0) != groups.amin(0)


@mistake("one verdict for the whole batch: each prompt is its own group")
def _whole_batch(rewards, num_generations):
    differs = rewards.max() != rewards.min()
    return differs.expand(len(rewards) // num_generations)


@mistake("one verdict per row, against the batch's mean: the group decides, not the answer")
def _row_of_the_batch(rewards, num_generations):
    return rewards != rewards.mean()


@mistake(
    "a gap of 0.0078 counts as equal here: the z-score makes it full size, so whether "
    "to drop it is a choice to be stated"
)
def _large_gap(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    return groups.amax(1) - groups.amin(1) > 0.05


@mistake(
    "a band of pass rates throws mixed groups away, 1 of 8 and 7 of 8 among them: they "
    "have a signal"
)
def _medium_band(rewards, num_generations):
    mean = rewards.view(-1, num_generations).mean(1)
    return (mean > 0.2) & (mean < 0.8)


KEEP_INFORMATIVE = Exercise(
    name="keep_informative",
    reference=keep_informative,
    probes=(
        rewards_probe("two prompts", [1, 0, 1, 1], 2),
        rewards_probe("mixed, all wrong, all right", [1, 0, 0, 0, 0, 0, 1, 1, 1], 3),
        rewards_probe("one right of eight, one wrong of eight", [1, *[0] * 7, *[1] * 7, 0], 8),
        rewards_probe("graded", [0.5, 0.25, 0.5, 0.5, 1, 0.75], 2),
        rewards_probe("below zero and above one", [-1, -0.5, 2, 2, -1, 0.5, 0, 3], 2),
        rewards_probe("nearly equal", [1, 1.0078125, 1, 1, 0, 0.0078125], 2),
        rewards_probe("a gap of 1e-12", [0, 2.0**-40, 1, 1], 2),
        # one group alone: torch sums a single row in an order that leaves a residue at 12
        rewards_probe("twelve times 0.7", [0.7] * 12, 12),
        rewards_probe("two prompts of three, mixed up", [1, 1, 1, 0, 0, 0], 3),
    ),
    conventions=(
        Convention(
            "one entry per answer, each group's repeated: a mask for the rows; this page "
            "returns one per group",
            {"per_answer": True},
        ),
    ),
    mistakes=(
        _std_above_zero,
        _std_above_small,
        _any_right,
        _mean_above_zero,
        _not_all_right,
        _between_zero_and_one,
        _exactly_right_and_wrong,
        _inverted,
        _interleaved,
        _whole_batch,
        _row_of_the_batch,
        _large_gap,
        _medium_band,
    ),
    hint="A std needs a mean, and a mean is rounded. Which question about the rewards of a group "
    "needs no arithmetic at all?",
)


def _advantages(correct, bonus, num_generations, eps=1e-6):
    groups = correct.view(-1, num_generations)
    centred = groups - groups.mean(1, keepdim=True)
    std = groups.std(1, keepdim=True, correction=0)
    extra = bonus.view(-1, num_generations)
    extra = extra - extra.mean(1, keepdim=True)
    return (centred / (std + eps) + extra).view(-1)


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def advantages(correct, bonus, num_generations, eps=1e-6):
    r = (correct + bonus).view(-1, num_generations)    # (P, G)
    centred = r - r.mean(1, keepdim=True)
    std = r.std(1, keepdim=True, correction=0)
    return (centred / (std + eps)).view(-1)            # (B,)
# fmt: on


SILENT_BUG_GRPO_BIASES = SilentBug(
    name="silent_bug_grpo_biases",
    right=_advantages,
    broken=advantages,
    story="The bonus goes through the division. Where answers are right and wrong it stays small; "
    "where all are right it is all that differs, and 0.01 becomes 1.",
    hint="In a mixed group the two hardly differ. In which group does the bonus decide alone? How "
    "large may an advantage be there, if the bonus is at most 0.01?",
)

NAME_THIS_GRPO_BIASES = NameThis(
    name="name_this_grpo_biases",
    answer="dr_grpo",
    near={
        "grpo": "a token of the five-token answer would get 3/5 of one of the three-token answer, "
        "and the lone success would be divided by a smaller std",
        "dapo": "no 1/T, right; but divided by the std the lone success would get 1.73 times a "
        "right answer of the even group, here 1.5 times",
        "gspo": "it keeps 1/T and the std: lengths would show",
        "cispo": "with one mean over tokens, right, but the std would make it 1.73, here 1.5",
        "maxrl": "divided by the mean the lone success would get 3 where the even group gets 1",
        "reinforce": "without a baseline the wrong answers would get nothing",
        "reinforce_batch_mean": "one mean for the whole batch would pay a right answer the same in "
        "both groups",
        "ppo": "a critic gives each token a number of its own",
    },
    story="Length does not show, so no 1/T; 0.75 against 0.5 is the distance from the group's "
    "mean, so no std. RLOO gives the same table: its 4/3 and 1/B are one factor for all.",
    also=("rloo", "dr grpo done right", "group_center"),
)
