"""`make lab PRESENT=1`: one document, side bars closed, letters for the last row."""

from __future__ import annotations

import subprocess

import lab_in_chromium
import pytest

from rlnb.classroom import workspace

LOOK = """() => ({
  mode: window.jupyterapp.shell.mode,
  bars: [!window.jupyterapp.shell.leftCollapsed, !window.jupyterapp.shell.rightCollapsed],
  code: getComputedStyle(document.querySelector('.jp-InputArea .cm-editor')).fontSize,
  prose: getComputedStyle(document.querySelector('.jp-RenderedMarkdown p')).fontSize,
})"""


@pytest.mark.parametrize("present", [True, False])
def test_presenting_shows_one_document_in_larger_letters(chromium, monkeypatch, tmp_path, present):
    monkeypatch.setenv("RLNB_PRESENT", "1" if present else "")
    (tmp_path / "work").mkdir()
    page = lab_in_chromium.write_notebook(tmp_path / "work" / "00.ipynb", ["1"], "A sentence.")
    port = lab_in_chromium.free_port()
    flags = ["--no-browser", f"--ServerApp.port={port}", "--IdentityProvider.token=t"]
    flags.append("--LabApp.expose_app_in_browser=True")
    command = workspace.lab_command(page, flags, work=tmp_path / "work")
    away = {"HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"}
    environment = workspace.lab_environment() | {name: str(tmp_path / name) for name in away}
    log = tmp_path / "log"
    with log.open("w") as out:
        server = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        lab_in_chromium.wait_for(f"http://127.0.0.1:{port}/api/status?token=t", server, log)
        with lab_in_chromium.window() as window:
            tab = window.new_page()
            # What the server opens: its default address where one is set, else the page in lab.
            start = "" if present else "lab/tree/00.ipynb"
            tab.goto(f"http://127.0.0.1:{port}/{start}?token=t")
            tab.wait_for_selector(".jp-NotebookPanel .jp-RenderedMarkdown p", timeout=60_000)
            tab.wait_for_function("() => document.querySelector('.jp-InputArea .cm-editor')")
            tab.evaluate("async () => { await window.jupyterapp.restored }")
            shown = tab.evaluate(LOOK)
    finally:
        server.terminate()
        server.wait(60)  # a full machine takes its time to end JupyterLab
    if present:
        assert shown == {
            "mode": "single-document",
            "bars": [False, False],
            "code": "18px",
            "prose": "20px",
        }
    else:
        assert shown["mode"] == "multiple-document" and shown["bars"][0]
        assert shown["code"] == "13px"
