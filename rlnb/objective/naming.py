"""Names of compositions: what a method is called, what stands next to it, what the two change.

The zoo and the annex hold the named methods and nothing else; here they are compared.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, fields

from rlnb.objective.annex import ANNEX
from rlnb.objective.composition import Objective
from rlnb.objective.part import spell
from rlnb.objective.zoo import ZOO

__all__ = [
    "Change",
    "Difference",
    "closest",
    "difference",
    "distance",
    "method",
    "name_of",
    "neighbours",
]

NAMED: dict[str, Objective] = ZOO | ANNEX


@dataclass(frozen=True)
class Change:
    """One line of a changelog."""

    part: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.part}: {self.before} -> {self.after}"


@dataclass(frozen=True)
class Difference:
    """What turns one objective into another; str() is the changelog an interviewer asks for."""

    changes: tuple[Change, ...]

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __str__(self) -> str:
        return "\n".join(str(c) for c in self.changes) or "no difference"

    __repr__ = __str__


def difference(a: Objective, b: Objective) -> Difference:
    """The parts in which two objectives differ, conventions included.

    >>> from rlnb.objective import ZOO
    >>> difference(ZOO["grpo"], ZOO["dr_grpo"])
    advantage: group_zscore() -> group_center()
    weights: sequence_mean -> constant_length()
    terms: k3(0.04) -> none
    """
    return Difference(
        tuple(
            Change(f.name, spell(getattr(a, f.name)), spell(getattr(b, f.name)))
            for f in fields(a)
            if getattr(a, f.name) != getattr(b, f.name)
        )
    )


def method(name: str) -> Objective:
    """ZOO[name] or ANNEX[name]; for an unknown name a ValueError that suggests the nearest."""
    if name in NAMED:
        return NAMED[name]
    near = difflib.get_close_matches(name.lower().replace("-", "_").replace(".", ""), NAMED, 1, 0.4)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"there is no method {name!r}.{guess} The zoo has {', '.join(ZOO)}; "
        f"the annex {', '.join(ANNEX)}."
    )


def name_of(objective: Objective) -> str | None:
    """The method's name, conventions ignored; None for a composition that no one named.

    >>> from rlnb.objective import group_zscore
    >>> name_of(ZOO["grpo"].replace(advantage=group_zscore("bessel", eps=1e-4)))
    'grpo'
    """
    wanted = objective.canonical()
    return next((name for name, known in NAMED.items() if known.canonical() == wanted), None)


def neighbours(objective: Objective, n: int = 3) -> list[tuple[str, Difference]]:
    """The n named methods that take the least to change, nearest first, and what differs.

    Conventions are ignored. Another number in a part counts 1, and so does a term more or
    less; a part of another kind 2, or 3 to 5 where the kind makes the family (baseline, ratio,
    surrogate, weights).
    """
    wanted = objective.canonical()
    gaps = {name: difference(known.canonical(), wanted) for name, known in NAMED.items()}
    near = sorted(gaps, key=lambda name: _distance(name, gaps[name], wanted))
    return [(name, gaps[name]) for name in near[:n]]


def distance(name: str, objective: Objective) -> int:
    """What it takes to change the named method into the objective, in the prices of `neighbours`.

    >>> distance("grpo", ZOO["grpo"]), distance("grpo", ZOO["dr_grpo"])
    (0, 7)
    """
    wanted = objective.canonical()
    return _distance(name, difference(NAMED[name].canonical(), wanted), wanted)


def _distance(name: str, gap: Difference, wanted: Objective) -> int:
    return sum(
        _price(
            change.part,
            _kinds(getattr(NAMED[name], change.part)),
            _kinds(getattr(wanted, change.part)),
        )
        for change in gap
    )


def closest(objective: Objective) -> tuple[str, Difference]:
    """The nearest of the `neighbours`: a method's own name where it has one."""
    return neighbours(objective, 1)[0]


def _price(part: str, before: list[str], after: list[str]) -> int:
    if before == after:
        return 1
    if part == "advantage":
        groups = {"group_zscore", "group_center", "batch_zscore"}
        return 3 if {*before, *after} <= groups else 5
    return {"ratio": 5, "weights": 3, "surrogate": 3, "terms": 1}.get(part, 2)


def _kinds(part: object) -> list[str]:
    return [type(p).__name__ for p in (part if isinstance(part, tuple) else (part,))]
