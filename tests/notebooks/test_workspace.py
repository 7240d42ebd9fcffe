"""work/: made on first use, never overwritten, and told what changed in the course."""

from __future__ import annotations

import json
import os

import pytest

from rlnb.classroom import workspace


@pytest.fixture
def course(tmp_path):
    notebooks = tmp_path / "notebooks"
    for name in ("00_start", "06_grpo", "solutions/06_grpo", "text/06_grpo"):
        file = notebooks / f"{name}.ipynb"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"course: {name}")
    (notebooks / "images").mkdir()
    (notebooks / "images" / "a.png").write_bytes(b"png")
    return notebooks, tmp_path / "work"


def notebook(*sources: str, ran: bool = False) -> str:
    """A page; `ran` gives it what a run leaves behind."""
    cells = [
        {"cell_type": "code", "source": [source], "metadata": {"time": ran}, "outputs": ["1"] * ran}
        for source in sources
    ]
    return json.dumps({"cells": cells, "nbformat": 4})


def test_first_use_copies_pages_solutions_and_pictures_only(course):
    notebooks, work = course
    new = set(workspace.upgrade(notebooks, work).new)
    assert new == {"00_start.ipynb", "06_grpo.ipynb", "solutions/06_grpo.ipynb", "images/a.png"}
    assert all((work / name).exists() for name in new)


def test_upgrade_adds_new_pages_and_leaves_the_learners_work_alone(course):
    notebooks, work = course
    workspace.upgrade(notebooks, work)
    (work / "06_grpo.ipynb").write_text("mine")
    (notebooks / "06_grpo.ipynb").write_text("course, second edition")
    (notebooks / "07_more.ipynb").write_text("course: 07")
    found = workspace.upgrade(notebooks, work)
    assert found == workspace.Upgrade(new=("07_more.ipynb",), stale=("06_grpo.ipynb",))
    assert (work / "06_grpo.ipynb").read_text() == "mine"


def test_upgrade_says_which_changed_pages_are_edited_and_which_are_not(course):
    notebooks, work = course
    for name in ("01_read", "02_run", "03_edited", "04_edited", "05_same"):
        (notebooks / f"{name}.ipynb").write_text(notebook("1", name))
    workspace.upgrade(notebooks, work)
    (work / "02_run.ipynb").write_text(notebook("1", "02_run", ran=True))
    (work / "03_edited.ipynb").write_text(notebook("2", "03_edited"))
    (work / "04_edited.ipynb").write_text(notebook("2", "04_edited"))
    for name in ("01_read", "02_run", "03_edited"):
        (notebooks / f"{name}.ipynb").write_text(notebook("1", name, "new"))
    found = workspace.upgrade(notebooks, work)
    assert found.untouched == ("01_read.ipynb", "02_run.ipynb"), "a run writes nothing in a page"
    assert found.stale == ("03_edited.ipynb",), "04 is edited, but the course's page is as it was"
    assert workspace.upgrade(notebooks, work) == found, "it is said until something is done"
    said = "\n".join(workspace.sentences(found))
    assert "not edited by you: 01_read, 02_run. `make fresh NB=--all` renews them." in said
    assert "edited by you: 03_edited. Your copies stay; `make fresh NB=03_edited`" in said


def test_fresh_all_renews_what_nobody_edited_and_nothing_else(course):
    notebooks, work = course
    workspace.upgrade(notebooks, work)
    (work / "06_grpo.ipynb").write_text("mine")
    for page in (*notebooks.glob("*.ipynb"), *notebooks.glob("solutions/*.ipynb")):
        page.write_text("second edition")
    found = workspace.renew_untouched(notebooks, work)
    assert found.untouched == ("00_start.ipynb", "solutions/06_grpo.ipynb")
    assert (work / "00_start.ipynb").read_text() == "second edition"
    assert (work / "solutions" / "06_grpo.ipynb").read_text() == "second edition"
    assert (work / "06_grpo.ipynb").read_text() == "mine"
    assert not list(work.rglob("*.old-*"))
    assert workspace.upgrade(notebooks, work) == workspace.Upgrade(stale=("06_grpo.ipynb",))


def test_pictures_follow_the_course(course):
    notebooks, work = course
    workspace.upgrade(notebooks, work)
    (notebooks / "images" / "a.png").write_bytes(b"second")
    assert workspace.upgrade(notebooks, work).pictures == ("images/a.png",)
    assert (work / "images" / "a.png").read_bytes() == b"second"
    assert workspace.upgrade(notebooks, work) == workspace.Upgrade()


