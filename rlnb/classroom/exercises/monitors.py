"""What one logs: the entropy of the next token, and the share of tokens that the clip silences."""

from __future__ import annotations

import math

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, habit, mistake

__all__ = ["CLIP_FRACTION", "TOKEN_ENTROPY", "clip_fraction", "token_entropy"]

ZERO_TIMES_INFINITY = (
    "a logit of -inf forbids a token: 0 log 0 counts as 0, here it is nan; torch.special.entr(p), "
    "or logsumexp minus the mean logit over p > 0"
)


def token_entropy(logits: torch.Tensor) -> torch.Tensor:
    """H = -sum_v p_v log p_v in nats: (B, T, V) logits -> (B, T)."""
    return torch.special.entr(logits.softmax(-1)).sum(-1)


def _p_log_p(logits: torch.Tensor) -> torch.Tensor:
    log_p = logits.log_softmax(-1)
    return log_p.exp() * torch.where(log_p.isinf(), 0, log_p)


@mistake("the minus is missing: log p is negative, an entropy is not")
def _no_minus(logits):
    return _p_log_p(logits).sum(-1)


@mistake("the mean over the vocabulary: p already weighs the terms, so sum over dim -1")
def _mean_over_vocabulary(logits):
    return -_p_log_p(logits).mean(-1)


@mistake("-log p summed without its weight p: rare tokens would count most")
def _unweighted(logits):
    return -logits.log_softmax(-1).sum(-1)


@mistake("this is the surprise of the likeliest token, -log max p: the entropy averages over all")
def _of_the_likeliest(logits):
    return -logits.log_softmax(-1).max(-1).values


@mistake("these are bits, log base 2: the page counts in nats, the natural logarithm")
def _bits(logits):
    return token_entropy(logits) / math.log(2)


@mistake("normalised over the places (dim 1): probabilities sum to 1 over the vocabulary, dim -1")
def _over_time(logits):
    return torch.special.entr(logits.softmax(1)).sum(-1)


@mistake("one number came: an entropy per place was asked for, (B, T)")
def _averaged(logits):
    return token_entropy(logits).mean()


@mistake("divided by log V: that is the share of the largest entropy; here it is in nats")
def _share(logits):
    return token_entropy(logits) / math.log(logits.shape[-1])


@mistake("the logits stand where log p belongs: subtract logsumexp first, log_softmax")
def _raw_logits(logits):
    return -(logits.softmax(-1) * logits).sum(-1)


@habit(ZERO_TIMES_INFINITY)
def _forbidden_token(logits):
    log_p = logits.log_softmax(-1)
    return -(log_p.exp() * log_p).sum(-1)


INF = float("inf")

TOKEN_ENTROPY = Exercise(
    name="token_entropy",
    reference=token_entropy,
    probes=(
        Probe("two tokens", {"logits": [[[0.0, 1.0]]]}),
        Probe("two places", {"logits": [[[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]]]}),
        Probe(
            "two answers",
            {
                "logits": [
                    [[0.3, -0.5, 1.1, 0.0], [2.0, 0.1, -0.4, 0.7], [0.2, 0.9, -1.3, 0.4]],
                    [[-0.6, 0.8, 0.5, 1.5], [0.0, -2.0, 1.2, 0.6], [1.4, 0.3, 0.3, -0.9]],
                ]
            },
        ),
        Probe("one sure token", {"logits": [[[30.0, 0.0, -5.0]]]}),
        Probe(
            "a token that is forbidden",
            {"logits": [[[0.0, 1.0, -INF]]]},
            catches=ZERO_TIMES_INFINITY,
            warns=True,
        ),
    ),
    mistakes=(
        _no_minus,
        _mean_over_vocabulary,
        _unweighted,
        _of_the_likeliest,
        _bits,
        _over_time,
        _averaged,
        _share,
        _raw_logits,
        _forbidden_token,
    ),
    hint="Two lines: log_p = logits.log_softmax(-1); minus the sum over dim -1 of exp(log_p) times "
    "log_p. Think of what a logit of -inf does to the product.",
)


def clip_fraction(
    ratio: torch.Tensor,
    advantage: torch.Tensor,
    mask: torch.Tensor,
    epsilon: float,
    *,
    both_sides: bool = False,
) -> torch.Tensor:
    """The share of unmasked tokens whose gradient the clip has taken: a number, no gradient.

    A token is silent when it is past the band on the side to which A pushes it. `both_sides`
    counts every token outside the band.
    """
    up, down = ratio > 1 + epsilon, ratio < 1 - epsilon
    silent = up | down if both_sides else (up & (advantage > 0)) | (down & (advantage < 0))
    silent = (silent & mask).to(ratio.dtype)
    return silent.sum() / mask.sum().clamp(min=1)


