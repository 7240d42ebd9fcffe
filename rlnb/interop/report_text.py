"""A report as a page of at most 76 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from rlnb.interop.traps import severity
from rlnb.objective.annex import ANNEX
from rlnb.objective.zoo import ZOO

__all__ = ["page", "row", "wrapped"]

WIDTH = 76


def page(report: Any, defaults: Mapping[str, Any]) -> str:
    """The text of a ConfigReport. defaults: the library's words that touch the loss."""
    lines = row("read as", f"{report.version}: {report.where}")
    objective = repr(report.objective) if report.objective else report.refused
    if report.objective is not None and report.doubts:
        objective = f"with {report.version}'s defaults for all that was not read: {objective}"
    lines += row("objective", objective)
    lines += _method(report)
    lines += row("beside", list(report.beside))
    if report.objective is not None:
        lines += row("conventions", [str(c) for c in report.conventions])
    lines += row(
        "not read", [f"{word} = {text}: taken as not set" for word, text in report.not_read]
    )
    lines += row("assumed", list(report.notes))
    lines += row("no effect", _no_effect(report, defaults))
    lines += row(
        "unknown",
        report.unknown
        and f"{_some(report.unknown)}: no words of "
        f"{report.version} (another version's, or the script's own)",
    )
    if report.traps:
        lines += ["", f"{len(report.traps)} to know before you run it:"]
    for place, (name, sentence) in enumerate(report.traps, 1):
        mark = "ERROR: " if severity(name) == "error" else ""
        lines += ["", *wrapped(mark + sentence, f"{place:>2}. ", "    ")]
    return "\n".join(lines)


def _method(report: Any) -> list[str]:
    word = f" ({report.called})" if report.called else ""
    if report.doubts:
        return row("method", [f"not named{word}, because", *(f"- {d}" for d in report.doubts)])
    if report.objective is None:
        return []
    same = " (here gspo: all tokens of an answer share one advantage)"
    nearest = f"{report.nearest}{same * (report.nearest == 'gspo_token')}"
    if report.name:
        return row("method", nearest)
    lines = row(
        "method", f"no name{word}; nearest of {len(ZOO) + len(ANNEX)} is {nearest}, changed so:"
    )
    return lines + row("", [str(c) for c in report.difference])


def _no_effect(report: Any, defaults: Mapping[str, Any]) -> str:
    expected = [word for word in report.ignored if word in defaults]
    rest = len(report.ignored) - len(expected)
    text = f"{', '.join(expected)}: not read by this loss" if expected else ""
    more = f"{rest} word{'s' * (rest != 1)} that no loss reads (batch sizes, logging and so on)"
    dotted = [w for w in report.words if "." in w] if report.library == "verl" else []
    outside = f"{len(dotted)} outside the loss: {_some(tuple(dotted), 4)}" if dotted else ""
    return "; ".join(t for t in (text, more * (rest > 0), outside) if t)


def _some(words: tuple[str, ...], most: int = 8) -> str:
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def row(title: str, text: Any) -> list[str]:
    """`title      text`, wrapped; several texts one below the other; nothing for none."""
    if not text:
        return []
    texts = [text] if isinstance(text, str) else text
    lines: list[str] = []
    for place, one in enumerate(texts):
        head = f"{title:<12}" if place == 0 else " " * 12
        lines += wrapped(one, head, " " * 12)
    return lines


def wrapped(text: str, first: str, rest: str) -> list[str]:
    """Lines of at most 76 columns; a longer word is cut."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
