"""Two configurations, and what differs: the words, the parts of the loss, the traps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlnb.interop.explanation import DEFAULTS, ConfigReport, explain_config
from rlnb.interop.report_text import row, wrapped
from rlnb.objective.naming import Difference, difference

__all__ = ["Comparison", "compare_configs", "compare_reports"]


@dataclass(frozen=True)
class Comparison:
    """What changes from one configuration to another. str() is a page of at most 76 columns.

    words: (word, in the first, in the second), a word that is not set being its default, for the
    words that touch the loss; others: how many words differ that do not; parts: what changes in
    the objective, None where one of the two has none; new and gone: traps of one of the two only.
    """

    first: ConfigReport
    second: ConfigReport
    words: tuple[tuple[str, str, str], ...]
    others: tuple[str, ...]
    parts: Difference | None
    new: tuple[tuple[str, str], ...]
    gone: tuple[str, ...]

    def __str__(self) -> str:
        one, two = self.first, self.second
        lines = row("first", f"{one.version}: {one.where}; {_called(one)}")
        lines += row("second", f"{two.version}: {two.where}; {_called(two)}")
        lines += row("words", [f"{w}: {a} -> {b}" for w, a, b in self.words] or "none differ")
        if self.parts is None:
            which = "first" if one.objective is None else "second"
            lines += row("loss", f"not compared: no composition says the {which}")
        else:
            lines += row("loss", [str(c) for c in self.parts] or "the same")
        if self.others:
            shown = ", ".join(self.others[:6])
            lines += row("elsewhere", f"{len(self.others)} words that no loss reads: {shown}")
        lines += row("gone", list(self.gone))
        for place, (name, sentence) in enumerate(self.new):
            lines += wrapped(
                f"{name}: {sentence}", "new         " if not place else " " * 12, " " * 12
            )
        return "\n".join(lines)

    __repr__ = __str__


def compare_configs(a: Any, b: Any) -> Comparison:
    """What differs between two configurations, each as `explain_config` takes it.

    >>> print(compare_configs({"loss_type": "grpo"}, {"loss_type": "grpo", "beta": 0.04}).parts)
    terms: none -> k3(0.04, corrected=True)
    """
    return compare_reports(explain_config(a), explain_config(b))


def compare_reports(one: ConfigReport, two: ConfigReport) -> Comparison:
    """What differs between two reports."""
    loss, others = [], []
    touching = {**DEFAULTS[one.library], **DEFAULTS[two.library]}
    unread_one, unread_two = dict(one.not_read), dict(two.not_read)
    for word in dict.fromkeys((*one.words, *two.words, *unread_one, *unread_two)):
        a, b = _said(word, one, unread_one), _said(word, two, unread_two)
        if a != b:
            if word in touching:
                loss.append((word, a, b))
            else:
                others.append(word)
    parts = None
    if one.objective is not None and two.objective is not None:
        parts = difference(one.objective, two.objective)
    before, after = dict(one.traps), dict(two.traps)
    return Comparison(
        one,
        two,
        tuple(loss),
        tuple(others),
        parts,
        tuple((n, s) for n, s in two.traps if n not in before),
        tuple(n for n, _ in one.traps if n not in after),
    )


def _said(word: str, report: ConfigReport, unread: dict[str, str]) -> str:
    if word in report.words:
        return repr(report.words[word])
    if word in unread:
        return f"{unread[word]} (not read)"
    defaults = DEFAULTS[report.library]
    return f"{defaults[word]!r} (default)" if word in defaults else "not set"


def _called(report: ConfigReport) -> str:
    if report.name:
        return report.name
    return f"no name, nearest {report.nearest}" if report.nearest else "not named"
