"""Importance sampling: an expectation from another policy's samples, and what they are worth."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, mistake

__all__ = [
    "EFFECTIVE_SAMPLE_SIZE",
    "IMPORTANCE_ESTIMATE",
    "effective_sample_size",
    "importance_estimate",
]

UNDERFLOW = (
    "right on short answers; for a whole answer exp(log_p) and exp(log_q) are both 0 and "
    "0/0 is nan: subtract the logs first, then one exp"
)
OVERFLOW = (
    "right for small weights; exp(800) is inf and inf/inf is nan: subtract the largest "
    "log-weight first, it cancels (or logsumexp)"
)


def importance_estimate(
    values: torch.Tensor, log_p: torch.Tensor, log_q: torch.Tensor, *, self_normalised: bool = False
) -> torch.Tensor:
    """(1/n) sum_i p_i/q_i f_i with samples from q: (n,), (n,), (n,) -> ()."""
    weights = (log_p - log_q).exp()
    if self_normalised:
        return (weights * values).sum() / weights.sum()
    return (weights * values).mean()


@mistake(
    "the ratio is upside down: samples come from q, so each is worth p/q, that is "
    "exp(log_p - log_q)"
)
def _inverted(values, log_p, log_q, *, self_normalised=False):
    return importance_estimate(values, log_q, log_p, self_normalised=self_normalised)


@mistake("no ratio: this is the mean under q, whoever p is")
def _no_ratio(values, log_p, log_q):
    return values.mean()


@mistake(
    "you weighted with log p - log q: the weight is its exp. A log-ratio is 0 where "
    "the two agree, a weight is 1"
)
def _log_ratio(values, log_p, log_q):
    return ((log_p - log_q) * values).mean()


@mistake("you summed: divide by the number of samples, or the estimate grows with it")
def _sum(values, log_p, log_q):
    return ((log_p - log_q).exp() * values).sum()


@mistake(
    "the ratio is clipped to [0.8, 1.2]: that is PPO's surrogate; as an estimate of "
    "the mean under p it is biased"
)
def _clipped(values, log_p, log_q):
    return ((log_p - log_q).exp().clamp(0.8, 1.2) * values).mean()


@mistake(
    "the ratio is truncated at 1: less noise, but samples that p likes more than q no "
    "longer count in full"
)
def _truncated(values, log_p, log_q):
    return ((log_p - log_q).exp().clamp(max=1) * values).mean()


@mistake(
    "one weight for all, exp of the mean log-ratio: each sample needs its own, and "
    "the mean comes last"
)
def _exp_of_the_mean(values, log_p, log_q):
    return (log_p - log_q).mean().exp() * values.mean()


@mistake("mean weight times mean value: multiply sample by sample, then take the mean")
def _product_of_means(values, log_p, log_q):
    return (log_p - log_q).exp().mean() * values.mean()


@mistake(
    "you weighted by p and summed: that is for a list of all outcomes; a sample is "
    "drawn with probability q already, so p/q"
)
def _weighted_by_p(values, log_p, log_q):
    return (log_p.exp() * values).sum()


@mistake("you divided the logs: p/q is exp(log_p - log_q)")
def _ratio_of_logs(values, log_p, log_q):
    return (log_p / log_q * values).mean()


@mistake(UNDERFLOW)
def _exp_before_dividing(values, log_p, log_q):
    return (log_p.exp() / log_q.exp() * values).mean()


def _samples(label: str, values: list, log_p: list, log_q: list, catches: str = "") -> Probe:
    return Probe(label, {"values": values, "log_p": log_p, "log_q": log_q}, catches)


IMPORTANCE_ESTIMATE = Exercise(
    name="importance_estimate",
    reference=importance_estimate,
    probes=(
        _samples("two samples", [1.0, 0.0], [-0.5, -1.0], [-1.0, -0.5]),
        _samples("three samples", [1.0, 2.0, -1.0], [-0.3, -2.0, -1.5], [-1.1, -0.9, -1.2]),
        _samples(
            "five samples, one rare",
            [0.0, 1.0, 1.0, 0.5, 3.0],
            [-0.7, -1.2, -1.9, -0.6, -1.0],
            [-0.5, -1.0, -2.3, -0.9, -4.0],
        ),
        _samples(
            "whole answers",
            [1.0, 0.0, 0.5],
            [-800.0, -901.5, -1200.25],
            [-801.0, -900.0, -1200.5],
            UNDERFLOW,
        ),
    ),
    conventions=(
        Convention(
            "self-normalised: divided by the sum of the weights. Biased by O(1/n), often "
            "steadier; this page divides by n",
            {"self_normalised": True},
        ),
    ),
    mistakes=(
        _inverted,
        _no_ratio,
        _log_ratio,
        _sum,
        _clipped,
        _truncated,
        _exp_of_the_mean,
        _product_of_means,
        _weighted_by_p,
        _ratio_of_logs,
        _exp_before_dividing,
    ),
    hint="One weight per sample, exp(log_p - log_q). Multiply by the value of the same sample, "
    "then take the mean over the samples.",
)


def effective_sample_size(log_weights: torch.Tensor, *, share: bool = False) -> torch.Tensor:
    """(sum w)^2 / sum w^2, between 1 and n: (n,) -> (). `share` divides by n."""
    weights = log_weights.softmax(0)  # the scale cancels, so normalise safely
    size = 1 / weights.square().sum()
    return size / len(log_weights) if share else size


@mistake("1 / sum w^2 holds for weights that sum to 1: yours do not; (sum w)^2 / sum w^2")
def _not_normalised(log_weights, *, share=False):
    return 1 / log_weights.exp().square().sum()


@mistake("the weights are exp(log_weights): you squared and summed the logs")
def _not_exponentiated(log_weights):
    return log_weights.sum().square() / log_weights.square().sum()


@mistake("this is the sum of the weights, near n on average however unequal they are")
def _sum_of_weights(log_weights):
    return log_weights.exp().sum()


@mistake(
    "exp of the entropy: also a number of samples, but not this one, which comes from "
    "the variance; (sum w)^2 / sum w^2"
)
def _entropy(log_weights, *, share=False):
    log_share = log_weights.log_softmax(0)
    size = (-(log_share.exp() * log_share).sum()).exp()
    return size / len(log_weights) if share else size


@mistake(
    "Bessel in the variance: n/(1 + var/mean^2) is the same as (sum w)^2 / sum w^2 "
    "with the population variance"
)
def _bessel(log_weights, *, share=False):
    weights = log_weights.exp()
    size = len(weights) / (1 + weights.var() / weights.mean().square())
    return size / len(log_weights) if share else size


@mistake(
    "n/(1 + var w) holds when the weights average 1: in a sample they do not, divide "
    "the variance by their squared mean"
)
def _raw_variance(log_weights, *, share=False):
    size = len(log_weights) / (1 + log_weights.exp().var(correction=0))
    return size / len(log_weights) if share else size


@mistake("upside down: it is 1 when one sample has all the weight and n when all are equal")
def _reciprocal(log_weights):
    return 1 / effective_sample_size(log_weights)


@mistake("the sum above is not squared: then the answer changes when all weights double")
def _numerator_not_squared(log_weights):
    weights = log_weights.exp()
    return weights.sum() / weights.square().sum()


@mistake("n^2 / sum w^2 assumes that the weights sum to n: in a sample they do not")
def _weights_sum_to_n(log_weights):
    return len(log_weights) ** 2 / log_weights.exp().square().sum()


@mistake("1 over the largest share: a fair alarm, but the other weights count too")
def _over_the_largest(log_weights):
    return 1 / log_weights.softmax(0).max()


@mistake("sum w^2 / sum w grows with unequal weights: the square of the sum goes above")
def _square_of_the_sum_below(log_weights):
    weights = log_weights.exp()
    return weights.square().sum() / weights.sum()


@mistake(OVERFLOW)
def _overflow(log_weights, *, share=False):
    weights = log_weights.exp()
    size = weights.sum().square() / weights.square().sum()
    return size / len(log_weights) if share else size


def _weights(label: str, log_weights: list[float], catches: str = "") -> Probe:
    return Probe(label, {"log_weights": log_weights}, catches)


EFFECTIVE_SAMPLE_SIZE = Exercise(
    name="effective_sample_size",
    reference=effective_sample_size,
    probes=(
        _weights("two weights", [0.0, 1.0]),
        _weights("three weights", [-0.5, 0.25, 1.5]),
        _weights("one dominates", [-1.0, -0.5, 4.0, 0.5, -2.0]),
        _weights("equal weights", [0.7, 0.7, 0.7, 0.7]),
        _weights("whole answers, likely", [800.0, 799.0, 790.0], OVERFLOW),
        _weights(
            "whole answers, unlikely",
            [-800.0, -801.0, -820.0],
            "right for weights near 1; exp(-800) is 0 and 0/0 is nan: subtract the largest "
            "log-weight first, it cancels (or softmax)",
        ),
    ),
    conventions=(
        Convention(
            "the share ESS/n, between 1/n and 1: good for a log; this page returns the number",
            {"share": True},
        ),
    ),
    mistakes=(
        _not_normalised,
        _not_exponentiated,
        _sum_of_weights,
        _entropy,
        _bessel,
        _raw_variance,
        _reciprocal,
        _numerator_not_squared,
        _weights_sum_to_n,
        _over_the_largest,
        _square_of_the_sum_below,
        _overflow,
    ),
    hint="Doubling all weights changes nothing, so subtract the largest log-weight first. Then "
    "exp, and the square of the sum over the sum of the squares.",
)
