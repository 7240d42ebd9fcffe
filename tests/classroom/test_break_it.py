"""The lab: its right functions are the package's, every bug is one, and our own tests kill them."""

from __future__ import annotations

import types

import jupytext
import pytest
import torch

from rlnb.classroom.breaking.bench import bench
from rlnb.classroom.breaking.lab import benches, break_it, code_of
from rlnb.classroom.exercises import (
    aggregation,
    clipping,
    credit,
    evaluation,
    groups,
    kl,
    preferences,
)
from rlnb.classroom.pages import NOTEBOOKS

BENCHES = benches()
PAGES = NOTEBOOKS / "extras" / "text"
ALL_BUGS = [(name, i) for name, b in BENCHES.items() for i in range(1, len(b.bugs) + 1)]


@pytest.fixture(scope="module")
def solved():
    """The tests of the page that solves the lab: every function of its cells with one parameter."""
    cells = jupytext.read(PAGES / "break_it_solved.py").cells
    source = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    default = torch.get_default_dtype()
    space: dict = {}
    try:
        exec(compile(source, "break_it_solved", "exec"), space)
        found = [
            value
            for value in space.values()
            if isinstance(value, types.FunctionType)
            and value.__code__.co_argcount == 1
            and value.__code__.co_varnames[0] in BENCHES
        ]
        yield found
    finally:
        torch.set_default_dtype(default)


def test_our_own_tests_kill_every_bug(solved):
    board = break_it(*solved)
    assert not board.refused, board
    assert board.survivors == [], board
    assert "none lives" in repr(board)


def test_without_any_one_test_some_bug_lives(solved):
    """So the lab cannot be solved by fewer functions than it has, and the board can fail."""
    for left_out in solved:
        others = [test for test in solved if test is not left_out]
        assert break_it(*others).survivors, f"{left_out.__name__} is not needed"


@pytest.mark.parametrize(("name", "number"), ALL_BUGS)
def test_a_bug_is_one_line_that_occurs_once_and_still_compiles(name, number):
    bug = BENCHES[name].bugs[number - 1]
    assert bug.old != bug.new and bug.what and bug.seen
    assert callable(BENCHES[name].broken(bug))
    assert code_of(name, number) != code_of(name)


def test_no_two_bugs_of_a_function_are_the_same():
    for name, b in BENCHES.items():
        sources = [b.source_with(bug) for bug in b.bugs]
        assert len(set(sources)) == len(sources), name
        assert len({bug.what for bug in b.bugs}) == len(b.bugs), name


def test_the_lab_has_the_errors_of_the_field():
    """Teaching material and libraries by name, not only slips that anyone could invent."""
    seen = [bug.seen for b in BENCHES.values() for bug in b.bugs]
    for source in (
        "reasoning-from-scratch", "RLHF book", "Hugging Face course", "nanochat", "NeMo-RL #1518",
        "ms-swift #10117", "trl #5619", "trl #6439", "nano-aha-moment", "GRPO-Zero",
    ):  # fmt: skip
        assert any(source in one for one in seen), source
    assert sum(one != "a habit of learners" for one in seen) >= 38


def right(name):
    return BENCHES[name].function


def drawn(*shape, seed=0):
    made = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=made, dtype=torch.float64)


def exercise_pass_at_k(n, c, k):
    return evaluation.pass_at_k(n, torch.tensor([float(c)]), k)[0]


def exercise_dpo(chosen, rejected, ref_chosen, ref_rejected, beta):
    logp, ref = torch.cat([chosen, rejected]), torch.cat([ref_chosen, ref_rejected])
    return preferences.dpo_loss(logp[:, None], ref[:, None], torch.ones(6, 1).bool(), beta)


MASK = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])


@pytest.mark.parametrize(
    ("name", "theirs", "arguments"),
    [
        ("group_advantages", groups.group_advantages, (drawn(12), 4)),
        ("token_mean", aggregation.token_mean, (drawn(2, 5), MASK)),
        ("constant_mean", aggregation.constant_length, (drawn(2, 5), MASK, 9)),
        ("clipped_surrogate", clipping.surrogate_clip, (drawn(9).exp(), drawn(9, seed=1), 0.2)),
        ("k3", kl.k3, (drawn(9), drawn(9, seed=1))),
        ("gae", credit.gae, (drawn(6), drawn(6, seed=1), 0.9, 0.8)),
        ("pass_at_k", exercise_pass_at_k, (9, 3, 5)),
        ("dpo_loss", exercise_dpo, (*(drawn(3, seed=k) for k in range(4)), 0.3)),
    ],
)
def test_the_right_function_is_the_one_of_the_exercises(name, theirs, arguments):
    mine = torch.as_tensor(right(name)(*arguments), dtype=torch.float64)
    other = torch.as_tensor(theirs(*arguments), dtype=torch.float64)
    if mine.ndim and not other.ndim:
        mine = mine.mean()
    torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-12)


def test_a_test_that_fails_on_the_right_function_is_left_out_and_named():
    def wrong(k3):
        assert k3(torch.zeros(1), torch.zeros(1)) == 1

    board = break_it(wrong)
    assert "wrong fails on the right k3" in repr(board) and board.counts[0] == 0
    assert board.counts == (0, len(ALL_BUGS))


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (lambda k4: None, "no function 'k4'"),
        (lambda k3, gae: None, "one, the function to test"),
        (3, "is no test"),
        (lambda k3: ..., "still returns"),
    ],
)
def test_what_is_no_test_is_named_and_nothing_raises(test, said):
    assert said in repr(break_it(test))


def test_a_bug_stays_dead_whatever_test_comes_after():
    tests = [lambda pass_at_k: pass_at_k(4, 2, 2) > 0.8, lambda pass_at_k: pass_at_k(4, 1, 1) > 0]
    assert break_it(*tests).killed["pass_at_k"] == (True,) * 3


def test_false_kills_and_none_passes():
    board = break_it(lambda pass_at_k: pass_at_k(4, 1, 1) == 0.25)
    assert board.tested == {"pass_at_k"}
    assert board.killed["pass_at_k"] == (False, False, False)  # k = 1: all bugs agree
    assert break_it(lambda pass_at_k: pass_at_k(4, 2, 2) > 0.8).killed["pass_at_k"] == (True,) * 3


def test_a_test_that_draws_gets_the_same_verdict_every_time():
    def draws(k3):
        x = torch.randn(3)
        assert (k3(x, torch.zeros(3)) >= 0).all()

    assert break_it(draws) == break_it(draws)


def test_a_bug_whose_text_is_not_there_is_refused():
    broken = bench(right("k3"), ("x", "y", "no such text", "z"))
    with pytest.raises(ValueError, match="occurs 0 times"):
        broken.source_with(broken.bugs[0])
    with pytest.raises(ValueError, match="bugs 1 to 6, got 7"):
        code_of("k3", 7)


def test_the_scoreboard_is_remembered(monkeypatch, tmp_path):
    from rlnb.classroom import progress

    monkeypatch.setenv("RLNB_PROGRESS", str(tmp_path / "mine.json"))
    break_it(lambda pass_at_k: pass_at_k(4, 2, 2) > 0.8)
    assert progress.recall("lab", "break_it") == {"killed": 3, "there": len(ALL_BUGS)}


def test_the_pages_say_how_many():
    text = (PAGES / "break_it.py").read_text(encoding="utf-8")
    assert f"{len(ALL_BUGS)} bugs" in text and f"kills all {len(ALL_BUGS)}" in text
    assert "Nineteen small functions" in text and len(BENCHES) == 19
