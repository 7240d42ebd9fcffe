"""Baselines: the best one, from a table and by formula; the noise of a run; a peeking one."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake
from rlnb.classroom.checking.silent_bug import SilentBug

__all__ = [
    "NOISE_SCALE",
    "OPTIMAL_BASELINE",
    "SHARED_BASELINE",
    "SILENT_BUG_BASELINES",
    "noise_scale",
    "optimal_baseline",
    "shared_baseline",
]


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


def noise_scale(gradients: torch.Tensor) -> torch.Tensor:
    """tr Cov / |E g|^2 from N answers' gradients, both parts unbiased: (N, D) -> ()."""
    mean = gradients.mean(0)
    trace = (gradients - mean).square().sum() / (len(gradients) - 1)
    return trace / (mean.square().sum() - trace / len(gradients))


@mistake(
    "the squared length of the sample mean is too large on average, by the variance of "
    "that mean: subtract trace / N"
)
def _signal_uncorrected(gradients):
    return gradients.var(0).sum() / gradients.mean(0).square().sum()


@mistake("divide the squared strays by N - 1: they are measured from the mean of the same N")
def _divided_by_n(gradients):
    trace = gradients.var(0, correction=0).sum()
    return trace / (gradients.mean(0).square().sum() - trace / len(gradients))


@mistake("both parts are uncorrected: N - 1 above, and subtract trace / N below")
def _nothing_corrected(gradients):
    return gradients.var(0, correction=0).sum() / gradients.mean(0).square().sum()


@mistake("this is the mean square over the squared mean: take the strays from the mean push")
def _mean_square(gradients):
    trace = gradients.var(0).sum()
    signal = gradients.mean(0).square().sum() - trace / len(gradients)
    return gradients.square().sum(1).mean() / signal


@mistake("this is the noise of the mean of all N: one answer's is N times as large")
def _of_the_mean(gradients):
    return noise_scale(gradients) / len(gradients)


@mistake("lengths, not squares: variances are squares, so leave out the root")
def _root(gradients):
    return noise_scale(gradients).sqrt()


@mistake("subtract the variance of the mean, trace / N, not the whole trace")
def _whole_trace(gradients):
    trace = gradients.var(0).sum()
    return trace / (gradients.mean(0).square().sum() - trace)


NOISE_SCALE = Exercise(
    name="noise_scale",
    reference=noise_scale,
    probes=(
        Probe("two answers, one parameter", {"gradients": [[3], [1]]}),
        Probe("four answers", {"gradients": [[2, 0, 1], [1, -1, 3], [3, 0.5, 2], [2, 1, -0.5]]}),
    ),
    mistakes=(
        _signal_uncorrected,
        _divided_by_n,
        _nothing_corrected,
        _mean_square,
        _of_the_mean,
        _root,
        _whole_trace,
    ),
    hint="trace = squared strays from the sample mean, summed over all parameters, / (N - 1). "
    "signal = |mean|^2 - trace / N. Return trace / signal.",
)


def shared_baseline(p: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """b* when k right answers share p and each wrong one is negligible: (n,), (n,) -> (n,)."""
    return p * (1 - 2 * p / k + p**2 / k) / (1 - p**2 / k)


@mistake("this is the mean reward: a right and a wrong answer's scores differ in length")
def _is_the_mean(p, k):
    return p + 0 * k


@mistake("the other right answers are missing: a score has -p/k at each of their places too")
def _own_place_only(p, k):
    right = (1 - p / k) ** 2
    return p * right / (p * right + 1 - p)


@mistake("that is the answer for k = 1; let k right answers share p")
def _one_way(p, k):
    return p * (1 - p) / (1 + p) + 0 * k


@mistake("a wrong answer's score is longer than 1: it has -p/k at each of the k right ones")
def _wrong_has_length_one(p, k):
    right = 1 - 2 * p / k + p**2 / k
    return p * right / (p * right + 1 - p)


@mistake("this is the numerator, E[|score|^2 R]: divide by E|score|^2")
def _numerator(p, k):
    return p * (1 - 2 * p / k + p**2 / k)


@mistake("that is 1 - b*: the right answers earn 1, not the wrong ones")
def _turned(p, k):
    return 1 - shared_baseline(p, k)


@mistake("only two answers can occur then: here the wrong ones are many")
def _two_arms(p, k):
    return 1 - p + 0 * k


SHARED_BASELINE = Exercise(
    name="shared_baseline",
    reference=shared_baseline,
    probes=(
        Probe("one right answer", {"p": [0.75], "k": [1]}),
        Probe("several", {"p": [0.9, 0.2, 0.5], "k": [2, 5, 50]}),
    ),
    mistakes=(
        _is_the_mean,
        _own_place_only,
        _one_way,
        _wrong_has_length_one,
        _numerator,
        _turned,
        _two_arms,
    ),
    hint="A right answer's squared score: (1 - p/k)^2 + (k - 1)(p/k)^2. A wrong one's: 1 + p^2/k. "
    "Put both into b* = E[|score|^2 R] / E|score|^2.",
)


def _advantages(rewards):
    return rewards - (rewards.sum() - rewards) / (len(rewards) - 1)


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def advantages(rewards):                                 # (G,) -> (G,)
    others = rewards[:, None] != rewards[None, :]        # (G, G)
    count = others.sum(1)
    mean = (others * rewards).sum(1) / count.clamp(min=1)
    return torch.where(count > 0, rewards - mean, 0.0)
# fmt: on


SILENT_BUG_BASELINES = SilentBug(
    name="silent_bug_baselines",
    right=_advantages,
    broken=advantages,
    story="Others are told apart by reward, not by place: who earned the same as you is left out "
    "too, so b moves with your own reward and the mean push bends.",
    hint="The proof has one condition: b must not look at your own answer. Change one reward, and "
    "look at what was subtracted from it.",
)
