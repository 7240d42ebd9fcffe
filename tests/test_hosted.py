"""Files for machines that are not here: hosted CI, dev containers, Binder, Colab. Read, not run."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import yaml

from rlnb.classroom.notebook_display import ipywidgets, widget_view
from rlnb.classroom.workspace import lab_environment

ROOT = Path(__file__).resolve().parents[1]
WORKFLOW = ROOT / ".github" / "workflows" / "check.yml"
CPU = "https://download.pytorch.org/whl/cpu"
LOCKED = re.search(r"^torch==(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)[1]


def make_targets(command: str) -> list[str]:
    return re.findall(r"\bmake ((?:\.venv/\.)?[a-z][\w-]*)", command)


def test_the_workflow_runs_the_readmes_commands_with_actions_pinned_by_tag():
    read = yaml.safe_load(WORKFLOW.read_text())
    assert set(read["jobs"]) == {"test", "site"}
    assert read[True].keys() == {"push", "pull_request"}  # yaml reads the word `on` as true
    assert read["env"]["TORCH"] == LOCKED
    made = []
    for job in read["jobs"].values():
        assert re.fullmatch(r"ubuntu-\d\d\.04", job["runs-on"]), "a version, not `latest`"
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            if "uses" in step:
                assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
            made += make_targets(step.get("run", ""))
    assert made == ["test", "site"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in made)
    upload = read["jobs"]["site"]["steps"][-1]
    assert upload["with"]["path"] == "site/" and upload["with"]["if-no-files-found"] == "error"


def test_torch_comes_before_make_everywhere_and_without_cuda():
    read = yaml.safe_load(WORKFLOW.read_text())
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    for commands in (
        *("\n".join(step.get("run", "") for step in job["steps"]) for job in read["jobs"].values()),
        container["postCreateCommand"],
    ):
        assert commands.index(CPU) < commands.index("make ")


def test_the_dev_container_installs_what_the_tests_need():
    read = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert re.search(r":\d+-3\.11-\w+$", read["image"]), "pinned by tag, the locks' Python"
    assert f"torch=={LOCKED} --index-url {CPU}" in read["postCreateCommand"]
    assert make_targets(read["postCreateCommand"]) == [".venv/.installed-test"]
    assert "READY_TO_TEST := $(VENV)/.installed-test" in (ROOT / "Makefile").read_text()
    assert "chromium" in read["onCreateCommand"]


def test_binder_gets_the_locked_versions():
    lines = (ROOT / "binder" / "requirements.txt").read_text().splitlines()
    given = [line for line in lines if not line.startswith("#")]
    expected = [
        f"--extra-index-url {CPU}",
        f"torch=={LOCKED}+cpu",
        "-r ../requirements.txt",
        "-e .",
    ]
    assert given == expected
    assert (ROOT / "binder" / "runtime.txt").read_text() == "python-3.11\n"


def test_binder_starts_with_the_settings_of_make_lab(tmp_path):
    script = ROOT / "binder" / "start"
    assert stat.S_IMODE(script.stat().st_mode) & stat.S_IXUSR
    bare = {"PATH": os.environ["PATH"], "JUPYTER_PATH": "before"}
    said = subprocess.run(
        [str(script), "env"], cwd=ROOT, env=bare, capture_output=True, text=True, check=True
    )
    told = dict(line.split("=", 1) for line in said.stdout.splitlines())
    ours = lab_environment()
    assert told["JUPYTER_CONFIG_PATH"] == ours["JUPYTER_CONFIG_PATH"].split(os.pathsep)[0]
    assert told["JUPYTER_PATH"] == ours["JUPYTER_PATH"].split(os.pathsep)[0] + ":before"


def test_the_cell_for_a_lesson_in_colab_installs_the_course_and_finds_it(monkeypatch):
    part = (ROOT / "README.md").read_text().split("**A lesson in Colab.**")[1].split("Tried")[0]
    cell = "\n".join(line[4:] for line in part.splitlines() if line.startswith("    "))
    ran = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: ran.append(command))
    monkeypatch.setattr(sys, "path", list(sys.path))
    exec(compile(cell, "cell", "exec"), {})
    assert ran == [[sys.executable, "-m", "pip", "install", "-q", "-e", "/content/rlnb"]]
    assert sys.path[0] == "/content/rlnb"


def test_a_widget_is_shown_the_same_way_by_the_ipywidgets_that_colab_has():
    class Before8:
        """What an ipywidgets 7 widget has: a model, and no bundle."""

        model_id = "abc"

    class Since8(Before8):
        def _repr_mimebundle_(self):
            made = dict(ipywidgets.Label("x")._repr_mimebundle_())
            made["application/vnd.jupyter.widget-view+json"]["model_id"] = self.model_id
            return made

    now = widget_view(Since8())
    now.pop("text/plain")
    assert widget_view(Before8()) == now
