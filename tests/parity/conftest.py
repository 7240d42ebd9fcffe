"""TRL is imported when its first test runs, not when tests are collected; the end names both."""

from __future__ import annotations

import importlib
import importlib.util
import os

import pytest

# Imported by the tests that need them: these modules load TRL, or stand in for a part of verl.
collect_ignore = [
    "trl_reference.py",
    "trl_comparison.py",
    "trl_preference.py",
    "report.py",
    "record_verl.py",
    "trl_trainings.py",
    "check_verl_files.py",
]
NO_TRL = (
    "THE COMPARISON WITH TRL DID NOT RUN: trl is not installed. "
    "Run: pip install -r requirements-test.txt"
)


def _of_trl(name: str):
    if importlib.util.find_spec("trl") is None:
        if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
            pytest.fail(NO_TRL + ". With CI set it must run.", pytrace=False)
        pytest.skip(NO_TRL)
    return importlib.import_module(name)


@pytest.fixture(scope="session")
def reference():
    """tests/parity/trl_reference.py: TRL's own numbers."""
    return _of_trl("trl_reference")


@pytest.fixture(scope="session")
def comparison():
    """tests/parity/trl_comparison.py: TRL's numbers beside ours."""
    return _of_trl("trl_comparison")


@pytest.fixture(scope="session")
def preferences():
    """tests/parity/trl_preference.py: TRL's preference losses."""
    return _of_trl("trl_preference")
