"""What every test shares: one thread, no network, the order of a run, and a readable end."""

from __future__ import annotations

import os

import pytest
import time_left

# Before anything imports torch: sums must not depend on the number of cores.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["RLNB_PROGRESS"] = "off"  # no test writes into the file of whoever runs it

SLOW_PAGE, SLOW_TRAINING = 20, 90  # seconds; the last page trains a real model
BROWSER, PAGES = "tests/browser/", "tests/notebooks/test_nbval.py"


def pytest_addoption(parser):
    parser.addoption(
        "--time-left",
        action="store_true",
        help="a line of progress with the time left, every ten seconds, in place of the dots",
    )


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # not in a worker of pytest-xdist
        show = config.getoption("time_left")
        config.pluginmanager.register(time_left.Progress(config, show, time_left.read()))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One process runs a whole group, in the order of the list. A mark would not do: pytest 9.2
    ignores what pytest-xdist 3.8 hangs on the ids for `--dist loadgroup`."""
    from xdist.scheduler import LoadScopeScheduling

    class WholeGroups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return time_left.group_of(nodeid)

    return WholeGroups(config, log)


def pytest_collection_modifyitems(items):
    """Groups go to the workers in the order that leaves a short tail.

    The browser first: it is one long group. Then the files, the longest first. The pages last:
    each is a group of its own, so that they fill up what is left.
    """
    recorded = time_left.read()

    def rank(item):
        group = time_left.group_of(item.nodeid)
        last_time = recorded.get(group)
        kind = 0 if group.startswith(BROWSER) else 2 if group.startswith(PAGES) else 1
        return kind, -(last_time.seconds if last_time else 0.0), group

    items.sort(key=rank)  # stable: inside a file the order stays


def properties(terminalreporter) -> list[dict]:
    """What finished tests said with `record_property`, one dictionary a test."""
    return [
        dict(report.user_properties)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call"
    ]


def pytest_terminal_summary(terminalreporter):
    rows = properties(terminalreporter)
    show_pages(terminalreporter, [row for row in rows if "page" in row])
    show_parity(terminalreporter, [row for row in rows if "parity" in row])
    show_what_did_not_run(terminalreporter)


def show_pages(terminalreporter, pages):
    if not pages:
        return
    terminalreporter.section("pages, executed and compared with what is committed")
    terminalreporter.line(f"{'page':<32}{'kernel':>8}{'cells':>6}{'seconds':>9}")
    for row in sorted(pages, key=lambda row: row["page"]):
        limit = SLOW_TRAINING if "grpo_for_real" in row["page"] else SLOW_PAGE
        slow = f"   over {limit} s" if row["seconds"] > limit else ""
        terminalreporter.line(
            f"{row['page']:<32}{row['kernel']:>8}{row['cells']:>6}{row['seconds']:>9.1f}{slow}"
        )
    total, cells = (sum(row[key] for row in pages) for key in ("seconds", "cells"))
    terminalreporter.line(f"{f'all {len(pages)}':<40}{cells:>6}{total:>9.1f}")


def show_parity(terminalreporter, rows):
    if not rows:
        return
    terminalreporter.section("losses and gradients of other libraries, beside ours")
    head = f"{'parity':<42}{'cases':>6}{'worst value':>13}{'worst gradient':>16}"
    terminalreporter.line(head)
    for row in rows:
        terminalreporter.line(
            f"{row['parity']:<42}{row['cases']:>6}{row['value']:>13.1e}{row['gradient']:>16.1e}"
        )
    terminalreporter.line(f"{'all':<42}{sum(row['cases'] for row in rows):>6}")


def show_what_did_not_run(terminalreporter):
    """A test without its browser or library skips with a reason in capitals: say it loudly."""
    reasons = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else ""
        reason = reason.removeprefix("Skipped: ")
        if " DID NOT RUN: " in reason:
            reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in reasons.items():
        terminalreporter.section("NOT RUN", sep="!")
        terminalreporter.line(f"{reason} ({count} tests)")
