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
from datetime import date, timedelta
from functools import cache
from itertools import islice

from rlnb.classroom.figures import Bundle
from rlnb.classroom.interview.repetition import Card, after, draw, squeezed
from rlnb.classroom.notebook_display import display
from rlnb.classroom.questions import Question, bank, pick, topics

__all__ = [
    "CARD", "SHORT", "Forecast", "Sitting", "core", "coverage", "default", "forecast",
    "interview_day", "known", "room_of", "tonight",
]  # fmt: skip

CARD = 2  # minutes: one to say it, one to read the answer and grade
CORE = ("screen", "onsite")
EACH = 3  # of a page and level
LATER = "21"
EVENINGS = 5  # a week
FIRST, AGAIN = 0.5, 0.8  # the forecast's learner: knows half of the new, and then four in five
AHEAD = 60  # evenings that a forecast looks ahead at most
SHORT = "02 04 06 08 10 17"  # the pages to name when the evenings are few and short
LEARNERS = 8  # made-up ones, of whom a forecast is the mean


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

    A third of the room is kept for new questions, and up to two thirds where five evenings a week
    would else not see the core before the interview: what was not known has to come back as well.
    Once the core has been seen, other new ones only fill what is left before an interview.
    dice: shuffles new ones, within the core and the rest.
    """
    dice = dice or random.Random(0)
    unseen = [q for q in questions if q.id not in cards]
    inside = {q.id for q in core()}
    first = [q.id for q in unseen if q.id in inside]
    rest = [q.id for q in unseen if q.id not in inside]
    dice.shuffle(first), dice.shuffle(rest)
    due = sorted(
        (q.id for q in questions if q.id in cards and cards[q.id].due <= today),
        key=lambda i: cards[i].due,
    )
    kept = room // 3
    if interview is not None and interview > today:
        evenings = (interview - today).days * EVENINGS / 7
        pressed = min(math.ceil(len(first) / evenings), math.ceil(2 * room / 3))
        kept = max(kept, pressed) if first else 0
    kept = min(kept, len(unseen), room)
    taken = due[: room - kept]
    return Sitting(tuple((first + rest)[: room - len(taken)]), tuple(taken))


def known(questions: Iterable[Question], cards: Mapping[str, Card]) -> tuple[int, int]:
    """How many of these questions were known on two different days, and how many there are."""
    asked = [q.id for q in questions]
    return sum(i in cards and cards[i].known for i in asked), len(asked)


def room_of(minutes: int) -> int:
    """How many cards an evening of so many minutes holds."""
    return max(minutes, 0) // CARD


@dataclass(frozen=True)
class Forecast:
    """Of the core: how many a learner will have met, known on two days, and how many there are."""

    evenings: int
    met: int
    known: int
    of: int


def forecast(
    questions: Sequence[Question],
    cards: Mapping[str, Card],
    today: date,
    interview: date,
    minutes: int,
    seed: int = 0,
) -> Forecast:
    """Sit every evening before the interview as `drill` would, and count.

    The learner knows half of the new questions and four in five of those met before; the counts are
    the means of LEARNERS such learners. An evening without the drill is an evening less. At most
    AHEAD evenings are counted.
    """
    evenings = min((interview - today).days, AHEAD)
    inside = {q.id for q in core()}
    counted = [q for q in questions if q.id in inside] or list(questions)
    met, sure, of = 0, 0, len(counted)
    for learner in range(LEARNERS):
        kept = _sat(questions, cards, today, interview, minutes, LEARNERS * seed + learner)
        met += sum(q.id in kept for q in counted)
        one, of = known(counted, kept)
        sure += one
    return Forecast(evenings, round(met / LEARNERS), round(sure / LEARNERS), of)


def _sat(
    questions: Sequence[Question],
    cards: Mapping[str, Card],
    today: date,
    interview: date,
    minutes: int,
    seed: int,
) -> dict[str, Card]:
    """The cards of one made-up learner after all evenings."""
    dice, kept = random.Random(seed), dict(cards)
    for evening in range(min((interview - today).days, AHEAD)):
        day, left, last = today + timedelta(days=evening), room_of(minutes), ""
        kept = {i: squeezed(card, day, interview) for i, card in kept.items()}
        ids = tonight(questions, kept, day, left, interview, dice).ids
        while left and (drawn := draw(ids, kept, day, dice, last, left)):
            right = dice.random() < (AGAIN if drawn in kept else FIRST)
            kept[drawn] = after(kept.get(drawn), "knew" if right else "no", day, interview)
            last, left = drawn, left - 1
    return kept


def coverage(evenings: Sequence[int] = (5, 10, 21)) -> None:
    """Show what so many evenings meet of the core, for someone who begins tonight: all pages at 20
    minutes, the pages of SHORT at 20 and at 45, all at 45."""
    start, rows = date(2026, 1, 1), []
    short = tuple(q for q in default() if q.topic[:2] in SHORT.split())
    for name, minutes, asked in (
        ("20 minutes", 20, default()),
        (f"20 minutes, six pages: {SHORT}", 20, short),
        ("45 minutes, the same six pages", 45, short),
        ("45 minutes", 45, default()),
    ):
        told = [forecast(asked, {}, start, start + timedelta(days=n), minutes) for n in evenings]
        rows.append([name, str(told[0].of), *(f"{t.met} met, {t.known} known" for t in told)])
    head = ["an evening", "core cards", *(f"{n} evenings" for n in evenings)]
    lines = [head, ["---"] * len(head), *rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    display(Bundle({"text/markdown": text, "text/plain": text}))
