"""The map of the course: what there is to do on each page, and what a learner has done."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from rlnb import check
from rlnb.classroom import course as room
from rlnb.classroom import progress
from rlnb.classroom.course import Page, Tally, course, export, read_course, tallies
from rlnb.classroom.pages import NOTEBOOKS, ROOT
from rlnb.classroom.questions import bank

PPO = Page("06_ppo", "PPO", "?", 30, ("ppo.1", "ppo.2"), ("ppo.t/1", "ppo.t/2"), ("gae",), ("A06",))


@pytest.fixture
def learner(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv("RLNB_PROGRESS", str(path))
    return path


def test_the_file_of_the_course_is_what_the_pages_have():
    """`python -m rlnb.classroom.pages build PAGE` rewrites it."""
    assert json.loads(json.dumps([asdict(page) for page in read_course(NOTEBOOKS)])) == json.loads(
        (ROOT / "data" / "course.json").read_text(encoding="utf-8")
    )


def test_no_key_stands_on_two_pages():
    keys = [key for page in course() for key in (*page.guesses, *page.tasks, *page.statements)]
    assert len(keys) == len(set(keys))


def test_every_exercise_of_the_map_is_a_check():
    for page in course():
        assert set(page.exercises) <= set(check.__all__), page.stem


def test_nothing_done_counts_nothing():
    assert tallies(PPO, {}) == {
        "guesses": Tally(0, 0, 2),
        "tasks": Tally(0, None, 2),
        "exercises": Tally(0, None, 1),
        "statements": Tally(0, 0, 1),
    }


def test_each_kind_is_counted_from_its_own_facts():
    kept = {
        "guess": {"ppo.1": {"guess": "a", "right": True}, "ppo.2": {"guess": "b", "right": False}},
        "task": {"ppo.t": {"2": True}},
        "check": {"gae": {"passed": True}, "k3": {"passed": True}},
        "statement": {"A06": {"guess": "true", "settled": True, "right": False}},
    }
    counted = {kind: str(tally) for kind, tally in tallies(PPO, kept).items()}
    assert counted == {
        "guesses": "2 of 2, 1 right",
        "tasks": "1 of 2",
        "exercises": "1 of 1",
        "statements": "1 of 1, 0 right",
    }


def test_a_guess_without_an_answer_opened_is_done_and_not_yet_right():
    assert tallies(PPO, {"guess": {"ppo.1": {"guess": 3.0}}})["guesses"] == Tally(1, 0, 2)


def test_a_passed_check_is_remembered_and_a_failed_one_is_not(learner):
    check.gae(lambda *_: None)
    assert progress.recall("check", "gae") == {}
    assert check.largest_advantage is check.largest_advantage
    riddles = [name for name in check.__all__ if name.startswith("name_this")]
    riddle = getattr(check, riddles[0])
    riddle("no such method")
    assert progress.recall("check", riddle.name) == {}
    riddle(riddle.answer)
    assert progress.recall("check", riddle.name) == {"passed": True}


def test_the_map_has_a_row_for_every_page(monkeypatch):
    shown = []
    monkeypatch.setattr("rlnb.classroom.notebook_display.display", shown.append)
    room.course_map()
    table = shown[0].data["text/markdown"]
    for page in course():
        assert f"| {page.number} | [{page.title}]({page.stem}.ipynb) |" in table
    assert len(shown[0].data["text/plain"].splitlines()) == len(course()) + 3


def test_below_the_pages_the_map_counts_bugs_and_questions_and_names_the_ledger(learner):
    before = [row[3] for row in room.beside(progress.everything())]
    assert before[0].startswith("0 of ") and before[1].startswith("0 of ") and before[2] == ""
    progress.record("lab", "break_it", killed=7, there=30)
    first, second = (question.id for question in bank()[:2])
    progress.record("question", first, grade="knew")
    progress.record("question", second, grade="no")
    after = [row[3] for row in room.beside(progress.everything())]
    assert after[0].startswith("7 of ") and after[1] == f"1 of {len(bank())} questions"


def test_an_export_has_the_counts_and_the_facts_and_overwrites_nothing(learner, tmp_path):
    progress.record("guess", "ppo.1", guess="a", right=True)
    file = export(tmp_path / "ada.json", "Ada")
    told = json.loads(file.read_text(encoding="utf-8"))
    assert told["learner"] == "Ada" and told["format"] == room.EXPORT
    assert told["pages"]["06_ppo"]["guesses"]["done"] == 1
    assert told["facts"]["guess"]["ppo.1"]["guess"] == "a"
    with pytest.raises(FileExistsError, match="exists and is kept"):
        export(tmp_path / "ada.json", "Ada")
    with pytest.raises(ValueError, match="name is empty"):
        export(tmp_path / "other.json", " ")


def test_the_command_prints_the_map_writes_an_export_and_says_what_is_missing(
    learner, tmp_path, capsys
):
    assert room.main(["progress"]) == 0
    assert "06 PPO: guesses 0 of" in capsys.readouterr().out
    file = tmp_path / "a.json"
    assert room.main(["progress", "export", str(file), "--name", "Ada"]) == 0 and file.exists()
    assert room.main(["progress", "export", str(file), "--name", "Ada"]) == 1
    assert "exists and is kept" in capsys.readouterr().err
    assert room.main(["progress", "export"]) == 2
