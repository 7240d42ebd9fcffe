"""The tasks in English: prompts, tags, whole numbers, expressions."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.training import TASKS, ArithmeticText, BadInput, CountdownText, build_tokenizer
from rlnb.training.models.loading import check_vocabulary
from rlnb.training.tasks.text import tagged


@pytest.fixture(scope="module")
def arithmetic():
    return TASKS["arithmetic_text"]


@pytest.fixture(scope="module")
def countdown():
    return TASKS["countdown_text"]


@pytest.mark.parametrize(
    "text, inside",
    [
        ("<answer>1</answer>", "1"),
        ("so <answer> 1 </answer>.", "1"),
        ("<answer>\n1\n</answer>", "1"),
        ("<answer>1</answer><answer>2</answer>", "2"),
        ("<answer>1</answer> and <answer>", "1"),  # the last pair, not the last tag
        ("<answer>1</answer></answer>", "1</answer>"),  # no number
        ("<answer><answer>1</answer>", "1"),
        ("<answer></answer>", ""),
        ("<answer>1\u00a0</answer>", "1\u00a0"),  # only plain blanks are stripped
        ("</answer>1<answer>", None),
        ("<answer>1", None),
        ("<answer >1</answer>", None),
        ("<Answer>1</Answer>", None),
        ("", None),
    ],
)
def test_the_last_pair_of_tags_counts(text, inside):
    assert tagged(text) == inside


@pytest.mark.parametrize(
    "inside, reward",
    [("109", 1.0), (" 109\n", 1.0), ("0109", 1.0), ("-109", 0.0), ("+109", 0.0), ("109.0", 0.0),
     ("109.", 0.0), ("1_09", 0.0), ("17 + 92", 0.0), ("= 109", 0.0), ("\u0661\u0660\u0669", 0.0),
     ("1e2", 0.0), ("<b>109</b>", 0.0), ("", 0.0), ("9" * 5000, 0.0)],
)  # fmt: skip
def test_a_whole_number_in_tags_is_compared(arithmetic, inside, reward):
    problem = arithmetic.parse("17 + 4 * 23")
    assert arithmetic.verify(problem, f"so it is\n<answer>{inside}</answer>") == reward
    assert arithmetic.verify(problem, inside) == 0.0  # no tags


def test_a_negative_result_needs_its_sign(arithmetic):
    problem = arithmetic.parse("3 - 5 * 2")
    assert [arithmetic.verify(problem, f"<answer>{n}</answer>") for n in ("-7", "7")] == [1.0, 0.0]


@pytest.mark.parametrize(
    "inside, reward",
    [("(8 - 3) * 7", 1.0), ("7*(8-3)", 1.0), ("7 / (1 / 5)", 0.0), ("35", 0.0),
     ("(8 - 3) * 7 = 35", 0.0), ("8 - 3 * 7", 0.0), ("(8-3)*7*8/8", 0.0), ("(8-3)\u00d77", 0.0),
     ("(8 - \uff13) * 7", 0.0), ("", 0.0)],
)  # fmt: skip
def test_an_expression_of_all_the_numbers_counts(countdown, inside, reward):
    problem = countdown.ask([3, 7, 8], 35)
    assert countdown.verify(problem, f"I tried.\n<answer>{inside}</answer>") == reward


def test_division_is_exact(countdown):
    problem = countdown.ask([1, 3, 5, 5], 16)  # 1/3 is not 0.333
    assert countdown.verify(problem, "<answer>5/(1/3)+5/5</answer>") == 0.0  # three fives
    assert countdown.verify(problem, "<answer>5 / (1 / 3) + 5</answer>") == 0.0  # 20
    problem = countdown.ask([2, 3, 3], 2)
    assert countdown.verify(problem, "<answer>2 / 3 * 3</answer>") == 1.0
    assert countdown.verify(countdown.ask([3, 3, 8, 8], 24), "<answer>8/(3-8/3)</answer>") == 1.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([1, 9, 50, 9999]))
def test_written_calculations_are_true_and_right(seed, operators, largest):
    rng, task = random.Random(seed), ArithmeticText(operators, operators, largest)
    if (operators, largest) == (1, 1):
        return  # three prompts, and perhaps none of them in the split
    problem = task.problem(rng)
    text = task.demo(rng, problem)
    assert task.verify(problem, text) == 1.0 and task.parse(problem.prompt) == problem
    assert task.verify(problem, text.replace("</", "0</")) == float(problem.answer == "0")
    shown = text.partition("\n")[0].split(" = ")
    assert len(shown) == operators + 1 and shown[-1] == problem.answer
    products = [line.count("*") for line in shown]
    assert products == sorted(products, reverse=True)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_a_written_search_is_right_when_it_answers(seed, numbers):
    rng, task = random.Random(seed), CountdownText(numbers=numbers)
    problem = task.problem(rng)
    text = task.demo(rng, problem)
    assert task.verify(problem, text) == float("<answer>" in text)
    assert text.count("is not") == 3 or "<answer>" in text
    assert task.parse(problem.prompt) == problem


def test_the_small_model_is_told_that_it_cannot_write_english(arithmetic, countdown):
    for task in (arithmetic, countdown):
        with pytest.raises(BadInput, match=f"{task.name!r} needs '<answer>' '</answer>'"):
            check_vocabulary(build_tokenizer(), task)


def test_the_symbols_are_those_of_answers(arithmetic, countdown):
    rng = random.Random(0)
    for task in (arithmetic, countdown):
        for _ in range(50):
            problem = task.problem(rng)
            answer = tagged(task.demo(rng, problem)) or ""
            assert set(answer) <= set(task.symbols)


@pytest.mark.parametrize(
    "prompt", ["", "17", "17+4", "17 + ", "17 / 4", "Compute 17 + 4.", "(1 + 2) * 3",
               "1 + 1 + 1 + 1 + 1 + 1 + 1 + 1", "\u0661 + 4", "017 + 4"]
)  # fmt: skip
def test_a_malformed_prompt_is_refused(arithmetic, countdown, prompt):
    with pytest.raises(BadInput, match="expected an expression such as"):
        arithmetic.parse(prompt)
    with pytest.raises(BadInput, match="expected one that CountdownText.ask wrote"):
        countdown.parse(prompt)


@pytest.mark.parametrize(
    "make, message",
    [(lambda: ArithmeticText(min_operators=0), "min_operators: got 0, expected 1 to 6"),
     (lambda: ArithmeticText(3, 2), "max_operators: got 2, expected 3 to 6"),
     (lambda: ArithmeticText(largest=10_000), "largest: got 10000"),
     (lambda: ArithmeticText(times=-1), "times: got -1, expected a probability"),
     (lambda: CountdownText(numbers=7), "numbers: got 7, expected 2 to 4"),
     (lambda: CountdownText(tries=0), "tries: got 0")],
)  # fmt: skip
def test_a_knob_out_of_range_is_a_sentence(make, message):
    with pytest.raises(BadInput, match=re.escape(message)):
        make()
