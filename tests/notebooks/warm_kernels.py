"""Kernels that start with everything imported: one process imports, and forks for every page.

A page's own work takes a few seconds; importing torch, ipykernel and pytest for it takes as long
again. So one process, the nursery, imports them once. It forks a child for each kernel, and one for
each checker (nbval, unpatched). To Jupyter a warm kernel is a kernel like any other: kernel.json
names a stand-in, a process of 15 ms that hands its arguments, folder and environment to the
nursery, lives as long as the child does, and ends with the child's exit code.

Nothing outlives a run, however it ends:
* the stand-in is killed (Jupyter shuts a kernel down): the nursery kills the child;
* the test process dies: the nursery's stdin closes, it kills its children and ends;
* the nursery is killed: the kernel (Linux) kills the children, PR_SET_PDEATHSIG.

A forked process has only the thread that forked it, so the nursery must have one thread. It checks
that before every fork. Linux only; elsewhere `warm_kernels` yields None, and pages start cold.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import random
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

KERNEL_NAME = "rlnb-warm"
POSSIBLE = sys.platform == "linux" and hasattr(os, "fork")
START_SECONDS = 120
PR_SET_PDEATHSIG = 1  # linux/prctl.h

# Started by Jupyter in the kernel's place: python -IS -c STAND_IN SOCKET -f CONNECTION_FILE
STAND_IN = """\
import json, os, socket, sys
nursery = socket.socket(socket.AF_UNIX)
nursery.connect(sys.argv[1])
asked = {"kind": "kernel", "arguments": sys.argv[2:], "folder": os.getcwd()}
nursery.sendall(json.dumps(asked | {"environment": dict(os.environ)}).encode() + b"\\n")
sys.exit(int(nursery.makefile().readline() or 1))
"""


class Nursery:
    """The test process's end: where the nursery listens, and how to have a check run in it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.door = folder / "door"
        spec = folder / "kernels" / KERNEL_NAME / "kernel.json"
        spec.parent.mkdir(parents=True)
        argv = [sys.executable, "-IS", "-c", STAND_IN, str(self.door), "-f", "{connection_file}"]
        spec.write_text(
            json.dumps(
                {
                    "argv": argv,
                    "display_name": KERNEL_NAME,
                    "language": "python",
                    "interrupt_mode": "message",  # a signal would stop the stand-in instead
                }
            )
        )

    def pytest(
        self, arguments: list[str], folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess:
        """`python -m pytest ARGUMENTS` in a forked process whose kernels may be warm too."""
        jupyter = [str(self.folder), environment.get("JUPYTER_PATH", "")]
        environment = dict(environment, JUPYTER_PATH=os.pathsep.join(filter(None, jupyter)))
        output = tempfile.NamedTemporaryFile(dir=self.folder, suffix=".txt")  # noqa: SIM115
        asked = {
            "kind": "pytest",
            "arguments": arguments,
            "folder": str(folder),
            "environment": environment,
            "output": output.name,
        }
        with output, socket.socket(socket.AF_UNIX) as nursery:
            nursery.connect(str(self.door))
            nursery.sendall(json.dumps(asked).encode() + b"\n")
            answer = nursery.makefile().readline()
            said = Path(output.name).read_text(errors="replace")
        if not answer:
            raise RuntimeError(f"the nursery died while pytest ran. What it had said:\n{said}")
        return subprocess.CompletedProcess(["pytest", *arguments], int(answer), said, "")


@contextlib.contextmanager
def warm_kernels(environment: Mapping[str, str]) -> Iterator[Nursery | None]:
    """A running nursery whose imports see this environment; None where there is no fork."""
    if not POSSIBLE:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="rlnb-") as folder:
        nursery = Nursery(Path(folder))
        process = subprocess.Popen(
            [sys.executable, __file__, str(nursery.door)],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl+C and `timeout` reach us; the closed stdin reaches it
        )
        try:
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"the nursery did not start (exit code {process.wait()})")
            yield nursery
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


# What follows runs in the nursery.


