"""Page 20 in JupyterLab, by keyboard: the clock runs, grades are kept, the board judges."""

from __future__ import annotations

import json

import lab_in_chromium
import pytest

CELLS = [
    "from rlnb.classroom.interview.drill import drill\ndrill('ppo', seed=1)",
    "from rlnb.classroom.interview.mock import mock\nmock(seed=20)",
    "from rlnb.classroom.interview.derivation import derivation\nderivation()",
    "from rlnb.classroom.interview.whiteboard import whiteboard\nwhiteboard()",
]
SAID = """w => [...document.querySelectorAll('.rlnb-said')].some(
  l => l.textContent.includes(w))"""
# How far the bar of the clock is, and what the keyboard is on.
BAR = """() => parseFloat(document.querySelector('.progress-bar').style.width) || 0"""
FOCUSED = """() => { const e = document.activeElement;
  return e.textContent.trim() || e.placeholder || e.title || e.tagName; }"""


@pytest.fixture(scope="module")
def learner(tmp_path_factory):
    return tmp_path_factory.mktemp("learner") / "progress.json"


@pytest.fixture(scope="module")
def tab(chromium, tmp_path_factory, learner):
    base = tmp_path_factory.mktemp("interview")
    remember = f"import os\nos.environ['RLNB_PROGRESS'] = {str(learner)!r}"
    page = lab_in_chromium.write_notebook(base / "interview.ipynb", [remember, *CELLS])
    with (
        lab_in_chromium.serving(base) as lab,
        lab_in_chromium.window() as window,
        lab_in_chromium.opened(page, lab, window) as tab,
    ):
        yield tab


def press(tab, name, key="Space"):
    """Press a button as one does without a mouse."""
    button = tab.locator(f"button:has-text('{name}')").first
    button.wait_for()
    button.focus()
    tab.keyboard.press(key)


def wait_for_line(tab, words):
    tab.wait_for_function(SAID, arg=words)


def wait_for_focus(tab, words):
    tab.wait_for_function(f"w => ({FOCUSED})().includes(w)", arg=words)


def test_a_question_is_drawn_timed_shown_and_graded_by_keyboard(tab, learner):
    press(tab, "Next question")
    wait_for_focus(tab, "write or say it")
    first = tab.locator(".rlnb-said b").first.text_content()
    tab.keyboard.type("It is 3 < 4.")
    tab.wait_for_function(f"() => ({BAR})() > 2")  # of 100: more than a second of sixty
    tab.keyboard.press("Enter")
    wait_for_line(tab, "Was your first sentence the answer?")
    assert "It is 3 < 4." in tab.locator(".widget-html table").first.text_content()
    stopped = tab.evaluate(BAR)
    tab.wait_for_timeout(1500)
    assert tab.evaluate(BAR) == stopped, "the clock has stopped"
    wait_for_focus(tab, "1, 2, 3")
    tab.keyboard.type("3")
    wait_for_line(tab, "comes back tomorrow")
    wait_for_focus(tab, "write or say it")  # the next question, without a press
    assert tab.locator(".rlnb-said b").first.text_content() != first
    (kept,) = json.loads(learner.read_text(encoding="utf-8"))["question"].values()
    assert kept["box"] == 1
    tab.keyboard.press("Enter")  # nothing written, only said
    wait_for_focus(tab, "1, 2, 3")
    tab.keyboard.type("1")
    wait_for_line(tab, "comes back tonight")


def test_the_panel_asks_on_before_it_shows_the_key(tab):
    press(tab, "Start")
    wait_for_focus(tab, "say it all")
    tab.keyboard.type("My sentence.")
    tab.keyboard.press("Enter")
    wait_for_focus(tab, "say it; write its point")
    assert "A weak answer" not in tab.locator(".jp-CodeCell").nth(2).text_content()
    tab.keyboard.press("Enter")
    wait_for_line(tab, "Tick what you said")
    box = tab.locator(".rlnb-tick input").first
    for _ in range(10):  # on a full machine the panel may still move the focus when Space comes
        box.focus()
        tab.keyboard.press("Space")
        if box.is_checked():
            break
        tab.wait_for_timeout(300)
    assert box.is_checked()
    for buttons in tab.locator(".widget-toggle-buttons").all():
        buttons.locator("button").nth(2).focus()
        tab.keyboard.press("Space")
    press(tab, "Keep these grades")
    wait_for_line(tab, "Points came fast: the reply took")  # a second or two: doubted once
    press(tab, "Keep these grades")
    wait_for_focus(tab, "say it all")
    assert "2 of 5" in tab.locator(".jp-CodeCell").nth(2).text_content()


def test_the_board_names_a_slip_and_the_wall_starts_on_a_press(tab):
    board = tab.locator(".jp-CodeCell").nth(3)
    ratio = board.locator("input[type=text]").nth(3)
    ratio.focus()
    tab.keyboard.type("exp(old - logp)")
    tab.keyboard.press("Tab")
    wait_for_line(tab, "upside down")
    tab.keyboard.press("Space")  # Tab has gone on to the hint
    wait_for_line(tab, "made of logp, old")
    ratio.fill("exp(logp - old)")
    tab.keyboard.press("Enter")
    wait_for_line(tab, "ratio: right")
    wait_for_line(tab, "Choose a function and press Start the clock.")
    press(tab, "Start the clock")
    wait_for_line(tab, "4 minutes from now")
