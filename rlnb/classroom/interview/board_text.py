"""What a derivation board is made of: its lines, and the values they are judged on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

__all__ = ["BoardText", "Line", "Numbers"]


@dataclass(frozen=True)
class Line:
    """One line: its name, what it is, what it may use, a right one, and slips with a sentence.

    number: the line is a number without gradient, such as an advantage.
    """

    name: str
    says: str
    uses: tuple[str, ...]
    right: str
    slips: tuple[tuple[str, str], ...] = ()
    number: bool = False


@dataclass(frozen=True)
class Numbers:
    """The values behind the names of a board: given, right, what carries gradient, the mask."""

    given: Mapping[str, Any]
    right: Mapping[str, torch.Tensor]
    leaves: tuple[torch.Tensor, ...]
    on: torch.Tensor | None = None


@dataclass(frozen=True)
class BoardText:
    """A board: its lines, what its symbols are, and the cases it is judged on.

    One case is not enough: a line may be wrong and have the right value there.
    """

    lines: tuple[Line, ...]
    symbols: str
    cases: Callable[[], tuple[Numbers, ...]] = field(repr=False)
