"""The fix of a trap as a unified diff, where the file can be edited safely.

Safely means: the sentence of the trap says what to write, the word stands in the file exactly once
with a literal value, or can be put in as a keyword of the one configuration call; and the file,
read again, no longer has the trap, has no other trap instead, and differs in these words alone.
"""

from __future__ import annotations

import difflib
import re

from rlnb.interop.explanation import ConfigReport, explain_all
from rlnb.interop.traps import severity

__all__ = ["fix_of", "patch"]

ADVICE = re.compile(r"\b[Ww]rite\s+(.*?)(?:\.(?:\s|$)|;|:|\bfor\b|\bor\b|$)")
PAIR = re.compile(r"(?<![\w.])([a-z][\w.]*)=('[^']*'|[-\w.]+)(?=[\s,;)]|$)")
CALL = re.compile(r"\b(?:GRPO|RLOO|GMPO)Config\s*\(")


def fix_of(sentence: str) -> dict[str, str]:
    """The words, with their values as written, that a trap's sentence says to write.

    >>> fix_of("... Write epsilon=3e-4, epsilon_high=4e-4.")
    {'epsilon': '3e-4', 'epsilon_high': '4e-4'}
    """
    found = ADVICE.search(sentence)
    if found is None:
        return {}
    # "Write loss_type='grpo' or 'dr_grpo'": the first is taken
    return {word: value.rstrip(".") for word, value in PAIR.findall(found[1])}


def patch(text: str, name: str, only: set[str] | None = None) -> tuple[str, list[str], list[str]]:
    """(unified diff, traps that it mends, traps that it leaves) for a file's text.

    only: the names of the traps to mend; None: warnings and errors, since a note is a choice that
    may be meant. The diff is "" where nothing can be edited.
    """
    current = text
    mended: list[str] = []
    reports = explain_all(text, name=name)
    wanted = [n for r in reports for n, _ in r.traps if _asked(n, only)]
    if len(reports) == 1:  # which of several configurations to edit is not to be guessed
        for trap in dict.fromkeys(wanted):
            trial = _mended(current, name, trap)
            if trial is not None:
                current, mended = trial, [*mended, trap]
    left = [n for n in dict.fromkeys(wanted) if n not in mended]
    diff = "".join(
        difflib.unified_diff(
            text.splitlines(keepends=True),
            current.splitlines(keepends=True),
            f"a/{name}",
            f"b/{name}",
        )
    )
    return diff, mended, left


def _asked(trap: str, only: set[str] | None) -> bool:
    return severity(trap) != "note" if only is None else trap in only


def _mended(text: str, name: str, trap: str) -> str | None:
    before = explain_all(text, name=name)[0]
    sentence = dict(before.traps).get(trap)
    fix = fix_of(sentence) if sentence else {}
    if not fix:
        return None
    edited: str | None = text
    for word, value in fix.items():
        if value == "None" and word not in before.words:
            continue  # not set, and to be left so
        edited = _set(edited, word.rpartition(".")[2], word, value, before) if edited else None
    if not edited or edited == text:
        return None
    try:
        after = explain_all(edited, name=name)
    except ValueError:
        return None
    if len(after) != 1:
        return None
    names, old = {n for n, _ in after[0].traps}, {n for n, _ in before.traps}
    leaves = {w.rpartition(".")[2] for w in fix}
    changed = {
        w.rpartition(".")[2]
        for w in {*before.words, *after[0].words}
        if before.words.get(w) != after[0].words.get(w)
    }
    sound = trap not in names and names <= old and changed <= leaves
    return edited if sound and after[0].not_read == before.not_read else None


def _set(text: str, leaf: str, word: str, value: str, report: ConfigReport) -> str | None:
    """The text with `leaf` set to `value`: replaced where it stands once, else put in."""
    place = re.compile(
        rf"(?P<head>(?<![\w]){leaf}(?P<sep>\s*[=:]\s*|\s+)(?P<quote>[\"']?))"
        rf"(?P<value>[-+\w.]+)(?P<tail>(?P=quote))(?=[\s,)\\}}\]#]|$)",
        re.MULTILINE,
    )
    code = [m for m in place.finditer(text) if not _commented(text, m.start())]
    bare = value.strip("'")
    if len(code) == 1 and leaf in {w.rpartition(".")[2] for w in report.words}:
        found = code[0]
        python = "GRPOConfig" in text or "RLOOConfig" in text or "GMPOConfig" in text
        new = value if python and not found["quote"] else bare
        return text[: found.start("value")] + new + text[found.end("value") :]
    if code:
        return None
    return _inserted(text, leaf, word, value, bare)


def _inserted(text: str, leaf: str, word: str, value: str, bare: str) -> str | None:
    """A new word: a keyword of the one call, a top-level line of YAML, an argument of the one
    command that has the section already."""
    calls = list(CALL.finditer(text))
    if len(calls) == 1:
        at = calls[0].end()
        following = re.match(r"[ \t]*\n([ \t]*)", text[at:])
        if following:
            return f"{text[:at]}\n{following[1]}{leaf}={value},{text[at:]}"
        lead = "" if text[at : at + 1] == ")" else ", "
        return f"{text[:at]}{leaf}={value}{lead}{text[at:]}"
    if calls:
        return None
    section = re.compile(rf"^([ \t]*)({re.escape(word.rpartition('.')[0])}\.\w+=[^\n]*\\)$", re.M)
    if "." in word and (found := section.search(text)):
        return f"{text[: found.end()]}\n{found[1]}{word}={bare} \\{text[found.end() :]}"
    top = re.search(r"^(?:loss_type|num_generations|learning_rate|beta):[^\n]*$", text, re.M)
    if "." not in word and top and "actor_rollout_ref" not in text:
        return f"{text[: top.end()]}\n{leaf}: {bare}{text[top.end() :]}"
    return None


def _commented(text: str, at: int) -> bool:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return "#" in line
