"""Warm kernels behave as cold ones do, their end included, and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
import warm_kernels
from jupyter_client import KernelManager
from test_nbval import compare
from warm_kernels import POSSIBLE

from rlnb.classroom.pages import ONE_THREAD

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="no fork on this system")


def notebook(folder: Path, *cells: tuple[str, str]) -> Path:
    """Cells of (source, printed text), as if they had been run."""
    made = nbformat.v4.new_notebook()
    for count, (source, printed) in enumerate(cells, start=1):
        outputs = [nbformat.v4.new_output("stream", text=printed)] if printed else []
        cell = nbformat.v4.new_code_cell(source, outputs=outputs, execution_count=count)
        made.cells.append(cell)
    path = folder / "99_made.ipynb"
    nbformat.write(made, path)
    return path


def gone(pid: int, seconds: float = 10) -> bool:
    """Does the process end in time?"""
    deadline = time.monotonic() + seconds
    while Path(f"/proc/{pid}").exists():
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        if state == "Z":
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_a_dying_kernel_is_noticed_and_the_next_page_runs(nursery, tmp_path):
    """nbval waits for the cell's time limit, whoever started the kernel."""
    dying = notebook(tmp_path, ("import os", ""), ("os._exit(3)", ""), ("print(1)", "1\n"))
    process, _ = compare(dying, nursery, cell_timeout=2)
    assert process.returncode == 1
    assert "1 failed, 1 passed, 1 xfailed" in process.stdout, "no cell after it may pass"
    process, _ = compare(notebook(tmp_path, ("print(1)", "1\n")), nursery)
    assert process.returncode == 0, process.stdout


def test_the_stand_in_ends_with_the_kernels_exit_code(nursery, tmp_path):
    """So Jupyter, which watches the stand-in, sees a dead kernel as dead."""
    manager = KernelManager(
        kernel_name=warm_kernels.KERNEL_NAME, connection_file=str(tmp_path / "connection.json")
    )
    manager.kernel_spec_manager.kernel_dirs.insert(0, str(nursery.folder / "kernels"))
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(60)
        client.execute("import os; os._exit(3)")
        deadline = time.monotonic() + 20
        while manager.is_alive():
            assert time.monotonic() < deadline, "the kernel died; its stand-in lives on"
            time.sleep(0.05)
        assert manager.provisioner.process is None or manager.provisioner.process.returncode == 3
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_an_endless_cell_is_interrupted(nursery, tmp_path):
    endless = notebook(tmp_path, ("while True: pass", ""), ("print(1)", "1\n"))
    process, _ = compare(endless, nursery, cell_timeout=2)
    assert process.returncode == 1
    assert "1 failed" in process.stdout, "the cell after it still ran"


def test_pages_share_no_names_and_no_unseeded_draws(nursery, tmp_path):
    source = """\
import json, os, random, sys
import numpy, torch
drawn = [random.random(), float(numpy.random.rand()), float(torch.rand(1))]
seen = [name for name in ("left_over",) if name in globals()]
left_over = 1
told = {"drawn": drawn, "seen": seen, "sid": os.getsid(0) == os.getpid(), "folder": os.getcwd()}
_ = open("told.json", "a").write(json.dumps(told) + "\\n")"""
    page = notebook(tmp_path, (source, ""))
    for _ in range(2):
        process, _ = compare(page, nursery)
        assert process.returncode == 0, process.stdout
    first, second = map(json.loads, (tmp_path / "told.json").read_text().splitlines())
    assert all(a != b for a, b in zip(first["drawn"], second["drawn"], strict=True))
    assert first["seen"] == second["seen"] == []
    assert first["sid"] and first["folder"] == str(tmp_path)


KEEPS_A_KERNEL = """
import os, subprocess, sys
from pathlib import Path
from warm_kernels import warm_kernels
import socket, json
with warm_kernels(os.environ) as nursery:
    asked = {"kind": "pytest", "arguments": ["-p", "no:cacheprovider", sys.argv[1]]}
    asked |= {"folder": sys.argv[2], "environment": dict(os.environ), "output": os.devnull}
    door = socket.socket(socket.AF_UNIX)
    door.connect(str(nursery.door))
    door.sendall(json.dumps(asked).encode() + b"\\n")
    print("started", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("killed", ["the test process", "the nursery"])
def test_no_child_outlives_whoever_is_killed(killed, tmp_path):
    told = tmp_path / "pids"
    lasting = tmp_path / "test_lasting.py"
    lasting.write_text(
        "import os, time\n"
        "def test_lasts():\n"
        f"    open({str(told)!r} + '.part', 'w').write(f'{{os.getpid()}} {{os.getppid()}}')\n"
        f"    os.rename({str(told)!r} + '.part', {str(told)!r})\n"
        "    time.sleep(600)\n"
    )
    folder = str(Path(warm_kernels.__file__).parent)
    keeper = subprocess.Popen(
        [sys.executable, "-c", KEEPS_A_KERNEL, str(lasting), str(tmp_path)],
        env=os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join([folder, *sys.path])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert keeper.stdout.readline() == "started\n"
        deadline = time.monotonic() + 60
        while not told.exists():
            assert time.monotonic() < deadline and keeper.poll() is None
            time.sleep(0.05)
        child, parent = map(int, told.read_text().split())
        os.kill(keeper.pid if killed == "the test process" else parent, signal.SIGKILL)
        assert gone(child), "the forked process is still there"
        assert gone(parent), "the nursery is still there"
    finally:
        keeper.kill()
        keeper.communicate()


def test_a_second_thread_is_refused(monkeypatch):
    monkeypatch.setattr(warm_kernels.os, "listdir", lambda path: [str(os.getpid())] * 2)
    with pytest.raises(RuntimeError, match="a fork is safe with one thread only"):
        warm_kernels.assert_one_thread()


def test_without_fork_there_is_no_nursery_and_pages_start_cold(monkeypatch):
    monkeypatch.setattr(warm_kernels, "POSSIBLE", False)
    with warm_kernels.warm_kernels(os.environ) as nursery:
        assert nursery is None
