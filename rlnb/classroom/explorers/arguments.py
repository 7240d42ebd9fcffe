"""What every `compute` does with its arguments: refuse a bad one in a sentence, echo them all.

    @echoing
    @checked(size=between(2, 16), eps=at_least(0), pattern=one_of(PATTERNS))
    def compute(size=8, eps=1e-6, pattern="one"): ...

A rule takes a value and says what was expected of it, or "" when the value will do.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["above", "at_least", "between", "checked", "echoing", "inside", "one_of"]

Rule = Callable[[Any], str]


def between(low: float, high: float, unit: str = "") -> Rule:
    """From `low` to `high`, both included; nan is outside.

    >>> between(1, 512, "tokens")(0), between(0, 1)(1.0)
    ('from 1 to 512 tokens', '')
    """
    said = f"from {low:g} to {high:g} {unit}".rstrip()
    return lambda value: "" if low <= value <= high else said


def inside(low: float, high: float) -> Rule:
    """Above `low` and below `high`.

    >>> inside(0, 1)(1)
    'above 0 and below 1'
    """
    return lambda value: "" if low < value < high else f"above {low:g} and below {high:g}"


def at_least(low: float) -> Rule:
    """`low` or more.

    >>> at_least(0)(-1), at_least(0)(0)
    ('at least 0', '')
    """
    return lambda value: "" if value >= low else f"at least {low:g}"


def above(low: float) -> Rule:
    """More than `low`.

    >>> above(0)(0)
    'above 0'
    """
    return lambda value: "" if value > low else f"above {low:g}"


def one_of(known: Iterable[Any]) -> Rule:
    """A member of a list, or a key of a mapping.

    >>> one_of({"fresh": 1, "stale": 0})("new")
    "one of ['fresh', 'stale']"
    """
    names = list(known)
    return lambda value: "" if value in names else f"one of {names}"


def checked(**rules: Rule) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Each named argument follows its rule, or ValueError names it, what came, what was expected.

    Rules are asked in the order in which they are written. A name that the function does not take
    is a TypeError at once.

    >>> @checked(size=between(2, 16))
    ... def compute(size=8):
    ...     return {"size": size}
    >>> compute(1)
    Traceback (most recent call last):
    ValueError: size must be from 2 to 16, got 1.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        for name in rules:
            if name not in signature.parameters:
                raise TypeError(f"{function.__name__} takes no {name!r}, so no rule can be for it.")

        @functools.wraps(function)
        def wrapper(*positional: Any, **named: Any) -> Any:
            given = _arguments(signature, positional, named)
            for name, rule in rules.items():
                if expected := rule(given[name]):
                    raise ValueError(f"{name} must be {expected}, got {given[name]!r}.")
            return function(*positional, **named)

        return wrapper

    return decorate


def echoing(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The result, with the arguments beside it under their names; the result's own entries win.

    >>> @echoing
    ... def compute(size=8, gap=0.1):
    ...     return {"gap": round(gap), "double": 2 * size}
    >>> compute()
    {'size': 8, 'gap': 0, 'double': 16}
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapper(*positional: Any, **named: Any) -> dict[str, Any]:
        return _arguments(signature, positional, named) | function(*positional, **named)

    return wrapper


def _arguments(signature: inspect.Signature, positional: tuple, named: dict) -> dict[str, Any]:
    """Every argument by name, defaults included; TypeError where the call does not fit."""
    bound = signature.bind(*positional, **named)
    bound.apply_defaults()
    return dict(bound.arguments)
