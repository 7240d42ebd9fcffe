"""The task `sort`: the same numbers in order, and the two mistakes of its demonstrations."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.training import TASKS, BadInput, Sort

PROMPT = "39,24,12,22,15?"


@pytest.mark.parametrize(
    "text, reward",
    [
        ("12,15,22,24,39", 1.0),
        ("1,1,11,11,39", 0.0),  # in order, and not the numbers
        ("39,24,12,22,15", 0.0),  # the numbers, and not in order
        ("12,15,22,24", 0.0),
        ("12,15,22,24,39,39", 0.0),
        ("12,15,22,24,39,", 0.0),
        ("12,15,22,24,039", 0.0),
        ("12, 15, 22, 24, 39", 0.0),
        ("12,15,22,24,39\n", 0.0),
        ("12,15,22,24,\uff139", 0.0),
        ("", 0.0),
    ],
)
def test_only_the_same_numbers_in_order_count(text, reward):
    sort = TASKS["sort"]
    assert sort.verify(sort.parse(PROMPT), text) == reward


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.sampled_from([1, 9, 99, 9999]))
def test_a_demonstration_is_right_exactly_when_it_made_no_mistake(seed, numbers, largest):
    rng = random.Random(seed)
    sort = Sort(numbers, largest, misread=0.0, swap=0.0)
    problem = sort.problem(rng) if (numbers, largest) != (2, 1) else sort.parse("1,0?")
    asked = [int(n) for n in problem.prompt[:-1].split(",")]
    assert len(asked) == numbers and max(asked) <= largest
    right = sort.demo(rng, problem)
    assert [int(n) for n in right.split(",")] == sorted(asked) and sort.verify(problem, right) == 1
    misread = Sort(numbers, largest, misread=1.0, swap=0.0).demo(rng, problem)
    written = [int(n) for n in misread.split(",")]
    assert written == sorted(written) and max(written) <= largest
    assert sort.verify(problem, misread) == 0.0
    swapped = Sort(numbers, largest, misread=0.0, swap=1.0).demo(rng, problem)
    written = [int(n) for n in swapped.split(",")]
    assert sorted(written) == sorted(asked)
    assert sort.verify(problem, swapped) == float(len(set(asked)) == 1)  # equals stay in order


def test_the_mistakes_are_as_frequent_as_was_asked_for():
    rng, sort, n = random.Random(0), TASKS["sort"], 4000
    problems = [sort.problem(rng) for _ in range(n)]
    demos = [[int(x) for x in sort.demo(rng, p).split(",")] for p in problems]
    in_order = sum(demo == sorted(demo) for demo in demos) / n
    right = sum(
        sorted(int(x) for x in p.prompt[:-1].split(",")) == demo
        for p, demo in zip(problems, demos, strict=True)
    )
    assert abs(in_order - 0.95) < 0.014 and abs(right / n - 0.75) < 0.028  # 4 standard errors


@pytest.mark.parametrize("prompt", ["", "?", "39?", "39,24", "39,?", "39,24,?", "039,24?", "a,b?",
                                    "39;24?", "\u0663,4?", ",".join("1" * 13) + "?"])  # fmt: skip
def test_a_malformed_prompt_is_refused(prompt):
    with pytest.raises(BadInput, match="expected 2 to 12 numbers"):
        TASKS["sort"].parse(prompt)


@pytest.mark.parametrize(
    "knobs, message",
    [({"numbers": 1}, "numbers: got 1, expected 2 to 12"), ({"largest": 0}, "largest: got 0"),
     ({"misread": 2.0}, "misread: got 2.0"), ({"misread": 0.6, "swap": 0.6}, "swap: got 0.6")],
)  # fmt: skip
def test_a_knob_out_of_range_is_a_sentence(knobs, message):
    with pytest.raises(BadInput, match=message):
        Sort(**knobs)


def test_the_opening_is_the_smallest_number():
    assert TASKS["sort"].openings(TASKS["sort"].parse(PROMPT)) == {"least": "12,"}
