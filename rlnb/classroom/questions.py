"""The question bank: what interviews ask about this course, with answers that cells compute.

    from rlnb.classroom.questions import bank, pick
    pick(topic="06_ppo", level="screen")        # the questions of a page, at a level

A file of data/questions holds the questions of one page, its topic. An entry says:

id          the page's name and a number, "ppo.12"; a learner's progress goes by it, so it stays
level       screen, onsite or research
question    as an interviewer puts it
short       the 60-second answer; its first sentence stands alone
full        what to add when they ask on
weak        what a weak answer says, and why it is weak
follow_ups  what is asked next, each with the key to its answer: {ask, key}
cells       where it is computed: claim:A05, cited:H02, card:06_ppo, reveal:ppo.3, work:ppo.12
claims      ids of data/claims.yaml that it rests on
cited       decimals of the answer that are somebody else's or a setting, not a cell's

`work:` cells stand on the solutions of page 20. Tests follow every link and look for every decimal
of an answer in its cells (tests/notebooks/test_questions.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rlnb.shipped import data_folder

__all__ = ["LEVELS", "FollowUp", "Question", "bank", "first_sentence", "pick", "read", "topics"]

LEVELS = ("screen", "onsite", "research")
FIRST_SENTENCE = 25  # words; it has to be said in one breath
FIELDS = {"id", "level", "question", "short", "full", "weak", "follow_ups", "cells", "claims"}
OPTIONAL = {"cited"}
CELL = re.compile(
    r"(?:claim|cited):[A-Z]\d\d|card:\d\d_\w+|reveal:[a-z_]+\.\d+|work:[a-z0-9_]+\.\d+"
)


@dataclass(frozen=True)
class FollowUp:
    """What is asked next, and the key to its answer in a few words."""

    ask: str
    key: str


@dataclass(frozen=True)
class Question:
    """One entry of the bank. `topic` is the page: "06_ppo"."""

    id: str
    topic: str
    level: str
    question: str
    short: str
    full: str
    weak: str
    follow_ups: tuple[FollowUp, ...]
    cells: tuple[str, ...]
    claims: tuple[str, ...]
    cited: tuple[str, ...] = ()


def first_sentence(text: str) -> str:
    """Up to the first full stop, question or exclamation mark before a space.

    >>> first_sentence("No: it is flat there. The rest follows.")
    'No: it is flat there.'
    """
    end = re.search(r"(?<=[.!?])[”\"')]*\s", text)
    return text[: end.start()] if end else text


def read(topic: str, entries: Iterable[Mapping[str, Any]]) -> list[Question]:
    """The questions of one file. Raises ValueError with a sentence for the first bad entry."""
    return [_question(topic, entry) for entry in entries]


@cache
def bank() -> tuple[Question, ...]:
    """Every question, by page and then as the files have them."""
    import yaml

    out: list[Question] = []
    for path in sorted((data_folder() / "questions").glob("*.yaml")):
        out += read(path.stem, yaml.safe_load(path.read_text(encoding="utf-8")))
    if twice := [q.id for i, q in enumerate(out) if q.id in {p.id for p in out[:i]}]:
        raise ValueError(f"data/questions: the id {twice[0]!r} stands twice; give another number.")
    return tuple(out)


def topics() -> tuple[str, ...]:
    """The pages that have questions, in order."""
    return tuple(dict.fromkeys(q.topic for q in bank()))


def pick(topic: str = "", level: str = "") -> tuple[Question, ...]:
    """The questions of a page and of a level; empty means all.

    topic: "06_ppo", or "ppo", or "06". Raises ValueError for a topic or level that has none.
    """
    if level and level not in LEVELS:
        raise ValueError(f"pick: level is {level!r}; the levels are {', '.join(LEVELS)}.")
    known = {key: t for t in topics() for key in (t, t[3:], t[:2])}
    if topic and topic not in known:
        raise ValueError(f"pick: no questions on {topic!r}; the topics are {', '.join(topics())}.")
    return tuple(
        q
        for q in bank()
        if (not topic or q.topic == known[topic]) and (not level or q.level == level)
    )


def _question(topic: str, entry: Mapping[str, Any]) -> Question:
    name = f"data/questions/{topic}.yaml, {entry.get('id', 'an entry without id')}"
    if missing := sorted(FIELDS - set(entry)):
        raise ValueError(f"{name}: the field {missing[0]!r} is missing.")
    if unknown := sorted(set(entry) - FIELDS - OPTIONAL):
        raise ValueError(f"{name}: there is no field {unknown[0]!r}; see rlnb.classroom.questions.")
    for field in ("id", "level", "question", "short", "full", "weak"):
        if not isinstance(entry[field], str) or not entry[field].strip():
            raise ValueError(f"{name}: {field} is {entry[field]!r}; a sentence was expected.")
    if not re.fullmatch(rf"{re.escape(topic[3:])}\.\d+", entry["id"]):
        raise ValueError(f"{name}: an id is the page's name and a number, like '{topic[3:]}.1'.")
    if entry["level"] not in LEVELS:
        raise ValueError(f"{name}: level is {entry['level']!r}; expected one of {LEVELS}.")
    if len(first_sentence(entry["short"]).split()) > FIRST_SENTENCE:
        raise ValueError(f"{name}: the first sentence of short has over {FIRST_SENTENCE} words.")
    for field in ("follow_ups", "cells", "claims"):
        if not isinstance(entry[field], list) or not (entry[field] or field == "claims"):
            raise ValueError(f"{name}: {field} is {entry[field]!r}; a list was expected.")
    if bad := [cell for cell in entry["cells"] if not CELL.fullmatch(cell)]:
        raise ValueError(f"{name}: {bad[0]!r} is no cell; write it like 'claim:A05'.")
    if bad := [f for f in entry["follow_ups"] if set(f) != {"ask", "key"}]:
        raise ValueError(f"{name}: a follow-up has 'ask' and 'key', got {bad[0]!r}.")
    return Question(
        topic=topic,
        follow_ups=tuple(FollowUp(**f) for f in entry["follow_ups"]),
        cells=tuple(entry["cells"]),
        claims=tuple(entry["claims"]),
        cited=tuple(str(number) for number in entry.get("cited", ())),
        **{k: entry[k] for k in ("id", "level", "question", "short", "full", "weak")},
    )
