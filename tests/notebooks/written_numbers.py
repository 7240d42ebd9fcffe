"""Numbers as people write them, and whether a value computed elsewhere covers one.

A sentence says .72 and a cell prints 0.7244: the cell covers the sentence, because 0.7244 rounds to
.72 at the sentence's own number of decimals. Fractions (3/16), percentages (50 %), powers (10^470)
and thousands (4,097) are read as the values that they are. A number without a sign is a size and is
covered by a value of either sign; -0.8 and +0.8 are covered only by their own.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, replace

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:_\d{3})+|\d+\.\d+|\.\d+|\d+)"
_NUMBER = re.compile(
    # A digit glued to a letter belongs to a name: k3, H100, float32, o_1.
    r"(?<![\w.])"
    r"(?P<sign>(?<![\w)\]}.])[+-](?=[\d.]))?"
    rf"(?P<body>(?:10(?:\^|\*\*)\(?(?P<power>-?{_DIGITS})\)?)"
    # Under a root the two are numbers of a formula: √15/16 is not 0.94.
    r"|(?:(?<!√)(?P<above>\d+)\s?/\s?(?P<below>\d+)(?![\d.]))"
    rf"|(?:(?P<plain>{_DIGITS})(?P<exponent>e[+-]?\d+(?!\w))?))"
    r"(?P<percent>\s?%)?"
)
_FORMULA = re.compile(r"[+-]?\d+\s?/\s?(?=[^\W\d_]|[(√|])")  # -1/G, 1/(G-1), 1/√15: not a value
_AS_ASCII = str.maketrans({"−": "-", "–": "-", "‑": "-", "\u00a0": " ", "\u202f": " "})
_FORMAT = re.compile(r":[<>^+\- ]*\d*,?(?:\.\d+)?[a-z%]?\}")
_SLACK = 1e-9  # relative: 0.125 covers both 0.12 and 0.13, whatever its last bit


@dataclass(frozen=True)
class Written:
    """A number of a text; `step` is one unit of its last digit, 0 if exact (3/16, 1e-12)."""

    text: str
    value: float
    step: float
    signed: bool = False
    percent: bool = False

    def rounds_to(self, said: Written) -> bool:
        """Does this number, rounded at the last digit of `said`, give `said`?"""
        mine, theirs = self.value, said.value
        if not said.signed:
            mine, theirs = abs(mine), abs(theirs)
        half = said.step / 2
        if said.step == 1 and abs(theirs) < 10:
            half = 0.0  # a lone digit counts something: 1.6 is no 2, and 0.98 no 1
        elif said.step == 0 and 0 < self.step <= 0.01:
            half = self.step / 2  # 0.0833 covers 1/12
        return abs(mine - theirs) <= half + _SLACK * abs(theirs)

    def covers(self, said: Written) -> bool:
        """`rounds_to`, where 0.24 also covers 24 %."""
        if said.percent and not self.percent:
            share = replace(said, value=said.value / 100, step=said.step / 100)
            return self.rounds_to(said) or self.rounds_to(share)
        return self.rounds_to(said)


def numbers_in(text: str) -> list[Written]:
    """The numbers of a text, left to right. The 1 of a formula such as 1/(G-1) is none."""
    return [number for number, _ in _read(_FORMULA.sub(" ", text.translate(_AS_ASCII)))]


def values_in(evidence: str) -> list[Written]:
    """What a cell covers a number with: its numbers, the parts of its fractions and powers."""
    return [one for whole, parts in _read(evidence.translate(_AS_ASCII)) for one in (whole, *parts)]


def _read(text: str) -> Iterable[tuple[Written, list[Written]]]:
    for found in _NUMBER.finditer(text):
        sign = -1.0 if found["sign"] == "-" else 1.0
        parts = []
        if found["power"]:  # 10^470: the exponent is what is said
            value, step = float(found["power"].replace(",", "")), _last_digit(found["power"])
            parts = [Written("10", 10.0, 1.0)]
        elif found["above"]:
            parts = [Written(part, float(part), 1.0) for part in (found["above"], found["below"])]
            if not parts[0].value or not parts[1].value:  # "0/1 rewards"
                yield from ((part, []) for part in parts)
                continue
            value, step = parts[0].value / parts[1].value, 0.0
        else:
            digits = found["plain"].replace(",", "").replace("_", "")
            scale = 10.0 ** int((found["exponent"] or "e0")[1:])
            value, step = float(digits) * scale, _last_digit(digits) * scale
            if found["exponent"] and "." not in digits:
                step = 0.0  # 1e-12 is meant, not something that rounds to it
        signed, percent = found["sign"] is not None, found["percent"] is not None
        yield Written(found[0].strip(), sign * value, step, signed, percent), parts


def _last_digit(digits: str) -> float:
    return 10.0 ** -len(digits.partition(".")[2])


def code_without_comments(source: str) -> str:
    """Python source less comments and format specifications: what it computes with and says."""
    lines = source.splitlines(keepends=True)
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                row, start = token.start
                lines[row - 1] = lines[row - 1][:start] + "\n"
    except (tokenize.TokenError, IndentationError):
        pass  # a magic line: its comments stay
    return _FORMAT.sub("}", "".join(lines))


def uncovered(said: str, evidence: str, cited: Iterable[str] = ()) -> list[str]:
    """The numbers of `said` that no number of `evidence` covers, less those listed as cited."""
    values, cited = values_in(evidence), set(cited)
    return [
        number.text
        for number in numbers_in(said)
        if number.text not in cited and not any(value.covers(number) for value in values)
    ]
