"""JupyterLab as `make lab` starts it: asks nobody for anything, drowns in no output, ends whole."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
from websocket import WebSocket, WebSocketTimeoutException, create_connection

from rlnb.classroom import workspace

EMPTY = '{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}'
DROWNING = "for i in range(200_000): print(i)"


@dataclass(frozen=True)
class Lab:
    """A running server and how to ask it."""

    process: subprocess.Popen
    port: int
    log: Path

    def ask(self, path: str, method: str = "GET") -> str:
        """The answer, waited for while the server starts."""
        deadline = time.monotonic() + 60
        while True:
            try:
                url, headers = f"http://127.0.0.1:{self.port}{path}", {"Authorization": "token t"}
                request = urllib.request.Request(url, headers=headers, method=method)
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return answer.read().decode()
            except OSError:
                assert self.process.poll() is None, self.log.read_text()
                assert time.monotonic() < deadline, self.log.read_text()
                time.sleep(0.1)

    def kernel(self) -> tuple[str, WebSocket]:
        """A new kernel's id, and a connection to its channels."""
        kernel = json.loads(self.ask("/api/kernels", "POST"))["id"]
        address = f"ws://127.0.0.1:{self.port}/api/kernels/{kernel}/channels?token=t"
        return kernel, create_connection(address, timeout=30)


@contextlib.contextmanager
def lab_in(base: Path):
    """`make lab` away from the user's settings and without a browser."""
    root, home = base / "work", base / "home"
    root.mkdir()
    home.mkdir()
    (root / "00.ipynb").write_text(EMPTY)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    names = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    away = {name: str(home / name.lower()) for name in names}
    flags = ["--no-browser", f"--ServerApp.port={port}", "--IdentityProvider.token=t"]
    command = workspace.lab_command(root / "00.ipynb", flags, work=root)
    log = home / "log"
    with open(log, "w") as out:
        server = subprocess.Popen(
            command, env=workspace.lab_environment() | away, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        yield Lab(server, port, log)
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with lab_in(tmp_path_factory.mktemp("lab")) as running:
        yield running


def execute(channels: WebSocket, code: str) -> str:
    """Sends a cell; returns the id that its answers carry."""
    header = {
        "msg_id": secrets.token_hex(8),
        "msg_type": "execute_request",
        "username": "",
        "session": "test",
        "version": "5.3",
    }
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
    channels.send(json.dumps(message | {"channel": "shell", "buffers": []}))
    return header["msg_id"]


def printed(channels: WebSocket, code: str) -> dict[str, str]:
    """What a cell shows, stdout and stderr, until the kernel has answered and is quiet."""
    asked, shown, idle = execute(channels, code), {"stdout": "", "stderr": ""}, False
    while True:
        channels.settimeout(0.5 if idle else 60)
        try:
            message = json.loads(channels.recv())
        except WebSocketTimeoutException:
            return shown
        if message["parent_header"].get("msg_id") != asked:
            continue
        content = message["content"]
        if message["msg_type"] == "stream":
            shown[content["name"]] += content["text"]
        elif message["msg_type"] == "status":
            idle = content["execution_state"] == "idle"


def test_lab_opens_the_learners_folder(lab):
    contents = json.loads(lab.ask("/api/contents"))["content"]
    assert [file["name"] for file in contents] == ["00.ipynb"]


def test_lab_asks_nobody_for_news_or_updates(lab):
    page = lab.ask("/lab")
    config = json.loads(re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.S)[1])
    assert config.get("news", {}).get("disabled") is not False
    settings = json.loads(lab.ask("/lab/api/settings/@jupyterlab/apputils-extension:notification"))
    defaults = settings["schema"]["properties"]
    assert defaults["fetchNews"]["default"] == "false", "no question about news at the first start"
    assert defaults["checkForUpdates"]["default"] is False
    assert json.loads(lab.ask("/lab/api/update"))["notification"] is None


def test_a_cell_that_prints_200_000_lines_is_cut_off_with_a_word_and_the_next_one_is_not(lab):
    """1.3 MB of text is what makes a page hang; an honest table passes whole."""
    lab.ask("/api/status")
    _, channels = lab.kernel()
    table = "\n".join(f"row {i} " + "x" * 60 for i in range(500))
    assert printed(channels, f"print({table!r})")["stdout"] == table + "\n"
    shown = printed(channels, DROWNING)
    assert len(shown["stdout"]) < 150_000
    assert "IOPub data rate exceeded" in shown["stderr"]
    assert printed(channels, "print('here')")["stdout"] == "here\n"
    channels.close()


def children_of(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in found.split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks Linux for the processes")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_server_and_its_kernels_busy_ones_too(tmp_path, sent):
    with lab_in(tmp_path) as lab:
        lab.ask("/api/status")
        quiet, busy = lab.kernel()[1], lab.kernel()[1]
        execute(busy, "while True: pass")
        assert printed(quiet, "print('here')")["stdout"] == "here\n"
        kernels = children_of(lab.process.pid)
        assert len(kernels) == 2
        if sent == signal.SIGINT:  # twice: the first asks for a confirmation
            os.kill(lab.process.pid, sent)
            time.sleep(1)
        os.kill(lab.process.pid, sent)
        lab.process.wait(60)  # seconds on an idle machine; a full one took more than 20
        deadline = time.monotonic() + 30
        while left := [pid for pid in kernels if Path(f"/proc/{pid}").exists()]:
            assert time.monotonic() < deadline, f"{len(left)} kernels outlive the server"
            time.sleep(0.1)