@mistake("divided by B times T: padding is no token, divide by mask.sum()")
def _over_the_table(ratio, advantage, mask, epsilon, *, both_sides=False):
    share = clip_fraction(ratio, advantage, mask, epsilon, both_sides=both_sides)
    return share * mask.sum() / mask.numel()


@mistake("padding is counted: only tokens under the mask were written by the policy")
def _padding_counted(ratio, advantage, mask, epsilon, *, both_sides=False):
    everything = torch.ones_like(mask)
    return clip_fraction(ratio, advantage, everything, epsilon, both_sides=both_sides)


@mistake("these are the wrong corners: a good token that fell and a bad one that rose keep theirs")
def _wrong_corners(ratio, advantage, mask, epsilon):
    return clip_fraction(ratio, -advantage, mask, epsilon)


@mistake("only tokens above the band: a bad token below 1 - epsilon is silent, too")
def _upper_only(ratio, advantage, mask, epsilon):
    return clip_fraction(ratio, advantage.clamp(min=0), mask, epsilon)


@mistake("only tokens below the band: a good token above 1 + epsilon is silent, too")
def _lower_only(ratio, advantage, mask, epsilon):
    return clip_fraction(ratio, advantage.clamp(max=0), mask, epsilon)


@mistake("this is the share that still learns: one minus the clip fraction")
def _alive(ratio, advantage, mask, epsilon, *, both_sides=False):
    return 1 - clip_fraction(ratio, advantage, mask, epsilon, both_sides=both_sides)


@mistake("a share per answer, then their mean: every token of the batch counts the same here")
def _per_answer(ratio, advantage, mask, epsilon, *, both_sides=False):
    rows = [
        clip_fraction(r, a, m, epsilon, both_sides=both_sides)
        for r, a, m in zip(ratio, advantage, mask, strict=True)
    ]
    return torch.stack(rows).mean()


@mistake("the number of silent tokens: divide by mask.sum() for their share")
def _count(ratio, advantage, mask, epsilon, *, both_sides=False):
    share = clip_fraction(ratio, advantage, mask, epsilon, both_sides=both_sides)
    return share * mask.sum()


@mistake("epsilon is measured from 1: the band is 1 - epsilon to 1 + epsilon, not -epsilon to it")
def _around_zero(ratio, advantage, mask, epsilon, *, both_sides=False):
    return clip_fraction(ratio + 1, advantage, mask, epsilon, both_sides=both_sides)


def _tokens(label: str, ratio: list, advantage: list, mask: list, epsilon: float) -> Probe:
    return Probe(
        label,
        {
            "ratio": ratio,
            "advantage": advantage,
            "mask": torch.tensor(mask, dtype=torch.bool),
            "epsilon": epsilon,
        },
    )


CLIP_FRACTION = Exercise(
    name="clip_fraction",
    reference=clip_fraction,
    probes=(
        _tokens("one good token that rose", [[1.5, 1.1]], [[1.0, 1.0]], [[1, 1]], 0.2),
        _tokens(
            "one bad token that fell", [[0.5, 1.1, 1.0]], [[-1.0, -1.0, -1.0]], [[1, 1, 1]], 0.2
        ),
        _tokens(
            "two answers, padded",
            [[1.5, 0.5, 1.05, 9.0], [1.6, 0.6, 0.3, 1.9]],
            [[1.0, 1.0, 1.0, 1.0], [-0.5, -0.5, -0.5, -0.5]],
            [[1, 1, 1, 0], [1, 1, 1, 0]],
            0.3,
        ),
        _tokens(
            "unequal lengths, a zero advantage",
            [[1.5, 1.5, 1.0, 1.0, 0.2], [0.1, 1.0, 0.1, 5.0, 0.9], [2.0, 0.4, 1.0, 1.0, 1.0]],
            [[2.0] * 5, [-1.0] * 5, [0.0] * 5],
            [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 0, 0, 0]],
            0.2,
        ),
    ),
    conventions=(
        Convention(
            "every token outside the band, whatever its sign: it says how far the policy moved; "
            "this page counts those that lost their gradient",
            {"both_sides": True},
        ),
    ),
    mistakes=(
        _over_the_table,
        _padding_counted,
        _wrong_corners,
        _upper_only,
        _lower_only,
        _alive,
        _per_answer,
        _count,
        _around_zero,
    ),
    hint="A token is silent where (A > 0 and ratio > 1 + epsilon) or (A < 0 and ratio < 1 - "
    "epsilon). Count those under the mask and divide by the tokens under the mask.",
)
