"""What a room sees: no slide is cut at 1366 x 768, keys work, and paper has the pages promised."""

from __future__ import annotations

import lab_in_chromium
import pytest

from rlnb.classroom.course import course
from rlnb.classroom.pages import NOTEBOOKS, page_name
from rlnb.classroom.paper import lesson
from rlnb.classroom.paper.cheat_sheet import cheat_sheet
from rlnb.classroom.paper.chromium import pages_of, print_pdf
from rlnb.classroom.paper.handout import handout
from rlnb.classroom.paper.slides import deck

PROJECTOR = {"width": 1366, "height": 768}
SMALLEST = 0.6  # of 26 px: what a full slide may be shrunk to
LOWEST_PICTURE = 180  # px
MEASURE = """() => all.map((slide, i) => {
  go(i);
  const box = slide.querySelector('.fit'), inside = box.getBoundingClientRect();
  const cut = [...box.querySelectorAll('*')].some(x => {
    const r = x.getBoundingClientRect();
    return r.width && (r.right > innerWidth + 1 || r.bottom > innerHeight + 1 || r.top < -1);
  });
  const full = box.scrollHeight > box.clientHeight + 1
    || [...box.children].some(c => c.scrollWidth > c.clientWidth + 1);
  const pictures = [...box.querySelectorAll('img')].map(x => x.getBoundingClientRect().height);
  return {slide: i + 1, zoom: +box.style.zoom || 1, cut: cut || full,
          low: Math.min(999, ...pictures)};
})"""


@pytest.fixture(scope="module")
def tab(chromium):
    with lab_in_chromium.driver() as playwright:
        running = playwright.chromium.launch(
            executable_path=lab_in_chromium.browser(), args=lab_in_chromium.CHROMIUM_FLAGS
        )
        context = running.new_context(viewport=PROJECTOR, offline=True)
        yield context.new_page()
        running.close()


@pytest.fixture
def shown(tab, tmp_path):
    """A function that opens a text as a file and gives the tab."""

    def show(text):
        file = tmp_path / "page.html"
        file.write_text(text, encoding="utf-8")
        tab.goto(file.as_uri())
        return tab

    return show


@pytest.mark.parametrize("page", lesson.lessons(NOTEBOOKS), ids=page_name)
def test_no_slide_overflows(shown, page):
    for slide in shown(deck(page)).evaluate(MEASURE):
        assert not slide["cut"], f"{page.stem}, slide {slide['slide']}: something is cut off"
        assert slide["zoom"] >= SMALLEST, f"slide {slide['slide']} is shrunk to {slide['zoom']}"
        assert slide["low"] >= LOWEST_PICTURE, f"slide {slide['slide']}: a picture too low to read"


def test_the_measure_sees_a_slide_that_is_too_full(shown):
    text = deck(lesson.find_lesson(NOTEBOOKS, "08"))
    line = "<p style='font-size:60px'>too much</p>"
    full = text.replace('<div class="fit">', '<div class="fit">' + line * 20, 1)
    assert shown(full).evaluate(MEASURE)[0]["cut"]


def test_keys_move_and_the_speaker_sees_notes_and_what_comes_next(shown):
    tab = shown(deck(lesson.find_lesson(NOTEBOOKS, "08")))
    where = "document.getElementById('where').textContent"
    for key, at in (("ArrowRight", "2"), (" ", "3"), ("ArrowLeft", "2"), ("Home", "1")):
        tab.keyboard.press(key)
        assert tab.evaluate(where).split(" / ")[0] == at, key
    last = tab.evaluate(where).split(" / ")[1]
    for key in (*last, "Enter"):  # a number and Enter: past slides that a room is not shown
        tab.keyboard.press(key)
    assert len(last) == 2 and tab.evaluate(where) == f"{last} / {last}"
    tab.keyboard.press("7")
    tab.keyboard.press("Home")  # forgets the number
    tab.keyboard.press("Enter")
    assert tab.evaluate(where).startswith("1 / ")
    tab.keyboard.press("ArrowRight")
    with tab.expect_popup() as opened:
        tab.keyboard.press("s")
    speaker = opened.value
    assert "does not depend on the answer" in speaker.inner_text("#notes")  # recall, answered
    tab.keyboard.press("ArrowRight")
    assert speaker.inner_text("#where").startswith("3 / ")
    minutes = next(page.minutes for page in course() if page.number == "08")
    assert f"of {minutes}:00" in speaker.inner_text("body")
    speaker.close()


def test_the_cheat_sheet_is_two_pages(chromium, tmp_path):
    assert pages_of(print_pdf(cheat_sheet(NOTEBOOKS), tmp_path / "sheet.pdf")) == 2


def test_a_handout_prints(chromium, tmp_path):
    file = print_pdf(handout(lesson.find_lesson(NOTEBOOKS, "08")), tmp_path / "08.pdf")
    assert 12 <= pages_of(file) <= 24
