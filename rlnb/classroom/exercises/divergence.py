"""How far one distribution is from another: KL, cross-entropy, and a library's argument order."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch.special import xlogy

from rlnb.classroom.exercises.exercise import Exercise, Mistake, Probe
from rlnb.classroom.exercises.silent_bug import SilentBug

__all__ = ["CROSS_ENTROPY", "KL_DIVERGENCE", "SILENT_BUG_01", "cross_entropy", "kl_divergence"]

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


def _reversed_kl(p, q):
    return kl_divergence(q, p)


def _both_directions(p, q):
    return kl_divergence(p, q) + kl_divergence(q, p)


def _jensen_shannon(p, q):
    middle = (p + q) / 2
    return (kl_divergence(p, middle) + kl_divergence(q, middle)) / 2


def _kl_in_bits(p, q):
    return kl_divergence(p, q) / math.log(2)


def _kl_unweighted(p, q):
    return (p.log() - q.log()).sum()


def _kl_mean(p, q):
    return kl_divergence(p, q) / len(p)


def _squared(p, q):
    return (p - q).square().sum()


def _negative_kl(p, q):
    return -kl_divergence(p, q)


def _absolute(p, q):
    return (xlogy(p, p) - xlogy(p, q)).abs().sum()


def _softened(p, q):
    return (p * ((p + 1e-8) / (q + 1e-8)).log()).sum()


def _library_on_probabilities(p, q):
    return F.kl_div(p, q, reduction="sum")


def _library_on_probabilities_swapped(p, q):
    return F.kl_div(q, p, reduction="sum")


def _entropy(p, q):
    return cross_entropy(p, p)


def _reversed_cross_entropy(p, q):
    return cross_entropy(q, p)


def _cross_entropy_in_bits(p, q):
    return cross_entropy(p, q) / math.log(2)


def _cross_entropy_mean(p, q):
    return cross_entropy(p, q) / len(p)


def _no_minus(p, q):
    return -cross_entropy(p, q)


def _unweighted(p, q):
    return -q.log().sum()


def _log_of_the_sum(p, q):
    return -(p * q).sum().log()


def _likeliest_only(p, q):
    return -q[p.argmax()].log()


def _library_on_logits(p, q):
    return F.cross_entropy(q[None], p[None])


def _binary(p, q):
    return cross_entropy(p, q) + cross_entropy(1 - p, 1 - q)


def _probe(label: str, p: list[float], q: list[float], catches: str = "") -> Probe:
    return Probe(
        label,
        {"p": torch.tensor(p, dtype=torch.float64), "q": torch.tensor(q, dtype=torch.float64)},
        catches=catches,
    )


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
        Mistake(
            "this is KL(q || p): the first argument weighs the terms and stands on top of the "
            "fraction",
            _reversed_kl,
        ),
        Mistake(
            "these are both directions added: one was asked for, weighed by p alone",
            _both_directions,
        ),
        Mistake(
            "this is the Jensen-Shannon divergence: compare p with q, not with their middle",
            _jensen_shannon,
        ),
        Mistake("this is in bits: take the natural logarithm; log2 is log / 0.6931", _kl_in_bits),
        Mistake("the weight p is missing: a KL is the mean of log(p / q) under p", _kl_unweighted),
        Mistake(
            "you divided by the number of outcomes: the weights p already make it a mean "
            "(reduction='mean' does that too)",
            _kl_mean,
        ),
        Mistake(
            "this is the squared distance: it does not know that 0.001 and 0.1 differ more "
            "than 0.5 and 0.6",
            _squared,
        ),
        Mistake(
            "the sign is flipped: it is log(p / q) with p on top, and the sum is never negative",
            _negative_kl,
        ),
        Mistake("no absolute values: single terms may be negative, their sum cannot", _absolute),
        Mistake(
            "a constant was added inside the log: it changes the value where q is small, and "
            "hides that the KL is infinite where q is 0",
            _softened,
        ),
        Mistake("this is the cross-entropy: subtract the entropy of p", cross_entropy),
        Mistake(
            "F.kl_div got probabilities: it takes log-probabilities first, and computes "
            "KL(target || input)",
            _library_on_probabilities,
        ),
        Mistake(
            "F.kl_div has the right order here, but its first argument must be a "
            "log-probability: q.log()",
            _library_on_probabilities_swapped,
        ),
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
        Mistake(
            "the arguments are swapped: the data p weigh, the model q stands in the log",
            _reversed_cross_entropy,
        ),
        Mistake("this is the entropy of p: the model q does not occur in it", _entropy),
        Mistake("this is the KL: the cross-entropy still contains the entropy of p", kl_divergence),
        Mistake(
            "this is in bits: take the natural logarithm; log2 is log / 0.6931",
            _cross_entropy_in_bits,
        ),
        Mistake(
            "you divided by the number of outcomes: the weights p already make it a mean",
            _cross_entropy_mean,
        ),
        Mistake("the minus is missing: log q is negative, the cross-entropy is not", _no_minus),
        Mistake("the weight p is missing: it is the mean of -log q under p", _unweighted),
        Mistake(
            "the log went outside the sum: -log of a mean is at most the mean of -log",
            _log_of_the_sum,
        ),
        Mistake("only the likeliest outcome was scored: all of p counts", _likeliest_only),
        Mistake(
            "F.cross_entropy takes logits: it put your probabilities through a softmax again",
            _library_on_logits,
        ),
        Mistake(
            "this is one binary cross-entropy per outcome: the terms with 1 - p do not belong "
            "to a choice of one among many",
            _binary,
        ),
    ),
    hint="-(p * log q), summed over the outcomes: how many nats the model needs on average for "
    "what the data send. Where p is 0 nothing is paid.",
)


def _kl_to_reference(logprobs, ref_logprobs):
    return F.kl_div(ref_logprobs, logprobs, log_target=True, reduction="batchmean")


def kl_to_reference(logprobs, ref_logprobs):  # (B, V), (B, V) -> ()
    """KL(pi || ref), the mean over rows; both are whole distributions."""
    return F.kl_div(logprobs, ref_logprobs, log_target=True, reduction="batchmean")


SILENT_BUG_01 = SilentBug(
    name="silent_bug_01",
    right=_kl_to_reference,
    broken=kl_to_reference,
    story="F.kl_div(input, target) is KL(target || input), so this was KL(ref || pi). It is never "
    "negative, 0 where the two agree, and close to the right one nearby.",
    hint="Two outcomes are enough. Choose pi and ref so that the two directions differ, and "
    "compute KL(pi || ref) by hand: sum of pi * (log pi - log ref).",
)
