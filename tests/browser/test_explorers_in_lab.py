"""The explorers as a learner meets them: JupyterLab, a mouse and a keyboard."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lab_in_chromium import FEWER, MOVED, STEPS, explorer_cells, mark

EXPLORERS = sorted(explorer_cells())
# Watches a picture in every animation frame: how often other pixels stood there than the frame
# before (decoded, read back from a canvas), and how often there was none.
WATCH = """(selector) => {
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d', {willReadFrequently: true});
  const picture = () => { const i = document.querySelector(selector);
    return i && i.complete && i.naturalWidth ? i : null; };
  const pixels = (image) => {
    canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
    context.drawImage(image, 0, 0);
    const bytes = context.getImageData(0, 0, canvas.width, canvas.height).data;
    const data = new Uint32Array(bytes.buffer);
    let hash = 0;
    for (let i = 0; i < data.length; i++) hash = (Math.imul(hash, 31) + data[i]) | 0;
    return hash;
  };
  const state = window.watch = {changes: 0, gaps: 0};
  let source = picture().src, before = pixels(picture());
  const frame = () => {
    const image = picture();
    if (!image) state.gaps += 1;
    else if (image.src !== source) {
      source = image.src;
      const after = pixels(image);
      if (after !== before) state.changes += 1;
      before = after;
    }
    if (window.watch === state) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""
LABELS = """(cell) => [...document.querySelectorAll(cell + ' .widget-label')]
  .filter(l => l.textContent.trim() && l.scrollWidth > l.clientWidth + 1).map(l => l.textContent)"""
FOCUSED = """(cell) => { const e = document.activeElement;
  if (!e || !e.closest(cell)) return null;
  return (e.getAttribute('role') || e.tagName) + ' ' + (e.textContent || e.type || ''); }"""


class OnPage:
    """One explorer on one tab."""

    def __init__(self, tab, cell: str):
        self.tab, self.cell = tab, cell
        self.picture = f"{cell} .jp-OutputArea-output img[src^='data:image/png']"
        self.tab.locator(self.picture).wait_for()
        self.tab.locator(f"{cell} .widget-slider .noUi-handle").first.wait_for()
        self.tab.locator(cell).scroll_into_view_if_needed()

    def source(self) -> str:
        return self.tab.locator(self.picture).get_attribute("src")

    def settled(self) -> str:
        """The picture once it has stopped changing."""
        source, same = self.source(), 0
        while same < 4:
            self.tab.wait_for_timeout(80)
            now = self.source()
            source, same = now, same + 1 if now == source else 0
        return source

    def changes(self, action) -> str:
        """Does it, waits until another decoded picture stands there, and until it is final."""
        before = self.settled()
        action()
        self.tab.wait_for_function(
            "([s, o]) => { const i = document.querySelector(s);"
            " return i && i.complete && i.naturalWidth > 0 && i.src !== o }",
            arg=[self.picture, before],
        )
        return self.settled()

    def control(self, label: str):
        """The widget with that label."""
        own = self.tab.locator(f"{self.cell} .widget-inline-hbox")
        return own.filter(has=self.tab.locator(".widget-label", has_text=label)).first

    def press(self, label: str, key: str) -> None:
        self.control(label).locator(".noUi-handle").focus()
        self.tab.keyboard.press(key)

    def readout(self, label: str) -> str:
        return self.control(label).locator(".widget-readout").inner_text()

    def type_into_readout(self, label: str, text: str) -> None:
        self.control(label).locator(".widget-readout").click()
        self.tab.keyboard.press("Control+A")
        self.tab.keyboard.type(text)
        self.tab.keyboard.press("Enter")

    def drag(self, label: str, by: int) -> None:
        box = self.control(label).locator(".noUi-handle").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.tab.mouse.move(x, y)
        self.tab.mouse.down()
        self.tab.mouse.move(x + by, y, steps=6)
        self.tab.mouse.up()

    def button(self, label: str, key: str = "") -> None:
        """Clicks a toggle button, or presses `key` on it."""
        button = self.tab.locator(f"{self.cell} .widget-toggle-button", has_text=label).first
        button.press(key) if key else button.click()


@pytest.fixture
def on_page(tab):
    return lambda call: OnPage(tab, mark(tab, call))


def test_clip_by_mouse_keyboard_typing_and_button(on_page):
    clip = on_page("clip_explorer")
    assert clip.readout("ε high") == "0.20"
    seen = {clip.settled()}
    seen.add(clip.changes(lambda: clip.press("ε high", "ArrowRight")))
    assert clip.readout("ε high") == "0.21"
    seen.add(clip.changes(lambda: clip.drag("ε low", 60)))
    assert float(clip.readout("ε low")) > 0.25
    seen.add(clip.changes(lambda: clip.press("dual clip", "ArrowLeft")))
    assert clip.readout("dual clip") == "3.50"
    seen.add(clip.changes(lambda: clip.button("A < 0")))
    seen.add(clip.changes(lambda: clip.button("A > 0", "Space")))
    seen.add(clip.changes(lambda: clip.type_into_readout("ε high", "0.28")))
    assert clip.readout("ε high") == "0.28"
    assert len(seen) == 7


def test_group_advantage_by_mouse_keyboard_and_typing(on_page):
    group = on_page("group_advantage_explorer")
    seen = {group.settled()}
    seen.add(group.changes(lambda: group.press("group size", "ArrowRight")))
    assert group.readout("group size") == "5"
    seen.add(group.changes(lambda: group.button("the last reward", "Space")))
    seen.add(group.changes(lambda: group.button("Bessel std")))
    field = group.control("rewards").locator("input")
    seen.add(group.changes(lambda: field.fill("1, 0.5, 0, 0, 0")))
    assert len(seen) == 5


def test_group_advantage_answers_bad_text_with_a_sentence_and_keeps_the_picture(on_page):
    group = on_page("group_advantage_explorer")
    field = group.control("rewards").locator("input")
    good = group.changes(lambda: field.fill("0, 0.25, 0, 1, 1"))
    field.press("End")
    field.press("o")
    group.tab.get_by_text("“1o” is not a number").wait_for()
    assert group.settled() == good
    field.press("Backspace")
    group.tab.get_by_text("is not a number").wait_for(state="detached")
    assert group.settled() == good


def test_gae_by_mouse_keyboard_typing_and_switch(on_page):
    gae = on_page("gae_explorer")
    seen = {gae.settled()}
    seen.add(gae.changes(lambda: gae.press("λ", "ArrowRight")))
    assert gae.readout("λ") == "0.01"
    seen.add(gae.changes(lambda: gae.press("λ", "End")))
    assert gae.readout("λ") == "1.00"
    seen.add(gae.changes(lambda: gae.drag("γ", -60)))
    seen.add(gae.changes(lambda: gae.type_into_readout("λ", "0.5")))
    box = gae.tab.locator(f"{gae.cell} input[type=checkbox]")
    seen.add(gae.changes(lambda: box.press("Space")))
    seen.add(gae.changes(lambda: box.click()))
    assert len(seen) == 6  # on again: the same picture as before it was off


def test_composer_starts_from_a_method_and_changes_a_part(on_page):
    composer = on_page("composer_explorer")

    def menu(label):
        return composer.tab.locator(composer.cell).get_by_label(label, exact=True)

    def chosen(label):
        text = menu(label).evaluate("s => s.selectedOptions[0].text")
        return text.replace("\xa0", " ")  # ipywidgets keeps an option on one line

    def choose(label, option):
        text = option.replace(" ", "\xa0")
        return composer.changes(lambda: menu(label).select_option(label=text))

    seen = {composer.settled()}
    seen.add(composer.changes(lambda: composer.press("start from", "ArrowRight")))
    assert composer.readout("start from") == "dapo"
    assert [chosen(label) for label in ("surrogate f", "weights c", "terms: KL")] == [
        "clip .2 / .28",
        "token mean",
        "none",
    ]
    seen.add(choose("surrogate f", "clip .2"))
    seen.add(choose("ratio ρ", "sequence"))
    seen.add(choose("advantage A", "leave one out"))
    seen.add(choose("surrogate f", "CISPO 5"))
    assert len(seen) == 6
    composer.changes(lambda: composer.press("start from", "ArrowLeft"))
    assert chosen("advantage A") == "group z-score"


@pytest.mark.parametrize("call", EXPLORERS)
def test_tab_key_reaches_every_control_and_no_label_is_cut(on_page, call):
    shown = on_page(call)
    assert shown.tab.evaluate(LABELS, shown.cell) == []
    stops = "input, select, button, .noUi-handle, .widget-readout"
    count = shown.tab.locator(f"{shown.cell} .jp-OutputArea").locator(stops).count()
    first = shown.tab.locator(f"{shown.cell} .jp-OutputArea").locator(stops).first
    first.focus()
    reached = []
    for _ in range(count + 2):
        focused = shown.tab.evaluate(FOCUSED, shown.cell)
        if focused is None:
            break
        reached.append(focused)
        shown.tab.keyboard.press("Tab")
    handles = shown.tab.locator(f"{shown.cell} .noUi-handle").count()
    buttons = shown.tab.locator(f"{shown.cell} .widget-toggle-button").count()
    fields = shown.tab.locator(f"{shown.cell} .jp-OutputArea input").count()
    assert sum(stop.startswith("slider") for stop in reached) == handles, reached
    assert sum(stop.startswith("BUTTON") for stop in reached) == buttons, reached
    assert sum(stop.startswith("INPUT") for stop in reached) == fields, reached


@pytest.mark.parametrize("call", EXPLORERS)
def test_controls_and_picture_fit_a_laptop_together(on_page, call):
    """JupyterLab at 1366 x 768 with its bars leaves a page about 520 px."""
    shown = on_page(call)
    controls = shown.tab.locator(f"{shown.cell} .jupyter-widgets").first.bounding_box()["height"]
    picture = shown.tab.locator(shown.picture).get_attribute("height")
    assert controls + float(picture) <= 532, (controls, picture)


def test_every_explorer_of_the_course_is_moved_below():
    assert len(EXPLORERS) >= 18
    assert sorted(MOVED) == EXPLORERS


@pytest.mark.parametrize("call", EXPLORERS)
def test_picture_follows_the_key_and_never_goes_away(on_page, call):
    """Step by step there, all at once back: the picture of a value does not depend on the way."""
    label, low = MOVED[call]
    steps = FEWER.get(call, STEPS)
    shown = on_page(call)
    if low is None:  # a slider over named values: start at its first
        shown.press(label, "Home")
    else:
        shown.type_into_readout(label, low)
    for key in ("ArrowRight", "ArrowLeft"):  # the page's first picture has fewer colours
        shown.changes(lambda key=key: shown.press(label, key))
    seen = [shown.settled()]
    readouts = [shown.readout(label)]
    shown.control(label).locator(".noUi-handle").focus()
    shown.tab.evaluate(WATCH, shown.picture)
    for step in range(1, steps + 1):
        shown.tab.keyboard.press("ArrowRight")
        shown.tab.wait_for_function("step => window.watch.changes >= step", arg=step)
        seen.append(shown.source())
        readouts.append(shown.readout(label))
    assert len(set(readouts)) == len(set(seen)) == steps + 1, "one picture for each value"
    for _ in range(steps):
        shown.tab.keyboard.press("ArrowLeft")
    shown.tab.wait_for_function(
        "([s, first]) => { const i = document.querySelector(s); return i && i.src === first }",
        arg=[shown.picture, seen[0]],
    )
    assert shown.settled() == seen[0]
    assert shown.readout(label) == readouts[0]
    assert shown.tab.evaluate("() => window.watch.gaps") == 0, "the picture flickered"


@pytest.mark.parametrize("call", EXPLORERS)
def test_last_word_no_cell_has_an_error(on_page, call):
    shown = on_page(call)
    outputs = shown.tab.locator(f"{shown.cell} .jp-OutputArea-output")
    assert shown.tab.locator(f"{shown.cell} .jp-RenderedText[data-mime-type*=error]").count() == 0
    assert shown.tab.locator(f"{shown.cell} .jupyter-widgets-error-widget").count() == 0
    assert outputs.count() == 3
    if folder := os.environ.get("RLNB_SCREENSHOTS"):
        shown.tab.locator(shown.cell).screenshot(path=str(Path(folder) / f"{call}.png"))
