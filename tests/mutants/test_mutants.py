"""The list of mutants fits the sources, and a tenth of it is tried in every run of the suite."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # run.py is a script

import run  # noqa: E402
from mutants import MUTANTS, Mutant  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
A_TEST = "tests/objective/test_entropy_bonus.py::test_minimising_the_loss_raises_the_entropy"


def source(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def misfits(mutant: Mutant) -> list[str]:
    """What is wrong with an entry, a sentence each."""
    count = source(mutant.file).count(mutant.old)
    if count != 1:
        return [f"{mutant.name}: {mutant.old!r} occurs {count} times, expected once"]
    said = []
    changed = mutant.applied_to(source(mutant.file))
    try:
        before, after = ast.dump(ast.parse(source(mutant.file))), ast.dump(ast.parse(changed))
    except SyntaxError as error:
        return [f"{mutant.name}: no Python any more: {error}"]
    if before == after:
        said.append(f"{mutant.name}: it changes nothing")
    for test in mutant.tests:
        path, _, name = test.partition("::")
        function = re.escape(name.partition("[")[0])
        if not (ROOT / path).is_file():
            said.append(f"{mutant.name}: there is no file {path}")
        elif name and not re.search(rf"^def {function}\(", source(path), re.M):
            said.append(f"{mutant.name}: {path} has no test {name}")
    if not mutant.tests:
        said.append(f"{mutant.name}: no test is named that must go red")
    return said


def test_every_mutant_fits_the_sources():
    assert [sentence for mutant in MUTANTS for sentence in misfits(mutant)] == []


def test_no_mutant_stands_twice():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"old": "no such text"}, "occurs 0 times"),
        ({"old": "torch"}, "times, expected once"),
        ({"new": "return ("}, "no Python"),
        ({"new": "return torch.expm1(-log_ratio)  +  log_ratio"}, "changes nothing"),
        ({"tests": ("tests/objective/test_gone.py",)}, "no file tests/objective/test_gone.py"),
        ({"tests": (A_TEST + "_and_far",)}, "has no test"),
        ({"tests": ()}, "no test is named"),
    ],
)
def test_an_entry_that_does_not_fit_is_named(change, sentence):
    fields = {
        "file": "rlnb/objective/terms.py",
        "old": "return torch.expm1(-log_ratio) + log_ratio",
        "new": "return torch.expm1(log_ratio) - log_ratio",
        "why": "the other KL",
        "tests": (A_TEST,),
    }
    assert misfits(Mutant(**fields)) == []
    said = misfits(Mutant(**{**fields, **change}))
    assert len(said) == 1 and sentence in said[0]


def test_ten_turns_meet_every_mutant_once():
    turns = [run.share(MUTANTS, 10, turn) for turn in range(10)]
    assert sorted(m.name for part in turns for m in part) == sorted(m.name for m in MUTANTS)
    assert max(map(len, turns)) - min(map(len, turns)) <= 1
    assert run.share(MUTANTS, 10, 23) == turns[3]


@pytest.fixture
def tried(monkeypatch, tmp_path, capsys):
    """run.main with results of its own: (exit status, what it printed)."""
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.jsonl")

    def tried(*arguments: str, mutants: tuple[Mutant, ...] = MUTANTS) -> tuple[int, str]:
        monkeypatch.setattr(run, "MUTANTS", mutants)
        return run.main(list(arguments)), capsys.readouterr().out

    return tried


def test_this_turns_mutants_are_killed(tried):
    status, said = tried("--part", "10", "--seconds", "30")
    assert status == 0, said
    assert " killed " in said


def test_a_survivor_and_a_broken_mutant_are_told_and_remembered(tried):
    mutant = Mutant(
        "rlnb/objective/terms.py",
        "return log_ratio.square() / 2",
        "return log_ratio.square() * 0.5",
        "the same number in other words",
        (A_TEST,),
    )
    no_module = Mutant(
        "rlnb/objective/terms.py",
        "from rlnb.objective.batch import Batch\n",
        "from rlnb.objective.batch import Batch, nothing_of_this_name\n",
        "the tests cannot even begin",
        (A_TEST,),
    )
    status, said = tried("--part", "1", mutants=(mutant, no_module))
    assert status == 1
    assert "0 killed, 1 survived, 1 broken" in said
    assert "survived rlnb/objective/terms.py: the same number in other words" in said
    before = run.RESULTS.read_text()
    status, again = tried(mutants=(mutant, no_module))
    assert status == 1 and "0 killed, 1 survived, 1 broken" in again
    assert run.RESULTS.read_text() == before  # nothing ran a second time


def test_tests_that_are_red_without_a_mutant_are_no_proof(tried, tmp_path):
    mutant = Mutant(
        "rlnb/objective/terms.py",
        "return log_ratio.square() / 2",
        "return log_ratio.square()",
        "the half is gone",
        ("tests/objective/test_parts.py::test_that_was_renamed",),
    )
    status, said = tried(mutants=(mutant,))
    assert status == 1 and said.startswith("Before any mutant the tests are broken")
