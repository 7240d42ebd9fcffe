"""PPO's clipped surrogate, and its dual clip. Per element, maximised."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, mistake

__all__ = [
    "DUAL_CLIP",
    "SURROGATE_CLIP",
    "clip_only",
    "dual_clip",
    "max_where_negative",
    "minimised",
    "surrogate_clip",
    "unclipped",
]


def surrogate_clip(ratio: torch.Tensor, advantage: torch.Tensor, epsilon: float) -> torch.Tensor:
    """min(r A, clip(r, 1 - epsilon, 1 + epsilon) A)."""
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
    return torch.min(ratio * advantage, clipped * advantage)


def dual_clip(
    ratio: torch.Tensor,
    advantage: torch.Tensor,
    epsilon: float,
    c: float,
    *,
    cap_ratio: bool = False,
) -> torch.Tensor:
    """The clipped surrogate; where A < 0 it is at least c A, which ends the gradient at r > c.

    `cap_ratio` caps the ratio of the unclipped term at c whatever the sign of A.
    """
    if cap_ratio:
        clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
        return torch.min(ratio.clamp(max=c) * advantage, clipped * advantage)
    value = surrogate_clip(ratio, advantage, epsilon)
    return torch.where(advantage < 0, torch.max(value, c * advantage), value)


@mistake(
    "you took max where A < 0: the corrective gradient dies; the min is over the two "
    "products with A, for both signs"
)
def max_where_negative(ratio, advantage, epsilon):
    raw, clipped = ratio * advantage, ratio.clamp(1 - epsilon, 1 + epsilon) * advantage
    return torch.where(advantage < 0, torch.max(raw, clipped), torch.min(raw, clipped))


@mistake(
    "the outer min is missing: clip(r) * A alone is flat in all four corners, so "
    "wrong moves are never corrected"
)
def clip_only(ratio, advantage, epsilon):
    return ratio.clamp(1 - epsilon, 1 + epsilon) * advantage


@mistake("nothing is clipped: this is r * A; take the min with clip(r) * A")
def unclipped(ratio, advantage, epsilon):
    return ratio * advantage


@mistake(
    "you took max: that keeps the optimistic branch; the surrogate is the pessimistic one, min"
)
def _max_everywhere(ratio, advantage, epsilon):
    return torch.max(ratio * advantage, ratio.clamp(1 - epsilon, 1 + epsilon) * advantage)


@mistake(
    "this is the loss (minimised); the surrogate was asked for, which is maximised: drop the minus"
)
def minimised(ratio, advantage, epsilon):
    return -surrogate_clip(ratio, advantage, epsilon)


@mistake("the band is 1 - epsilon ... 1 + epsilon: you clamped the ratio to plus or minus epsilon")
def _around_zero(ratio, advantage, epsilon):
    return torch.min(ratio * advantage, ratio.clamp(-epsilon, epsilon) * advantage)


@mistake("the lower bound is missing: A < 0 with r < 1 - epsilon should be flat")
def _upper_only(ratio, advantage, epsilon):
    return torch.min(ratio * advantage, ratio.clamp(max=1 + epsilon) * advantage)


@mistake("you clamped r * A: clip the ratio alone, then multiply by A")
def _product_clipped(ratio, advantage, epsilon):
    raw = ratio * advantage
    return torch.min(raw, raw.clamp(1 - epsilon, 1 + epsilon))


@mistake("only the sign of A is used: its size scales the step")
def _sign_only(ratio, advantage, epsilon):
    return surrogate_clip(ratio, advantage.sign(), epsilon)


@mistake(
    "the value is right and the gradient is zero: the ratio was detached; only the "
    "old log-probs are constants"
)
def _detached(ratio, advantage, epsilon):
    return surrogate_clip(ratio.detach(), advantage, epsilon) + 0 * ratio


@mistake(
    "the floor c * A is for A < 0 only: where A > 0 it lies above the clip and takes "
    "its place, and no gradient is left"
)
def _floor_on_both_signs(ratio, advantage, epsilon, c):
    return torch.max(surrogate_clip(ratio, advantage, epsilon), c * advantage)


@mistake("you took min with c * A: it is a floor under the surrogate of a bad token, so max")
def _min_with_floor(ratio, advantage, epsilon, c):
    value = surrogate_clip(ratio, advantage, epsilon)
    return torch.where(advantage < 0, torch.min(value, c * advantage), value)


@mistake(
    "this is the plain clip: where A < 0 and the ratio exceeds c, the surrogate stops at c * A"
)
def _plain_clip(ratio, advantage, epsilon, c):
    return surrogate_clip(ratio, advantage, epsilon)


@mistake("the floor is c * A, not -c: it scales with the advantage")
def _floor_without_advantage(ratio, advantage, epsilon, c):
    value = surrogate_clip(ratio, advantage, epsilon)
    return torch.where(advantage < 0, value.clamp(min=-c), value)


@mistake("where A < 0 you lost the inner clip: below 1 - epsilon it should be flat")
def _lower_clip_lost(ratio, advantage, epsilon, c):
    value = surrogate_clip(ratio, advantage, epsilon)
    return torch.where(advantage < 0, torch.max(ratio * advantage, c * advantage), value)


@mistake("the condition is reversed: the floor belongs where A < 0")
def _wrong_sign_of_advantage(ratio, advantage, epsilon, c):
    value = surrogate_clip(ratio, advantage, epsilon)
    return torch.where(advantage > 0, torch.max(value, c * advantage), value)


@mistake(
    "you took max where A < 0: the corrective gradient dies, the inner clip is min for both signs"
)
def _inner_max(ratio, advantage, epsilon, c):
    value = max_where_negative(ratio, advantage, epsilon)
    return torch.where(advantage < 0, torch.max(value, c * advantage), value)


@mistake(
    "this is the loss (minimised); the surrogate was asked for, which is maximised: drop the minus"
)
def _dual_minimised(ratio, advantage, epsilon, c):
    return -dual_clip(ratio, advantage, epsilon, c)


@mistake("c is the bound itself (verl's default is 3), not an excess over 1: the floor is c * A")
def _one_plus_c(ratio, advantage, epsilon, c):
    return dual_clip(ratio, advantage, epsilon, 1 + c)


@mistake(
    "beyond c the value stays at c * A; you set it to 0, which makes a bad token that "
    "strays past c look harmless"
)
def _dropped_beyond_c(ratio, advantage, epsilon, c):
    value = surrogate_clip(ratio, advantage, epsilon)
    return torch.where((advantage < 0) & (ratio > c), 0 * value, value)


def _probe(label: str, ratio: list[float], advantage: list[float], **numbers: float) -> Probe:
    return Probe(label, {"ratio": ratio, "advantage": advantage, **numbers})


# Ratios stay off 1 - epsilon, 1 + epsilon and c: at a kink the slope is anybody's.
SURROGATE_CLIP = Exercise(
    name="surrogate_clip",
    reference=surrogate_clip,
    probes=(
        _probe("A > 0, too far up", [1.5], [1.0], epsilon=0.2),
        _probe("A > 0, gone down", [0.5], [1.0], epsilon=0.2),
        _probe("A < 0, gone up", [1.5], [-1.0], epsilon=0.2),
        _probe("A < 0, too far down", [0.5], [-1.0], epsilon=0.2),
        _probe("inside the band", [1.1, 0.9, 1.0], [2.0, -3.0, 0.0], epsilon=0.2),
        _probe(
            "four corners, wider band", [1.5, 0.5, 1.5, 0.5], [2.0, 0.5, -2.0, -0.5], epsilon=0.4
        ),
        Probe(
            "a table of tokens",
            {
                "ratio": [[1.05, 1.4, 0.72], [0.3, 2.5, 0.98]],
                "advantage": [[0.7, 0.7, 0.7], [-1.3, -1.3, -1.3]],
                "epsilon": 0.1,
            },
        ),
    ),
    mistakes=(
        # min(r, clip(r)) * A is the same function: a negative A turns that min into a max
        max_where_negative,
        clip_only,
        unclipped,
        _max_everywhere,
        minimised,
        _around_zero,
        _upper_only,
        _product_clipped,
        _sign_only,
        _detached,
    ),
    differentiate=("ratio",),
    direction="maximised",
    hint="Two candidates per token, r * A and clip(r) * A; keep the smaller, whatever the sign "
    "of A. Try the four corners: dead for (A > 0, up) and (A < 0, down), alive otherwise.",
)

DUAL_CLIP = Exercise(
    name="dual_clip",
    reference=dual_clip,
    probes=(
        _probe("A < 0, beyond c", [5.0], [-1.0], epsilon=0.2, c=3.0),
        _probe("A < 0, between 1 + epsilon and c", [2.0], [-1.0], epsilon=0.2, c=3.0),
        _probe("A < 0, too far down", [0.5], [-1.0], epsilon=0.2, c=3.0),
        _probe("A > 0, beyond c", [5.0], [1.0], epsilon=0.2, c=3.0),
        _probe("A > 0, gone down", [0.5], [1.0], epsilon=0.2, c=3.0),
        _probe("inside the band", [1.1, 0.9, 1.0], [2.0, -3.0, 0.0], epsilon=0.2, c=3.0),
        _probe(
            "other sizes of A", [4.0, 1.5, 0.5, 4.0], [-2.0, -0.5, -2.0, 0.5], epsilon=0.3, c=2.0
        ),
        _probe("c inside the band", [1.15, 1.15, 2.0], [-1.0, 1.0, -2.0], epsilon=0.2, c=1.1),
    ),
    conventions=(
        Convention(
            "the ratio is capped at c for both signs of A: TRL's delta, the same once "
            "c > 1 + epsilon",
            {"cap_ratio": True},
        ),
    ),
    mistakes=(
        _floor_on_both_signs,
        _min_with_floor,
        _plain_clip,
        _floor_without_advantage,
        _lower_clip_lost,
        _wrong_sign_of_advantage,
        _inner_max,
        _dual_minimised,
        _one_plus_c,
        _dropped_beyond_c,
    ),
    differentiate=("ratio",),
    direction="maximised",
    hint="Start from your surrogate_clip. Only where A < 0 it has no floor: r * A falls without "
    "end. Take the max with c * A there, and leave A > 0 alone.",
)
