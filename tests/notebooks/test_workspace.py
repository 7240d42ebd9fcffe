"""work/: made on first use, never overwritten, and JupyterLab that asks nobody for anything."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
import urllib.request

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


def test_first_use_copies_pages_solutions_and_pictures_only(course):
    notebooks, work = course
    new = {path.relative_to(work).as_posix() for path in workspace.copy_missing(notebooks, work)}
    assert new == {"00_start.ipynb", "06_grpo.ipynb", "solutions/06_grpo.ipynb", "images/a.png"}


def test_upgrade_adds_new_pages_and_leaves_the_learners_work_alone(course):
    notebooks, work = course
    workspace.copy_missing(notebooks, work)
    (work / "06_grpo.ipynb").write_text("mine")
    (notebooks / "06_grpo.ipynb").write_text("course, second edition")
    (notebooks / "07_more.ipynb").write_text("course: 07")
    assert workspace.copy_missing(notebooks, work) == [work / "07_more.ipynb"]
    assert (work / "06_grpo.ipynb").read_text() == "mine"


def test_fresh_keeps_every_old_copy(course):
    notebooks, work = course
    workspace.copy_missing(notebooks, work)
    for number, text in enumerate(("first", "second"), start=1):
        (work / "06_grpo.ipynb").write_text(text)
        page, kept = workspace.fresh("06", notebooks, work)
        assert kept == work / f"06_grpo.old-{number}.ipynb"
        assert kept.read_text() == text
        assert page.read_text() == "course: 06_grpo"
    assert (work / "06_grpo.old-1.ipynb").read_text() == "first"


def test_fresh_without_an_old_copy_makes_one(course):
    page, kept = workspace.fresh("6", *course)
    assert page.read_text() == "course: 06_grpo"
    assert kept is None


@pytest.mark.parametrize("name", ["06", "6", "06_grpo", "06_grpo.ipynb"])
def test_page_is_found_by_number_and_by_name(course, name):
    assert workspace.find_page(name, course[0]).stem == "06_grpo"


def test_solutions_are_found_too(course):
    assert workspace.find_page("solutions/06", course[0]).parent.name == "solutions"


def test_unknown_page_is_one_sentence_with_the_list(course):
    with pytest.raises(workspace.WorkspaceError) as error:
        workspace.find_page("42", course[0])
    assert str(error.value) == ("no page '42'. Pages: 00_start, 06_grpo. Example: make fresh NB=06")


def test_missing_number_is_asked_for(capsys):
    assert workspace.main(["fresh", ""]) == 2
    assert capsys.readouterr().err == "which page? Example: make fresh NB=06\n"


def test_empty_course_is_refused(tmp_path):
    with pytest.raises(workspace.WorkspaceError, match="no pages in"):
        workspace.copy_missing(tmp_path, tmp_path / "work")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """JupyterLab as `make lab` starts it, without a browser and away from the user's settings."""
    root = tmp_path_factory.mktemp("work")
    (root / "00.ipynb").write_text('{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}')
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = tmp_path_factory.mktemp("home")
    names = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    away = {name: str(home / name.lower()) for name in names}
    flags = ["--no-browser", f"--ServerApp.port={port}", "--IdentityProvider.token=t"]
    command = workspace.lab_command(root / "00.ipynb", flags, work=root)
    with open(home / "log", "w") as log:
        server = subprocess.Popen(
            command, env=workspace.lab_environment() | away, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield lambda path: ask(f"http://127.0.0.1:{port}{path}", server, home / "log")
    finally:
        server.terminate()
        server.wait(20)


def ask(url, server, log):
    deadline = time.monotonic() + 60
    while True:
        try:
            request = urllib.request.Request(url, headers={"Authorization": "token t"})
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)


def test_lab_opens_the_learners_folder(lab):
    contents = json.loads(lab("/api/contents"))["content"]
    assert [file["name"] for file in contents] == ["00.ipynb"]


def test_lab_asks_nobody_for_news_or_updates(lab):
    page = lab("/lab")
    config = json.loads(re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.S)[1])
    assert config.get("news", {}).get("disabled") is not False
    settings = json.loads(lab("/lab/api/settings/@jupyterlab/apputils-extension:notification"))
    defaults = settings["schema"]["properties"]
    assert defaults["fetchNews"]["default"] == "false", "no question about news at the first start"
    assert defaults["checkForUpdates"]["default"] is False
    assert json.loads(lab("/lab/api/update"))["notification"] is None


def test_users_own_jupyter_settings_still_count(monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "mine")
    assert workspace.lab_environment()["JUPYTER_CONFIG_PATH"].split(os.pathsep)[1] == "mine"
