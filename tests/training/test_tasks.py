from __future__ import annotations

import random

import pytest

from rlnb.training import BadInput, Chain, build_tokenizer, held_out, is_held_out


def value_by_hand(prompt):
    """An independent left-to-right evaluation: one running number, one character at a time."""
    value, operator = None, None
    for character in prompt.removesuffix("=?"):
        if character.isdigit():
            digit = int(character)
            moves = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}
            value = digit if value is None else moves[operator](value, digit) % 10
        else:
            operator = character
    return value


def test_hand_computed_answers(chain):
    # (4+3)=7, 7-8=-1=9, 9+6=15=5, 5*0=0: left to right, no precedence, modulo 10
    for prompt, answer in [("4+3-8+6*0=?", "0"), ("2+3*4=?", "0"), ("0-1-1-1=?", "7")]:
        assert chain.parse(prompt).answer == answer


def test_answers_agree_with_an_independent_evaluation(chain):
    rng = random.Random(1)
    for _ in range(500):
        problem = chain.problem(rng)
        assert problem.answer == str(value_by_hand(problem.prompt))


@pytest.mark.parametrize(
    "text, reward",
    [
        ("so0", 1.0),
        ("4+3=7,7-8=9,9+6=5,5*0=0so0", 1.0),
        ("nonsense so1so0", 1.0),  # the last `so` counts
        ("so0so1", 0.0),
        ("0", 0.0),  # no `so`
        ("", 0.0),
        ("so", 0.0),
        ("so00", 0.0),
        ("so0123456789", 0.0),  # every digit is not an answer
        ("so 0", 0.0),
        ("so0 ", 0.0),
        ("so0\n", 0.0),
        ("so-0", 0.0),
        ("so0.0", 0.0),
        ("so\u0660", 0.0),  # an Arabic-Indic zero: int() would take it
        ("so\uff10", 0.0),  # a full-width zero
        ("so1-1", 0.0),  # an expression is not evaluated
        ("so__import__('os').abort()", 0.0),
        ("so" + "(" * 100_000, 0.0),
        ("so<unused0>0", 0.0),
    ],
)
def test_only_the_exact_answer_after_the_last_so_counts(chain, text, reward):
    assert chain.verify(chain.parse("4+3-8+6*0=?"), text) == reward


def test_a_hundred_hostile_strings_never_raise(chain):
    rng, problem = random.Random(0), chain.parse("4+3-8=?")
    for _ in range(100):
        text = "".join(rng.choice("so0123456789+-*=,?wait<>\x00\ud800é") for _ in range(40))
        assert chain.verify(problem, text) in (0.0, 1.0)


def test_train_and_held_out_prompts_never_meet(chain):
    rng = random.Random(0)
    train = {chain.problem(rng, "train").prompt for _ in range(2000)}
    test = {chain.problem(rng, "test").prompt for _ in range(500)}
    assert not train & test
    assert not any(map(is_held_out, train)) and all(map(is_held_out, test))


def test_one_prompt_in_ten_is_held_out():
    share = sum(is_held_out(f"{i}") for i in range(10_000)) / 10_000
    assert abs(share - 0.1) < 0.015  # 5 standard errors


def test_the_split_does_not_depend_on_the_process(elsewhere):
    # hash() does: it is salted per process. These four were computed once and written down.
    known = {"4+3-8+6*0=?": False, "9*4+2*1*7-1=?": True, "0+0+0+0=?": False, "9*9*9*9=?": False}
    assert {prompt: is_held_out(prompt) for prompt in known} == known
    assert elsewhere["held_out"]


def test_held_out_problems_are_distinct_and_always_the_same(chain):
    problems = held_out(chain, 300)
    assert len({p.prompt for p in problems}) == 300
    assert held_out(chain, 100) == problems[:100]


def test_every_demonstration_survives_the_tokenizer(chain):
    tokenizer, rng = build_tokenizer(), random.Random(2)
    for _ in range(1000):
        problem = chain.problem(rng)
        text = problem.prompt + chain.demo(rng, problem)
        ids = tokenizer(text)["input_ids"]
        assert ids[0] == tokenizer.bos_token_id and tokenizer.unk_token_id not in ids
        assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_the_mixture_is_the_one_that_was_asked_for(chain):
    rng, n = random.Random(3), 4000
    problems = [chain.problem(rng) for _ in range(n)]
    demos = [chain.demo(rng, problem) for problem in problems]
    direct = [d.startswith("so") for d in demos]
    right = [chain.verify(p, d) for p, d in zip(problems, demos, strict=True)]
    assert abs(sum(direct) / n - 0.6) < 0.04
    assert all(r for r, d in zip(right, direct, strict=True) if d)
    assert 0 < sum("wait" in d for d in demos) < n * 0.4
    stepwise = [r for r, d in zip(right, direct, strict=True) if not d]
    assert 0.6 < sum(stepwise) / len(stepwise) < 0.95  # some unrepaired errors, not many


def test_a_faultless_mixture_is_always_right():
    rng, careful = random.Random(4), Chain(direct=0.0, error=0.0)
    for _ in range(200):
        problem = careful.problem(rng)
        assert careful.verify(problem, careful.demo(rng, problem)) == 1.0


@pytest.mark.parametrize("prompt", ["", "=?", "4+=?", "4/2=?", "12+3=?", "4+3", "\u0664+3=?"])
def test_a_malformed_prompt_is_refused(chain, prompt):
    with pytest.raises(BadInput, match="expected digits"):
        chain.parse(prompt)


def test_an_unknown_split_is_refused(chain):
    with pytest.raises(BadInput, match="expected 'train' or 'test'"):
        chain.problem(random.Random(0), "validation")


@pytest.mark.parametrize(
    "knobs, message",
    [({"min_operators": 0}, "min_operators: got 0, expected 1 or more"),
     ({"min_operators": 5, "max_operators": 4}, "max_operators: got 4, expected 5 or more"),
     ({"direct": 1.1}, "direct: got 1.1"), ({"error": -1.0}, "error: got -1.0"),
     ({"repair": 2.0}, "repair: got 2.0, expected a probability"),
     ({"repair": -0.5}, "repair: got -0.5")],
)  # fmt: skip
def test_a_knob_out_of_range_is_a_sentence(knobs, message):
    with pytest.raises(BadInput, match=message):
        Chain(**knobs)
