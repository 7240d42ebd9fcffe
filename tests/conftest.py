"""What every test shares: one thread, no network, quick tests first, and a readable end."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

# Before anything imports torch: sums must not depend on the number of cores.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"

BROWSER = Path(__file__).parent / "browser"
BROWSER_NAMES = ("chromium", "chromium-browser", "google-chrome")
NO_BROWSER = (
    "THE BROWSER TESTS DID NOT RUN: none of chromium, chromium-browser, google-chrome is on the "
    "PATH. On Debian: apt install chromium"
)
SLOW_PAGE, SLOW_TRAINING = 20, 90  # seconds; page 19 trains a real model


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def has_browser() -> bool:
    return any(shutil.which(name) for name in BROWSER_NAMES)


def pytest_collection_modifyitems(config, items):
    def rank(item):
        if item.path.is_relative_to(BROWSER):
            return 2
        return 1 if item.path.name == "test_nbval.py" else 0

    items.sort(key=rank)  # stable: a failing unit test is seen before the slow ones start
    browser = [item for item in items if rank(item) == 2]
    config.stash[browser_skipped] = 0
    if browser and not has_browser():
        if in_ci():
            raise pytest.UsageError(NO_BROWSER + ". With CI set they must run.")
        config.stash[browser_skipped] = len(browser)
        for item in browser:
            item.add_marker(pytest.mark.skip(reason="no Chromium on this machine"))


browser_skipped = pytest.StashKey[int]()


def pytest_terminal_summary(terminalreporter, config):
    reports = [
        dict(report.user_properties)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call"
    ]
    pages = sorted((row for row in reports if "page" in row), key=lambda row: row["page"])
    if pages:
        terminalreporter.section("pages, executed and compared with what is committed")
        terminalreporter.line(f"{'page':<32}{'cells':>6}{'seconds':>9}")
        for row in pages:
            limit = SLOW_TRAINING if "19_" in row["page"] else SLOW_PAGE
            slow = f"   over {limit} s" if row["seconds"] > limit else ""
            terminalreporter.line(f"{row['page']:<32}{row['cells']:>6}{row['seconds']:>9.1f}{slow}")
        total = sum(row["seconds"] for row in pages)
        cells = sum(row["cells"] for row in pages)
        terminalreporter.line(f"{f'all {len(pages)}':<32}{cells:>6}{total:>9.1f}")
    if skipped := config.stash.get(browser_skipped, 0):
        terminalreporter.section("browser", sep="!")
        terminalreporter.line(f"{NO_BROWSER} ({skipped} tests)")
