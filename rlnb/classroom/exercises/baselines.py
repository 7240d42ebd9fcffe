"""Baselines: the one with the least variance, and one that went to the wrong prompt."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake
from rlnb.classroom.checking.silent_bug import SilentBug

__all__ = ["OPTIMAL_BASELINE", "SILENT_BUG_BASELINES", "optimal_baseline"]


def optimal_baseline(
    scores: torch.Tensor, rewards: torch.Tensor, probs: torch.Tensor
) -> torch.Tensor:
    """b* = E[|s|^2 r] / E[|s|^2]: (N, D), (N,), (N,) -> ()."""
    weight = probs * scores.square().sum(1)
    return (weight * rewards).sum() / weight.sum()


@mistake("this is the mean reward E[r]: weigh every outcome by |s|^2 as well")
def _mean_reward(scores, rewards, probs):
    return (probs * rewards).sum()


@mistake("this is the plain mean of the rewards: an outcome counts by its probability times |s|^2")
def _plain_mean(scores, rewards, probs):
    return rewards.mean()


@mistake("the outcomes are not equally likely: both expectations need the probabilities")
def _every_outcome_alike(scores, rewards, probs):
    return optimal_baseline(scores, rewards, torch.ones_like(probs))


@mistake("the weight is the squared length |s|^2, not |s|: variances are squares")
def _length_not_squared(scores, rewards, probs):
    weight = probs * scores.norm(dim=1)
    return (weight * rewards).sum() / weight.sum()


@mistake("this is E[|s|^2 r] only: divide by E[|s|^2]")
def _no_denominator(scores, rewards, probs):
    return (probs * scores.square().sum(1) * rewards).sum()


@mistake("probabilities above and none below: E[|s|^2] is a weighted mean too")
def _denominator_without_probs(scores, rewards, probs):
    size = scores.square().sum(1)
    return (probs * size * rewards).sum() / size.mean()


@mistake(
    "one baseline per component, then their mean: sum the squares over the components "
    "first, divide last"
)
def _mean_of_components(scores, rewards, probs):
    weight = probs[:, None] * scores.square()
    return ((weight * rewards[:, None]).sum(0) / weight.sum(0)).mean()


@mistake(
    "one baseline per component: each has the least variance in its own, but one "
    "number was asked for"
)
def _one_per_component(scores, rewards, probs):
    weight = probs[:, None] * scores.square()
    return (weight * rewards[:, None]).sum(0) / weight.sum(0)


def _probe(label: str, scores, rewards: list[float], probs: list[float]) -> Probe:
    return Probe(label, {"scores": scores, "rewards": rewards, "probs": probs})


def _softmax_scores(probs: list[float]) -> list[list[float]]:
    return [[float(i == j) - p for j, p in enumerate(probs)] for i in range(len(probs))]


ARMS = [0.6, 0.3, 0.1]

OPTIMAL_BASELINE = Exercise(
    name="optimal_baseline",
    reference=optimal_baseline,
    probes=(
        _probe("one parameter", [[0.25], [-0.75]], [1, 0], [0.75, 0.25]),
        _probe("three arms", _softmax_scores(ARMS), [1, 0.5, -2], ARMS),
        # three outcomes of a policy with two parameters; the mean score is 0
        _probe("two parameters", [[1, 0.5], [-1, 0.5], [0, -1.5]], [2, 0, 1], [0.375, 0.375, 0.25]),
    ),
    mistakes=(
        _mean_reward,
        _plain_mean,
        _every_outcome_alike,
        _length_not_squared,
        _no_denominator,
        _denominator_without_probs,
        _mean_of_components,
        _one_per_component,
    ),
    hint="Write the second moment as a parabola in b: sum of probs * (r - b)^2 * |s|^2. Set its "
    "derivative to 0. |s|^2 sums over the parameters, the expectations over the outcomes.",
)


def _advantages(rewards, num_generations):
    mean = rewards.view(-1, num_generations).mean(1)  # (prompts,)
    baseline = mean.repeat_interleave(num_generations)  # (B,)
    return (rewards - baseline) * num_generations / (num_generations - 1)


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def advantages(rewards, num_generations):  # (B,), G -> (B,)
    mean = rewards.view(-1, num_generations).mean(1)  # (prompts,)
    baseline = mean.repeat(num_generations)           # (B,)
    return (rewards - baseline) * num_generations / (num_generations - 1)
# fmt: on


SILENT_BUG_BASELINES = SilentBug(
    name="silent_bug_baselines",
    right=_advantages,
    broken=advantages,
    story="repeat lays the means out as 1 2 1 2, the rows are 1 1 2 2 (repeat_interleave): "
    "answers get another prompt's mean. The direction is right on average, so it trains.",
    hint="Two prompts, one easy and one hard. What has to be 0 in every group? What must a bonus "
    "for all answers of one prompt not change?",
)
