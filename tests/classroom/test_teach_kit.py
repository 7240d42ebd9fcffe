"""The kit to teach from: clocks add up, slides take the time they are given, answers are right."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from rlnb.classroom import check
from rlnb.classroom.pages import NOTEBOOKS, ROOT
from rlnb.classroom.paper.answers import answers
from rlnb.classroom.paper.slides import Slide, slides, spoken_minutes

TEACH = ROOT / "teach"
ROUTES = {"45_minutes": [45], "90_minutes": [90], "180_minutes": [180], "two_days": [210] * 4}
SHOWN = re.compile(r"\[(\d\d)\]\(\.\./notebooks/(\w+)\.ipynb\): (.+)")
CHECKPOINT = re.compile(r"`([a-z_]+\.\w+)`: (.*?)(?=; `[a-z_]+\.\w+`: |$)")
CLOSE = 1.6  # minutes between a step's plan and its slides; of a whole deck the tenth part


@dataclass(frozen=True)
class Step:
    at: int
    minutes: int
    show: str
    checkpoint: str
    wrong: str


def tables(text: str) -> list[list[Step]]:
    """The clocks of a route: one table, or one for every half day."""
    found: list[list[Step]] = []
    for line in text.splitlines():
        if line.startswith("| at |"):
            found.append([])
        elif row := re.match(r"\| (\d+):(\d\d) \| (\d+) \| (.*?) \| (.*?) \| (.*?) \|$", line):
            hours, past, minutes, *rest = row.groups()
            found[-1].append(Step(60 * int(hours) + int(past), int(minutes), *rest))
    return found


@cache
def deck(stem: str) -> list[Slide]:
    return slides(NOTEBOOKS / f"{stem}.ipynb")


def asked_in(stem: str, headings: list[str] | None) -> list[str]:
    """Keys of the guesses on the slides under these headings; None: of the whole deck."""
    keys = list(right_answers(stem))
    at = [slide.heading for slide in deck(stem) if slide.kind == "guess"]
    return [
        key
        for key, heading in zip(keys, at, strict=False)
        if headings is None or heading in headings
    ]


@cache
def right_answers(stem: str) -> dict[str, str]:
    """Key -> right answer, as the page's twin has them, in order."""
    tree = ast.parse((NOTEBOOKS / "text" / f"{stem}.py").read_text(encoding="utf-8"))
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "reveal"
    ]
    calls.sort(key=lambda call: call.lineno)
    return {
        call.args[0].value: str(call.args[1].value)
        for call in calls
        if isinstance(call.args[1], ast.Constant)
    }


def route_steps():
    for name in ROUTES:
        for table in tables((TEACH / f"{name}.md").read_text(encoding="utf-8")):
            yield from ((name, step) for step in table)


def shown(step: Step) -> tuple[str, list[str] | None] | None:
    """(stem, headings) of a step that shows slides; headings None for a whole deck."""
    found = SHOWN.fullmatch(step.show)
    if found is None:
        assert "](" not in step.show, step.show
        return None
    number, stem, headings = found.groups()
    assert stem.startswith(number)
    return stem, None if headings == "all" else headings.split(" + ")


@pytest.mark.parametrize("name", ROUTES)
def test_the_clock_of_a_route_adds_up(name):
    found = tables((TEACH / f"{name}.md").read_text(encoding="utf-8"))
    assert [sum(step.minutes for step in table) for table in found] == ROUTES[name]
    for table in found:
        for step, following in zip(table, table[1:], strict=False):
            assert step.at + step.minutes == following.at, following


@pytest.mark.parametrize(("name", "step"), list(route_steps()), ids=str)
def test_a_step_shows_slides_that_exist_in_the_time_it_has(name, step):
    if (found := shown(step)) is None:
        return
    stem, headings = found
    there = {slide.heading for slide in deck(stem)}
    assert headings is None or set(headings) <= there, f"{set(headings or ()) - there}"
    mine = [s for s in deck(stem) if headings is None or s.heading in headings]
    needed = sum(map(spoken_minutes, mine))
    close = max(CLOSE, 0.1 * step.minutes) if headings is None else CLOSE
    assert abs(step.minutes - needed) <= close, f"planned {step.minutes}, needs {needed:.1f}"


@pytest.mark.parametrize(("name", "step"), list(route_steps()), ids=str)
def test_a_checkpoint_is_asked_on_these_slides_and_has_the_pages_answer(name, step):
    for key, told in CHECKPOINT.findall(step.checkpoint):
        found = shown(step)
        assert found is not None, "a checkpoint without slides"
        assert key in asked_in(*found), f"{key} is not asked there"
        assert told.strip() == right_answers(found[0])[key]
    for name_of_check in re.findall(r"`check\.(\w+)`", step.show):
        assert name_of_check in dir(check)


def test_nearly_every_step_says_what_goes_wrong_and_each_route_has_checkpoints():
    steps = list(route_steps())
    assert sum(bool(step.wrong.strip()) for _, step in steps) >= 0.9 * len(steps)
    for name in ROUTES:
        assert sum("`:" in step.checkpoint for other, step in steps if other == name) >= 4


def test_a_clock_that_does_not_add_up_is_caught():
    text = (TEACH / "45_minutes.md").read_text(encoding="utf-8")
    (table,) = tables(text.replace("| 0:02 | 14 |", "| 0:02 | 15 |"))
    assert sum(step.minutes for step in table) == 46


def test_the_answers_are_those_of_the_lessons():
    text = (TEACH / "answers.md").read_text(encoding="utf-8")
    assert text == answers(NOTEBOOKS), (
        "run `python -m rlnb.classroom.paper answers > teach/answers.md`"
    )
    assert text.count("| c, a little under 4 |") == 1


@pytest.mark.parametrize("file", sorted(TEACH.glob("*.md")), ids=lambda file: file.stem)
def test_links_and_commands_of_the_kit_exist(file):
    text = file.read_text(encoding="utf-8")
    if file.stem != "answers":  # its links are the lessons' own
        for to in re.findall(r"\]\(([^)#]+)\)", text):
            assert (file.parent / to).exists(), to
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([a-z-]+)", text):
        assert re.search(rf"^{target}:", makefile, re.M), target
    for path in re.findall(r"`((?:notebooks|data)/[\w/.]+)`", text):
        assert Path(ROOT, path).exists(), path
