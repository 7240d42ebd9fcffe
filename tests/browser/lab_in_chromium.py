"""JupyterLab on loopback, driven by the system's Chromium: fresh directories, no network.

The tests beside this file use it, and tests/benchmarks/explorer_latency.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat

from rlnb.classroom.pages import committed_notebooks

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NO_BROWSER = (
    "THE BROWSER TESTS DID NOT RUN: none of chromium, chromium-browser, google-chrome is on the "
    "PATH. On Debian: apt install chromium"
)
EXPLORER = re.compile(r"\b(\w+_explorer)\(")
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
    w => w.model.type === 'code'
      && new RegExp('\\\\b' + call + '\\\\(').test(w.model.sharedModel.source));
  found.forEach(w => w.node.setAttribute('data-explorer', call));
  return found.length;
}"""


# A slider of each, the value to start at (None: its first) and the way to go. Every step of it
# shows another picture.
STEPS = 6  # key presses; fewer where a slider has fewer places
FEWER = {
    "engine_rules_explorer": 4,
    "five_runs_explorer": 3,
    "full_card_explorer": 4,
    "slow_start_explorer": 4,
    "which_rule_explorer": 2,
}
MOVED = {
    "answer_ratio_explorer": ("flipped tokens, %", "0.3"),
    "capped_reward_explorer": ("β", None),
    "clip_explorer": ("ε high", "0.1"),
    "composer_explorer": ("start from", None),
    "cooled_base_explorer": ("temperature", None),
    "difficulty_explorer": ("pass rate p", "0.1"),
    "engine_rules_explorer": ("prefixes flipped", None),
    "entropy_step_explorer": ("step η", "2"),
    "five_runs_explorer": ("run", None),
    "four_edges_explorer": ("ratio ρ", None),
    "full_card_explorer": ("cards of 80 GB", None),
    "gae_explorer": ("λ", "0.1"),
    "gate_zoo_explorer": ("edge ε", "0.1"),
    "gpu_budget_explorer": ("tokens", None),
    "long_answers_explorer": ("tokens", None),
    "group_advantage_explorer": ("group size", "2"),
    "group_size_explorer": ("group size G", "2"),
    "kept_groups_explorer": ("progress", "0"),
    "kl_estimator_explorer": ("distance", "0.1"),
    "kl_explorer": ("model: mean", "-3"),
    "kl_leash_explorer": ("β", "0.1"),
    "kl_pull_explorer": ("distance", "0.5"),
    "length_drift_explorer": ("share right", "0.1"),
    "many_updates_explorer": ("updates", "3"),
    "micro_batches_explorer": ("answer 0, tokens", "1"),
    "loss_and_gradient_explorer": ("steps taken", "0"),
    "one_group_explorer": ("your reward", "0.1"),
    "one_pair_explorer": ("margin in the log", "0.5"),
    "one_push_explorer": ("added to all rewards", "-1"),
    "one_token_explorer": ("ratio ρ", "0.3"),
    "product_weight_explorer": ("tosses T", None),
    "prompt_weight_explorer": ("pass rate of B", "0.1"),
    "race_rates_explorer": ("rate, clip", None),
    "rare_glitch_explorer": ("glitches", None),
    "rare_token_explorer": ("step per update", "0.01"),
    "recorded_run_explorer": ("step", "0"),
    "reuse_explorer": ("learning rate", None),
    "rollouts_explorer": ("answer", "1"),
    "scaling_fit_explorer": ("seed", "0"),
    "shared_divisor_explorer": ("answers that share", None),
    "slow_start_explorer": ("learning rate", None),
    "std_explorer": ("group size", "2"),
    "stale_queue_explorer": ("spread of the lengths", "0.2"),
    "sharpen_or_learn_explorer": ("cooling, 1/T", "2"),
    "three_pushes_explorer": ("baseline b", "-0.3"),
    "token_gates_explorer": ("ε", "0.1"),
    "token_rules_explorer": ("w = π/μ", None),
    "token_weights_explorer": ("answer 1, tokens", "1"),
    "turn_credit_explorer": ("grader wrong", "0.3"),
    "two_authors_explorer": ("what it costs", "0.2"),
    "uphill_explorer": ("answers a step N", None),
    "ways_to_be_right_explorer": ("chance p", "0.1"),
    "which_rule_explorer": ("engine", None),
    "wrong_critic_explorer": ("λ", "0.1"),
}


