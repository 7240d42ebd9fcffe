"""What a check says, in one line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["WIDTH", "Verdict", "shorten"]

WIDTH = 160


@dataclass(frozen=True)
class Verdict:
    """What a check says of a function.

    kind      right | convention | known mistake | wrong | raised | not attempted
    message   one line
    probe     the arguments that show it, or None: `my_function(*verdict.probe.values())`

    True when passed: right, or right under another convention.
    """

    kind: str
    message: str
    probe: dict[str, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def passed(self) -> bool:
        return self.kind in ("right", "convention")

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return f"{self.kind}: {self.message}"


def shorten(text: str, width: int = WIDTH) -> str:
    """The text, cut to `width` characters with three dots at the end where it is longer."""
    return text if len(text) <= width else text[: width - 3].rstrip() + "..."
