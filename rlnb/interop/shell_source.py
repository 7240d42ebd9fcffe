"""Shell scripts that start a training run, read word by word and never run.

verl is configured by `path.to.word=value` arguments (hydra), TRL's, OpenRLHF's and slime's scripts
by `--word value`. A script is cut into commands as bash cuts it: a comment or an empty line after a
backslash ends the command, and the arguments below it are lost. Variables and arrays are filled in
with what they hold where they are used; a variable that two branches set differently is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlnb.interop.literals import NotRead, arithmetic, scalar

__all__ = ["Command", "Given", "commands", "shell_words"]

ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
OVERRIDE = re.compile(r"[+~]{0,2}([A-Za-z_]\w*(?:\.[A-Za-z_@][\w@/]*)+)=(.*)", re.DOTALL)
VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*|\d+)(:?[-=]([^{}$`]*))?\}|\$([A-Za-z_]\w*|\d)")
ARRAY = re.compile(r"\$\{([A-Za-z_]\w*)\[[@*]\]\}")
SUM = re.compile(r"\$\(\((.*)\)\)", re.DOTALL)
POSITIONAL = re.compile(r"\$\{?(?:[1-9]|OPTARG)\b|\$\{1[#%]")
INNER = re.compile(
    r"\b(?:python3?|torchrun|accelerate|deepspeed|trl|swift|srun|ray)\b.*\s(?:-m|--?\w|\S+\.py)",
    re.DOTALL,
)
BEFORE = {"export", "local", "readonly", "declare", "env", "-x", "-r", "-a", "-gx", "set"}
OPENS, CLOSES = {"if", "case", "for", "while", "until"}, {"fi", "esac", "done"}
NESTED = 50
LONG = 8_000  # characters of one value
UNKNOWN = "unknown"

Token = tuple[str, int]  # a word without its quotes, and its line; "\n" ends a command
Read = tuple[Any, str | None]  # (value, note); the note UNKNOWN means it depends on the outside


@dataclass(frozen=True)
class Given:
    """One argument: `name` as written (dotted for hydra, `_` for `-` in a flag), what it is set
    to, and a note; note UNKNOWN: `value` is the text that could not be read."""

    name: str
    value: Any
    note: str | None = None


@dataclass(frozen=True)
class Command:
    """One command of a script. plain: its words before and between the arguments; flags and
    overrides: `--word value` and `a.b=value`, in order; lost: arguments that bash does not pass,
    because a comment or an empty line stands before them; line: where it begins."""

    plain: tuple[str, ...]
    flags: tuple[Given, ...]
    overrides: tuple[Given, ...]
    line: int
    lost: tuple[str, ...] = ()
    open_ended: bool = False  # "$@": whoever calls the script may add arguments


def shell_words(text: str) -> Iterator[str]:
    """The words of a shell script in order, without their quotes; a newline where a command ends.

    `$...` stays as written, and a dollar in single quotes becomes a NUL, which no script holds.

    >>> list(shell_words("run a.b=1 x='y z' # beta=2"))
    ['run', 'a.b=1', 'x=y z']
    """
    return (word for word, _ in _tokens(text) if word not in ("(", ")"))


def _tokens(text: str) -> Iterator[Token]:
    word, at, end, started, line = [], 0, len(text), False, 1
    while at < end:
        c = text[at]
        if c == "\\":
            if text[at + 1 : at + 2] != "\n":
                word.append(text[at + 1 : at + 2])
                started = True
            step = 2
        elif c in "'\"":
            close = _closing_quote(text, at + 1) if c == '"' else text.find("'", at + 1)
            close = end if close < 0 else close
            inner = text[at + 1 : close]
            word.append(
                inner.replace("\\\n", " ").replace('\\"', '"')
                if c == '"'
                else inner.replace("$", "\0")
            )
            started, step = True, close + 1 - at
        elif c == "$" and text[at + 1 : at + 2] in ("(", "{"):
            close = _closing_bracket(text, at + 1)
            word.append(text[at:close])
            started, step = True, close - at
        elif c == "#" and not started:
            newline = text.find("\n", at)
            step = (end if newline < 0 else newline) - at
        elif c.isspace() or c in ";()|&<>":
            array = c == "(" and started and word[-1][-1:] == "="
            if started:
                yield "".join(word), line
            if c in "()" and (array or c == ")"):
                yield c, line
            if c in "\n;|&" or (c == "(" and not array):
                yield "\n", line
            word, started, step = [], False, 1
        else:
            word.append(c)
            started, step = True, 1
        line += text.count("\n", at, at + step)
        at += step
    if started:
        yield "".join(word), line


@dataclass
class _Shell:
    """What the variables hold at the place that is being read."""

    names: dict[str, Read] = field(default_factory=dict)
    arrays: dict[str, list[str]] = field(default_factory=dict)
    deep: int = 0  # branches and loops around it

    def set(self, name: str, more: str, text: str) -> None:
        if more and name in self.names:
            text = f"{self.names[name][0]} {text}"
        value, note = _value(text, self.names, partly=True)
        if self.deep and POSITIONAL.search(text) and name in self.names:
            self.names[name] = (self.names[name][0], "its default, if the script is given no other")
            return
        old = self.names.get(name)
        if self.deep and old is not None and old[0] != value and str(old[0]) != "":
            value, note = f"{old[0]} or {value}, by a branch", UNKNOWN
        self.names[name] = (value, note)


def commands(text: str) -> list[Command]:
    """The commands of a script that have arguments of the two kinds, in order."""
    return _commands(text, _Shell(), 0)


def _commands(text: str, shell: _Shell, deep: int) -> list[Command]:
    found: list[Command] = []
    statement: list[Token] = []
    array: str | None = None
    last_end = -1  # the line on which the last command with arguments ended
    for word, line in (*_tokens(_without_documents(text)), ("\n", 0)):
        if word == "(" and statement and (name := ASSIGNED.fullmatch(statement[-1][0])):
            array = name[1]
            shell.arrays[array] = shell.arrays.get(array, []) if name[2] else []
            statement.pop()
        elif array is not None:
            if word == ")":
                array = None
            elif word != "\n":
                shell.arrays[array] += _expand(word, shell)
        elif word == "\n" or word == ")":
            if statement:
                made = _statement(statement, shell, deep, found)
                begins = statement[0][0]
                orphan = begins.startswith("--") or OVERRIDE.fullmatch(begins)
                if made and orphan and found and last_end >= 0:
                    names = tuple(g.name for g in (*made.flags, *made.overrides))
                    before = found[-1]
                    found[-1] = Command(
                        before.plain,
                        before.flags,
                        before.overrides,
                        before.line,
                        (*before.lost, *names),
                        before.open_ended,
                    )
                elif made:
                    found.append(made)
                    last_end = line
            statement = []
        else:
            statement.append((word, line))
    return found


def _statement(
    statement: Sequence[Token], shell: _Shell, deep: int, found: list[Command]
) -> Command | None:
    first, line = statement[0]
    if first in ("then", "else", "do", "{", "time", "nohup", "exec", "sudo", "eval", "elif"):
        return _statement(statement[1:], shell, deep, found) if statement[1:] else None
    if first in OPENS or first in CLOSES:
        shell.deep = max(0, shell.deep + (1 if first in OPENS else -1))
        words = [word for word, _ in statement]
        if first == "for" and words[2:3] == ["in"]:
            values = [w for word in words[3:] for w in _expand(word, shell)]
            several = " or ".join(values[:4]), UNKNOWN
            shell.names[words[1]] = (scalar(values[0]), None) if len(values) == 1 else several
        return None
    words, setting = [], True
    for word, _ in statement:
        if setting and (given := ASSIGNED.fullmatch(word)):
            shell.set(given[1], given[2], given[3])
            continue
        setting = setting and word in BEFORE
        words += _expand(word, shell)
    for word in words:
        if deep < 3 and any(c.isspace() for c in word) and INNER.search(word):
            found += _commands(word, shell, deep + 1)
    return _command(words, line, shell.names)


def _expand(word: str, shell: _Shell) -> list[str]:
    """The words that one word becomes: an array its elements, a text of arguments its parts."""
    if whole := ARRAY.fullmatch(word):
        return shell.arrays.get(whole[1], [word])
    if whole := VARIABLE.fullmatch(word):
        name = whole[1] or whole[4]
        held = shell.names.get(name, (None, None))[0]
        if isinstance(held, str) and any(c.isspace() for c in held):
            return [part.strip("'\"") for part in held.split()]
        if held is None and name in shell.arrays:
            return shell.arrays[name]
    if OVERRIDE.match(word) or not any(c.isspace() for c in word) or INNER.search(word):
        return [word]
    parts = word.split()
    # "--beta 0.1 --loss_type grpo" in one pair of quotes
    if all(part.startswith("--") or OVERRIDE.fullmatch(part) for part in parts[:1]):
        return [part.strip("'\"") for part in parts]
    return [word]


def _command(words: Sequence[str], line: int, names: dict[str, Read]) -> Command | None:
    plain: list[str] = []
    flags: list[Given] = []
    overrides: list[Given] = []
    flag: str | None = None
    values: list[str] = []
    plain_py = False  # the script has been named; a later x.py is a value

    def close() -> None:
        nonlocal flag
        if flag is not None:
            read = [_value(v, names) for v in values] or [(True, None)]
            note = next((n for _, n in read if n == UNKNOWN), next((n for _, n in read if n), None))
            several = [v for v, _ in read]
            flags.append(Given(flag, several[0] if len(several) == 1 else several, note))
        flag = None

    for word in words:
        if found := OVERRIDE.fullmatch(word):
            close()
            overrides.append(Given(found[1], *_value(found[2], names)))
        elif word.startswith("--") and len(word) > 2:
            close()
            name, given, value = word[2:].partition("=")
            flag, values = name.replace("-", "_"), [value] if given else []
        elif word == "--":
            close()
        elif ARRAY.fullmatch(word):  # an array that is filled elsewhere: no value of a flag
            close()
            plain.append(word)
        elif (
            flag is not None
            and word != "-m"
            and not (word.endswith(".py") and (values or not plain_py))
        ):
            values.append(word)
        else:
            close()
            plain.append(word)
        plain_py = plain_py or (flag is None and word.endswith(".py"))
    close()
    if not flags and not overrides:
        return None
    open_ended = any(word in ("$@", "$*", "${@}") for word in words)
    return Command(tuple(plain), tuple(flags), tuple(overrides), line, (), open_ended)


def _value(text: str, names: dict[str, Read], partly: bool = False) -> Read:
    """(value, note). The note is UNKNOWN when the value depends on something not in the script.

    Variables are replaced by what they hold at this point, as a shell does it; partly: those that
    are known, and the rest stays as written.
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
    at = 0
    for _ in range(200):
        found = VARIABLE.search(text, at)
        if found is None or len(text) > LONG:
            break
        variable, default = found[1] or found[4], found[3] if found[2] else None
        if variable in names:
            value, inner = names[variable]
        elif default is not None:
            value, inner = scalar(default), f"{found[0]} read as {default}"
        elif partly:
            at = found.end()
            continue
        else:
            return text, UNKNOWN
        if inner == UNKNOWN:
            return (text if partly else value), UNKNOWN
        note = note or inner
        if found.span() == (0, len(text)):
            return value, note
        at = found.start() if not partly else found.start() + len(str(value))
        text = text[: found.start()] + str(value) + text[found.end() :]
    if len(text) > LONG or (not partly and ("$" in text or "`" in text)):
        return text[:LONG], UNKNOWN
    return scalar(text.replace("\0", "$")), note


def _without_documents(text: str) -> str:
    """The script without its here-documents, whose apostrophes are not quotes."""
    if not 0 < text.count("<<") <= 20:
        return text

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    return re.sub(r"<<-?\s*\\?['\"]?(\w+)['\"]?[^\n]*\n.*?\n\s*\1\b", blank, text, flags=re.DOTALL)


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
