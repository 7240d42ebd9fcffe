"""JupyterLab on loopback, driven by the system's Chromium: fresh directories, no network.

Whether these tests run at all (and how loudly they say that they did not) is decided for the whole
suite in tests/conftest.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# No news, no autosave, and every cell in the DOM, also those below the window.
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {
        "checkForUpdates": False,
        "doNotDisturbMode": True,
        "fetchNews": "false",
    },
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}
# The status bar says "idle" before the kernel answers, and "run all" would then run nothing. So
# wait for the kernel's own answer to a silent request.
OPEN = """async () => {
  const app = window.jupyterapp, begin = performance.now();
  await app.restored;
  const ready = () => { const p = app.shell.currentWidget;
    return p && p.sessionContext && p.content.widgets ? p : null; };
  while (!ready()) {
    if (performance.now() - begin > 60000) throw new Error('no notebook opened');
    await new Promise(r => setTimeout(r, 50));
  }
  const panel = ready();
  await panel.context.ready; await panel.revealed; await panel.sessionContext.ready;
  const kernel = panel.sessionContext.session.kernel;
  await kernel.info;
  await kernel.requestExecute({code: '0', silent: true, store_history: false}).done;
}"""
RUN_ALL = """async () => {
  const app = window.jupyterapp, panel = app.shell.currentWidget;
  await app.commands.execute('notebook:run-all-cells');
  const kernel = panel.sessionContext.session.kernel;
  await kernel.requestExecute({code: '0', silent: true, store_history: false}).done;
}"""
WRONG_CELLS = """() => {
  const cells = window.jupyterapp.shell.currentWidget.content.model.cells, wrong = [];
  for (let i = 0; i < cells.length; i++) {
    const cell = cells.get(i);
    if (cell.type !== 'code' || !cell.sharedModel.source.trim()) continue;
    if (cell.executionCount === null) wrong.push([i, 'not run']);
    for (let j = 0; j < cell.outputs.length; j++) {
      const output = cell.outputs.get(j);
      if (output.type === 'error') wrong.push([i, output.toJSON().evalue]);
    }
  }
  return wrong;
}"""
# Marks the cell that displays an explorer, so that selectors can name it.
MARK = """(call) => {
  const found = window.jupyterapp.shell.currentWidget.content.widgets.filter(
    w => w.model.type === 'code' && w.model.sharedModel.source.includes(call + '('));
  found.forEach(w => w.node.setAttribute('data-explorer', call));
  return found.length;
}"""


@dataclass(frozen=True)
class Lab:
    """A running server: its address, its token, the folder it serves."""

    url: str
    token: str
    folder: Path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """JupyterLab serving an empty folder; nothing of the user's configuration reaches it."""
    base = tmp_path_factory.mktemp("lab")
    folder = base / "served"
    for name in ("served", "home", "config/labconfig"):
        (base / name).mkdir(parents=True)
    overrides = base / "config/labconfig/default_setting_overrides.json"
    overrides.write_text(json.dumps(SETTINGS))
    port, token = _free_port(), secrets.token_hex(16)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JUPYTER")}
    environment |= {
        "HOME": str(base / "home"),
        "JUPYTER_CONFIG_DIR": str(base / "config"),
        "JUPYTER_DATA_DIR": str(base / "data"),
        "JUPYTER_RUNTIME_DIR": str(base / "runtime"),
        "JUPYTER_PLATFORM_DIRS": "1",
        "IPYTHONDIR": str(base / "ipython"),
        "MPLCONFIGDIR": str(base / "matplotlib"),
        "RLNB_MODE": "replay",  # page 19 is opened for its explorers, not to train
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(":"),
    }
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        *(f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"),
        *("--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly"),
    ]
    log = base / "log.txt"
    with log.open("w") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/api/status?token={token}", server, log)
        yield Lab(url, token, folder)
    finally:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()


def _wait_for(address: str, server: subprocess.Popen, log: Path, seconds: float = 90) -> None:
    begin = time.monotonic()
    while server.poll() is None and time.monotonic() - begin < seconds:
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(address, timeout=2).read()
            return
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not answer. The end of its log:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="session")
def window():
    """One browser window, 1280 x 900."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        try:
            yield browser.new_context(viewport={"width": 1280, "height": 900})
        finally:
            browser.close()


@pytest.fixture(scope="module")
def open_page(lab, window):
    """open_page(path) -> a tab with that notebook, every cell run, no error in any of them."""
    tabs, complaints = [], []

    def open_one(path: Path):
        shutil.copy(path, lab.folder / path.name)
        tab = window.new_page()
        tabs.append(tab)
        tab.set_default_timeout(30_000)
        tab.on("pageerror", lambda error: complaints.append(f"{path.name}: {error}"))
        tab.goto(f"{lab.url}/lab/tree/{path.name}?token={lab.token}&reset")
        tab.wait_for_selector(".jp-NotebookPanel", timeout=90_000)
        tab.wait_for_function("() => window.jupyterapp && window.jupyterapp.shell.currentWidget")
        tab.evaluate(OPEN)
        tab.evaluate(RUN_ALL)
        assert tab.evaluate(WRONG_CELLS) == [], path.name
        return tab

    yield open_one
    for tab in tabs:
        tab.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        tab.close()
    assert not complaints, complaints


@pytest.fixture(scope="module")
def mark():
    """mark(tab, call) tags the one cell that calls `call` and returns a selector for it."""

    def one(tab, call: str) -> str:
        found = tab.evaluate(MARK, call)
        assert found == 1, f"{found} cells call {call}(), expected one"
        return f"[data-explorer={call}]"

    return one


def pytest_terminal_summary(terminalreporter):
    rows = [
        dict(report.user_properties)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call"
    ]
    rows = [row for row in rows if "explorer" in row]
    if not rows:
        return
    terminalreporter.section("explorers in JupyterLab, key press to changed pixels")
    head = f"{'explorer':<28}{'median ms':>10}{'p95 ms':>8}{'gate ms':>9}{'load':>7}"
    terminalreporter.line(head)
    for row in rows:
        terminalreporter.line(
            f"{row['explorer']:<28}{row['median_ms']:>10.0f}{row['p95_ms']:>8.0f}"
            f"{row['gate_ms']:>9.0f}{row['load']:>7.2f}"
        )
