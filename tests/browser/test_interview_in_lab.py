"""Page 20 in JupyterLab, by keyboard: the clock runs, grades are kept, the board judges."""

from __future__ import annotations

import json
import re

import lab_in_chromium
import pytest

CELLS = [
    "from rlnb.classroom.interview.drill import drill\ndrill('ppo', seed=1)",
    "from rlnb.classroom.interview.mock import mock\nmock(seed=20)",
    "from rlnb.classroom.interview.derivation import derivation\nderivation()",
]
SAID = """w => [...document.querySelectorAll('.rlnb-said')].some(
  l => l.textContent.includes(w))"""
# How far the bar of the clock is, and what the keyboard is on.
BAR = """() => parseFloat(document.querySelector('.progress-bar').style.width) || 0"""
FOCUSED = """() => { const e = document.activeElement;
  return e.textContent.trim() || e.getAttribute('aria-label') || e.title || e.tagName; }"""


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


def test_a_question_is_drawn_timed_shown_and_graded_by_keyboard(tab, learner):
    press(tab, "Next question")
    wait_for_line(tab, "60 seconds, aloud")
    tab.wait_for_function(f"() => ({BAR})() > 2")  # of 100: more than a second of sixty
    tab.keyboard.press("Tab")
    assert "Show the answer" in tab.evaluate(FOCUSED), "Tab goes on to the answer"
    tab.keyboard.press("Space")
    wait_for_line(tab, "Grade yourself")
    stopped = tab.evaluate(BAR)
    tab.wait_for_timeout(1500)
    assert tab.evaluate(BAR) == stopped, "the clock has stopped"
    press(tab, "I knew it", "Enter")
    wait_for_line(tab, "comes back tomorrow")
    (kept,) = json.loads(learner.read_text(encoding="utf-8"))["question"].values()
    assert kept["box"] == 1


def test_the_panel_waits_for_grades_and_the_board_names_a_slip(tab):
    press(tab, "Show the key")
    wait_for_line(tab, "Grade yourself by the four criteria")
    for buttons in tab.locator(".widget-toggle-buttons").all():
        buttons.locator("button").nth(2).focus()
        tab.keyboard.press("Space")
    tab.locator("button", has_text=re.compile("^Next$")).focus()
    tab.keyboard.press("Space")
    wait_for_line(tab, "Question 2 of 5")
    ratio = tab.locator("input[placeholder='logp, old']")
    ratio.focus()
    tab.keyboard.type("exp(old - logp)")
    tab.keyboard.press("Tab")
    wait_for_line(tab, "upside down")
    ratio.fill("exp(logp - old)")
    tab.keyboard.press("Enter")
    wait_for_line(tab, "ratio: right")
