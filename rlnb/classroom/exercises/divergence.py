"""How far one distribution is from another: KL and cross-entropy."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch.special import xlogy

from rlnb.classroom.checking.exercise import Exercise, Mistake, Probe, mistake

__all__ = ["CROSS_ENTROPY", "KL_DIVERGENCE", "cross_entropy", "kl_divergence"]

ZERO = (
    "0 log 0 counts as 0, in floating point it is nan: keep the terms with p > 0, with "
    "torch.where(p > 0, term, 0) or torch.xlogy"
)


def kl_divergence(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """KL(p || q) = sum p log(p / q) in nats: (V,), (V,) -> (). Infinite where only q is 0."""
    return (xlogy(p, p) - xlogy(p, q)).sum()


def cross_entropy(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """H(p, q) = -sum p log q in nats: (V,), (V,) -> ()."""
    return -xlogy(p, q).sum()


@mistake(
    "this is KL(q || p): the first argument weighs the terms and stands on top of the fraction"
)
def _reversed_kl(p, q):
    return kl_divergence(q, p)


@mistake("these are both directions added: one was asked for, weighed by p alone")
def _both_directions(p, q):
    return kl_divergence(p, q) + kl_divergence(q, p)


@mistake("this is the Jensen-Shannon divergence: compare p with q, not with their middle")
def _jensen_shannon(p, q):
    middle = (p + q) / 2
    return (kl_divergence(p, middle) + kl_divergence(q, middle)) / 2


@mistake("this is in bits: take the natural logarithm; log2 is log / 0.6931")
def _kl_in_bits(p, q):
    return kl_divergence(p, q) / math.log(2)


@mistake("the weight p is missing: a KL is the mean of log(p / q) under p")
def _kl_unweighted(p, q):
    return (p.log() - q.log()).sum()


@mistake(
    "you divided by the number of outcomes: the weights p already make it a mean "
    "(reduction='mean' does that too)"
)
def _kl_mean(p, q):
    return kl_divergence(p, q) / len(p)


@mistake(
    "this is the squared distance: it does not know that 0.001 and 0.1 differ more than 0.5 and 0.6"
)
def _squared(p, q):
    return (p - q).square().sum()


@mistake("the sign is flipped: it is log(p / q) with p on top, and the sum is never negative")
def _negative_kl(p, q):
    return -kl_divergence(p, q)


@mistake("no absolute values: single terms may be negative, their sum cannot")
def _absolute(p, q):
    return (xlogy(p, p) - xlogy(p, q)).abs().sum()


@mistake(
    "a constant was added inside the log: it changes the value where q is small, and "
    "hides that the KL is infinite where q is 0"
)
def _softened(p, q):
    return (p * ((p + 1e-8) / (q + 1e-8)).log()).sum()


@mistake(
    "F.kl_div got probabilities: it takes log-probabilities first, and computes KL(target || input)"
)
def _library_on_probabilities(p, q):
    return F.kl_div(p, q, reduction="sum")


@mistake(
    "F.kl_div has the right order here, but its first argument must be a log-probability: q.log()"
)
def _library_on_probabilities_swapped(p, q):
    return F.kl_div(q, p, reduction="sum")


@mistake("this is the entropy of p: the model q does not occur in it")
def _entropy(p, q):
    return cross_entropy(p, p)


@mistake("the arguments are swapped: the data p weigh, the model q stands in the log")
def _reversed_cross_entropy(p, q):
    return cross_entropy(q, p)


@mistake("this is in bits: take the natural logarithm; log2 is log / 0.6931")
def _cross_entropy_in_bits(p, q):
    return cross_entropy(p, q) / math.log(2)


@mistake("you divided by the number of outcomes: the weights p already make it a mean")
def _cross_entropy_mean(p, q):
    return cross_entropy(p, q) / len(p)


@mistake("the minus is missing: log q is negative, the cross-entropy is not")
def _no_minus(p, q):
    return -cross_entropy(p, q)


@mistake("the weight p is missing: it is the mean of -log q under p")
def _unweighted(p, q):
    return -q.log().sum()


@mistake("the log went outside the sum: -log of a mean is at most the mean of -log")
def _log_of_the_sum(p, q):
    return -(p * q).sum().log()


@mistake("only the likeliest outcome was scored: all of p counts")
def _likeliest_only(p, q):
    return -q[p.argmax()].log()


@mistake("F.cross_entropy takes logits: it put your probabilities through a softmax again")
def _library_on_logits(p, q):
    return F.cross_entropy(q[None], p[None])


@mistake(
    "this is one binary cross-entropy per outcome: the terms with 1 - p do not belong "
    "to a choice of one among many"
)
def _binary(p, q):
    return cross_entropy(p, q) + cross_entropy(1 - p, 1 - q)


def _probe(label: str, p: list[float], q: list[float], catches: str = "") -> Probe:
    return Probe(label, {"p": p, "q": q}, catches=catches)


ORDINARY = (
    _probe("two outcomes", [0.5, 0.5], [0.75, 0.25]),
    _probe("three outcomes", [0.7, 0.2, 0.1], [0.3, 0.3, 0.4]),
    _probe("four, one nearly missing", [0.125, 0.5, 0.25, 0.125], [0.4, 1e-6, 0.35, 0.249999]),
)

KL_DIVERGENCE = Exercise(
    name="kl_divergence",
    reference=kl_divergence,
    probes=(
        *ORDINARY,
        _probe("p is 0 somewhere", [0.5, 0.5, 0.0], [0.25, 0.5, 0.25], catches=ZERO),
        _probe("both are 0 somewhere", [0.25, 0.0, 0.75], [0.5, 0.0, 0.5], catches=ZERO),
        _probe(
            "q is 0 where p is not",
            [0.5, 0.25, 0.25, 0.0],
            [0.5, 0.5, 0.0, 0.0],
            catches="q is 0 where p is not: the KL is infinite there, not nan",
        ),
    ),
    mistakes=(
        _reversed_kl,
        _both_directions,
        _jensen_shannon,
        _kl_in_bits,
        _kl_unweighted,
        _kl_mean,
        _squared,
        _negative_kl,
        _absolute,
        _softened,
        Mistake("this is the cross-entropy: subtract the entropy of p", cross_entropy),
        _library_on_probabilities,
        _library_on_probabilities_swapped,
    ),
    hint="sum of p * (log p - log q), natural logarithm. Where p is 0 the term is 0; where only q "
    "is 0 it is infinite. torch.xlogy(p, q) is p log q with 0 log 0 = 0.",
)

CROSS_ENTROPY = Exercise(
    name="cross_entropy",
    reference=cross_entropy,
    probes=(
        *ORDINARY,
        _probe("both are 0 somewhere", [0.25, 0.0, 0.75], [0.5, 0.0, 0.5], catches=ZERO),
    ),
    mistakes=(
        _reversed_cross_entropy,
        _entropy,
        Mistake("this is the KL: the cross-entropy still contains the entropy of p", kl_divergence),
        _cross_entropy_in_bits,
        _cross_entropy_mean,
        _no_minus,
        _unweighted,
        _log_of_the_sum,
        _likeliest_only,
        _library_on_logits,
        _binary,
    ),
    hint="-(p * log q), summed over the outcomes: how many nats the model needs on average for "
    "what the data send. Where p is 0 nothing is paid.",
)
