"""Functions of one whole number where the exercise has a tensor of counts.

The textbook's pass@k is `1 - comb(n - c, k) / comb(n, k)`, and `math.comb` takes no tensor. Such a
function is as right as one for all problems at once: it is called for each count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rlnb.classroom.checking.exercise import Exercise
from rlnb.classroom.checking.outcome import run

__all__ = ["one_by_one", "wants_one_number", "with_one_number"]

# what Python and torch say when a tensor stands where one whole number is wanted
SAID = ("integer tensor", "interpreted as an integer", "Boolean value of Tensor", "to Scalar")


def wants_one_number(function: Callable[..., Any], exercise: Exercise) -> bool:
    """Whether it raises for a tensor of counts what a function of one whole number raises."""
    errors = (run(function, exercise, p, torch.float64).error for p in exercise.ordered_probes)
    return any(said in str(error) for error in errors if error is not None for said in SAID)


def one_by_one(function: Callable[..., Any], exercise: Exercise) -> Callable[..., Any]:
    """The function of one whole number, called for each entry; its numbers become a tensor."""
    place = list(exercise.probes[0].arguments).index(exercise.one_by_one)

    def of_all(*arguments: Any) -> Any:
        counts = arguments[place]
        before, behind = arguments[:place], arguments[place + 1 :]
        came = [function(*before, int(count), *behind) for count in counts]
        return torch.stack([torch.as_tensor(value, dtype=counts.dtype) for value in came])

    return of_all


def with_one_number(
    function: Callable[..., Any], exercise: Exercise, probe: dict[str, Any] | None
) -> dict[str, Any] | None:
    """The probe with the first count at which the function raises, else with its first."""
    if probe is None:
        return None
    probes = [{**probe, exercise.one_by_one: int(count)} for count in probe[exercise.one_by_one]]
    for one in probes:
        try:
            function(*one.values())
        except (Exception, SystemExit):
            return one
    return probes[0]
