"""Arithmetic expressions, read and never executed: a small grammar with bounds on everything.

    sum     = product { (+ | -) product }
    product = atom { (* | /) atom }
    atom    = number | ( sum )
    number  = 1 to 6 digits from 0 to 9, no leading zero

There is no sign, no power, no name and no call, so nothing can be run or blown up: an expression
has at most 256 characters and 32 parentheses inside each other, hence under 130 numbers below a
million, and its value is an exact fraction of a few thousand bits at most.
"""

from __future__ import annotations

import re
from fractions import Fraction

__all__ = ["DEEPEST", "LONGEST", "evaluate"]

LONGEST = 256  # characters, before anything is parsed
DEEPEST = 32  # parentheses inside each other
# [0-9] and not \d, which takes the digits of every script.
_TOKENS = re.compile(r" *(?:(0|[1-9][0-9]{0,5})(?![0-9])|([-+*/()]))")


def evaluate(text: str, operators: str = "+-*/") -> tuple[Fraction, list[int]] | None:
    """(value, numbers in the order written) of an expression, None for anything else.

    Precedence is the usual one, equal operators go from left to right, spaces may stand between
    symbols. None is also the answer to a division by zero and to an operator that is not listed.

    >>> evaluate("(8 - 3)*7"), evaluate("8-3*7")[0], evaluate("1/3")[0]
    ((Fraction(35, 1), [8, 3, 7]), Fraction(-13, 1), Fraction(1, 3))
    >>> [evaluate(text) for text in ("2**3", "-3", "1/0", "9e9", "(8", "", "__import__('os')")]
    [None, None, None, None, None, None, None]
    """
    tokens = _tokens(text)
    if tokens is None:
        return None
    reader = _Reader(tokens, operators)
    try:
        value = reader.sum(0)
    except (_Malformed, ZeroDivisionError):
        return None
    return None if reader.left else (value, reader.numbers)


def _tokens(text: str) -> list[str] | None:
    if len(text) > LONGEST:
        return None
    tokens, place = [], 0
    text = text.rstrip(" ")
    while place < len(text):
        found = _TOKENS.match(text, place)
        if found is None:
            return None
        tokens.append(found[1] or found[2])
        place = found.end()
    return tokens


class _Malformed(Exception):
    pass


class _Reader:
    """Recursive descent over tokens; `left` holds the ones not yet read, in reverse."""

    def __init__(self, tokens: list[str], operators: str):
        self.left, self.operators, self.numbers = tokens[::-1], operators, []

    def next_is(self, kinds: str) -> bool:
        return bool(self.left) and self.left[-1] in kinds

    def operator(self) -> str:
        symbol = self.left.pop()
        if symbol not in self.operators:
            raise _Malformed
        return symbol

    def sum(self, depth: int) -> Fraction:
        value = self.product(depth)
        while self.next_is("+-"):
            sign = 1 if self.operator() == "+" else -1
            value += sign * self.product(depth)
        return value

    def product(self, depth: int) -> Fraction:
        value = self.atom(depth)
        while self.next_is("*/"):
            if self.operator() == "*":
                value *= self.atom(depth)
            else:
                value /= self.atom(depth)
        return value

    def atom(self, depth: int) -> Fraction:
        if self.next_is("(") and depth < DEEPEST:
            self.left.pop()
            value = self.sum(depth + 1)
            if not self.next_is(")"):
                raise _Malformed
            self.left.pop()
            return value
        if not self.left or self.left[-1] in "+-*/()":
            raise _Malformed
        self.numbers.append(int(self.left.pop()))
        return Fraction(self.numbers[-1])
