"""PPO: the push of one token, and a max that should be a min."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake
from rlnb.classroom.checking.silent_bug import SilentBug
from rlnb.classroom.exercises.clipping import surrogate_clip

__all__ = ["SILENT_BUG_PPO", "SURROGATE_PUSH", "surrogate", "surrogate_push"]


def surrogate_push(ratio: torch.Tensor, advantage: torch.Tensor, epsilon: float) -> torch.Tensor:
    """d/d log pi of min(r A, clip(r) A): r A, and 0 where the token has moved far the right way."""
    done = (advantage > 0) & (ratio > 1 + epsilon) | (advantage < 0) & (ratio < 1 - epsilon)
    return torch.where(done, 0.0, ratio * advantage)


@mistake("this is the slope in r; in log pi it is r times that, because dr = r d log pi")
def _slope_in_ratio(ratio, advantage, epsilon):
    return torch.where(surrogate_push(ratio, advantage, epsilon) == 0, 0.0, advantage)


@mistake("outside the band you set every token to 0: that is the clip alone, without the min")
def _silent_on_both_sides(ratio, advantage, epsilon):
    return torch.where((ratio - 1).abs() > epsilon, 0.0, ratio * advantage)


@mistake("nothing is silent here: where the clipped term is the smaller, it holds no theta")
def _never_silent(ratio, advantage, epsilon):
    return ratio * advantage


@mistake("the signs are exchanged: a good token is silent after it rose, a bad one after it fell")
def _wrong_corners(ratio, advantage, epsilon):
    back = (advantage > 0) & (ratio < 1 - epsilon) | (advantage < 0) & (ratio > 1 + epsilon)
    return torch.where(back, 0.0, ratio * advantage)


@mistake(
    "this is the value of the objective; its slope in log pi was asked for: 0 where the value "
    "is a constant"
)
def _value(ratio, advantage, epsilon):
    return surrogate_clip(ratio, advantage, epsilon)


@mistake("a bad token that fell is silent too: below 1 - epsilon for A < 0")
def _upper_side_only(ratio, advantage, epsilon):
    return torch.where((advantage > 0) & (ratio > 1 + epsilon), 0.0, ratio * advantage)


@mistake("this is the loss's push; the objective is maximised: drop the minus")
def _minimised(ratio, advantage, epsilon):
    return -surrogate_push(ratio, advantage, epsilon)


def _probe(label: str, ratio: list[float], advantage: list[float], epsilon: float = 0.2) -> Probe:
    return Probe(label, {"ratio": ratio, "advantage": advantage, "epsilon": epsilon})


# Ratios stay off the edges of the band: at a kink the slope is anybody's.
SURROGATE_PUSH = Exercise(
    name="surrogate_push",
    reference=surrogate_push,
    probes=(
        _probe("A > 0, risen far", [1.5], [1.0]),
        _probe("A > 0, fallen far", [0.5], [1.0]),
        _probe("A < 0, risen far", [1.5], [-1.0]),
        _probe("A < 0, fallen far", [0.5], [-1.0]),
        _probe("inside the band", [1.1, 0.9, 1.0], [2.0, -3.0, 1.0]),
        _probe("A = 0", [1.5, 0.5], [0.0, 0.0]),
        _probe("another band", [1.3, 0.7, 1.5, 0.5], [2.0, -2.0, 0.5, -0.5], 0.4),
    ),
    mistakes=(
        _slope_in_ratio,
        _silent_on_both_sides,
        _never_silent,
        _wrong_corners,
        _value,
        _upper_side_only,
        _minimised,
    ),
    hint="Which of the two terms is the smaller, in each of three regions and for each sign? Does "
    "that term contain theta? And d r / d log pi is r.",
)


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def surrogate(ratio, advantage, epsilon=0.2):
    raw = ratio * advantage
    cut = ratio.clamp(1 - epsilon, 1 + epsilon) * advantage
    return torch.where(advantage >= 0, torch.min(raw, cut),
                       torch.max(raw, cut))
# fmt: on


def _right(ratio, advantage, epsilon=0.2):
    return surrogate_clip(ratio, advantage, epsilon)


SILENT_BUG_PPO = SilentBug(
    "silent_bug_ppo",
    _right,
    surrogate,
    "For A < 0 the max takes the flat branch above the band: a bad token that rose is never "
    "pulled back. The mean reward hardly shows it, because most tokens are inside.",
    hint="Ask for a value or a slope in one corner, not for a reward curve.",
)
