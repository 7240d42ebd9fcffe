"""A test of tests: what the check says of the assertion that a learner has written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from rlnb import check
from rlnb.classroom.checking.silent_bug import SilentBug

BUGS = [b for name in check.__all__ if isinstance(b := getattr(check, name), SilentBug)]
PAGES = Path(__file__).parents[2] / "notebooks"
EACH = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)


def mean(x):
    return x.sum() / len(x)


def sum_over_three(x):
    return x.sum() / 3


BUG = SilentBug("silent_bug_00", mean, sum_over_three, "3 instead of len(x).", "another length")


def of_two(f):
    assert f(torch.tensor([1.0, 3.0])) == 2, "the mean of 1 and 3 is 2"


def of_three(f):
    assert f(torch.tensor([1.0, 2.0, 3.0])) == 2


def test_a_test_that_tells_them_apart_is_right_and_hears_the_story():
    verdict = BUG(of_two)
    assert verdict and repr(verdict) == ("right: your test tells them apart. 3 instead of len(x).")


@pytest.mark.parametrize("returned", [True, torch.tensor(True), 1])
def test_a_test_may_return_its_answer_instead_of_asserting_it(returned):
    assert BUG(lambda f: returned if f(torch.ones(2)) == 1 else False)
    assert BUG(lambda f: f(torch.tensor([1.0, 3.0])) == 2)  # a 0-d tensor


def test_a_test_that_sees_no_difference_is_told_so():
    verdict = BUG(of_three)
    assert verdict.kind == "wrong" and "passes on the broken code as well" in verdict.message
    assert not BUG(lambda f: f(torch.ones(2)) is not None)


def test_a_test_that_the_right_code_fails_is_told_so_with_its_own_words():
    def wrong(f):
        assert f(torch.tensor([1.0, 3.0])) == 4, "should be 4"

    assert repr(BUG(wrong)) == "wrong: your test also fails on the right code: should be 4"
    assert BUG(lambda f: f(torch.ones(2)) == 7).message == (
        "your test also fails on the right code"
    )


def test_another_exception_is_no_exposure():
    def crashes(f):
        f([1.0, 3.0])

    assert BUG(crashes).kind == "raised" and "AttributeError" in BUG(crashes).message

    def crashes_on_the_broken(f):
        if f(torch.tensor([1.0, 3.0])) != 2:
            raise ValueError("look")

    verdict = BUG(crashes_on_the_broken)
    assert verdict.kind == "raised" and "an assert has to fail there" in verdict.message
    many = BUG(lambda f: f(torch.ones(2)) == torch.ones(2))
    assert many.kind == "raised"  # neither True nor False


@pytest.mark.parametrize("stub", [None, ..., lambda f: ..., lambda f: None, lambda f: True])
def test_a_stub_is_not_attempted(stub):
    assert BUG(stub).kind == "not attempted"
    assert repr(BUG(stub)).startswith("not attempted: silent_bug_00: ")


def test_a_stub_that_raises_is_not_attempted():
    def todo(f):
        raise NotImplementedError

    assert BUG(todo).kind == "not attempted"


def test_a_result_in_place_of_the_test_is_explained():
    verdict = BUG(True)
    assert verdict.kind == "wrong" and "check.silent_bug_00(my_test)" in verdict.message


def test_a_test_that_draws_its_inputs_gets_the_same_verdict_and_leaves_the_generator_alone():
    before = torch.random.get_rng_state()
    seen = []

    def drawn(f):
        x = torch.randn(2)
        seen.append(x)
        assert torch.isclose(f(x), x.mean())

    assert BUG(drawn) and BUG(drawn)
    assert all(torch.equal(x, seen[0]) for x in seen)
    assert torch.equal(before, torch.random.get_rng_state())


def test_prints_and_warnings_of_a_test_are_kept_off_the_page(capsys, recwarn):
    import warnings

    def noisy(f):
        print("hello")
        warnings.warn("look", stacklevel=1)
        of_two(f)

    assert BUG(noisy)
    assert capsys.readouterr().out == "" and not recwarn.list


@EACH
def test_the_source_of_every_bug_can_be_printed(bug):
    assert bug.source.startswith("def ") and "\n" in bug.source
    assert max(len(line) for line in bug.source.splitlines()) <= 76
    assert getattr(check, bug.name) is bug and repr(bug).startswith(f"check.{bug.name}: ")


@EACH
def test_the_story_and_the_hint_are_short(bug):
    assert 20 < len(bug.story) <= 200 and "\n" not in bug.story
    assert 20 < len(bug.hint) <= 320


def sums_to_zero_in_every_group(advantages):
    A = advantages(torch.tensor([1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), 4)
    assert A.view(2, 4).sum(1).abs().max() < 1e-6


def test_the_misplaced_baseline_is_exposed_by_group_sums_and_by_a_bonus():
    assert check.silent_bug_grpo(sums_to_zero_in_every_group)

    def a_bonus_for_one_prompt_changes_nothing(advantages):
        rewards = torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 1.0])
        bonus = torch.tensor([5.0, 5.0, 5.0, 0.0, 0.0, 0.0])
        assert torch.allclose(advantages(rewards, 3), advantages(rewards + bonus, 3), atol=1e-5)

    assert check.silent_bug_grpo(a_bonus_for_one_prompt_changes_nothing)


def test_the_misplaced_baseline_survives_the_usual_tests():
    two = torch.tensor([1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    assert not check.silent_bug_grpo(lambda f: f(two, 4).sum().abs() < 1e-6)  # whole batch
    assert not check.silent_bug_grpo(lambda f: f(two[:4], 4).sum().abs() < 1e-6)  # one prompt
    assert not check.silent_bug_grpo(lambda f: f(two, 4).shape == (8,))


def test_a_baseline_that_looks_at_its_own_reward_is_exposed_by_moving_that_reward():
    def mine_does_not_move_it(advantages):
        before, after = (advantages(torch.tensor([mine, 1.0, 0.0, 0.5])) for mine in (1.0, 1.5))
        assert abs(after[0] - before[0] - 0.5) < 1e-6

    bug, half = check.silent_bug_baselines, torch.tensor([1.0, 1.0, 0.0, 0.0])
    assert bug(mine_does_not_move_it)
    assert bug(lambda f: abs(f(torch.tensor([1.0, 0.0, 0.0, 0.0])).sum()) < 1e-6)
    assert not bug(lambda f: abs(f(half).sum()) < 1e-6)
    assert not bug(lambda f: torch.allclose(f(half + 10), f(half)))


def test_a_test_that_exits_is_a_sentence_and_the_page_goes_on():
    def leaves(f):
        raise SystemExit(2)

    assert repr(BUG(leaves)) == "raised: SystemExit: 2 (on the right code)"


def test_what_a_test_prints_is_hidden_and_announced(capsys):
    def talks(f):
        print("calling")
        of_two(f)

    verdict = BUG(talks)
    assert verdict and capsys.readouterr().out == ""
    assert repr(verdict).endswith("\n(2 lines hidden: all that was printed while the probes ran)")


@EACH
def test_the_page_prints_the_code_as_it_stands_in_the_package(bug):
    stem = bug.name.removeprefix("silent_bug_")
    pages = [*PAGES.glob(f"??_{stem}.ipynb"), *PAGES.glob(f"statements/??_{stem}.ipynb")]
    printed = [
        "".join(cell["outputs"][0]["text"])
        for page in pages
        for cell in json.loads(page.read_text(encoding="utf-8"))["cells"]
        if f"print(check.{bug.name}.source)" in "".join(cell["source"])
    ]
    assert printed == [bug.source + "\n"]