def test_a_copy_follows_its_page_to_another_number(course):
    notebooks, work = course
    workspace.upgrade(notebooks, work)
    (work / "06_grpo.ipynb").write_text("mine")
    (work / "06_grpo.old-1.ipynb").write_text("mine, older")
    (work / "ppo.ipynb").write_text("a notebook of my own")
    (notebooks / "06_grpo.ipynb").rename(notebooks / "08_grpo.ipynb")
    (notebooks / "solutions" / "06_grpo.ipynb").rename(notebooks / "solutions" / "08_grpo.ipynb")
    (notebooks / "06_ppo.ipynb").write_text("another page has the number now")
    found = workspace.upgrade(notebooks, work)
    assert found.new == ("06_ppo.ipynb",)
    assert found.moved == (
        ("06_grpo.ipynb", "08_grpo.ipynb"),
        ("solutions/06_grpo.ipynb", "solutions/08_grpo.ipynb"),
    )
    assert (work / "08_grpo.ipynb").read_text() == "mine"
    assert (work / "08_grpo.old-1.ipynb").read_text() == "mine, older"
    assert not list(work.rglob("06_grpo*"))
    assert (work / "ppo.ipynb").read_text() == "a notebook of my own"
    assert found.stale == (), "its page is the same under the new number"


def test_a_copy_does_not_move_onto_another(course):
    notebooks, work = course
    workspace.upgrade(notebooks, work)
    (work / "06_grpo.ipynb").write_text("mine")
    (work / "08_grpo.ipynb").write_text("mine too")
    (notebooks / "06_grpo.ipynb").rename(notebooks / "08_grpo.ipynb")
    assert workspace.upgrade(notebooks, work).moved == ()
    assert (work / "06_grpo.ipynb").read_text() == "mine"
    assert (work / "08_grpo.ipynb").read_text() == "mine too"


@pytest.mark.parametrize("manifest", [None, "torn {", "[]", '{"files": {"00_start.ipynb": 3}}'])
def test_copies_that_nobody_wrote_down_count_as_edited_unless_they_are_the_same(course, manifest):
    notebooks, work = course
    workspace.upgrade(notebooks, work)
    (work / workspace.MANIFEST).unlink()
    if manifest is not None:
        (work / workspace.MANIFEST).write_text(manifest)
    (notebooks / "06_grpo.ipynb").write_text("second edition")
    assert workspace.upgrade(notebooks, work).stale == ("06_grpo.ipynb",)
    (notebooks / "00_start.ipynb").write_text("second edition")
    assert workspace.upgrade(notebooks, work).untouched == ("00_start.ipynb",)


def test_fresh_keeps_every_old_copy(course):
    notebooks, work = course
    workspace.upgrade(notebooks, work)
    for number, text in enumerate(("first", "second"), start=1):
        (work / "06_grpo.ipynb").write_text(text)
        page, kept = workspace.fresh("06", notebooks, work)
        assert kept == work / f"06_grpo.old-{number}.ipynb"
        assert kept.read_text() == text
        assert page.read_text() == "course: 06_grpo"
    assert (work / "06_grpo.old-1.ipynb").read_text() == "first"


def test_fresh_keeps_no_copy_of_an_untouched_page(course):
    notebooks, work = course
    workspace.upgrade(notebooks, work)
    (notebooks / "06_grpo.ipynb").write_text("second edition")
    page, kept = workspace.fresh("06", notebooks, work)
    assert kept is None and not list(work.glob("*.old-*"))
    assert page.read_text() == "second edition"
    assert workspace.upgrade(notebooks, work) == workspace.Upgrade()


def test_fresh_without_an_old_copy_makes_one(course):
    page, kept = workspace.fresh("6", *course)
    assert page.read_text() == "course: 06_grpo"
    assert kept is None


@pytest.mark.parametrize("name", ["06", "6", "grpo", "06_grpo", "06_grpo.ipynb"])
def test_page_is_found_by_number_and_by_name(course, name):
    assert workspace.find_page(name, course[0]).stem == "06_grpo"


def test_solutions_are_found_too(course):
    assert workspace.find_page("solutions/06", course[0]).parent.name == "solutions"
    assert workspace.find_page("solutions/grpo", course[0]).parent.name == "solutions"


@pytest.mark.parametrize("name", ["text/06", "../notebooks/06", "solutions/00"])
def test_no_other_folder_is_looked_into(course, name):
    with pytest.raises(workspace.WorkspaceError):
        workspace.find_page(name, course[0])


def test_unknown_page_is_one_sentence_with_the_list(course):
    with pytest.raises(workspace.WorkspaceError) as error:
        workspace.find_page("42", course[0])
    assert str(error.value) == ("no page '42'. Pages: 00_start, 06_grpo. Example: make fresh NB=06")


def test_missing_number_is_asked_for(capsys):
    assert workspace.main(["fresh", ""]) == 2
    assert capsys.readouterr().err == "which page? Example: make fresh NB=06, or NB=--all\n"


def test_empty_course_is_refused(tmp_path):
    with pytest.raises(workspace.WorkspaceError, match="no pages in"):
        workspace.upgrade(tmp_path, tmp_path / "work")


def test_users_own_jupyter_settings_still_count(monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "mine")
    assert workspace.lab_environment()["JUPYTER_CONFIG_PATH"].split(os.pathsep)[1] == "mine"
