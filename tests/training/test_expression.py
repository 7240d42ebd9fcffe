"""The reader of arithmetic: what it takes, what it refuses, and that its values are right."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.training.tasks.expression import DEEPEST, LONGEST, evaluate


@pytest.mark.parametrize(
    "text, value",
    [
        ("8", 8),
        ("0", 0),
        ("(8-3)*7", 35),
        ("8-3*7", -13),
        ("8-3-7", -2),  # from left to right
        ("64/4/2", 8),
        ("64/(4/2)", 32),
        ("2/3*3", 2),  # exact: floats would say so only by luck
        ("1/49*49", 1),
        (" ( 8 -3 ) *7 ", 35),
        ("((((8))))", 8),
        ("999999*999999", 999998000001),
    ],
)
def test_hand_computed_values(text, value):
    assert evaluate(text)[0] == value


@pytest.mark.parametrize(
    "text",
    ["", " ", "()", "(8", "8)", "8 3", "8(3)", "+8", "-8", "8--3", "8+", "*8", "8**3", "8//3",
     "8.0", "8,3", "8e3", "0x8", "8_0", "08", "00", "1000000", "8=8", "8\n", "8\t+3", "8\x00", "x",
     "8%3", "8^3", "\u0668", "\uff18", "8\u00d73", "8/0", "8/(3-3)", "0/0", "1/(1/3-2/6)"],
)  # fmt: skip
def test_everything_else_is_refused(text):
    assert evaluate(text) is None


def test_length_and_depth_are_bounded():
    assert evaluate("(" * DEEPEST + "8" + ")" * DEEPEST) == (8, [8])
    assert evaluate("(" * (DEEPEST + 1) + "8" + ")" * (DEEPEST + 1)) is None
    longest = "1+" * (LONGEST // 2 - 1) + "1"
    assert evaluate(longest)[0] == LONGEST // 2
    assert evaluate(longest + "0" * 2) is None and evaluate("8" + " " * LONGEST) is None


def test_an_operator_that_is_not_listed_is_refused():
    assert evaluate("8/4", "+-*") is None and evaluate("8*4", "+-*") == (32, [8, 4])


def pair(left, operator, right):
    """An expression in full parentheses beside the value Python's fractions give it."""
    (a, x, used), (b, y, others) = left, right
    if x is None or y is None or (operator == "/" and y == 0):
        value = None
    else:
        value = {"+": x.__add__, "-": x.__sub__, "*": x.__mul__, "/": x.__truediv__}[operator](y)
    return f"({a}{operator}{b})", value, used + others


numbers = st.integers(0, 999).map(lambda n: (str(n), Fraction(n), [n]))
trees = st.recursive(
    numbers, lambda inner: st.builds(pair, inner, st.sampled_from("+-*/"), inner), max_leaves=8
)


@settings(max_examples=200, deadline=None)
@given(trees)
def test_values_and_numbers_agree_with_the_tree_that_was_written(tree):
    text, value, used = tree
    assert evaluate(text) == (None if value is None else (value, used))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 99), min_size=1, max_size=6), st.lists(st.sampled_from("+-*")))
def test_precedence_agrees_with_sums_of_products(numbers, operators):
    operators = (operators + ["+"] * 6)[: len(numbers) - 1]
    terms = [[1, numbers[0]]]
    for operator, number in zip(operators, numbers[1:], strict=True):
        if operator == "*":
            terms[-1].append(number)
        else:
            terms.append([1 if operator == "+" else -1, number])
    value = 0
    for factors in terms:
        part = 1
        for factor in factors:
            part *= factor
        value += part
    text = str(numbers[0]) + "".join(f"{o}{n}" for o, n in zip(operators, numbers[1:], strict=True))
    assert evaluate(text) == (value, numbers)


@settings(max_examples=200, deadline=None)
@given(st.text("0123456789+-*/() ", max_size=40) | st.text("8+(x\n\x00\ud800\u0668\uff18\u00b2"))
def test_no_text_raises(text):
    found = evaluate(text)
    assert found is None or isinstance(found[0], Fraction)
