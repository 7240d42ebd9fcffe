"""The named methods of the zoo and the annex, as the comparisons take them.

A method is compared as itself: only the numbers that papers leave open (its parts' conventions)
are those that the library fills in.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from typing import Any

from rlnb.interop import from_trl, from_verl, to_trl, to_verl
from rlnb.objective import ANNEX, ZOO, Objective, whiten

NAMED = {**ZOO, **ANNEX}
# beyond conventions, as `.differences` of the words say: (library, name) -> other parts
CHANGED = {("verl", "ppo"): {"credit": whiten()}}


@cache
def said(library: str) -> dict[str, dict[str, Any]]:
    """Name -> the library's words, for the methods that it has words for."""
    words = {}
    for name, method in NAMED.items():
        try:
            words[name] = dict({"trl": to_trl, "verl": to_verl}[library](method))
        except ValueError:
            continue
    return words


def aligned(library: str, name: str) -> Objective:
    """The method with the library's conventions, part by part; all else is the method's own."""
    words = said(library)[name]
    method = NAMED[name].replace(**CHANGED.get((library, name), {}))
    built = {"trl": from_trl, "verl": from_verl}[library](**words).objective
    return method.replace(
        **{
            f.name: _like(getattr(method, f.name), getattr(built, f.name))
            for f in fields(Objective)
        }
    )


def _like(part: Any, other: Any) -> Any:
    if isinstance(part, tuple):
        pairs = zip(part, other, strict=True) if len(part) == len(other) else ()
        return tuple(_like(a, b) for a, b in pairs) or part
    if type(part) is not type(other):
        return part
    return replace(part, **{name: getattr(other, name) for name in part.conventions})
