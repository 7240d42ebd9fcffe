"""What the checks say: their standing sentences, likely reasons, and how numbers are shown."""

from __future__ import annotations

from typing import Any

import torch

from rlnb.classroom.checking.exercise import Exercise, Probe
from rlnb.classroom.checking.outcome import Outcome, agree, difference_at, is_finite
from rlnb.classroom.checking.verdict import WIDTH, Verdict, shorten

__all__ = ["CUT", "REASONS", "ROUNDED", "SIGN", "SMALL", "describe", "raised", "shape_text"]

CUT = (
    "the value is right and no gradient reaches {names}: it was cut by .item(), .detach(), "
    "no_grad or a new torch.tensor(...)"
)
ROUNDED = (
    "to seven digits: float64 went in and float32 was computed with; fine on bfloat16, here drop "
    ".float() and dtype=torch.float32"
)
SMALL = (
    "to seven digits: a small number stands in it that was not asked for, an eps in a log or under "
    "a fraction; say which case it is for"
)
SIGN = {
    "minimised": "the sign is flipped: the optimizer minimises, so what should grow needs a minus",
    "maximised": "the sign is flipped: this one is maximised, the minus comes with the loss",
    "": "the sign is flipped",
}

# (type or None, part of its message, likely reason); the first that fits is said
REASONS = (
    ("TypeError", "positional argument", "it is called as {signature}"),
    ("TypeError", "unexpected keyword", "it is called as {signature}"),
    ("UnboundLocalError", "", "a name is read before the function gives it a value"),
    ("NameError", "", "a typo, or a cell above that has not run"),
    ("", "requires grad. Use tensor.detach()", "stay in torch: numpy cuts the gradient"),
    ("", "in-place operation", "an input or a saved tensor is edited in place: build a new one"),
    ("", "with a bool tensor", "the mask is boolean: its opposite is ~mask"),
    ("", "inplace operation", "a saved tensor is edited in place: build a new one"),
    ("", "expected condition to be a boolean", "torch.where wants a boolean mask"),
    ("", "Boolean value of Tensor", "`if` wants one number: torch.where chooses per entry"),
    ("", "must match the size", "shapes do not broadcast: (B,) meets (B, T) as x[:, None]"),
    ("", "is invalid for input of size", "count the axes: B rows are B // G groups of G"),
    (
        "",
        "same number of dimensions",
        "gather wants an index with as many axes as its input: i.unsqueeze(-1)",
    ),
    ("", "same dtype", "new tensors take their dtype from the input: torch.zeros_like(x)"),
    ("", "expected scalar type", "new tensors take their dtype from the input: zeros_like(x)"),
    ("IndexError", "out of bounds", "an index runs past the end: what stands after the last?"),
    ("IndexError", "Dimension out of range", "count the axes: see the shapes in the task"),
    ("ZeroDivisionError", "", "a denominator can be 0: equal rewards, or a row without tokens"),
    ("SystemExit", "", "exit() ends the whole page: let the function return, or raise an error"),
    ("AttributeError", "", "check the type: is it a tensor or a Python number?"),
)


def raised(exercise: Exercise, probe: Probe, error: BaseException) -> Verdict:
    """The verdict on an exception: its type, the first line of what it says, a likely reason."""
    name, text = type(error).__name__, (str(error).strip().splitlines() or [""])[0]
    reason = next(
        (why for kind, part, why in REASONS if kind in ("", name) and part.lower() in text.lower()),
        f"see it with your_function(*verdict.probe.values()), probe '{probe.label}'",
    )
    reason = reason.format(signature=exercise.signature)
    room = max(24, WIDTH - len(name) - len(reason) - 4)
    return Verdict("raised", f"{name}: {shorten(text, room)}; {reason}", probe.cast(torch.float64))


def describe(exercise: Exercise, probe: Probe, came: Outcome, expected: Outcome) -> str:
    """`two answers (rewards [1, 0], num_generations 2): 0.5000 came, 1.0000 expected`."""
    where = f"probe '{probe.label}'"
    listed = ", ".join(f"{n} {_show_argument(v)}" for n, v in probe.arguments.items())
    if len(listed) <= 64:
        where = f"{where} ({listed})"
    if not agree(came, expected, "value"):
        text = f"{where}: {_contrast(came.value, expected.value)}"
        return text if is_finite(came) else f"{text}; look for 0/0, inf - inf, 0 * inf"
    if came.gradients is None or expected.gradients is None:
        return f"{where}: value right; no gradient reaches {' and '.join(exercise.differentiate)}"
    name = next(
        n
        for n, g in expected.gradients.items()
        if not agree(Outcome(g, came.gradients[n]), Outcome(g, g), "value")
    )
    return (
        f"{where}: value right; gradient of {name}: "
        f"{_contrast(came.gradients[name], expected.gradients[name])}"
    )


def _contrast(came: torch.Tensor, expected: torch.Tensor) -> str:
    if came.shape != expected.shape:
        return f"shape {shape_text(came)} came, {shape_text(expected)} expected"
    place = ""
    if came.numel() > 4:
        index = difference_at(came, expected)
        place, came, expected = f"at {list(index)}, ", came[index], expected[index]
    for digits in (4, 7, 12):
        left, right = _show(came, digits), _show(expected, digits)
        if left != right:
            break
    return f"{place}{left} came, {right} expected"


def _show(tensor: torch.Tensor, digits: int) -> str:
    if tensor.ndim == 0:
        return f"{float(tensor) + 0.0:.{digits}f}"
    return "[" + ", ".join(_show(entry, digits) for entry in tensor) + "]"


def _show_argument(value: Any) -> str:
    if not torch.is_tensor(value):
        return f"{value:g}"
    if value.ndim == 0:
        return f"{value.item():.4g}"
    return "[" + ", ".join(_show_argument(entry) for entry in value) + "]"


def shape_text(tensor: torch.Tensor) -> str:
    """A shape as Python writes a tuple."""
    return str(tuple(tensor.shape))
