"""The slope a loss needs, so that its mean gradient is that of both KLs together."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake

__all__ = ["KL_SLOPE", "kl_slope"]


def kl_slope(log_ratio: torch.Tensor) -> torch.Tensor:
    """k'(l) = l + 1 - exp(-l), the sum of the slopes of k2 and k3, per element."""
    return log_ratio - torch.expm1(-log_ratio)


@mistake("this is k2's slope, which gives KL(pi || ref) alone: the other direction is missing")
def _only_k2(log_ratio):
    return log_ratio.clone()


@mistake("this is k3's slope, which gives KL(ref || pi) alone: the other direction is missing")
def _only_k3(log_ratio):
    return -torch.expm1(-log_ratio)


@mistake("this is the estimate k2 + k3; the slope is asked for, its derivative in l")
def _the_estimate(log_ratio):
    return log_ratio.square() / 2 + torch.expm1(-log_ratio) + log_ratio


@mistake(
    "a constant 1 too many: the mean gradient is the same, since the mean of grad log pi is 0, but "
    "where the two agree the slope must be 0 and yours is 1"
)
def _one_too_many(log_ratio):
    return kl_slope(log_ratio) + 1


@mistake(
    "the constant 1 is missing: the mean gradient is the same, since the mean of grad log pi is 0, "
    "but where the two agree the slope must be 0 and yours is -1"
)
def _one_too_few(log_ratio):
    return kl_slope(log_ratio) - 1


@mistake("k1's slope is 1: the draw carries its gradient, and autograd does not see the draw")
def _k1_and_k3(log_ratio):
    return 1 - torch.expm1(-log_ratio)


@mistake("the ratio is upside down: l is log pi - log ref, so ref / pi is exp(-l)")
def _upside_down(log_ratio):
    return log_ratio + 1 - log_ratio.exp()


@mistake("the sign of k3's part is flipped: its slope is 1 - exp(-l), above 0 where l is")
def _minus(log_ratio):
    return log_ratio + torch.expm1(-log_ratio)


@mistake("this pushes away from the reference: a penalty's slope is above 0 where l is above 0")
def _away(log_ratio):
    return -kl_slope(log_ratio)


@mistake("k2 is l^2 / 2, so its slope is l, not 2 l")
def _without_half(log_ratio):
    return 2 * log_ratio - torch.expm1(-log_ratio)


KL_SLOPE = Exercise(
    name="kl_slope",
    reference=kl_slope,
    probes=(
        Probe("one token above the reference", {"log_ratio": [0.5]}),
        Probe("one token below", {"log_ratio": [-1.0]}),
        Probe("equal", {"log_ratio": [0.0]}),
        Probe("two rows", {"log_ratio": [[0.1, -0.3, 1.4], [-2.0, 0.7, 0.0]]}),
    ),
    mistakes=(
        _only_k2,
        _only_k3,
        _the_estimate,
        _one_too_many,
        _one_too_few,
        _k1_and_k3,
        _upside_down,
        _minus,
        _away,
        _without_half,
    ),
    hint="Gradients add, and so do slopes. Which k gives KL(pi || ref) in the loss, which the "
    "other, and what are their derivatives in l?",
)
