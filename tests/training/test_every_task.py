"""What holds for all tasks: the split, the corpus, the vocabulary, and the weak verifiers."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.training import TASKS, BadInput, build_tokenizer, held_out, is_held_out
from rlnb.training.tasks import WEAK, Sort, corpus, weak_verifier

SMALL = [name for name in TASKS if not name.endswith("_text")]
PAIRS = [(task, name) for task, found in WEAK.items() for name in found]
SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("name", TASKS)
@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_no_seed_trains_on_a_held_out_problem(name, seed):
    task, rng = TASKS[name], random.Random(seed)
    tested = {problem.prompt for problem in held_out(task, 100)}
    for problem, _ in corpus(task, rng, 30):
        assert problem.prompt not in tested and not is_held_out(problem.prompt)
        assert task.parse(problem.prompt) == problem
    assert is_held_out(task.problem(rng, "test").prompt)


@pytest.mark.parametrize("name", TASKS)
def test_the_held_out_problems_depend_on_no_seed(name):
    random.seed(1)
    first = held_out(TASKS[name], 60)
    random.seed(2)
    assert held_out(TASKS[name], 60) == first and held_out(TASKS[name], 20) == first[:20]
    assert len({problem.prompt for problem in first}) == 60
    assert all(is_held_out(problem.prompt) for problem in first)


@pytest.mark.parametrize("name", TASKS)
def test_one_seed_makes_one_corpus(name):
    one, again, other = (list(corpus(TASKS[name], random.Random(s), 20)) for s in (5, 5, 6))
    assert one == again != other and len(one) == 20


@pytest.mark.parametrize("name", SMALL)
def test_prompts_demonstrations_and_openings_survive_the_tokenizer(name):
    tokenizer, rng, task = build_tokenizer(), random.Random(2), TASKS[name]
    for problem, text in corpus(task, rng, 300):
        for whole in (problem.prompt + text, *task.openings(problem).values()):
            ids = tokenizer(whole)["input_ids"]
            assert tokenizer.unk_token_id not in ids
            assert tokenizer.decode(ids, skip_special_tokens=True) == whole
            tokens = set(tokenizer.convert_ids_to_tokens(ids)) - {"<bos>"}
            assert tokens <= set(task.symbols)


@pytest.mark.parametrize("name", TASKS)
def test_an_unknown_split_is_refused(name):
    with pytest.raises(BadInput, match="expected 'train' or 'test'"):
        TASKS[name].problem(random.Random(0), "validation")


@pytest.mark.parametrize("name", TASKS)
@settings(max_examples=40, deadline=None)
@given(st.text("0123456789+-*/()=,:;?xaswtio<> \n\x00\ud800\u0663\uff13\u00b2", max_size=60))
def test_no_text_makes_a_verifier_raise(name, text):
    problem = held_out(TASKS[name], 1)[0]
    verifiers = (TASKS[name].verify, *WEAK[name].values())
    for shape in ("{}", "so{}", "<answer>{}</answer>"):
        rewards = [verify(problem, shape.replace("{}", text)) for verify in verifiers]
        assert all(type(reward) is float and reward in (0.0, 1.0) for reward in rewards)


@pytest.mark.parametrize("task, name", PAIRS)
@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_a_weak_verifier_takes_what_is_right_and_is_gamed(task, name, seed):
    rng, reward, task = random.Random(seed), WEAK[task][name], TASKS[task]
    problem = task.problem(rng)
    assert reward.name == name and reward(problem, reward.exploit(problem)) == 1.0
    assert task.verify(problem, reward.exploit(problem)) == 0.0
    text = task.demo(rng, problem)
    assert reward(problem, text) >= task.verify(problem, text)
    assert reward(problem, "") == 0.0  # it does not pay for everything


@pytest.mark.parametrize("task", WEAK)
def test_the_exploits_are_not_what_demonstrations_do(task):
    # How often the base model's teacher is paid for nothing: what training could start from.
    rng, found = random.Random(0), {name: 0 for name in WEAK[task]}
    for problem, text in corpus(TASKS[task], rng, 400):
        for name, reward in WEAK[task].items():
            found[name] += reward(problem, text) > TASKS[task].verify(problem, text)
    share = {name: n / 400 for name, n in found.items()}
    ranges = {
        "chain": {"contains": (0.03, 0.2), "last_digit": (0, 0)},
        "types": {"contains": (0.05, 0.35), "last_digit": (0, 0)},
        "pick": {"says_reached": (0, 0)},
        "countdown": {"value_only": (0, 0)},
        "sort": {"is_sorted": (0.14, 0.26)},
        "arithmetic_text": {"format_only": (0, 0)},
        "countdown_text": {"format_only": (0, 0), "value_only": (0, 0)},
    }[task]
    assert set(share) == set(ranges)
    assert all(low <= share[name] <= high for name, (low, high) in ranges.items()), share


@pytest.mark.parametrize(
    "task, name, text, paid",
    [
        ("chain", "contains", "so0123456789", 1.0),
        ("chain", "contains", "so12345678", 0.0),
        ("chain", "last_digit", "so1wait9", 1.0),
        ("chain", "last_digit", "so9wait1", 0.0),
        ("chain", "last_digit", "9 and \u0661", 1.0),  # only 0 to 9 are digits
        ("pick", "says_reached", "4+4=8,8+5=3:", 1.0),
        ("pick", "says_reached", "5+2=7,7+4=1;wait:", 0.0),
        ("countdown", "value_only", "so35", 1.0),
        ("countdown", "value_only", "so5*7", 1.0),
        ("countdown", "value_only", "35", 0.0),
        ("sort", "is_sorted", "1,1,11,11,39", 1.0),
        ("sort", "is_sorted", "1,1,11,11", 0.0),
        ("sort", "is_sorted", "2,1,11,11,39", 0.0),
        ("sort", "is_sorted", "9,10,11,12,13", 1.0),  # as numbers, not as text
        ("arithmetic_text", "format_only", "<answer>no</answer>", 1.0),
        ("arithmetic_text", "format_only", "<answer> </answer>", 0.0),
        ("countdown_text", "value_only", "<answer>5 * 7</answer>", 1.0),
        ("countdown_text", "value_only", "5 * 7", 0.0),
    ],
)
def test_what_each_weak_verifier_pays_for(task, name, text, paid):
    problem = {
        "chain": lambda t: t.parse("4+3-8=?"),
        "pick": lambda t: t.parse("44529:1?"),
        "countdown": lambda t: t.parse("3,7,8:35?"),
        "sort": lambda t: t.parse("39,24,12,22,15?"),
        "arithmetic_text": lambda t: t.parse("17 + 4 * 23"),
        "countdown_text": lambda t: t.ask([3, 7, 8], 35),
    }[task](TASKS[task])
    assert WEAK[task][name](problem, text) == paid


def test_only_ones_asked_for_are_gamed_with_zeros():
    sort = Sort()
    problem, reward = sort.parse("1,1,1?"), WEAK["sort"]["is_sorted"]
    assert reward.exploit(problem) == "0,0,0" and sort.verify(problem, "0,0,0") == 0.0


def test_an_unknown_weak_verifier_is_a_sentence_with_the_known_ones():
    assert weak_verifier(TASKS["chain"], "contains") is WEAK["chain"]["contains"]
    with pytest.raises(BadInput, match="'chain' has no weak verifier 'is_sorted'; it has contains"):
        weak_verifier(TASKS["chain"], "is_sorted")
