"""What a screen reader is told in JupyterLab as `make lab` opens it, and in an exported page."""

from __future__ import annotations

import re
import subprocess
import sys

import lab_in_chromium
import pytest

from rlnb.classroom import workspace
from rlnb.classroom.pages import NOTEBOOKS

EXPLORER = """\
from rlnb.classroom.explorers import loss_and_gradient
from rlnb.classroom.lesson import predict, task
task("spoken.t", loss_and_gradient.loss_and_gradient_explorer(),
     ("Stop it.", loss_and_gradient.only_the_loss))"""
NAMED_VALUES = """\
from rlnb.classroom.explorer import choice_slider
choice_slider(2, [("one", 1), ("two", 2)], "how many", "of them")"""
GUESS = 'predict("spoken.1", "Which?", ["this", "that"])'
PICTURE = """\
from rlnb.classroom.pictures import pipeline
pipeline.pipeline("loss", caption="One step.")"""
IMAGES = """() => [...document.querySelectorAll('.jp-RenderedImage img')].map(i => i.alt)"""
HANDLES = """() => [...document.querySelectorAll('.noUi-handle')].map(
  h => h.getAttribute('aria-label'))"""
SAID = """() => [...document.querySelectorAll('[role=status]')].map(l => l.textContent)"""
PRESSED = """() => [...document.querySelectorAll('.widget-toggle-button')].map(
  b => b.getAttribute('aria-pressed'))"""
# Contrast of each line's text with the notebook behind it, as WCAG counts it.
CONTRAST = """() => {
  const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = text => { const [r, g, b] = rgb(text).map(v => {
    v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const panel = document.querySelector('.jp-Notebook');
  const behind = light(getComputedStyle(panel).backgroundColor);
  return [...document.querySelectorAll('.rlnb-said')].filter(l => l.textContent).map(l => {
    const mine = light(getComputedStyle(l).color);
    return (Math.max(mine, behind) + 0.05) / (Math.min(mine, behind) + 0.05); });
}"""
DARK = """async () => { await window.jupyterapp.commands.execute(
  'apputils:change-theme', {theme: 'JupyterLab Dark'}); }"""


@pytest.fixture(scope="module")
def tab(chromium, tmp_path_factory):
    base = tmp_path_factory.mktemp("spoken")
    (base / "work").mkdir()
    cells = [PICTURE, EXPLORER, NAMED_VALUES, GUESS]
    page = lab_in_chromium.write_notebook(base / "work" / "00.ipynb", cells)
    port = lab_in_chromium.free_port()
    flags = ["--no-browser", f"--ServerApp.port={port}", "--IdentityProvider.token=t"]
    flags.append("--LabApp.expose_app_in_browser=True")
    command = workspace.lab_command(page, flags, work=base / "work")
    away = {"HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"}
    environment = workspace.lab_environment() | {name: str(base / name) for name in away}
    environment["RLNB_PROGRESS"] = str(base / "progress.json")
    log = base / "log"
    with log.open("w") as out:
        server = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        lab_in_chromium.wait_for(f"http://127.0.0.1:{port}/api/status?token=t", server, log)
        with lab_in_chromium.window() as window:
            tab = window.new_page()
            tab.goto(f"http://127.0.0.1:{port}/lab/tree/00.ipynb?token=t")
            tab.wait_for_selector(".jp-NotebookPanel", timeout=90_000)
            tab.wait_for_function(
                "() => window.jupyterapp && window.jupyterapp.shell.currentWidget"
            )
            tab.evaluate(lab_in_chromium.OPEN)
            tab.evaluate(lab_in_chromium.RUN_ALL)
            assert tab.evaluate(lab_in_chromium.WRONG_CELLS) == []
            tab.wait_for_selector(".noUi-handle")
            tab.wait_for_function(f"() => ({IMAGES})().every(alt => alt)")
            # the extension names a slider within a fifth of a second of its appearance
            tab.wait_for_function(f"() => (n => n.length > 2 && n.every(Boolean))(({HANDLES})())")
            yield tab
    finally:
        server.terminate()
        server.wait(20)


def test_every_picture_says_what_it_shows(tab):
    static, moving = tab.evaluate(IMAGES)
    assert static.startswith("Pipeline: prompt, G answers")
    assert moving.startswith("Token grid of the running group beside two bars. 2 of 4 right")


def test_every_slider_has_its_name_and_changing_lines_are_announced(tab):
    assert tab.evaluate(HANDLES) == ["right answers", "steps taken", "how many"]
    assert any("2 of 4 right, fresh answers" in line for line in tab.evaluate(SAID))


def test_a_moved_slider_changes_the_pictures_sentence_and_the_line(tab):
    tab.locator(".noUi-handle").first.focus()
    tab.keyboard.press("ArrowRight")
    changed = "alts => alts[1].includes('3 of 4 right')"
    tab.wait_for_function(f"() => ({changed})(({IMAGES})())")
    assert any("3 of 4 right" in line for line in tab.evaluate(SAID))


def test_a_pressed_button_says_so(tab):
    assert tab.evaluate(PRESSED) == ["true", "false", "false", "false"]  # the explorer's two first
    tab.locator(".widget-toggle-button").last.press("Space")
    tab.wait_for_function(f"() => ({PRESSED})()[3] === 'true'")


def test_changing_lines_are_legible_on_light_and_on_dark(tab):
    """4.5 is what WCAG AA asks of text of this size."""
    bright = tab.evaluate(CONTRAST)
    tab.evaluate(DARK)
    tab.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    dark = tab.evaluate(CONTRAST)
    assert len(bright) >= 3 and min(bright) >= 4.5 and min(dark) >= 4.5, (bright, dark)


def test_pictures_grow_with_the_letters(tab):
    widths = "() => [...document.querySelectorAll('.jp-RenderedImage img')].map(i => i.clientWidth)"
    tab.set_viewport_size({"width": 1800, "height": 900})  # room to grow
    tab.wait_for_function(f"() => ({widths})()[0] === 900")
    before = tab.evaluate(widths)
    tab.evaluate("""() => { document.documentElement.style.setProperty(
      '--jp-content-font-size1', '16px'); document.body.append(document.createElement('i')); }""")
    tab.wait_for_function(f"b => ({widths})()[0] > 1.05 * b", arg=before[0])


def test_the_exported_page_has_the_sentences(tmp_path):
    page = NOTEBOOKS / "00_start_here.ipynb"
    command = [sys.executable, "-m", "nbconvert", "--to", "html", f"--output-dir={tmp_path}"]
    subprocess.run(
        [*command, str(page)], env=workspace.lab_environment(), check=True, capture_output=True
    )
    images = re.findall(r"<img[^>]*>", (tmp_path / "00_start_here.html").read_text("utf-8"))
    assert len(images) >= 4
    for image in images:
        said = re.search(r'alt="([^"]*)"', image)
        assert said and len(said[1]) > 20 and "No description" not in said[1], image[-200:]
