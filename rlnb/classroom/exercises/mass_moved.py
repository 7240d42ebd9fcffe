"""DPPO's mask, by the probability that moved; page 12's silent bug and riddle."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, mistake
from rlnb.classroom.checking.name_this import NameThis
from rlnb.classroom.checking.silent_bug import SilentBug

__all__ = [
    "DPPO_MASK",
    "NAME_THIS_SOFT_TRUST_REGIONS",
    "SILENT_BUG_SOFT_TRUST_REGIONS",
    "dppo_mask",
]


def dppo_mask(
    logprobs: torch.Tensor,
    old_logprobs: torch.Tensor,
    advantages: torch.Tensor,
    low: float,
    high: float,
    *,
    at_zero: str = "low",
) -> torch.Tensor:
    """True = keep. Dropped: A > 0 and p - q > high, or A <= 0 and q - p > low. Shapes alike.

    `at_zero`: what A = 0 is tested with, "low" as published, "high", or "none" (always kept).
    """
    p, q = logprobs.exp(), old_logprobs.exp()
    positive = advantages >= 0 if at_zero == "high" else advantages > 0
    negative = advantages < 0 if at_zero == "none" else ~positive
    return ~((positive & (p - q > high)) | (negative & (q - p > low)))


def _parts(logprobs, old_logprobs, advantages):
    p, q = logprobs.exp(), old_logprobs.exp()
    return p, q, advantages > 0


@mistake(
    "the direction is missing: a token that comes back towards the old policy is kept, "
    "however far it is"
)
def _blind_to_direction(logprobs, old_logprobs, advantages, low, high):
    p, q, up = _parts(logprobs, old_logprobs, advantages)
    return torch.where(up, (p - q).abs() <= high, (p - q).abs() <= low)


@mistake(
    "the direction is turned: dropped is what its advantage pushes further away, kept "
    "what it pushes back"
)
def _coming_back(logprobs, old_logprobs, advantages, low, high):
    p, q, up = _parts(logprobs, old_logprobs, advantages)
    return torch.where(up, q - p <= high, p - q <= low)


@mistake("inverted: True means keep")
def _inverted(*arguments):
    return ~dppo_mask(*arguments)


@mistake("the thresholds are swapped: high goes with A > 0, low with A <= 0")
def _swapped(logprobs, old_logprobs, advantages, low, high):
    return dppo_mask(logprobs, old_logprobs, advantages, high, low)


@mistake("low for both signs: A > 0 is compared with high")
def _low_for_both(logprobs, old_logprobs, advantages, low, high):
    return dppo_mask(logprobs, old_logprobs, advantages, low, low)


@mistake("high for both signs: A <= 0 is compared with low")
def _high_for_both(logprobs, old_logprobs, advantages, low, high):
    return dppo_mask(logprobs, old_logprobs, advantages, high, high)


@mistake("you compare the ratio: that is PPO's clip; DPPO compares probabilities, p - q")
def _ratio(logprobs, old_logprobs, advantages, low, high):
    rho = (logprobs - old_logprobs).exp()
    return torch.where(advantages > 0, rho <= 1 + high, rho >= 1 - low)


@mistake("you compare log-probs: DPPO compares probabilities, so exp first")
def _log_ratio(logprobs, old_logprobs, advantages, low, high):
    gap = logprobs - old_logprobs
    return torch.where(advantages > 0, gap <= high, gap >= -low)


@mistake(
    "halved: the two-way total variation is (|dp| + |dp|)/2 = |dp|, the token and the "
    "rest move alike"
)
def _half(logprobs, old_logprobs, advantages, low, high):
    return dppo_mask(logprobs, old_logprobs, advantages, 2 * low, 2 * high)


@mistake(
    "the advantage is not used: a far token is dropped only when its advantage pushes it further"
)
def _any_sign(logprobs, old_logprobs, advantages, low, high):
    p, q, _ = _parts(logprobs, old_logprobs, advantages)
    return (p - q <= high) & (q - p <= low)


@mistake("only A > 0 is masked: with A <= 0 a token that fell by more than low is dropped too")
def _only_positive(logprobs, old_logprobs, advantages, low, high):
    p, q, up = _parts(logprobs, old_logprobs, advantages)
    return ~(up & (p - q > high))


@mistake("only A <= 0 is masked: with A > 0 a token that rose by more than high is dropped too")
def _only_negative(logprobs, old_logprobs, advantages, low, high):
    p, q, up = _parts(logprobs, old_logprobs, advantages)
    return ~(~up & (q - p > low))


@mistake(
    "this is the two-way KL: a fine DPPO too, with thresholds of its own (0.05); here it is |p - q|"
)
def _binary_kl(logprobs, old_logprobs, advantages, low, high):
    p, q, up = _parts(logprobs, old_logprobs, advantages)
    rest = (1 - q + 1e-8) / (1 - p + 1e-8)
    moved = q * (old_logprobs - logprobs) + (1 - q) * rest.log()
    return ~torch.where(up, (p > q) & (moved > high), (p < q) & (moved > low))


@mistake("the difference is squared: compare |p - q| itself with the threshold")
def _squared(logprobs, old_logprobs, advantages, low, high):
    p, q, up = _parts(logprobs, old_logprobs, advantages)
    moved = (p - q).square()
    return ~torch.where(up, (p > q) & (moved > high), (p < q) & (moved > low))


def _tokens(label: str, p: list, q: list, advantages: list, low: float, high: float) -> Probe:
    double = {"dtype": torch.float64}
    return Probe(
        label,
        {
            "logprobs": torch.tensor(p, **double).log(),
            "old_logprobs": torch.tensor(q, **double).log(),
            "advantages": advantages,
            "low": low,
            "high": high,
        },
    )


DPPO_MASK = Exercise(
    name="dppo_mask",
    reference=dppo_mask,
    probes=(
        _tokens(
            "four cases, 0.2 of mass",
            [0.6, 0.2, 0.6, 0.2],
            [0.4, 0.4, 0.4, 0.4],
            [1.0, 1.0, -1.0, -1.0],
            0.15,
            0.15,
        ),
        _tokens(
            "a rare token and a likely one",
            [0.0002, 0.80, 0.30, 0.005, 0.9],
            [0.0001, 0.99, 0.05, 0.06, 0.6],
            [1.0, -1.0, 1.0, -1.0, 2.0],
            0.1,
            0.28,
        ),
        _tokens(
            "two thresholds, one A of 0",
            [[0.70, 0.30, 0.45], [0.62, 0.05, 0.10], [0.90, 0.10, 0.08]],
            [[0.55, 0.45, 0.20], [0.80, 0.07, 0.32], [0.52, 0.55, 0.50]],
            [[0.5, -0.5, 0.7], [-1.0, -1.0, 0.0], [1.0, -2.0, 0.0]],
            0.12,
            0.2,
        ),
        _tokens(
            "wide and narrow",
            [0.99, 0.02, 0.50, 0.31, 0.055],
            [0.50, 0.60, 0.35, 0.44, 0.1],
            [1.0, -1.0, 1.0, -0.1, -1.0],
            0.5,
            0.05,
        ),
        _tokens(
            "an A of 0 that rose",
            [0.9, 0.9, 0.3, 0.25],
            [0.4, 0.4, 0.6, 0.6],
            [0.0, 1.0, 0.0, 1.0],
            0.4,
            0.3,
        ),
    ),
    conventions=(
        Convention(
            "at A = 0 this looks at the rising side, DPPO at the falling one: such a token "
            "has no gradient anyway",
            {"at_zero": "high"},
        ),
        Convention(
            "at A = 0 this always keeps, DPPO tests the falling side: such a token has no "
            "gradient anyway",
            {"at_zero": "none"},
        ),
    ),
    mistakes=(
        _blind_to_direction,
        _coming_back,
        _inverted,
        _swapped,
        _low_for_both,
        _high_for_both,
        _ratio,
        _log_ratio,
        _half,
        _any_sign,
        _only_positive,
        _only_negative,
        _binary_kl,
        _squared,
    ),
    hint="exp both. For A > 0 the token is dropped when p - q > high, else when q - p > low; "
    "return the opposite. No absolute value is needed.",
)


def _train_on_batch(theta, actions, A, updates=8, lr=0.5, delta=0.1):
    old = theta.log_softmax(0)[actions].detach()
    for _ in range(updates):
        theta = theta.detach().requires_grad_()
        logp = theta.log_softmax(0)[actions]
        moved = (logp.exp() - old.exp()) * A.sign()
        keep = (moved <= delta).detach()
        worth = (logp - old).exp() * A * keep
        (gradient,) = torch.autograd.grad(worth.mean(), theta)
        theta = theta + lr * gradient
    return theta.detach()


# The page prints it: laid out as a page is, not as the package.
# fmt: off
def train_on_batch(theta, actions, A, updates=8, lr=0.5, delta=0.1):
    """DPPO on one batch: logits (K,), answers (n,), A (n,) -> logits"""
    for _ in range(updates):
        theta = theta.detach().requires_grad_()
        logp = theta.log_softmax(0)[actions]
        old = logp.detach()                       # no gradient through old
        moved = (logp.exp() - old.exp()) * A.sign()
        keep = (moved <= delta).detach()
        worth = (logp - old).exp() * A * keep
        gradient, = torch.autograd.grad(worth.mean(), theta)
        theta = theta + lr * gradient
    return theta.detach()
# fmt: on


SILENT_BUG_SOFT_TRUST_REGIONS = SilentBug(
    name="silent_bug_soft_trust_regions",
    right=_train_on_batch,
    broken=train_on_batch,
    story="The old log-probs are taken anew in every update, so the ratio is always 1, nothing has "
    "ever moved, and the masked share is a healthy-looking 0. One update is right.",
    hint="With one update the two agree. How far may one batch carry a token, and what happens to "
    "that after fifty updates?",
)

NAME_THIS_SOFT_TRUST_REGIONS = NameThis(
    name="name_this_soft_trust_regions",
    answer="dppo",
    near={
        "ppo": "a ratio of 6 keeps its full weight in the first line, and one of 0.82 is dead in "
        "the fourth: no band of ratios does that",
        "grpo": "its clip looks at the ratio: 6 would be dead, 0.82 alive",
        "dapo": "its clip looks at the ratio: 6 would be dead, 0.82 alive",
        "cispo": "its weight is min(ratio, cap) and never 0; two of these are 0",
        "sapo": "its weight fades and is never exactly 0, nor ever exactly the ratio away from 1",
        "gspo": "it has one ratio per answer; here neighbours differ, and the old probability "
        "decides",
        "gmpo": "it clips ratios; here the old probability decides",
        "dppo_kl": "near: the same mask by the KL; the drop from 0.90 to 0.76 has a KL of 0.06, "
        "above 0.05, and would be dead",
    },
    story="the weight is the ratio or 0, and what decides is the probability that moved, 0.15, "
    "with its direction: DPPO, two-way total variation.",
    also=(
        "dppo_tv",
        "dppo binary tv",
        "divergence ppo",
        "divergence proximal policy optimization",
        "divergence proximal policy optimisation",
    ),
)
