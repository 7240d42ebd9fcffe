"""The question bank: every field there, every link on a cell, every decimal in what it prints.

An answer's decimals are those of its short and full form, of the weak answer and of the keys to
follow-ups. Each is covered by the code or the output of one of its cells, stands in the question
itself, or is listed as `cited`. Claims of pages that are not written yet wait for them.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from functools import cache
from pathlib import Path

import nbformat
import pytest
from test_numbers_in_prose import Shown, measured, shown_by
from test_pages import AMERICAN
from written_numbers import numbers_in

from rlnb.classroom.lesson.statements import ledger
from rlnb.classroom.questions import LEVELS, bank, first_sentence, pick, read, topics

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
MINUTE = 150  # words that are said in one


@cache
def course():
    """Address -> cells: claim:A05, cited:H02, card:06_ppo, reveal:ppo.3, work:ppo.12."""
    found = {}
    for folder in ("", "statements/", "solutions/"):
        for path in sorted(NOTEBOOKS.glob(f"{folder}[0-9]*.ipynb")):
            for cell in nbformat.read(path, as_version=4).cells:
                names = [t for t in cell.metadata.get("tags", []) if ":" in t and "see:" not in t]
                if "card" in cell.metadata.get("tags", []):
                    names.append(f"card:{path.stem}")
                if cell.cell_type == "code" and "answer" in cell.metadata.get("tags", []):
                    names += [
                        f"reveal:{key}" for key in re.findall(r'reveal\("(.+?)"', cell.source)
                    ]
                for name in names:
                    found.setdefault(name, []).append(cell)
    return found


def unwritten(address):
    """A claim or card whose page the course does not have yet."""
    kind, _, name = address.partition(":")
    page = ledger()[name]["page"] if kind in ("claim", "cited") and name in ledger() else ""
    page = name if kind == "card" and name in topics() else page
    return bool(page) and not (NOTEBOOKS / f"{page}.ipynb").exists()


def said(question):
    """All that an answer says."""
    keys = [f"{f.ask} {f.key}." for f in question.follow_ups]
    return "\n\n".join((question.short, question.full, question.weak, *keys))


def shown_to(question) -> Shown:
    return shown_by([cell for name in question.cells for cell in course().get(name, [])])


def uncovered(question, text=None, shown=None):
    """The decimals of an answer that nothing covers."""
    shown = shown_to(question) if shown is None else shown
    given = {abs(number.value) for number in numbers_in(question.question)}
    return [
        number.text
        for number in measured(said(question) if text is None else text)
        if number.text not in question.cited
        and abs(number.value) not in given
        and not shown.covers(number)
    ]


def test_there_are_questions_on_every_page_and_level():
    assert len(bank()) >= 200
    lessons = {path.stem for path in NOTEBOOKS.glob("*.ipynb")}
    assert lessons - {"00_start_here", "20_interview"} <= set(topics())
    for topic in topics():
        assert {q.level for q in pick(topic)} == set(LEVELS), topic
        assert len(pick(topic)) >= 10, topic


def test_every_link_lands_on_one_cell():
    lost = []
    for question in bank():
        for address in question.cells:
            cells = course().get(address, [])
            if len(cells) != 1 and not (not cells and unwritten(address)):
                lost.append(f"{question.id}: {address} is the name of {len(cells)} cells")
            if address.startswith("work:") and address != f"work:{question.id}":
                lost.append(f"{question.id}: {address} is another question's working")
    assert not lost, "\n".join(lost)


def test_every_claim_is_in_the_ledger_and_among_the_cells():
    for question in bank():
        for claim in question.claims:
            assert claim in ledger(), f"{question.id}: no statement {claim}"
            assert f"{ledger()[claim]['meets']}:{claim}" in question.cells, (question.id, claim)


def test_every_working_belongs_to_a_question():
    works = {name for name in course() if name.startswith("work:")}
    assert len(works) >= 40
    assert works == {c for q in bank() for c in q.cells if c.startswith("work:")}


def test_every_decimal_of_an_answer_is_in_its_cells():
    problems = [
        f"{q.id}: {', '.join(bad)} in none of {', '.join(q.cells)}"
        for q in bank()
        if not any(map(unwritten, q.cells)) and (bad := uncovered(q))
    ]
    assert not problems, "\n".join(problems)


def test_a_changed_decimal_is_caught_but_for_chance():
    caught, slipped = 0, []
    for question in bank():
        if any(map(unwritten, question.cells)):
            continue
        shown = shown_to(question)
        for number in measured(said(question)):
            digits = re.sub(r"\D", "", number.text).lstrip("0")
            if len(digits) < 3 or not number.text[-1].isdigit() or not shown.covers(number):
                continue
            wrong = number.text[:-1] + str((int(number.text[-1]) + 3) % 10)
            if uncovered(question, f"It is {wrong} here.", shown):
                caught += 1
            else:
                slipped.append(f"{question.id}: {number.text} changed to {wrong}")
    assert caught > 150 and len(slipped) <= 0.03 * caught, "\n".join(slipped)


def test_no_cited_number_is_listed_without_being_said():
    for question in bank():
        numbers = {number.text for number in numbers_in(said(question))}
        assert set(question.cited) <= numbers, (question.id, question.cited)


def words(text):
    return set(re.findall(r"[a-z]{3,}", text.lower()))


def test_no_question_stands_twice():
    plain = Counter(re.sub(r"\W+", " ", q.question.lower()).strip() for q in bank())
    assert max(plain.values()) == 1, plain.most_common(1)
    alike = [
        (a.id, b.id)
        for a, b in itertools.combinations(bank(), 2)
        if len(both := words(a.question) & words(b.question)) >= 4
        and len(both) > 0.7 * len(words(a.question) | words(b.question))
    ]
    assert not alike, alike


def test_answers_can_be_said_in_a_minute_and_begin_with_the_answer():
    for question in bank():
        assert len(question.short.split()) <= MINUTE, question.id
        assert 1 <= len(first_sentence(question.short).split()) <= 25, question.id
        assert first_sentence(question.short)[-1] in '.!?"', question.id
        # one sentence alone is no answer, and the long form is no copy of the short one
        assert len(question.short) > len(first_sentence(question.short)), question.id
        assert question.full not in question.short, question.id


def test_spelling_and_signs():
    for question in bank():
        text = re.sub(r'`[^`]*`|"[^"]*"', "", f"{question.question} {said(question)}")
        assert not AMERICAN.search(text), (question.id, AMERICAN.search(text))
        assert not re.search("[\U0001f300-\U0001faff\u2014]", text), question.id


ENTRY = {
    "id": "ppo.1",
    "level": "screen",
    "question": "Why?",
    "short": "Because. So it is.",
    "full": "f",
    "weak": "w",
    "follow_ups": [{"ask": "a?", "key": "k"}],
    "cells": ["claim:A05"],
    "claims": ["A05"],
}


def test_a_good_entry_is_read():
    (question,) = read("06_ppo", [ENTRY])
    assert question.topic == "06_ppo" and question.follow_ups[0].key == "k"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weak": None}, "weak is None"),
        ({"level": "easy"}, "level is 'easy'"),
        ({"id": "grpo.1"}, "page's name and a number"),
        ({"cells": []}, "cells is"),
        ({"cells": ["A05"]}, "'A05' is no cell"),
        ({"follow_ups": [{"ask": "a?"}]}, "'ask' and 'key'"),
        ({"short": " ".join(["word"] * 26) + ". Yes."}, "first sentence"),
        ({"colour": "red"}, "no field 'colour'"),
    ],
)
def test_a_broken_entry_is_refused(change, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        read("06_ppo", [ENTRY | change])


def test_a_missing_field_and_unknown_filters_are_refused():
    with pytest.raises(ValueError, match="'full' is missing"):
        read("06_ppo", [{k: v for k, v in ENTRY.items() if k != "full"}])
    with pytest.raises(ValueError, match="no questions on 'poetry'"):
        pick("poetry")
    with pytest.raises(ValueError, match="level is 'easy'"):
        pick(level="easy")
    assert pick("ppo") == pick("06") == pick("06_ppo")