@dataclass(frozen=True)
class Lab:
    """A running server: its address, its token, the folder it serves."""

    url: str
    token: str
    folder: Path


def browser() -> str | None:
    """The system's Chromium, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def explorer_cells() -> dict[str, str]:
    """Each explorer that a page shows, and the source of a cell that shows it.

    One that stands under a task is shown without it: its goals belong to the page.
    """
    cells, under_task = {}, {}
    for page in committed_notebooks():
        notebook = nbformat.read(page, as_version=4)
        for cell in (c for c in notebook.cells if c.cell_type == "code"):
            calls = EXPLORER.findall(cell.source)
            if "explorer" in cell.metadata.get("tags", ()):
                cells |= {call: cell.source for call in calls if call not in cells}
            elif "task(" in cell.source:
                under_task |= {call: f"explorers.{call}()" for call in calls}
    return under_task | cells


def write_notebook(path: Path, sources: list[str], prose: str = "") -> Path:
    """A notebook of code cells that were not run yet, after a paragraph."""
    cells = [nbformat.v4.new_markdown_cell(prose)] if prose else []
    cells += [nbformat.v4.new_code_cell(source) for source in sources]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    return path


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serving(base: Path) -> Iterator[Lab]:
    """JupyterLab serving an empty folder; nothing of the user's configuration reaches it."""
    folder = base / "served"
    for name in ("served", "home", "config/labconfig"):
        (base / name).mkdir(parents=True)
    overrides = base / "config/labconfig/default_setting_overrides.json"
    overrides.write_text(json.dumps(SETTINGS))
    port, token = free_port(), secrets.token_hex(16)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JUPYTER")}
    environment |= {
        "HOME": str(base / "home"),
        "JUPYTER_CONFIG_DIR": str(base / "config"),
        "JUPYTER_DATA_DIR": str(base / "data"),
        "JUPYTER_RUNTIME_DIR": str(base / "runtime"),
        "JUPYTER_PLATFORM_DIRS": "1",
        "IPYTHONDIR": str(base / "ipython"),
        "MPLCONFIGDIR": str(base / "matplotlib"),
        "RLNB_MODE": "replay",  # explorers are opened, nothing is trained
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
        wait_for(f"{url}/api/status?token={token}", server, log)
        yield Lab(url, token, folder)
    finally:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()


def wait_for(address: str, server: subprocess.Popen, log: Path, seconds: float = 90) -> None:
    """Until the server answers; its log is the message where it does not."""
    begin = time.monotonic()
    while server.poll() is None and time.monotonic() - begin < seconds:
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(address, timeout=2).read()
            return
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not answer. The end of its log:\n{log.read_text()[-3000:]}")


_DRIVERS: list = []


@contextlib.contextmanager
def driver() -> Iterator:
    """Playwright, started once: a second window in this process shares the first's."""
    if _DRIVERS:
        yield _DRIVERS[0]
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        _DRIVERS.append(playwright)
        try:
            yield playwright
        finally:
            _DRIVERS.clear()


@contextlib.contextmanager
def window() -> Iterator:
    """One browser window, 1280 x 900."""
    with driver() as playwright:
        running = playwright.chromium.launch(executable_path=browser(), args=CHROMIUM_FLAGS)
        try:
            yield running.new_context(viewport={"width": 1280, "height": 900})
        finally:
            running.close()


@contextlib.contextmanager
def opened(page: Path, lab: Lab, window) -> Iterator:
    """A tab with that notebook, every cell run, no error in any of them nor in the tab."""
    complaints = []
    shutil.copy(page, lab.folder / page.name)
    tab = window.new_page()
    tab.set_default_timeout(30_000)
    tab.on("pageerror", lambda error: complaints.append(f"{page.name}: {error}"))
    tab.goto(f"{lab.url}/lab/tree/{page.name}?token={lab.token}&reset")
    tab.wait_for_selector(".jp-NotebookPanel", timeout=90_000)
    tab.wait_for_function("() => window.jupyterapp && window.jupyterapp.shell.currentWidget")
    tab.evaluate(OPEN)
    tab.evaluate(RUN_ALL)
    assert tab.evaluate(WRONG_CELLS) == [], page.name
    yield tab
    tab.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    tab.close()
    assert not complaints, complaints


def mark(tab, call: str) -> str:
    """Tags the one cell that calls `call` and returns a selector for it."""
    found = tab.evaluate(MARK, call)
    assert found == 1, f"{found} cells call {call}(), expected one"
    return f"[data-explorer={call}]"
