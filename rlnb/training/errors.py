"""The one exception of this package that means: your input, not our code."""

from __future__ import annotations

__all__ = ["BadInput"]


class BadInput(ValueError):
    """What came, what was expected, and what to do, in one sentence. The command line prints it."""
