"""Every committed notebook, run again from top to bottom: it must print what is committed.

Most pages run in kernels that were forked from one process with everything imported
(warm_kernels.py). COLD ones start as a learner's do, so that a page which leans on an import that
it does not make would be found; so does every page where there is no fork.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
import torch
from warm_kernels import KERNEL_NAME, POSSIBLE, Nursery, warm_kernels

from rlnb.classroom.pages import CELL_TIMEOUT, ONE_THREAD, build, committed_notebooks, page_name
from rlnb.classroom.pages import NOTEBOOKS as FOLDER

NOTEBOOKS = committed_notebooks()
COLD = {"00_start_here"}

# What an x86-64 machine without AVX-512 makes of the same code; where this one has none, what the
# plainest machine does. Each library chooses its loops for itself.
OTHER_CPU = "avx2" if torch.backends.cpu.get_cpu_capability() == "AVX512" else "default"
AS_ANOTHER_CPU = {
    "ATEN_CPU_CAPABILITY": OTHER_CPU,
    "MKL_ENABLE_INSTRUCTIONS": "AVX2" if OTHER_CPU == "avx2" else "SSE4_2",
    "ONEDNN_MAX_CPU_ISA": "AVX2" if OTHER_CPU == "avx2" else "SSE41",
}
# Enough to see a last digit move, few enough for every run: by name, numbers change.
ON_ANOTHER_CPU = [
    page
    for page in NOTEBOOKS
    if page.parent == FOLDER and re.fullmatch(r"\d\d_(one_scalar_loss|reinforce|grpo)", page.stem)
]


@pytest.fixture(scope="module")
def nursery_on_another_cpu():
    """A nursery of its own: torch looks at the variable once, at its first operation."""
    with warm_kernels(os.environ | ONE_THREAD | AS_ANOTHER_CPU) as running:
        yield running


def compare(
    notebook: Path,
    nursery: Nursery | None = None,
    besides: dict[str, str] | None = None,
    cell_timeout: int = CELL_TIMEOUT,
) -> tuple[subprocess.CompletedProcess, float]:
    """Run nbval on one notebook in a process of its own; returns the process and its seconds."""
    arguments = ["-c", os.devnull, "-p", "no:cacheprovider", "-p", "no:xdist", "-q", "--nbval"]
    arguments += [f"--nbval-cell-timeout={cell_timeout}", "--nbval-kernel-startup-timeout=120"]
    arguments += ["--color=no", "--tb=short", f"--rootdir={notebook.parent}", str(notebook)]
    environment = os.environ | ONE_THREAD | (besides or {})
    environment.pop("PYTEST_XDIST_WORKER", None)
    start = time.perf_counter()
    if nursery:
        arguments.insert(-1, f"--nbval-kernel-name={KERNEL_NAME}")
        process = nursery.pytest(arguments, notebook.parent, environment)
    else:
        command = [sys.executable, "-m", "pytest", "--nbval-current-env", *arguments]
        process = subprocess.run(
            command, env=environment, cwd=notebook.parent, capture_output=True, text=True
        )
    return process, time.perf_counter() - start


def assert_reproduced(notebook: Path, process: subprocess.CompletedProcess) -> None:
    if process.returncode:
        pytest.fail(
            f"{page_name(notebook)} does not reproduce its outputs. If the change is wanted: "
            f"python -m rlnb.classroom.pages build {page_name(notebook)}\n"
            f"{process.stdout[-6000:]}\n{process.stderr[-2000:]}",
            pytrace=False,
        )
    passed = int((re.search(r"(\d+) passed", process.stdout) or [0, 0])[1])
    cells = code_cells(notebook)
    assert passed == cells, f"{passed} of {cells} code cells were run and compared"


def code_cells(notebook: Path) -> int:
    return sum(cell.cell_type == "code" for cell in nbformat.read(notebook, as_version=4).cells)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=page_name)
def test_page_prints_what_is_committed(notebook, nursery, record_property):
    warm = None if page_name(notebook) in COLD else nursery
    process, seconds = compare(notebook, warm)
    record_property("page", page_name(notebook))
    record_property("kernel", "warm" if warm else "cold")
    record_property("seconds", seconds)
    record_property("cells", code_cells(notebook))
    assert_reproduced(notebook, process)


@pytest.mark.parametrize("notebook", ON_ANOTHER_CPU, ids=page_name)
def test_another_cpu_prints_the_same(notebook, nursery_on_another_cpu):
    process, _ = compare(notebook, nursery_on_another_cpu, AS_ANOTHER_CPU)
    assert_reproduced(notebook, process)


def page_of(folder: Path, text: str) -> Path:
    """A built page from a text twin."""
    (folder / "text").mkdir()
    twin = folder / "text" / "99_made.py"
    twin.write_text(text)
    return build(twin)[0]


@pytest.mark.parametrize("kernel", ["cold", "warm"])
def test_a_changed_number_is_noticed(kernel, nursery, tmp_path):
    """The comparison above would be worth nothing if it could not fail."""
    warm = nursery if kernel == "warm" else None
    if kernel == "warm" and not POSSIBLE:
        pytest.skip("no fork on this system: every page starts cold")
    page = page_of(tmp_path, "# %%\nprint(0.1 + 0.25)\n\n# %%\n'unchanged'\n")
    assert compare(page, warm)[0].returncode == 0
    page.write_text(page.read_text().replace("0.35", "0.36"))
    process, _ = compare(page, warm)
    assert process.returncode == 1
    assert "1 failed, 1 passed" in process.stdout


def test_the_other_cpu_is_another_one(nursery_on_another_cpu, tmp_path):
    if os.environ.get("ATEN_CPU_CAPABILITY"):
        pytest.skip("the whole run was given a capability: the other one may be the same")
    told = "import torch\n_ = open('told', 'w').write(torch.backends.cpu.get_cpu_capability())"
    page = page_of(tmp_path, f"# %%\n{told}\n")
    ours = (tmp_path / "told").read_text()
    assert compare(page, nursery_on_another_cpu, AS_ANOTHER_CPU)[0].returncode == 0
    assert (tmp_path / "told").read_text().lower() == OTHER_CPU != ours.lower()
