"""A class's files in one table: counts by hand, and a file that is none is named."""

from __future__ import annotations

import json

import pytest

from rlnb.classroom.class_table import as_csv, as_table, hardest, main, read_export, read_exports
from rlnb.classroom.course import course, export


@pytest.fixture
def files(monkeypatch, tmp_path):
    """Ada has made two guesses of page 08, one right; Ben all of them, and exported twice."""
    page = next(p for p in course() if p.stem == "08_grpo")
    done = {
        "Ada": {"grpo.1": True, "grpo.2": False},
        "Ben": {key: key != "grpo.2" for key in page.guesses},
    }
    made = []
    for name, guesses in done.items():
        notes = tmp_path / f"{name}.notes"
        facts = {key: {"guess": "x", "right": right} for key, right in guesses.items()}
        notes.write_text(json.dumps({"version": 1, "guess": facts}))
        monkeypatch.setenv("RLNB_PROGRESS", str(notes))
        made.append(export(tmp_path / f"{name}.json", name))
    return made


def column(table, number):
    head, *rows = table.splitlines()[1:]
    at = head.index(f" {number}") + len(number) + 1
    return {row.split()[0]: row[at - 4 : at].strip() for row in rows}


def test_percent_done_by_hand(files):
    page = next(p for p in course() if p.stem == "08_grpo")
    there = sum(map(len, (page.guesses, page.tasks, page.exercises, page.statements)))
    table = as_table(read_exports(files))
    assert table.splitlines()[0] == "2 learners, percent done"
    ben = len(page.guesses)
    assert column(table, "08") == {
        "Ada": f"{200 / there:.0f}", "Ben": f"{100 * ben / there:.0f}",
        "median": f"{200 / there:.0f}",
    }  # fmt: skip
    assert set(column(table, "07").values()) == {""}
    assert column(as_table(read_exports(files), ["guesses"]), "08")["Ben"] == "100"


def test_what_most_got_wrong_comes_first(files):
    assert hardest(read_exports(files)) == [("grpo.2", 2, 2)]


def test_the_command_prints_table_and_misses(files, capsys):
    assert main(["class", *map(str, files)]) == 0
    told = capsys.readouterr().out
    assert "Ada" in told and "missed most: grpo.2 2 of 2" in told
    assert main(["class", *map(str, files), "--by", "guesses", "--csv"]) == 0
    head, ada, *_ = capsys.readouterr().out.splitlines()
    assert head.startswith("learner,") and ada.startswith("Ada,")


def test_two_files_of_one_name_both_stand(files, tmp_path):
    again = tmp_path / "again.json"
    again.write_text(files[0].read_text())
    assert [one.name for one in read_exports([*files, again])] == ["Ada", "Ada (2)", "Ben"]


def test_a_file_of_an_older_course_is_held_to_todays(files):
    content = json.loads(files[1].read_text())
    content["pages"]["08_grpo"]["guesses"] |= {"done": 1, "there": 1}
    files[1].write_text(json.dumps(content))
    today = len(next(p for p in course() if p.stem == "08_grpo").guesses)
    table = as_table(read_exports(files), ["guesses"])
    assert column(table, "08")["Ben"] == f"{100 / today:.0f}"


def test_a_name_is_no_formula_of_a_spreadsheet(files):
    content = json.loads(files[0].read_text()) | {"learner": "=1+1"}
    files[0].write_text(json.dumps(content))
    assert "\n'=1+1," in as_csv(read_exports(files))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json", "cannot be read as JSON"),
        ("[]", "got 'list'"),
        ('{"format": "other"}', "got 'other'"),
        ('{"format": "rlnb-progress-1"}', "no learner's name"),
    ],
)
def test_a_file_that_is_no_export_is_named(tmp_path, capsys, text, said):
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_export(file)
    assert main(["class", str(file)]) == 2
    assert "x.json" in capsys.readouterr().err
    assert main(["class", str(tmp_path / "none.json")]) == 2
