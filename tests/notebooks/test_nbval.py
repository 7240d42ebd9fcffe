"""Every committed notebook, run again from top to bottom: it must print what is committed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from rlnb.classroom.pages import CELL_TIMEOUT, ONE_THREAD, build, committed_notebooks, page_name

NOTEBOOKS = committed_notebooks()


def compare(notebook: Path) -> tuple[subprocess.CompletedProcess, float]:
    """Run nbval on one notebook in a process of its own; returns the process and its seconds."""
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "-p", "no:cacheprovider", "-q"]
    command += ["--nbval", "--nbval-current-env", f"--nbval-cell-timeout={CELL_TIMEOUT}"]
    command += ["--nbval-kernel-startup-timeout=120", "--color=no", "--tb=short"]
    command += [f"--rootdir={notebook.parent}", str(notebook)]
    start = time.perf_counter()
    process = subprocess.run(
        command, env=os.environ | ONE_THREAD, cwd=notebook.parent, capture_output=True, text=True
    )
    return process, time.perf_counter() - start


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=page_name)
def test_page_prints_what_is_committed(notebook, record_property):
    process, seconds = compare(notebook)
    cells = sum(cell.cell_type == "code" for cell in nbformat.read(notebook, as_version=4).cells)
    record_property("page", page_name(notebook))
    record_property("seconds", seconds)
    record_property("cells", cells)
    if process.returncode:
        pytest.fail(
            f"{page_name(notebook)} does not reproduce its outputs. If the change is wanted: "
            f"python -m rlnb.classroom.pages build {page_name(notebook)}\n"
            f"{process.stdout[-6000:]}\n{process.stderr[-2000:]}",
            pytrace=False,
        )
    passed = int((re.search(r"(\d+) passed", process.stdout) or [0, 0])[1])
    assert passed == cells, f"{passed} of {cells} code cells were run and compared"


def test_a_changed_number_is_noticed(tmp_path):
    """The comparison above would be worth nothing if it could not fail."""
    (tmp_path / "text").mkdir()
    twin = tmp_path / "text" / "99_sum.py"
    twin.write_text("# %%\nprint(0.1 + 0.25)\n\n# %%\n'unchanged'\n")
    page, _ = build(twin)
    assert compare(page)[0].returncode == 0
    page.write_text(page.read_text().replace("0.35", "0.36"))
    process, _ = compare(page)
    assert process.returncode == 1
    assert "1 failed, 1 passed" in process.stdout