def import_what_pages_use() -> None:
    """torch, Jupyter, the checker, and every module of rlnb: then a fork has them all."""
    # As a kernel sets it, before matplotlib is imported.
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    for name in ("torch", "numpy", "ipywidgets", "ipykernel.kernelapp", "matplotlib.figure"):
        importlib.import_module(name)
    for name in ("pytest", "nbval.plugin", "nbformat", "matplotlib.backends.backend_agg"):
        importlib.import_module(name)
    import rlnb

    for module in pkgutil.walk_packages(rlnb.__path__, "rlnb."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def assert_one_thread() -> None:
    """A lock that another thread holds at the fork would be held for ever in the child."""
    names = [
        Path(f"/proc/self/task/{task}/comm").read_text().strip()
        for task in os.listdir("/proc/self/task")
    ]
    if len(names) != 1:
        raise RuntimeError(f"a fork is safe with one thread only; the nursery has {names}")


def serve(door: Path) -> None:
    """Fork for whoever connects, until stdin closes."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(door))
    listening.listen()
    heard, hear = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(hear)  # a child's end wakes `select`
    waiting = selectors.DefaultSelector()
    for source in (listening, sys.stdin.fileno(), heard):
        waiting.register(source, selectors.EVENT_READ)
    children: dict[int, socket.socket] = {}  # process id -> who asked for it

    print("ready", flush=True)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is listening:
                connection, _ = listening.accept()
                if not (line := connection.makefile().readline()):  # killed before it could ask
                    connection.close()
                    continue
                ours = (listening, waiting, connection, *children.values())
                pid = fork_for(json.loads(line), ours)
                children[pid] = connection
                waiting.register(connection, selectors.EVENT_READ, pid)
            elif key.fileobj == heard:
                with contextlib.suppress(BlockingIOError):
                    os.read(heard, 4096)
            elif key.data:  # whoever asked has closed its end: Jupyter ended the stand-in
                kill(key.data)
                waiting.unregister(key.fileobj)
            else:  # the test process is gone, or done
                for pid in children:
                    kill(pid)
                return
        for pid, status in ended(children):
            connection = children.pop(pid)
            with contextlib.suppress(KeyError):
                waiting.unregister(connection)
            with contextlib.suppress(OSError):
                connection.sendall(f"{os.waitstatus_to_exitcode(status) % 256}\n".encode())
            connection.close()


def ended(children: Mapping[int, socket.socket]) -> list[tuple[int, int]]:
    """The children that have ended, with their status."""
    found = [os.waitpid(pid, os.WNOHANG) for pid in children]
    return [(pid, status) for pid, status in found if pid]


def kill(pid: int) -> None:
    """The child and what it started: it leads a session of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def fork_for(asked: dict, only_ours: tuple) -> int:
    """The child's process id; the child itself never returns."""
    assert_one_thread()
    nursery = os.getpid()
    if pid := os.fork():
        return pid
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != nursery:  # it died between the two lines above
            os._exit(1)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in only_ours:
            each.close()
        become(**asked)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)


def become(
    kind: str,
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    output: str = os.devnull,
) -> NoReturn:
    """This process as a kernel or a checker, in the folder and environment of whoever asked."""
    import numpy as np
    import torch

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.environ.pop("JPY_PARENT_PID", None)  # the parent is the nursery, and watches by itself
    sys.path[0] = ""  # as `python -m` has it; here it is this file's folder
    for number, file in ((0, os.devnull), (1, output), (2, output)):
        opened = os.open(file, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    # Draws that a page did not seed must differ from page to page, as they do from a cold start.
    random.seed()
    np.random.seed()
    torch.seed()
    if kind == "kernel":
        from ipykernel.kernelapp import IPKernelApp

        sys.argv = ["ipykernel_launcher", *arguments]
        IPKernelApp.launch_instance()
        status = 0
    else:
        import pytest

        sys.argv = ["pytest", *arguments]
        status = int(pytest.main(arguments))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    import_what_pages_use()
    gc.collect()
    gc.freeze()  # a child's collections do not touch, and so do not copy, the shared pages
    assert_one_thread()
    serve(Path(sys.argv[1]))
