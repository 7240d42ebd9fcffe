"""Dr. GRPO: what a switch does to every token, and a token mean over memory and machines."""

from __future__ import annotations

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, mistake
from rlnb.classroom.exercises.aggregation import _FOUR, _GARBAGE
from rlnb.classroom.exercises.reinforce import PADDING

__all__ = ["SWITCH_FACTOR", "WORKER_LOSSES", "switch_factor", "worker_losses"]


def switch_factor(
    rewards: torch.Tensor, lengths: torch.Tensor, max_length: int, *, correction: int = 0
) -> torch.Tensor:
    """sigma_R T / L_max: (G,), (G,), int -> (G,)."""
    return rewards.std(correction=correction) * lengths / max_length


@mistake("upside down: this is GRPO's weight over Dr. GRPO's")
def _inverse(rewards, lengths, max_length, *, correction=0):
    return max_length / (rewards.std(correction=correction) * lengths)


@mistake("the std is missing: GRPO's advantage is divided by it, Dr. GRPO's is not")
def _length_only(rewards, lengths, max_length):
    return lengths / max_length


@mistake("the length is missing: a token of GRPO is divided by its answer's T, not by L_max")
def _std_only(rewards, lengths, max_length, *, correction=0):
    return rewards.std(correction=correction) * torch.ones_like(lengths)


@mistake("Dr. GRPO's own weight: divide it by the one that the token had under GRPO")
def _weight_itself(rewards, lengths, max_length):
    return (rewards - rewards.mean()) / max_length


@mistake("divided by the std: taking a division away multiplies by it")
def _std_below(rewards, lengths, max_length, *, correction=0):
    return lengths / (max_length * rewards.std(correction=correction))


@mistake("the length is upside down: taking the division by T away multiplies by T")
def _length_below(rewards, lengths, max_length, *, correction=0):
    return rewards.std(correction=correction) * max_length / lengths


@mistake("that is the variance: the std is its root")
def _variance(rewards, lengths, max_length, *, correction=0):
    return rewards.var(correction=correction) * lengths / max_length


SWITCH_FACTOR = Exercise(
    name="switch_factor",
    reference=switch_factor,
    probes=(
        Probe(
            "four answers",
            {"rewards": [1.0, 0.0, 0.0, 0.0], "lengths": [4.0, 1.0, 7.0, 2.0], "max_length": 8},
        ),
        Probe(
            "graded rewards",
            {"rewards": [0.9, 0.1, 0.4], "lengths": [5.0, 9.0, 3.0], "max_length": 20},
        ),
    ),
    conventions=(
        Convention("with Bessel's std, as TRL and verl have it; this page's is the population's",
                   {"correction": 1}),
    ),
    mistakes=(
        _inverse, _length_only, _std_only, _weight_itself, _std_below, _length_below, _variance,
    ),
    hint="Write both weights of one token as fractions, then divide the second by the first.",
)  # fmt: skip


def worker_losses(
    per_token: torch.Tensor, mask: torch.Tensor, rows: int, workers: int
) -> torch.Tensor:
    """One loss per micro-batch, in order: its sum, times workers, over the step's tokens."""
    kept = torch.where(mask, per_token, 0)
    return torch.stack([part.sum() for part in kept.split(rows)]) * workers / mask.sum()


def _sums(per_token, mask, rows):
    kept = torch.where(mask, per_token, 0)
    return torch.stack([part.sum() for part in kept.split(rows)])


def _counts(mask, rows):
    return torch.stack([part.sum() for part in mask.split(rows)]).clamp(min=1)


@mistake("the workers' gradients are averaged afterwards: without a factor the step is too small")
def _no_workers(per_token, mask, rows, workers):
    return _sums(per_token, mask, rows) / mask.sum()


@mistake("divided by the number of workers: the average over workers does that already; multiply")
def _over_workers(per_token, mask, rows, workers):
    return _sums(per_token, mask, rows) / mask.sum() / workers


@mistake("each micro-batch by its own tokens: the divisor must be the whole step's")
def _local_mean(per_token, mask, rows, workers):
    return _sums(per_token, mask, rows) / _counts(mask, rows)


@mistake("means of micro-batches, averaged: the bug of this page")
def _mean_of_means(per_token, mask, rows, workers):
    sums = _sums(per_token, mask, rows)
    return sums / _counts(mask, rows) * workers / len(sums)


@mistake("each worker by its own tokens: the count has to be summed over workers first")
def _own_tokens(per_token, mask, rows, workers):
    share = len(mask) // workers
    tokens = _counts(mask, share).repeat_interleave(share // rows)
    return _sums(per_token, mask, rows) / tokens


@mistake("divided by the number of micro-batches as well: gradients of backward() add up")
def _averaged_again(per_token, mask, rows, workers):
    sums = _sums(per_token, mask, rows)
    return sums * workers / mask.sum() / (len(sums) // workers)


@mistake("plain sums: divide by the tokens of the step")
def _plain(per_token, mask, rows, workers):
    return _sums(per_token, mask, rows)


@mistake("divided by the padded size: padding is no token")
def _padded(per_token, mask, rows, workers):
    return _sums(per_token, mask, rows) * workers / mask.numel()


@mistake("divided by the number of answers: that is a mean over answers of sums")
def _answers_below(per_token, mask, rows, workers):
    return _sums(per_token, mask, rows) * workers / len(mask)


@mistake(PADDING)
def _times_zero(per_token, mask, rows, workers):
    kept = per_token * mask
    return torch.stack([part.sum() for part in kept.split(rows)]) * workers / mask.sum()


WORKER_LOSSES = Exercise(
    name="worker_losses",
    reference=worker_losses,
    differentiate=("per_token",),
    probes=(
        Probe("two workers, one answer at a time",
              {"per_token": _FOUR[0], "mask": _FOUR[1], "rows": 1, "workers": 2}),
        Probe("one worker, two at a time",
              {"per_token": _FOUR[0], "mask": _FOUR[1], "rows": 2, "workers": 1}),
        Probe("four workers",
              {"per_token": _FOUR[0], "mask": _FOUR[1], "rows": 1, "workers": 4}),
        Probe("inf and nan under the mask",
              {"per_token": _GARBAGE[0], "mask": _GARBAGE[1], "rows": 1, "workers": 2}, PADDING),
    ),
    mistakes=(
        _no_workers, _over_workers, _local_mean, _mean_of_means, _own_tokens, _averaged_again,
        _plain, _padded, _answers_below, _times_zero,
    ),
    hint="Count the tokens once, before any split. backward() adds up inside a worker; between "
    "workers there is an average. Which factor undoes it?",
)  # fmt: skip
