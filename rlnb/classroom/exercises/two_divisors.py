"""GRPO's two divisors: what a prompt weighs under the std, what 1/T pushes the stop decision by."""

from __future__ import annotations

from math import comb

import torch

from rlnb.classroom.checking.exercise import Convention, Exercise, Probe, mistake

__all__ = ["PROMPT_WEIGHT", "STOP_PUSH", "prompt_weight", "stop_push"]


def _chances(rate: torch.Tensor, size: int) -> torch.Tensor:
    """(n,) -> (n, G + 1): the chance of k right answers among G."""
    k = torch.arange(size + 1, dtype=rate.dtype)
    count = torch.tensor([float(comb(size, j)) for j in range(size + 1)], dtype=rate.dtype)
    p = rate[:, None]
    return count * p**k * (1 - p) ** (size - k)


def prompt_weight(rate: torch.Tensor, size: int, *, std: str = "population") -> torch.Tensor:
    """E[sqrt(k (G - k))] / (G p (1 - p)), over k right answers in a group of G: (n,) -> (n,)."""
    k = torch.arange(size + 1, dtype=rate.dtype)
    total = (_chances(rate, size) * (k * (size - k)).sqrt()).sum(1)
    weight = total / (size * rate * (1 - rate))
    return weight if std == "population" else weight * ((size - 1) / size) ** 0.5


@mistake("that is 1/sqrt(p(1-p)), a very large group: at this G the number right varies by chance")
def _limit(rate, size):
    return (rate * (1 - rate)).rsqrt()


@mistake("that is the net push on the logit of p; the weight on grad p is this over p(1-p)")
def _net(rate, size):
    return prompt_weight(rate, size) * rate * (1 - rate)


@mistake("G times too large: the group's push is a mean over its G answers")
def _sum_over_the_group(rate, size):
    return prompt_weight(rate, size) * size


@mistake("that is the mean alone, (G-1)/G at every p: divide the advantages by the group's std")
def _undivided(rate, size):
    return torch.full_like(rate, (size - 1) / size)


@mistake("silent groups were left out of the average: they count, with a push of 0")
def _mixed_only(rate, size):
    mixed = 1 - rate**size - (1 - rate) ** size
    return prompt_weight(rate, size) / mixed


@mistake("only the right answers' half: the wrong ones push as well, by grad p / (1-p) each")
def _right_half(rate, size):
    return prompt_weight(rate, size) * (1 - rate)


@mistake("the std of the expected group, sqrt(p(1-p)): each group is divided by its own")
def _expected_std(rate, size):
    return (size - 1) / size * (rate * (1 - rate)).rsqrt()


PROMPT_WEIGHT = Exercise(
    name="prompt_weight",
    reference=prompt_weight,
    probes=(
        Probe("pairs", {"rate": [0.3], "size": 2}),
        Probe("groups of eight", {"rate": [0.05, 0.5, 0.95], "size": 8}),
        Probe("groups of sixteen", {"rate": [0.01, 0.1, 0.25, 0.9], "size": 16}),
    ),
    conventions=(
        Convention(
            "right with Bessel's std; this page divides by the population std", {"std": "bessel"}
        ),
    ),  # fmt: skip
    mistakes=(
        _limit,
        _net,
        _sum_over_the_group,
        _undivided,
        _mixed_only,
        _right_half,
        _expected_std,
    ),  # fmt: skip
    hint="Go through k = 1 ... G - 1 right answers. How likely is that k, and what is the sum of "
    "the right answers' advantages then? A right answer is worth grad p / p, a wrong one minus "
    "grad p / (1-p).",
)


def stop_push(q: torch.Tensor) -> torch.Tensor:
    """E[1/T] - q for T geometric with stop probability q: (n,) -> (n,)."""
    return -q * q.log() / (1 - q) - q


@mistake("that is E[1/T] alone: the other part of the score, qT / T = q, is missing")
def _without_q(q):
    return -q * q.log() / (1 - q)


@mistake("this has the other sign: it is the push on going on. Asked was the stop decision, A = 1")
def _negative(q):
    return -stop_push(q)


@mistake("you put 1/E[T] = q for E[1/T]: the mean of 1/T is larger than one over the mean")
def _jensen(q):
    return torch.zeros_like(q)


@mistake("the sum of x^T / T is -ln(1 - x), and here x = 1 - q; a factor q/(1-q) stands before it")
def _without_factor(q):
    return -q.log() - q


@mistake("1 - q inside the logarithm: the sum runs over x = 1 - q, so that 1 - x is q")
def _other_log(q):
    return -q * (1 - q).log() / (1 - q) - q


@mistake("the factor is q/(1-q), for q(1-q)^(T-1) is q/(1-q) times (1-q)^T")
def _factor_q(q):
    return -q * q.log() - q


STOP_PUSH = Exercise(
    name="stop_push",
    reference=stop_push,
    probes=(Probe("one half", {"q": [0.5]}), Probe("four rates", {"q": [0.02, 0.1, 0.3, 0.9]})),
    mistakes=(_without_q, _negative, _jensen, _without_factor, _other_log, _factor_q),
    hint="The score is 1 - qT, so divided by T it is 1/T - q. For E[1/T]: the sum over T from 1 of "
    "x^T / T is -ln(1 - x).",
)
