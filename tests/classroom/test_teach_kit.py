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
SHOWN = re.compile(r"\[(\d\d)\]\(\.\./notebooks/(\w+)\.ipynb\): (.+?)(?:; slides? (\d[\d, to]*))?")
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


def numbers(text: str) -> list[int]:
    """The slides that "3 to 5, 7" names."""
    ends = [[int(end) for end in part.split(" to ")] for part in text.split(", ")]
    return [number for part in ends for number in range(part[0], part[-1] + 1)]


def numbered(stem: str, headings: list[str] | None, only: list[int] | None = None) -> list[int]:
    """Numbers of the slides under these headings, or of all for None; of these, `only` some."""
    return [
        number
        for number, slide in enumerate(deck(stem), 1)
        if (headings is None or slide.heading in headings) and (only is None or number in only)
    ]


def asked_in(stem: str, headings: list[str] | None, only: list[int] | None = None) -> list[str]:
    """Keys of the guesses on these slides."""
    mine = numbered(stem, headings, only)
    at = [number for number, slide in enumerate(deck(stem), 1) if slide.kind == "guess"]
    return [key for key, number in zip(right_answers(stem), at, strict=False) if number in mine]


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


def shown(step: Step) -> tuple[str, list[str] | None, list[int] | None] | None:
    """(stem, headings, numbers) of a step that shows slides.

    Headings None for a whole deck, numbers None for all slides under the headings.
    """
    found = SHOWN.fullmatch(step.show)
    if found is None:
        assert "](" not in step.show, step.show
        return None
    number, stem, headings, only = found.groups()
    assert stem.startswith(number)
    return (
        stem,
        None if headings == "all" else headings.split(" + "),
        numbers(only) if only else None,
    )


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
    stem, headings, only = found
    there = {slide.heading for slide in deck(stem)}
    assert headings is None or set(headings) <= there, f"{set(headings or ()) - there}"
    mine = [deck(stem)[number - 1] for number in numbered(stem, headings, only)]
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


def test_slides_that_are_numbered_belong_to_their_headings_and_answer_their_guesses():
    steps = [step for _, step in route_steps() if (shown(step) or (0, 0, None))[2]]
    assert steps
    for step in steps:
        stem, headings, only = shown(step)
        assert numbered(stem, headings, only) == only, f"{step.show}: under other headings"
        assert {deck(stem)[number - 1].heading for number in only} == set(headings), step.show
        for number in only:
            if deck(stem)[number - 1].kind == "guess":
                rest = deck(stem)[number:]
                kinds = [slide.kind for slide in rest]
                answer = number + 1 + kinds.index("answer")
                assert answer in only, f"{step.show}: {number} is asked, {answer} is left out"


def test_numbers_of_slides_are_read():
    assert numbers("3 to 5, 7") == [3, 4, 5, 7] and numbers("39") == [39]
    found = SHOWN.fullmatch("[08](../notebooks/08_grpo.ipynb): One; slides 1 to 2, 9")
    assert found and found.groups()[2:] == ("One", "1 to 2, 9")


def test_nearly_every_step_says_what_goes_wrong_and_each_route_has_checkpoints():
    steps = list(route_steps())
    assert sum(bool(step.wrong.strip()) for _, step in steps) >= 0.9 * len(steps)
    for name in ROUTES:
        assert sum("`:" in step.checkpoint for other, step in steps if other == name) >= 4


def test_a_clock_that_does_not_add_up_is_caught():
    text = (TEACH / "45_minutes.md").read_text(encoding="utf-8")
    (table,) = tables(re.sub(r"\| 0:02 \| (\d+) \|", lambda m: f"| 0:02 | {int(m[1]) + 1} |", text))
    assert sum(step.minutes for step in table) == 46


def test_the_answers_are_those_of_the_lessons():
    text = (TEACH / "answers.md").read_text(encoding="utf-8")
    assert text == answers(NOTEBOOKS), (
        "run `python -m rlnb.classroom.paper answers > teach/answers.md`"
    )
    assert text.count("| b, on the hardest: wrong answers are pushed down hard |") == 1


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


def test_no_letter_is_a_safe_bet():
    """A reader noticed that all five right answers of a page were d."""
    text = (TEACH / "answers.md").read_text(encoding="utf-8")
    pages = [re.findall(r"\| ([a-h]), ", part) for part in re.split(r"(?m)^## ", text)]
    everywhere = [letter for page in pages for letter in page]
    assert len(everywhere) > 90
    for letter in set(everywhere):
        assert everywhere.count(letter) <= 0.4 * len(everywhere), letter
    for page in pages:
        assert len(page) < 4 or len(set(page)) > 2, page
