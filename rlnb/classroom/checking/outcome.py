"""Run a function on one probe and keep all that a verdict may depend on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe

__all__ = ["Outcome", "agree", "difference_at", "is_finite", "run", "same"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """returned     what came back, untouched
    value        it as a detached tensor, or None when it is nothing of the kind
    gradients    argument name -> gradient of value.sum(); None when the graph was cut
    edited       names of the arguments that the function changed in place
    error        the exception it raised, or None
    tolerance    the exercise's own, or 0
    """

    returned: Any = None
    value: torch.Tensor | None = None
    gradients: dict[str, torch.Tensor] | None = None
    edited: tuple[str, ...] = ()
    error: Exception | SystemExit | None = None
    tolerance: float = 0.0


def run(
    function: Callable[..., Any], exercise: Exercise, probe: Probe, dtype: torch.dtype
) -> Outcome:
    """Call `function` on fresh arguments. What it warns is kept off the page.

    torch.tensor(0.2) gets the dtype of the probe, as it would in a run of that precision: a page
    that works in float64 must not blame a constant for it.
    """
    arguments = probe.cast(dtype)
    leaves = {name: arguments[name].requires_grad_() for name in exercise.differentiate}
    with torch.enable_grad():
        # Clones, because editing a leaf in place raises: the edit shall be seen and named instead.
        passed = {n: v.clone() if torch.is_tensor(v) else v for n, v in arguments.items()}
    page_default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        with warnings.catch_warnings(), torch.enable_grad():
            warnings.simplefilter("ignore")
            returned = function(*passed.values())
            value = _as_tensor(returned)
            if value is not None and value.dtype == torch.bool:
                value = value.to(dtype)  # yes is 1 and no is 0: the lenses below do arithmetic
            gradients = _gradients(value, leaves)
    except (Exception, SystemExit) as error:  # belongs in the verdict
        return Outcome(error=error)
    finally:
        torch.set_default_dtype(page_default)
    edited = tuple(
        n for n, v in passed.items() if torch.is_tensor(v) and not _identical(v, arguments[n])
    )
    return Outcome(
        returned,
        None if value is None else value.detach(),
        gradients,
        edited,
        tolerance=exercise.tolerance,
    )


def _as_tensor(returned: Any) -> torch.Tensor | None:
    if torch.is_tensor(returned):
        return returned
    if (
        isinstance(returned, (list, tuple))
        and returned
        and all(torch.is_tensor(v) for v in returned)
    ):
        return torch.stack(list(returned))
    try:
        # float64 holds a Python number without loss
        return torch.as_tensor(returned, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        return None


def _gradients(
    value: torch.Tensor | None, leaves: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor] | None:
    if not leaves or value is None:
        return {}
    if not value.requires_grad:
        return None
    found = torch.autograd.grad(value.sum(), list(leaves.values()), allow_unused=True)
    if all(gradient is None for gradient in found):
        return None
    return {
        name: torch.zeros_like(leaf) if gradient is None else gradient
        for (name, leaf), gradient in zip(leaves.items(), found, strict=True)
    }


def _identical(after: torch.Tensor, before: torch.Tensor) -> bool:
    return after.shape == before.shape and torch.equal(
        torch.nan_to_num(after.detach(), nan=-7.0), torch.nan_to_num(before.detach(), nan=-7.0)
    )


def _tolerance(*tensors: torch.Tensor) -> float:
    known = {torch.float64: 1e-9, torch.float32: 1e-4}
    return max(known.get(tensor.dtype, 1e-2) for tensor in tensors)


def same(came: torch.Tensor, expected: torch.Tensor, tolerance: float | None = None) -> bool:
    """Equal shapes, and numbers equal to the coarser precision; nan equals nan."""
    if came.shape != expected.shape:
        return False
    tolerance = tolerance or _tolerance(came, expected)
    return torch.allclose(
        came.double(), expected.double(), rtol=tolerance, atol=tolerance, equal_nan=True
    )


def agree(came: Outcome, expected: Outcome, lens: str = "") -> bool:
    """Whether two outcomes are the same, seen through a lens.

    "" value and gradients · "value" the numbers only · "shape" after a reshape ·
    "sign" after a change of sign · "digits" to float32's precision ·
    "sum", "mean" after reducing what came to one number
    """
    if came.value is None or expected.value is None:
        return False
    value, gradients = came.value, came.gradients
    if lens == "shape" and value.numel() == expected.value.numel():
        value = value.reshape(expected.value.shape)
    if lens in ("sum", "mean") and value.is_floating_point():
        # not checked further: the gradient of a sum and of a mean differ by the same factor
        value, gradients = getattr(value, lens)(), expected.gradients
    if lens == "sign":
        value = -value
        gradients = gradients and {name: -g for name, g in gradients.items()}
    tolerance = expected.tolerance or (1e-6 if lens == "digits" else None)
    if not same(value, expected.value, tolerance):
        return False
    if lens == "value":
        return True
    if gradients is None or expected.gradients is None:
        return gradients is expected.gradients
    return all(same(gradients[name], g, tolerance) for name, g in expected.gradients.items())


def difference_at(came: torch.Tensor, expected: torch.Tensor) -> tuple[int, ...]:
    """Index of the first entry that differs; the shapes are equal."""
    tolerance = _tolerance(came, expected)
    close = torch.isclose(
        came.double(), expected.double(), rtol=tolerance, atol=tolerance, equal_nan=True
    )
    return tuple(int(i) for i in (~close).nonzero()[0])


def is_finite(outcome: Outcome) -> bool:
    """Whether value and gradients are free of nan and infinity."""
    tensors = (outcome.value, *(outcome.gradients or {}).values())
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)
