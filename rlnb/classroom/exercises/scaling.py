"""Fit ScaleRL's sigmoid. The answers are four numbers from data, so the check has a tolerance."""

from __future__ import annotations

import numpy as np
import torch

from rlnb.classroom.checking.exercise import Exercise, Probe, mistake
from rlnb.toys.scaling import Sigmoid, fit_sigmoid

__all__ = ["SIGMOID_FIT", "sigmoid_fit"]


def sigmoid_fit(compute: torch.Tensor, reward: torch.Tensor) -> torch.Tensor:
    """(ceiling, exponent, midpoint, start) of the least-squares sigmoid: (n,), (n,) -> (4,)."""
    return _numbers(_fit(compute, reward), reward)


def _fit(compute, reward, **held) -> Sigmoid:
    return fit_sigmoid(compute.double().numpy(), reward.double().numpy(), highest=np.inf, **held)


def _numbers(fit: Sigmoid, like: torch.Tensor, **changes) -> torch.Tensor:
    four = {
        "ceiling": fit.ceiling,
        "exponent": fit.exponent,
        "midpoint": fit.midpoint,
        "start": fit.start,
    } | changes
    return torch.tensor(list(four.values()), dtype=like.dtype)


@mistake(
    "the exponent is 2.3026 times too large: you fitted against log10 of the compute; "
    "the formula's exponent goes with ln"
)
def _per_decade(compute, reward):
    fit = _fit(compute, reward)
    return _numbers(fit, reward, exponent=fit.exponent * np.log(10))


@mistake("the midpoint came as a logarithm: return the compute itself, exp of it")
def _log_midpoint(compute, reward):
    fit = _fit(compute, reward)
    return _numbers(fit, reward, midpoint=np.log(fit.midpoint))


@mistake(
    "the curve is right, read from the other side: a rising one has start below "
    "ceiling and an exponent above 0"
)
def _ends_and_sign_exchanged(compute, reward):
    fit = _fit(compute, reward)
    return _numbers(fit, reward, ceiling=fit.start, exponent=-fit.exponent, start=fit.ceiling)


@mistake("ceiling and start have changed places: the ceiling comes first, the start last")
def _ends_exchanged(compute, reward):
    fit = _fit(compute, reward)
    return _numbers(fit, reward, ceiling=fit.start, start=fit.ceiling)


@mistake("the first number is the gain, ceiling minus start: add the start")
def _gain_for_ceiling(compute, reward):
    fit = _fit(compute, reward)
    return _numbers(fit, reward, ceiling=fit.ceiling - fit.start)


@mistake(
    "the midpoint is where half of the *gain* is reached, reward (ceiling + start)/2, "
    "not half of the ceiling"
)
def _half_the_ceiling(compute, reward):
    fit = _fit(compute, reward)
    share = (fit.ceiling / 2 - fit.start) / (fit.ceiling - fit.start)
    at = fit.midpoint * (share / (1 - share)) ** (1 / fit.exponent)
    return _numbers(fit, reward, midpoint=at)


@mistake("the exponent is upside down: it multiplies ln compute, it does not divide it")
def _inverse_exponent(compute, reward):
    fit = _fit(compute, reward)
    return _numbers(fit, reward, exponent=1 / fit.exponent)


@mistake(
    "the ceiling is held at the last reward: the curve is still rising there, so it "
    "has to be fitted"
)
def _ceiling_is_the_last(compute, reward):
    return _numbers(_fit(compute, reward, ceiling=float(reward[-1])), reward)


@mistake("the ceiling is held at 1: what a pass rate could be at most is not where this run ends")
def _ceiling_is_one(compute, reward):
    return _numbers(_fit(compute, reward, ceiling=1.0), reward)


@mistake("the start is held at 0: the model was not at 0 before training, fit it as well")
def _start_is_zero(compute, reward):
    return _numbers(_fit(compute, reward, start=0.0), reward)


@mistake("the start is held at the first reward: that point is already on its way up, and noisy")
def _start_is_the_first(compute, reward):
    return _numbers(_fit(compute, reward, start=float(reward[0])), reward)


def _points(label: str, truth: Sigmoid, compute: np.ndarray, noise: float = 0.0) -> Probe:
    draws = np.random.default_rng(0).standard_normal(len(compute))
    reward = np.round(truth(compute) + noise * draws, 6)
    return Probe(label, {"compute": torch.from_numpy(compute), "reward": torch.from_numpy(reward)})


SIGMOID_FIT = Exercise(
    name="sigmoid_fit",
    reference=sigmoid_fit,
    probes=(
        _points(
            "16 points without noise", Sigmoid(0.6, 1.5, 20.0, 0.1), np.geomspace(2.0, 200.0, 16)
        ),
        _points(
            "20 points without noise, slow rise",
            Sigmoid(0.85, 0.8, 8.0, 0.3),
            np.geomspace(0.5, 300.0, 20),
        ),
        _points(
            "40 points, noise 0.004",
            Sigmoid(0.6, 1.5, 20.0, 0.1),
            np.linspace(2.5, 100.0, 40),
            noise=0.004,
        ),
        _points(
            "60 points, noise 0.006",
            Sigmoid(0.7, 2.0, 15.0, 0.25),
            np.linspace(1.0, 60.0, 60),
            noise=0.006,
        ),
    ),
    mistakes=(
        _per_decade,
        _log_midpoint,
        _ends_and_sign_exchanged,
        _ends_exchanged,
        _gain_for_ceiling,
        _half_the_ceiling,
        _inverse_exponent,
        _ceiling_is_the_last,
        _ceiling_is_one,
        _start_is_zero,
        _start_is_the_first,
    ),
    hint="For given exponent and midpoint, share = 1/(1 + (midpoint/C)^exponent) is known and R = "
    "start + gain * share is a straight line in it: two numbers by least squares. Search the "
    "other two: a coarse grid, then finer ones around the best.",
    tolerance=0.005,
)
