"""What a check says, in one line; a second one when prints were hidden."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlnb.classroom import progress

__all__ = ["WIDTH", "Verdict", "remembered", "shorten"]

WIDTH = 160


@dataclass(frozen=True)
class Verdict:
    """What a check says of a function.

    kind      right | convention | known mistake | wrong | raised | not attempted
    message   one line
    probe     the arguments that show it, or None: `my_function(*verdict.probe.values())`
    hidden_lines   how many lines were printed while it was judged, over all probes

    True when passed: right, or right under another convention.
    """

    kind: str
    message: str
    probe: dict[str, Any] | None = field(default=None, repr=False, compare=False)
    hidden_lines: int = field(default=0, repr=False, compare=False)

    @property
    def passed(self) -> bool:
        return self.kind in ("right", "convention")

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        said = f"{self.kind}: {self.message}"
        if not self.hidden_lines:
            return said
        lines = "1 line" if self.hidden_lines == 1 else f"{self.hidden_lines:,} lines"
        return f"{said}\n({lines} hidden: all that was printed while the probes ran)"


def remembered(name: str, verdict: Verdict) -> Verdict:
    """The same verdict; that the check `name` was passed is kept in the learner's file."""
    if verdict.passed:
        progress.record("check", name, passed=True)
    return verdict


def shorten(text: str, width: int = WIDTH) -> str:
    """The text, cut to `width` characters with three dots at the end where it is longer."""
    return text if len(text) <= width else text[: width - 3].rstrip() + "..."
