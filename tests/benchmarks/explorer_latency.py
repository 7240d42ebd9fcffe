"""How quickly an explorer's picture follows a key, beside a slider that draws nothing.

    python tests/benchmarks/explorer_latency.py [--presses 20] [--only clip_explorer ...]

JupyterLab in Chromium, one notebook, one kernel. The clock starts in the keydown event and stops in
the first animation frame that shows the answer. Three things are measured by the same clock:

    bare slider    an ipywidgets slider whose callback writes a number into a label: the way of a
                   key to the kernel and back, which nothing of ours can shorten
    bare picture   the same with one of two ready pictures of an explorer's size: adds sending and
                   decoding a PNG
    an explorer    adds its computation, drawing and encoding

Milliseconds say how busy the machine is; the ratio to the bare slider, measured between the same
explorers in the same page, says what the explorer costs. There is no gate.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "browser"))

import lab_in_chromium  # noqa: E402
from lab_in_chromium import (
    FEWER,
    MOVED,
    STEPS,
    explorer_cells,
    mark,
    opened,
    serving,
    window,
    write_notebook,
)

BARE = """\
import io
import ipywidgets
from IPython.display import display, Image
from matplotlib.figure import Figure

def ready(slope):
    figure, out = Figure(figsize=(9, 3.8), dpi=100), io.BytesIO()
    figure.subplots().plot([slope * x for x in range(50)])
    figure.savefig(out, format="png")
    return Image(out.getvalue())

def text():
    slider, label = ipywidgets.IntSlider(description="bare"), ipywidgets.Label("0")
    slider.observe(lambda change: setattr(label, "value", str(change.new)), "value")
    display(ipywidgets.VBox([slider, label]))

def picture():
    both, slider = (ready(1), ready(-1)), ipywidgets.IntSlider(description="bare")
    display(slider)
    shown = display(both[0], display_id=True)
    slider.observe(lambda change: shown.update(both[change.new % 2]), "value")

bare_slider, bare_picture = text, picture"""
# What stands in a frame: the pixels of a picture, read back from a canvas, or the text of a label.
SAMPLER = """(selector) => {
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d', {willReadFrequently: true});
  const shown = () => {
    const found = document.querySelector(selector);
    if (!found) return null;
    if (found.tagName !== 'IMG') return found.textContent;
    if (!found.complete || !found.naturalWidth) return null;
    if (found.src === shown.src) return shown.hash;
    canvas.width = found.naturalWidth; canvas.height = found.naturalHeight;
    context.drawImage(found, 0, 0);
    const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
    let hash = 0;
    for (const value of new Uint32Array(data.buffer)) hash = (Math.imul(hash, 31) + value) | 0;
    shown.src = found.src; shown.hash = hash;
    return hash;
  };
  const state = window.sampler = {ms: null};
  let start = 0, before = shown();
  document.addEventListener('keydown', () => { state.ms = null; start = performance.now(); }, true);
  const frame = () => {
    const now = performance.now(), after = shown();
    if (after !== null && after !== before && state.ms === null) state.ms = now - start;
    if (after !== null) before = after;
    if (window.sampler === state) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""
WARM_UP = 2  # key presses that pay for the first draw


def measured(tab, call: str, label: str, start: str | None, presses: int) -> list[float]:
    """Milliseconds from a key to the changed pixels of one cell, a number a press."""
    cell = mark(tab, call)
    tab.locator(f"{cell} .widget-slider .noUi-handle").first.wait_for()
    tab.locator(cell).scroll_into_view_if_needed()
    rows = tab.locator(f"{cell} .widget-inline-hbox")
    control = rows.filter(has=tab.locator(".widget-label", has_text=label)).first
    handle = control.locator(".noUi-handle")
    if start is None:
        handle.focus()
        tab.keyboard.press("Home")
    else:
        control.locator(".widget-readout").click()
        tab.keyboard.press("Control+A")
        tab.keyboard.type(start)
        tab.keyboard.press("Enter")
    tab.wait_for_timeout(500)
    handle.focus()
    picture = f"{cell} .jp-OutputArea-output img[src^='data:image/png']"
    text = f"{cell} .widget-label:not(.widget-inline-hbox *)"
    tab.evaluate(SAMPLER, text if call == "bare_slider" else picture)
    found = []
    there = FEWER.get(
        call, STEPS
    )  # a menu of few entries ends early, and then a press changes nothing
    keys = ["ArrowRight"] * there + ["ArrowLeft"] * there
    for press in range(presses + WARM_UP):
        tab.keyboard.press(keys[press % len(keys)])
        tab.wait_for_function("() => window.sampler.ms !== null")
        found.append(tab.evaluate("() => window.sampler.ms"))
        tab.wait_for_timeout(40)
    return found[WARM_UP:]


def main(arguments: list[str] | None = None) -> dict[str, dict[str, float]]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presses", type=int, default=20, help="key presses per row")
    parser.add_argument("--only", nargs="+", choices=sorted(MOVED), help="these explorers")
    options = parser.parse_args(arguments)
    if lab_in_chromium.browser() is None:
        raise SystemExit(lab_in_chromium.NO_BROWSER)
    cells = {call: explorer_cells()[call] for call in options.only or sorted(MOVED)}
    sources = ["from rlnb.classroom import explorers", BARE, "bare_slider()", "bare_picture()"]
    rows: dict[str, dict[str, float]] = {}
    every: list[float] = []
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; median of {options.presses}")
    print(f"{'':<30}{'ms':>7}{'x bare':>8}   of it: {'way':>6}{'PNG':>6}{'drawing':>9}  (ms)")
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as lab, window() as browser:
        page = write_notebook(Path(folder) / "latency.ipynb", [*sources, *cells.values()])
        with opened(page, lab, browser) as tab:
            for call in cells:
                bare = measured(tab, "bare_slider", "bare", "1", options.presses)
                drawn = measured(tab, "bare_picture", "bare", "1", options.presses)
                pressed = measured(tab, call, *MOVED[call], options.presses)
                every += pressed
                way, png, ms = map(statistics.median, (bare, drawn, pressed))
                rows[call] = {"ms": ms, "way": way, "picture": png, "ratio": ms / way}
                print(
                    f"{call:<30}{ms:>7.0f}{ms / way:>8.1f}{way:>16.0f}{png - way:>6.0f}"
                    f"{ms - png:>9.0f}",
                    flush=True,
                )
    ratio = statistics.median(row["ratio"] for row in rows.values())
    print(f"{'median':<30}{statistics.median(every):>7.0f}{ratio:>8.1f}")
    print(f"{'of 100 presses 95 take':<30}{sorted(every)[round(0.95 * (len(every) - 1))]:>7.0f}")
    return rows


if __name__ == "__main__":
    main()
