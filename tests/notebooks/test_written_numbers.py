"""What counts as a number of a text, and which value covers it."""

from __future__ import annotations

import pytest
from written_numbers import code_without_comments, numbers_in, uncovered


@pytest.mark.parametrize(
    "text, values",
    [
        ("-0.8, +0.030, .72 and 1.5.", [-0.8, 0.03, 0.72, 1.5]),
        ("3/16 and -1/8, but 0/1 rewards", [0.1875, -0.125, 0, 1]),
        ("4,097 numbers, 5_000 draws, [1,1,0,0]", [4097, 5000, 1, 1, 0, 0]),
        ("about 10^470, 1e-12 and 1.2e-3", [470, 1e-12, 0.0012]),
        ("k3 on an H100 in float32, o_1, x**2", [2]),
        ("r-1 and f(-3), 47-50, minus −0.5", [1, -3, 47, 50, -0.5]),
        ("-1/G and 1/(G-1), σ = √15/16", [1, 15, 16]),
        ("V=2, T=3: 2.0000", [2, 3, 2]),
    ],
)
def test_numbers_are_read_as_people_write_them(text, values):
    assert [n.value for n in numbers_in(text)] == pytest.approx(values, rel=1e-12)


@pytest.mark.parametrize(
    "said, evidence",
    [
        (".72", "0.7244"),
        ("0.724", "0.7244"),
        ("1/12", "0.0833"),
        ("3/16", "0.1875"),
        ("0.1875", "3/16"),
        ("24 %", "0.2371"),
        ("24 %", "23.7 %"),
        ("25 %", "0.25"),
        ("10^470", "10^469.9"),
        ("4,097", "4097"),
        ("1e-12", "gap < 1e-12"),
        ("0.8", "-0.8"),
        ("3", "3.0000"),
        ("36", "36.2"),
        ("10", "10**0.5"),
        ("16", "15 / 16"),
    ],
)
def test_a_rounded_form_is_covered(said, evidence):
    assert uncovered(said, evidence) == []


@pytest.mark.parametrize(
    "said, evidence",
    [
        (".73", "0.7244"),
        ("0.7244", "0.72"),  # more than was shown
        ("1/12", "0.0834"),
        ("25 %", "0.2371"),
        ("-0.8", "0.8"),
        ("+0.8", "-0.8"),
        ("2", "1.6"),  # a count is no rounded measurement
        ("1e-12", "1e12"),
        ("13.5", "18.5, 13.6, 135"),
        ("10^470", "10^46"),
    ],
)
def test_another_number_is_not_covered(said, evidence):
    assert uncovered(said, evidence) == [said]
    assert uncovered(said, evidence, cited=[said]) == []


def test_comments_and_format_specifications_are_no_evidence():
    source = 'print(f"{x:9.4f} of {y:,.0f} at 0.25")  # 13.5\n"# 0.5"'
    assert [n.value for n in numbers_in(code_without_comments(source))] == [0.25, 0.5]
