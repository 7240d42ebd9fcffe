"""Which tests belong together, how long they took last time, and how much of a run is left.

A group is what one process runs from start to end: a file of tests, because its fixtures are made
once in it; or one page of the course, because pages are long and share nothing. The seconds of each
group stand in durations.json, as on the machine that wrote it; a run on another one corrects them
by its own pace. `RLNB_DURATIONS=write make test` writes them anew.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

RECORDED = Path(__file__).with_name("durations.json")
UNKNOWN_SECONDS = 0.1  # of a test in a group that was never recorded
EVERY_SECONDS = 10  # a line of progress, unless nothing was finished
# As much of the expected work, before a run's own pace is believed: the first tests of a process
# also pay for importing torch.
BELIEVED_FROM = 0.1

PAGE = re.compile(r"(?P<file>.*test_nbval\.py)::test_page_\w+\[(?P<page>.+)\]")


def group_of(nodeid: str) -> str:
    """The group of a test, from its id.

    >>> group_of("tests/toys/test_router.py::test_replay[top-2]")
    'tests/toys/test_router.py'
    >>> group_of("tests/notebooks/test_nbval.py::test_page_prints_it[solutions/06_grpo]")
    'tests/notebooks/test_nbval.py::solutions/06_grpo'
    """
    page = PAGE.fullmatch(nodeid)
    return f"{page['file']}::{page['page']}" if page else nodeid.split("::")[0]


@dataclass(frozen=True)
class Recorded:
    """What a group took: seconds of all its tests, set-up and teardown included."""

    seconds: float
    tests: int


def read(path: Path = RECORDED) -> dict[str, Recorded]:
    """The recorded groups; none where there is no file."""
    if not path.exists():
        return {}
    return {group: Recorded(*row) for group, row in json.loads(path.read_text()).items()}


def write(found: Mapping[str, Recorded], path: Path = RECORDED) -> None:
    """One line a group, the longest first, so that the file also says where the time goes."""
    ordered = sorted(found.items(), key=lambda item: -item[1].seconds)
    lines = (f'  "{group}": [{each.seconds:.1f}, {each.tests}]' for group, each in ordered)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def expected_seconds(nodeid: str, recorded: Mapping[str, Recorded]) -> float:
    """What one test should take: its group's mean."""
    each = recorded.get(group_of(nodeid))
    return each.seconds / each.tests if each and each.tests else UNKNOWN_SECONDS


def seconds_left(done: float, left: float, gone: float, workers: int) -> float:
    """Wall seconds still to come, from recorded seconds done and left and the wall seconds gone.

    >>> seconds_left(done=0, left=200, gone=0, workers=2)  # nothing known of this machine yet
    100.0
    >>> seconds_left(done=100, left=200, gone=100, workers=2)  # half as fast as was recorded
    200.0
    """
    pace = gone * workers / done if done > BELIEVED_FROM * (done + left) else 1.0
    return left * pace / workers


def clock(seconds: float) -> str:
    """Minutes and seconds.

    >>> clock(75.4)
    '1:15'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Progress:
    """A pytest plugin: a line every ten seconds, each failure at once; durations if asked for."""

    def __init__(self, config: pytest.Config, show: bool, recorded: Mapping[str, Recorded]):
        self.config, self.show, self.recorded = config, show, recorded
        self.workers = max(len(config.getoption("tx", None) or []), 1)
        self.started = self.said = 0.0
        self.waiting: dict[str, float] = {}
        self.total = self.failed = 0
        self.done_seconds = 0.0
        self.taken: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()

    def expect(self, nodeids: Iterable[str]) -> None:
        if self.started:  # every worker of pytest-xdist collects the same tests
            return
        self.waiting = {each: expected_seconds(each, self.recorded) for each in nodeids}
        self.total = len(self.waiting)
        self.started = self.said = time.monotonic()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self.expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.expect(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport):
        """No letter per test: the lines of progress stand in their place."""
        if not self.show or not isinstance(report, pytest.TestReport):
            return None
        if report.failed:
            return ("failed", "", "FAILED") if report.when == "call" else ("error", "", "ERROR")
        if report.passed:
            return ("passed" if report.when == "call" else ""), "", ""
        return "skipped", "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        group = group_of(report.nodeid)
        self.taken[group] += report.duration
        if report.failed:
            self.failed += 1
            if self.show:
                self.line(f"FAILED {report.nodeid}")
        if report.when == "teardown":
            self.finished[group] += 1
            self.done_seconds += self.waiting.pop(report.nodeid, 0.0)
        if self.show and time.monotonic() - self.said >= EVERY_SECONDS:
            self.said = time.monotonic()
            self.line(self.sentence(self.said - self.started))

    def sentence(self, gone: float) -> str:
        """``812 of 4250 tests; 1:20 gone, about 3:10 left``"""
        left = seconds_left(self.done_seconds, sum(self.waiting.values()), gone, self.workers)
        failed = f", {self.failed} failed" if self.failed else ""
        return (
            f"{self.total - len(self.waiting):5d} of {self.total} tests{failed}; "
            f"{clock(gone)} gone, about {clock(left)} left"
        )

    def line(self, text: str) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            reporter.ensure_newline()
            reporter.write_line(text)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        whole = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if whole and os.environ.get("RLNB_DURATIONS") == "write":
            now = {group: Recorded(self.taken[group], n) for group, n in self.finished.items()}
            files = {group: group.split("::")[0] for group in self.recorded}
            root = RECORDED.parents[1]
            kept = {g: each for g, each in self.recorded.items() if (root / files[g]).exists()}
            write({**kept, **now})
