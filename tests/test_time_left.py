"""The order of a run, its groups, and what the lines of progress say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import time_left
from time_left import Progress, Recorded

ROOT = Path(__file__).resolve().parents[1]
RECORDED = {"a.py": Recorded(100.0, 10), "b.py": Recorded(20.0, 2)}


class Report:
    """As much of a pytest report as is read."""

    def __init__(self, nodeid, when="teardown", outcome="passed", duration=1.0):
        self.nodeid, self.when, self.outcome, self.duration = nodeid, when, outcome, duration
        self.passed, self.failed = outcome == "passed", outcome == "failed"


def progress(workers: int = 2, recorded=RECORDED) -> Progress:
    class Config:
        def getoption(self, name, default=None):
            return ["popen"] * workers if name == "tx" else default

    return Progress(Config(), show=False, recorded=recorded)


IDS = [f"a.py::t[{i}]" for i in range(10)] + ["b.py::x", "b.py::y"]


def test_a_page_is_a_group_and_any_other_file_is_one():
    page = "tests/notebooks/test_nbval.py::test_page_prints_what_is_committed[{}]"
    groups = {time_left.group_of(page.format(name)) for name in ("06_grpo", "solutions/06_grpo")}
    assert len(groups) == 2
    other = "tests/notebooks/test_nbval.py::test_another_cpu_prints_the_same[06_grpo]"
    assert time_left.group_of(other) == "tests/notebooks/test_nbval.py"
    assert time_left.group_of("a.py::t[x@y]") == "a.py"


def test_time_left_starts_from_what_was_recorded_and_takes_up_this_machines_pace():
    run = progress()
    run.expect(IDS)
    assert "0 of 12 tests; 0:00 gone, about 1:00 left" in run.sentence(0.0)
    for nodeid in IDS[:6]:  # half of the recorded work, at half the pace
        run.pytest_runtest_logreport(Report(nodeid))
    assert "6 of 12 tests; 1:00 gone, about 1:00 left" in run.sentence(60.0)
    for nodeid in IDS[6:]:
        run.pytest_runtest_logreport(Report(nodeid))
    assert "12 of 12 tests; 2:00 gone, about 0:00 left" in run.sentence(120.0)


def test_a_second_workers_collection_does_not_start_the_count_anew():
    run = progress()
    run.expect(IDS)
    run.pytest_runtest_logreport(Report(IDS[0]))
    run.pytest_xdist_node_collection_finished(IDS)
    assert run.sentence(1.0).startswith("    1 of 12 tests")


def test_failures_are_counted_in_the_line():
    run = progress()
    run.expect(IDS)
    run.pytest_runtest_logreport(Report(IDS[0], "call", "failed"))
    assert "0 of 12 tests, 1 failed; " in run.sentence(1.0)


def test_durations_are_written_only_when_asked_for_and_after_a_whole_run(tmp_path, monkeypatch):
    file = tmp_path / "tests" / "durations.json"
    file.parent.mkdir()
    (tmp_path / "b.py").touch()
    monkeypatch.setattr(time_left, "RECORDED", file)
    monkeypatch.delenv("RLNB_DURATIONS", raising=False)
    monkeypatch.setattr(time_left.write, "__defaults__", (file,))
    run = progress(recorded=RECORDED | {"gone.py": Recorded(5.0, 1)})
    run.expect(IDS[:10])
    for when in ("setup", "call", "teardown"):
        for nodeid in IDS[:10]:
            run.pytest_runtest_logreport(Report(nodeid, when, duration=0.5))
    run.pytest_sessionfinish(0)
    assert not file.exists()
    monkeypatch.setenv("RLNB_DURATIONS", "write")
    run.pytest_sessionfinish(2)
    assert not file.exists(), "interrupted"
    run.pytest_sessionfinish(0)
    assert json.loads(file.read_text()) == {"b.py": [20.0, 2], "a.py": [15.0, 10]}, (
        "measured anew, kept from before, and gone with its file"
    )


def test_recorded_groups_are_files_and_pages_that_exist():
    recorded = time_left.read()
    assert recorded, "tests/durations.json: RLNB_DURATIONS=write make test"
    missing = [group for group in recorded if not (ROOT / group.split("::")[0]).exists()]
    assert not missing


SLOW, QUICK, BAD = "test_slow.py", "test_quick.py", "test_bad.py"


@pytest.fixture
def small_suite(tmp_path):
    """A project of three files and the course's conftest, run by two workers."""
    tests = tmp_path / "tests"
    tests.mkdir()
    for name in ("conftest.py", "time_left.py"):
        (tests / name).write_text((ROOT / "tests" / name).read_text())
    (tests / QUICK).write_text("def test_a(): pass\ndef test_b(): pass\n")
    (tests / SLOW).write_text("def test_c(): pass\n")
    recorded = {f"tests/{SLOW}": [9.0, 1], f"tests/{QUICK}": [0.1, 2]}
    (tests / "durations.json").write_text(json.dumps(recorded))
    settings = '[tool.pytest.ini_options]\npythonpath = ["tests"]\n'
    (tmp_path / "pyproject.toml").write_text(settings)

    def run(*flags):
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *flags]
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "RLNB_"))
        }
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, env=environment
        )

    return tests, run


def test_the_longest_file_starts_first_and_a_file_stays_in_one_process(small_suite):
    tests, run = small_suite
    done = run("-n", "2", "--no-loadscope-reorder", "-v")
    ran = re.findall(r"\[(gw\d)\] .* PASSED tests/(\w+\.py)::\w+", done.stdout)
    assert len(ran) == 3, done.stdout + done.stderr
    workers = {file: {worker for worker, name in ran if name == file} for file in (SLOW, QUICK)}
    assert len(workers[QUICK]) == 1 and workers[QUICK] != workers[SLOW]
    collected = run("--collect-only", "-q").stdout.splitlines()
    assert collected[0].startswith(f"tests/{SLOW}")


def test_with_time_left_a_failure_is_named_at_once_and_in_the_end(small_suite):
    tests, run = small_suite
    (tests / BAD).write_text("def test_d(): assert 1 == 2\n")
    done = run("-n", "2", "--time-left")
    assert done.returncode == 1
    at_once, _, end = done.stdout.partition("= FAILURES =")
    assert f"FAILED tests/{BAD}::test_d" in at_once
    assert re.search(rf"^FAILED tests/{BAD}::test_d.* - assert 1 == 2", end, re.MULTILINE)
    assert "1 failed, 3 passed" in end
    assert "...." not in at_once
