"""Which questions an evening holds: a core first, two minutes a card, an end before the interview.

The core is, of every page up to 19, the first three questions of a screen and the first three of an
onsite: what a page is asked for most. Research questions and the others come when the core has been
seen; page 21 comes after the interview's page, so its questions come only when asked for.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import islice

from rlnb.classroom.interview.repetition import Card
from rlnb.classroom.questions import Question, bank, pick, topics

__all__ = ["CARD", "Sitting", "core", "default", "interview_day", "known", "tonight"]

CARD = 2  # minutes: one to say it, one to read the answer and grade
CORE = ("screen", "onsite")
EACH = 3  # of a page and level
LATER = "21"
EVENINGS = 5  # a week


@dataclass(frozen=True)
class Sitting:
    """The ids of an evening's questions: never seen, and due again."""

    new: tuple[str, ...]
    due: tuple[str, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return self.due + self.new


@cache
def core() -> tuple[Question, ...]:
    """The first three screen and the first three onsite questions of each page but 21."""
    return tuple(
        question
        for topic in topics()
        if topic[:2] != LATER
        for level in CORE
        for question in islice(pick(topic, level), EACH)
    )


@cache
def default() -> tuple[Question, ...]:
    """What is drawn from when no page is asked for: all but page 21."""
    return tuple(q for q in bank() if q.topic[:2] != LATER)


def interview_day(text: str) -> date:
    """The day of "2026-12-13". Raises ValueError for another form."""
    try:
        return date.fromisoformat(text)
    except (TypeError, ValueError):
        raise ValueError(
            f'interview: {text!r} is no day; write year, month, day, like "2026-12-13".'
        ) from None


def tonight(
    questions: Sequence[Question],
    cards: Mapping[str, Card],
    today: date,
    room: int,
    interview: date | None = None,
    dice: random.Random | None = None,
) -> Sitting:
    """An evening of at most `room` cards: what is due, longest first, and new ones, core first.

    A third of the room is kept for new questions, and more where five evenings a week would else
    not see the core before the interview. dice: shuffles new ones, within the core and the rest.
    """
    dice = dice or random.Random(0)
    unseen = [q for q in questions if q.id not in cards]
    first = [q.id for q in unseen if q in set(core())]
    rest = [q.id for q in unseen if q.id not in first]
    dice.shuffle(first), dice.shuffle(rest)
    due = sorted(
        (q.id for q in questions if q.id in cards and cards[q.id].due <= today),
        key=lambda i: cards[i].due,
    )
    kept = room // 3
    if interview is not None and interview > today:
        evenings = (interview - today).days * EVENINGS / 7
        kept = max(kept, math.ceil(len(first) / evenings))
    kept = min(kept, len(unseen), room)
    taken = due[: room - kept]
    return Sitting(tuple((first + rest)[: room - len(taken)]), tuple(taken))


def known(questions: Iterable[Question], cards: Mapping[str, Card]) -> tuple[int, int]:
    """How many of these questions were known when last asked, and how many there are."""
    asked = [q.id for q in questions]
    return sum(i in cards and cards[i].box > 0 for i in asked), len(asked)
