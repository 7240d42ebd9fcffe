"""The task `countdown`: the verifier, the search in its demonstrations, the split, the knobs."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.training import TASKS, BadInput, Countdown, held_out
from rlnb.training.tasks.countdown import every_attempt, random_attempt, reaching

PROMPT = "3,7,8:35?"


@pytest.fixture(scope="module")
def game():
    return TASKS["countdown"]


@pytest.mark.parametrize(
    "text, reward",
    [
        ("so(8-3)*7", 1.0),
        ("so7*(8-3)", 1.0),
        ("so((8)-(3))*(7)", 1.0),  # needless parentheses
        ("so0-(3-8)*7", 0.0),  # 0 is not one of the numbers
        ("so(3-8)*7", 0.0),  # -35
        ("3+7=10,10+8=18x8-3=5,5*7=35so(8-3)*7", 1.0),
        ("1=2,so(8-3)*7", 1.0),  # what stands before the last `so` is not graded
        ("so35so(8-3)*7", 1.0),
        ("so(8-3)*7so35", 0.0),
        ("(8-3)*7", 0.0),  # no `so`
        ("so35", 0.0),  # the value without the numbers
        ("so7*5", 0.0),
        ("so(8-3)*7+8-8", 0.0),  # a number twice more
        ("so8+3*9", 0.0),  # another number
        ("so(8-3)*7=35", 0.0),
        ("so8-3*7", 0.0),  # precedence: -13
        ("so37-8+3+3", 0.0),  # digits of two numbers are not one number
        ("so(8-3)/7", 0.0),  # no division here
        ("so(8-3)*7x", 0.0),
        ("so(8-3)*7\n", 0.0),
        ("so(8-3)*\uff17", 0.0),
        ("so", 0.0),
        ("", 0.0),
    ],
)
def test_only_every_number_once_and_the_target_counts(game, text, reward):
    assert game.verify(game.parse(PROMPT), text) == reward


def test_a_repeated_number_is_used_as_often_as_it_was_given(game):
    problem = game.parse("4,4,9:17?")
    assert game.verify(problem, "so4+4+9") == 1.0
    assert game.verify(problem, "so4*4+9") == 0.0 == game.verify(problem, "so9+8")


def values_by_hand(numbers):
    """Targets of three numbers whose steps stay above 0: both shapes, all orders and operators."""
    found = set()
    moves = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}
    for a, b, c in itertools.permutations(numbers):
        for first, second in itertools.product(moves.values(), repeat=2):
            inner = first(a, b)
            found |= {second(x, y) for x, y in ((inner, c), (c, inner)) if inner > 0}
    return {value for value in found if value > 0}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=3, max_size=3))
def test_the_enumeration_finds_every_target_and_the_verifier_takes_all_of_it(numbers):
    game, attempts = Countdown(), list(every_attempt(numbers))
    assert {attempt.made.value for attempt in attempts} == values_by_hand(numbers)
    for attempt in attempts:
        made = attempt.made
        problem = game.parse(f"{','.join(map(str, numbers))}:{made.value}?")
        assert game.verify(problem, f"so{made.text}") == 1.0
        assert game.verify(problem, f"so{made.text}+1") == 0.0


def true_steps(attempt):
    """Whether `8-3=5,5*7=35` is true arithmetic; the last value if so."""
    for step in attempt.split(","):
        a, operator, b, value = re.fullmatch(r"([0-9]+)([-+*])([0-9]+)=([0-9]+)", step).groups()
        a, b = int(a), int(b)
        assert int(value) == {"+": a + b, "-": a - b, "*": a * b}[operator], attempt
    return int(value)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_a_demonstration_is_right_when_it_answers_and_wrong_when_it_gives_up(seed, numbers):
    rng, game = random.Random(seed), Countdown(numbers=numbers)
    problem = game.problem(rng)
    text = game.demo(rng, problem)
    search, answered, expression = text.partition("so")
    assert game.verify(problem, text) == float(bool(answered))
    attempts = search.split("x") if search else []
    if not answered:
        assert attempts.pop() == "" and len(attempts) == game.tries
    for i, attempt in enumerate(attempts):
        reached = true_steps(attempt) == int(problem.answer)
        assert reached == (bool(answered) and i == len(attempts) - 1), text
    assert not answered or game.verify(problem, f"so{expression}") == 1.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_spoiling_a_right_answer_makes_it_wrong(seed):
    rng, game = random.Random(seed), Countdown(direct=1.0)
    problem = game.problem(rng)
    text = game.demo(rng, problem)
    assert game.verify(problem, text) == 1.0
    numbers = [m.span() for m in re.finditer("[0-9]+", text)]
    start, end = rng.choice(numbers)
    other = int(text[start:end]) + rng.choice([1, 100])
    assert game.verify(problem, f"{text[:start]}{other}{text[end:]}") == 0.0
    assert game.verify(problem, text[:-1]) == 0.0
    assert game.verify(problem, text.replace("so", "", 1)) == 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["train", "test"]))
def test_every_problem_has_a_solution_in_range_and_comes_back_from_its_prompt(seed, split):
    game = TASKS["countdown"]
    problem = game.problem(random.Random(seed), split)
    numbers = [int(n) for n in problem.prompt.partition(":")[0].split(",")]
    assert reaching(numbers, int(problem.answer)) and game.parse(problem.prompt) == problem
    assert 1 <= int(problem.answer) <= 60 and max(numbers) <= 12 and len(numbers) == 3
    assert numbers == sorted(numbers)  # another order would be another prompt of the same problem


def test_a_random_attempt_is_one_of_the_enumeration():
    rng = random.Random(0)
    for _ in range(300):
        numbers = [rng.randint(1, 12) for _ in range(3)]
        values = {attempt.made.value for attempt in every_attempt(numbers)}
        attempt = random_attempt(rng, numbers)
        assert attempt.made.value in values and true_steps(str(attempt)) == attempt.made.value


def test_the_mixture_is_the_one_that_was_asked_for(game):
    rng, n = random.Random(3), 3000
    problems = [game.problem(rng) for _ in range(n)]
    demos = [game.demo(rng, problem) for problem in problems]
    direct = [demo.startswith("so") for demo in demos]
    right = [game.verify(p, d) for p, d in zip(problems, demos, strict=True)]
    assert abs(sum(direct) / n - 0.3) < 0.035  # 4 standard errors
    assert all(r for r, d in zip(right, direct, strict=True) if d)
    searched = [r for r, d in zip(right, direct, strict=True) if not d]
    # three tries of 0.3 insight or luck (about 0.1): 1 - (0.7 * 0.9)^3 = 0.75
    assert 0.7 < sum(searched) / len(searched) < 0.82
    assert max(map(len, demos)) <= 72  # symbols; the recipe's answers have 72 tokens


def test_there_are_enough_held_out_problems_for_an_evaluation(game):
    assert len(held_out(game, 300)) == 300


def test_too_few_held_out_problems_are_a_sentence_and_not_a_loop():
    with pytest.raises(BadInput, match="asked for 50 problems of 'countdown'.* only "):
        held_out(Countdown(numbers=2, largest=5), 50)
    with pytest.raises(BadInput, match="none of 20000 draws is a test prompt"):
        Countdown(numbers=2, largest=1).problem(random.Random(0), "test")


@pytest.mark.parametrize(
    "prompt", ["", "3,7,8:35", "3,7,8?", "35:3,7,8?", "3:3?", "1,2,3,4,5:9?", "03,7,8:35?",
               "3,7,8:-1?", "3 7 8:35?", "\u0663,7,8:35?", "3,7,8:35?\n"]
)  # fmt: skip
def test_a_malformed_prompt_is_refused(game, prompt):
    with pytest.raises(BadInput, match="expected 2 to 4 numbers and a target"):
        game.parse(prompt)


def test_a_prompt_without_a_solution_is_refused(game):
    with pytest.raises(BadInput, match="no expression of the numbers in '1,1,1:60\\?'"):
        game.parse("1,1,1:60?")


@pytest.mark.parametrize(
    "knobs, message",
    [({"numbers": 5}, "numbers: got 5, expected 2 to 4"), ({"largest": 0}, "largest: got 0"),
     ({"lowest": 0}, "lowest: got 0"), ({"lowest": 9, "highest": 8}, "highest: got 8, expected 9"),
     ({"direct": 1.5}, "direct: got 1.5, expected a probability"),
     ({"insight": -0.1}, "insight: got -0.1"), ({"tries": 0}, "tries: got 0, expected 1 or more")],
)  # fmt: skip
def test_a_knob_out_of_range_is_a_sentence(knobs, message):
    with pytest.raises(BadInput, match=message):
        Countdown(**knobs)


def test_the_knobs_do_what_they_say():
    rng = random.Random(4)
    easy, hard = Countdown(numbers=2, largest=5), Countdown(numbers=4, lowest=50, highest=99)
    for game, count, low, high in ((easy, 2, 1, 25), (hard, 4, 50, 99)):
        for _ in range(30):
            problem = game.problem(rng)
            assert problem.prompt.count(",") == count - 1 and low <= int(problem.answer) <= high
    lucky, luckless = Countdown(direct=0, insight=1), Countdown(direct=0, insight=0, tries=1)
    problems = [lucky.problem(rng) for _ in range(100)]
    assert all("x" not in lucky.demo(rng, p) for p in problems)
    assert sum("so" in luckless.demo(rng, p) for p in problems) < 30


def test_openings_force_a_search_or_a_direct_answer(game):
    assert game.openings(game.parse(PROMPT)) == {"search": "8", "direct": "so"}
