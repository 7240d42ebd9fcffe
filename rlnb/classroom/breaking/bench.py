"""A function with its bugs: each is a line of it put wrongly, and was somebody's."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

__all__ = ["Bench", "Bug", "bench"]


@dataclass(frozen=True)
class Bug:
    """what      one sentence: what it does instead
    seen      where it was found, or who makes it
    old, new  texts; `old` occurs exactly once in the function's source
    """

    what: str
    seen: str
    old: str
    new: str


@dataclass(frozen=True, eq=False)
class Bench:
    """A right function and its bugs."""

    function: Callable[..., Any]
    bugs: tuple[Bug, ...]

    @property
    def name(self) -> str:
        return self.function.__name__

    @cached_property
    def source(self) -> str:
        return textwrap.dedent(inspect.getsource(self.function)).rstrip()

    def source_with(self, bug: Bug) -> str:
        """The source with the bug in it. ValueError unless `old` occurs exactly once."""
        if (count := self.source.count(bug.old)) != 1:
            raise ValueError(f"{self.name}: {bug.old!r} occurs {count} times, expected once.")
        return self.source.replace(bug.old, bug.new)

    def broken(self, bug: Bug) -> Callable[..., Any]:
        """The function with the bug in it."""
        space = dict(self.function.__globals__)
        exec(compile(self.source_with(bug), f"<{self.name}, broken>", "exec"), space)
        return space[self.name]


def bench(function: Callable[..., Any], *bugs: tuple[str, str, str, str]) -> Bench:
    """A bench from rows (what, seen, old, new)."""
    return Bench(function, tuple(Bug(*row) for row in bugs))
