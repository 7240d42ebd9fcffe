"""Shell scripts that start a training run, read as words and never run.

verl is configured by `path.to.word=value` arguments (hydra), TRL's scripts by `--word value`.
Such arguments are collected wherever they stand: on the command, in an array, in a quoted variable.
Branches are not followed: a script that sets a word in an `if` is read as if both sides ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rlnb.interop.literals import NotRead, arithmetic, scalar

__all__ = ["read_flags", "read_overrides", "shell_words"]

ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)=(.*)", re.DOTALL)
VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(:?-([^{}$`]*))?\}|\$([A-Za-z_]\w*)")
SUM = re.compile(r"\$\(\((.*)\)\)", re.DOTALL)
NESTED = 50
LONG = 2000  # characters of one value
UNKNOWN = "unknown"

Words = dict[str, Any]
Pairs = list[tuple[str, str]]
Names = dict[str, tuple[Any, str | None]]  # shell variable -> (value, note)


def shell_words(text: str) -> Iterator[str]:
    """The words of a shell script in order, without their quotes; a newline where a command ends.

    `$...` stays as written, and a dollar in single quotes becomes a NUL, which no script holds.

    >>> list(shell_words("run a.b=1 x='y z' # beta=2"))
    ['run', 'a.b=1', 'x=y z']
    """
    word, at, end, started = [], 0, len(text), False
    while at < end:
        c = text[at]
        if c == "\\":
            if text[at + 1 : at + 2] != "\n":
                word.append(text[at + 1 : at + 2])
                started = True
            at += 2
        elif c in "'\"":
            close = _closing_quote(text, at + 1) if c == '"' else text.find("'", at + 1)
            close = end if close < 0 else close
            inner = text[at + 1 : close]
            word.append(
                inner.replace("\\\n", " ").replace('\\"', '"')
                if c == '"'
                else inner.replace("$", "\0")
            )
            started, at = True, close + 1
        elif c == "$" and text[at + 1 : at + 2] in ("(", "{"):
            close = _closing_bracket(text, at + 1)
            word.append(text[at:close])
            started, at = True, close
        elif c == "#" and not started:
            newline = text.find("\n", at)
            at = end if newline < 0 else newline
        elif c.isspace() or c in ";()|&<>":
            if started:
                yield "".join(word)
            if c in "\n;|&":
                yield "\n"
            word, started, at = [], False, at + 1
        else:
            word.append(c)
            started, at = True, at + 1
    if started:
        yield "".join(word)


def read_overrides(text: str) -> tuple[Words, Pairs, list[str]]:
    """(dotted path -> value, not read, notes) of every hydra argument in a shell script."""
    words: Words = {}
    skipped: Pairs = []
    notes: list[str] = []
    names: Names = {}
    for word in shell_words(_without_documents(text)):
        # ACTOR="actor_rollout_ref.actor.x=1 ..." holds arguments inside its text
        inside = word.split() if any(c.isspace() for c in word) else [word]
        for part in [word] if OVERRIDE.fullmatch(word) else inside:
            part = part if part == word else part.partition('="')[2] or part
            if found := OVERRIDE.fullmatch(part):
                _keep(found[1], *_value(found[2], names), words, skipped, notes)
        if found := ASSIGNED.fullmatch(word):
            names[found[1]] = _value(found[2], names)
    return words, skipped, notes


def read_flags(text: str) -> tuple[Words, Pairs, list[str]]:
    """(word -> value, not read, notes) of every `--word value` in a shell script.

    A flag without a value is True, and several values are a list, as TRL's parser has it.
    """
    words: Words = {}
    skipped: Pairs = []
    notes: list[str] = []
    names: Names = {}
    flag, values = None, []
    for word in (*shell_words(_without_documents(text)), "\n"):
        starts = word.startswith("--") and len(word) > 2
        if flag is not None and (starts or word == "\n"):
            read = [_value(v, names) for v in values] or [(True, None)]
            note = next((n for _, n in read if n == UNKNOWN), next((n for _, n in read if n), None))
            plain = [v for v, _ in read]
            _keep(flag, plain[0] if len(plain) == 1 else plain, note, words, skipped, notes)
            flag = None
        if starts:
            name, given, value = word[2:].partition("=")
            flag, values = name.replace("-", "_"), [value] if given else []
        elif flag is not None:
            values.append(word)
        elif found := ASSIGNED.fullmatch(word):
            names[found[1]] = _value(found[2], names)
    return words, skipped, notes


def _keep(
    name: str, value: Any, note: str | None, words: Words, skipped: Pairs, notes: list[str]
) -> None:
    if note == UNKNOWN:
        words.pop(name, None)  # the later argument counts, and it cannot be read
        skipped.append((name, str(value)))
        return
    if name in words and words[name] != value:
        notes.append(f"{name} is set twice, {words[name]!r} and then {value!r}; the last counts")
    if note:
        notes.append(f"{name}: {note}")
    words[name] = value


def _value(text: str, names: Names) -> tuple[Any, str | None]:
    """(value, note). The note is UNKNOWN when the value depends on something not in the script.

    Variables are replaced by what they hold at this point, as a shell does it.
    """
    text = text.strip().strip("'\"")
    note = None
    if found := SUM.fullmatch(text):
        inner = found[1].replace("{", "").replace("}", "")
        mentioned = set(re.findall(r"[A-Za-z_]\w*", inner))
        try:
            return arithmetic(inner, {n: names[n][0] for n in mentioned if n in names}), None
        except NotRead:
            return text, UNKNOWN
    for _ in range(20):
        found = VARIABLE.search(text)
        if found is None or len(text) > LONG:
            break
        variable, default = found[1] or found[4], found[3] if found[2] else None
        if variable in names:
            value, inner = names[variable]
        elif default is not None:
            value, inner = scalar(default), f"{found[0]} read as {default}"
        else:
            return text, UNKNOWN
        if inner == UNKNOWN:
            return text, UNKNOWN
        note = note or inner
        if found.span() == (0, len(text)):
            return value, note
        text = text[: found.start()] + str(value) + text[found.end() :]
    if "$" in text or "`" in text or len(text) > LONG:
        return text[:LONG], UNKNOWN
    return scalar(text.replace("\0", "$")), note


def _without_documents(text: str) -> str:
    """The script without its here-documents, whose apostrophes are not quotes."""
    if not 0 < text.count("<<") <= 20:
        return text
    return re.sub(r"<<-?\s*['\"]?(\w+)['\"]?\n.*?\n\s*\1\b", "", text, flags=re.DOTALL)


def _closing_quote(text: str, at: int) -> int:
    while at < len(text) and text[at] != '"':
        if text[at] == "\\":
            at += 1
        elif text[at] == "$" and text[at + 1 : at + 2] == "(":
            at = _closing_bracket(text, at + 1) - 1
        at += 1
    return min(at, len(text))


def _closing_bracket(text: str, at: int) -> int:
    """One past the bracket that closes the one at `at`, or the end of the text."""
    deep, start = 0, at
    for at in range(start, len(text)):
        deep += (text[at] in "({") - (text[at] in ")}")
        if deep == 0 or deep > NESTED:
            return at + 1
    return len(text)
