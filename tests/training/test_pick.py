"""The tasks `pick` and `types`: exact verifiers on hostile text, and the shipped base of `pick`."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from rlnb.training import (
    TASKS,
    BadInput,
    Pick,
    Types,
    build_tokenizer,
    data_folder,
    held_out,
    is_held_out,
    load,
    pass_rate,
)

PROMPT = "44529:1?"  # 5+2+4 = 11 and nothing else but orders of it: 4+5+2


@pytest.fixture(scope="module")
def pick():
    return TASKS["pick"]


@pytest.mark.parametrize(
    "text, reward",
    [
        ("5+2=7,7+4=1:", 1.0),
        ("5+2=7,7+4=1", 1.0),  # no verdict
        ("5+2=7,7+4=1;", 1.0),  # an untrue verdict is the model's opinion, not the answer
        ("5+2=7,7+4=1:wait7+4=1:wait7+4=1:", 1.0),
        ("5+2=7,7+4=1:waitanything at all", 1.0),  # the tail is not graded
        ("4+4=8,8+5=3;wait5+2=7,7+4=1:", 0.0),  # only the first attempt is
        ("wait5+2=7,7+4=1:", 0.0),
        ("4+5=9,9+2=1:", 1.0),
        ("2+2=4,4+7=1:", 0.0),  # neither two 2s nor a 7 in the prompt
        ("4+4=8,8+3=1:", 0.0),
        ("4+4=8,8+4=2:", 0.0),  # there are two 4s, not three
        ("4+4=7,7+4=1:", 0.0),
        ("5+2=8,8+4=1:", 0.0),  # a wrong sum that would reach
        ("5+2=7,8+4=1:", 0.0),  # the second sum starts elsewhere
        ("5+2=7,7+4=11:", 0.0),
        ("5+2=7,7+9=6;", 0.0),  # true, and misses the target
        ("5+2=7,7+4=1::", 0.0),
        ("5+2=7,7+4=1: ", 0.0),
        ("5+2=7,7+4=1:\n", 0.0),
        ("5+2=7\n7+4=1:", 0.0),
        ("\u0665+2=7,7+4=1:", 0.0),  # an Arabic-Indic five: int() would take it
        ("\uff15+2=7,7+4=1:", 0.0),
        ("5+2+4=1:", 0.0),
        ("1:", 0.0),
        ("", 0.0),
        ("__import__('os').abort()", 0.0),
        ("5+2=7," * 100_000, 0.0),
        ("wait" * 100_000, 0.0),
        ("\x00\ud800", 0.0),
    ],
)
def test_only_a_true_first_attempt_at_the_target_counts(pick, text, reward):
    assert pick.verify(pick.parse(PROMPT), text) == reward


def test_the_verifier_agrees_with_an_enumeration_of_all_attempts(pick):
    # Every answer that claims two true sums, judged by places of the prompt instead of digits.
    for prompt in ("44529:1?", "00730:3?", "99999:7?"):
        problem = pick.parse(prompt)
        digits = [int(d) for d in prompt[:5]]
        reached = {
            tuple(digits[i] for i in places)
            for places in itertools.permutations(range(5), 3)
            if sum(digits[i] for i in places) % 10 == int(prompt[-2])
        }
        for a, b, c in itertools.product(range(10), repeat=3):
            two, three = (a + b) % 10, (a + b + c) % 10
            text = f"{a}+{b}={two},{two}+{c}={three}:"
            assert pick.verify(problem, text) == float((a, b, c) in reached), (prompt, text)


def test_hostile_strings_never_raise(pick):
    rng, problem = random.Random(0), pick.parse(PROMPT)
    for _ in range(500):
        text = "".join(rng.choice("0123456789+=,:;?wait<>\x00\ud800é") for _ in range(14))
        assert pick.verify(problem, text) in (0.0, 1.0)


def test_demonstrations_are_right_one_time_in_five_and_their_tail_does_not_know_it(pick):
    rng, n = random.Random(1), 6000
    problems = [pick.problem(rng) for _ in range(n)]
    demos = [pick.demo(rng, problem) for problem in problems]
    right = [pick.verify(p, d) > 0 for p, d in zip(problems, demos, strict=True)]
    assert 0.17 < sum(right) / n < 0.21
    first = [demo.partition("wait")[0] for demo in demos]
    assert all((f[-1] == ":") == r for f, r in zip(first, right, strict=True))  # a true verdict
    tails = {side: [d.count("wait") for d, r in zip(demos, right, strict=True) if r == side]
             for side in (True, False)}  # fmt: skip
    means = {side: sum(t) / len(t) for side, t in tails.items()}
    assert abs(means[True] - means[False]) < 0.2  # 4 standard errors
    assert max(tails[False]) == 8
    expected = sum(0.6**k for k in range(1, 9))  # of min(geometric, 8)
    assert abs(sum(d.count("wait") for d in demos) / n - expected) < 0.1


@pytest.mark.parametrize("name", ["pick", "types"])
def test_every_demonstration_survives_the_tokenizer(name):
    tokenizer, rng, task = build_tokenizer(), random.Random(2), TASKS[name]
    for _ in range(500):
        problem = task.problem(rng)
        text = problem.prompt + task.demo(rng, problem)
        ids = tokenizer(text)["input_ids"]
        assert tokenizer.unk_token_id not in ids
        assert tokenizer.decode(ids, skip_special_tokens=True) == text
        assert task.parse(problem.prompt) == problem


@pytest.mark.parametrize("name", ["pick", "types"])
def test_train_and_held_out_prompts_never_meet(name):
    rng, task = random.Random(0), TASKS[name]
    assert not any(is_held_out(task.problem(rng, "train").prompt) for _ in range(1000))
    problems = held_out(task, 200)
    assert len({p.prompt for p in problems}) == 200 and held_out(task, 50) == problems[:50]
    assert all(is_held_out(p.prompt) for p in problems)
    with pytest.raises(BadInput, match="expected 'train' or 'test'"):
        task.problem(rng, "validation")


def test_the_half_opening_can_be_completed(pick):
    rng = random.Random(3)
    for _ in range(200):
        problem = pick.problem(rng)
        half = pick.openings(problem)["half"]
        last = int(half[-2])
        assert any(
            pick.verify(problem, f"{half}{digit}={(last + digit) % 10}:") for digit in range(10)
        )


@pytest.mark.parametrize(
    "prompt", ["", "44529:1", "44529:?", "44529:12?", "4a529:1?", "44:8?", "44529 :1?",
               "\u0664452:1?", "44529:1?\n", "1234567890:1?"]
)  # fmt: skip
def test_a_malformed_prompt_is_refused(pick, prompt):
    with pytest.raises(BadInput, match="expected 3 to 9 digits"):
        pick.parse(prompt)


def test_a_prompt_without_a_solution_is_refused(pick):
    with pytest.raises(BadInput, match="no three digits of '00000:1\\?'"):
        pick.parse("00000:1?")


@pytest.mark.parametrize(
    "knob, message",
    [({"digits": 2}, "digits: got 2, expected 3 to 9"), ({"stop": 0.0}, "stop: got 0.0"),
     ({"stop": 1.5}, "stop: got 1.5"), ({"max_tail": -1}, "max_tail: got -1")],
)  # fmt: skip
def test_a_knob_out_of_range_is_a_sentence(knob, message):
    with pytest.raises(BadInput, match=message):
        Pick(**knob)


def test_the_knobs_do_what_they_say():
    rng, easy, silent = random.Random(4), Pick(digits=3), Pick(max_tail=0)
    problems = [easy.problem(rng) for _ in range(100)]
    assert all(easy.verify(p, easy.demo(rng, p)) for p in problems)  # three of three: no choice
    assert not any("wait" in silent.demo(rng, silent.problem(rng)) for _ in range(50))


@pytest.mark.parametrize(
    "text, reward",
    [("4+5=9,9*3=7", 1.0), ("=7", 1.0), ("7", 0.0), ("9*3=77", 0.0), ("9*3=7 ", 0.0),
     ("9*3=\uff17", 0.0), ("", 0.0), ("=" * 100_000, 0.0), ("=7=", 0.0)],
)  # fmt: skip
def test_types_takes_the_exact_digit_after_the_last_equals_sign(text, reward):
    types = TASKS["types"]
    assert types.verify(types.parse("2:4+5*3=?"), text) == reward


def test_types_writes_the_right_digit_as_often_as_the_type_says():
    rng, types, found = random.Random(5), TASKS["types"], {}
    for _ in range(7000):
        problem = types.problem(rng)
        rate = types.difficulty(problem)
        found.setdefault(rate, []).append(types.verify(problem, types.demo(rng, problem)))
    assert sorted(found) == list(Types().rates)
    assert all(abs(sum(v) / len(v) - rate) < 0.07 for rate, v in found.items())


@pytest.mark.parametrize("prompt", ["7:4+5*3=?", "4+5*3=?", "2:4+5=?", "2:4/5*3=?", "", "2:4+5*3"])
def test_types_refuses_a_malformed_prompt(prompt):
    with pytest.raises(BadInput, match="expected a type from 0 to 6"):
        TASKS["types"].parse(prompt)


@pytest.fixture(scope="module")
def base():
    return load(data_folder() / "model_pick", device="cpu")


def test_the_shipped_base_is_what_its_readme_says(base, pick):
    model, tokenizer = base
    assert sum(p.numel() for p in model.parameters()) == 308_016
    assert tokenizer.get_vocab() == build_tokenizer().get_vocab()
    answers = pass_rate(model, tokenizer, pick, prompts=250, num_generations=4)
    right, length = answers.right > 0, answers.length.float()
    assert 0.14 <= right.float().mean() <= 0.24  # README: 0.186; a random choice of three: 0.19
    assert abs(length[right].mean() - length[~right].mean()) < 3.5
    assert 1.0 - answers.finished.float().mean() < 0.02
    says, reached = zip(
        *(
            (text[11:12] == ":", text[10:11] == answers.problems[i // 4].answer)
            for i, text in enumerate(answers.texts)
        ),
        strict=True,
    )
    says, reached = torch.tensor(says).float(), torch.tensor(reached)
    # it has read whether it was right before it decides to stop: what the length push needs
    assert says[reached].mean() > 0.97 and says[~reached].mean() < 0.03


@pytest.mark.parametrize("rates", [(), (1.5,), (0.5,) * 11])
def test_types_refuses_rates_that_are_no_probabilities_or_too_many(rates):
    with pytest.raises(BadInput, match="rates: got .*, expected 1 to 10 probabilities"):
        Types(rates)
