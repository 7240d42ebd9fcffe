"""Spaced repetition in boxes (Leitner 1972): what one knows comes back later, what not, at once.

A card of box b comes back after WAIT[b] days. "knew" moves it one box up and lets it rest; "partly"
leaves it in its box and brings it back tomorrow; "no" puts it into box 0, due tonight. With an
interview ahead no card rests longer than a week, and none past the day.

A card is known after "knew" on two different days: one good evening may be luck, or the echo of the
evening's own page. "partly" takes one of the two back, "no" both. What is kept of a question is its
box, the day it is due, the day it was asked, how many good days it has, and the last of them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

__all__ = ["DAYS", "GRADES", "WAIT", "WEEK", "Card", "after", "draw", "squeezed", "waiting"]

WAIT = (0, 1, 3, 7, 16, 35, 80)  # days, about doubling
WEEK = 7  # the longest rest before an interview
DAYS = 2  # good days until a card is known
GRADES = ("no", "partly", "knew")


@dataclass(frozen=True)
class Card:
    """Where a question stands: its box, the first day on which it may be asked again, when it was
    asked, on how many days it was known (2 is enough), and the last such day."""

    box: int = 0
    due: date = date.min
    on: date | None = None
    good: int = 0
    good_on: date | None = None

    @property
    def known(self) -> bool:
        """Known on two different days."""
        return self.good >= DAYS

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Card | None:
        """From a learner's file; None for a question never asked, or for facts it cannot read.

        Older files say no good days. Box 2 and more is reached by two of them, as a card rests a
        day in box 1; and the last is the day it was asked, or that the rest was counted from.
        """
        try:
            on = date.fromisoformat(facts["on"]) if "on" in facts else None
            box = min(max(int(facts["box"]), 0), len(WAIT) - 1)
            due = date.fromisoformat(facts["due"])
            if "good" not in facts:
                return Card(box, due, on, min(box, DAYS), _asked(box, due, on) if box else None)
            good = min(max(int(facts["good"]), 0), DAYS)
            good_on = date.fromisoformat(facts["good_on"]) if "good_on" in facts else None
            return Card(box, due, on, good, good_on)
        except (KeyError, TypeError, ValueError):
            return None

    def facts(self) -> dict[str, Any]:
        """As the learner's file keeps it."""
        days = {"on": self.on, "good_on": self.good_on}
        said = {name: day.isoformat() for name, day in days.items() if day}
        return {"box": self.box, "due": self.due.isoformat(), "good": self.good, **said}


def after(card: Card | None, grade: str, today: date, interview: date | None = None) -> Card:
    """The card once it has been graded: "no", "partly" or "knew".

    interview: its day, if there is one ahead: no rest is longer than a week or goes past it.

    >>> after(Card(box=1), "knew", date(2026, 1, 1)).due
    datetime.date(2026, 1, 4)
    """
    if grade not in GRADES:
        raise ValueError(f"after: grade is {grade!r}; expected one of {GRADES}.")
    box = card.box if card else 0
    box = {"no": 0, "partly": box, "knew": min(box + 1, len(WAIT) - 1)}[grade]
    wait = {"no": 0, "partly": 1, "knew": WAIT[box]}[grade]
    good, good_on = (card.good, card.good_on) if card else (0, None)
    if grade == "knew":
        good, good_on = min(good + (good_on != today), DAYS), today
    else:
        good, good_on = (min(good, DAYS - 1), good_on) if grade == "partly" else (0, None)
    due = today + timedelta(days=wait)
    if interview is not None and interview > today:
        due = min(today + timedelta(days=min(wait, WEEK)), interview)
    return Card(box, due, today, good, good_on)


def _asked(box: int, due: date, on: date | None) -> date:
    """When a card was asked, also where an older file does not say."""
    return on or due - timedelta(days=min(WAIT[box], (due - date.min).days))


def squeezed(card: Card, today: date, interview: date | None) -> Card:
    """A card that was laid by before the interview had a date: it rests a week at most as well.

    >>> squeezed(Card(6, date(2026, 3, 20)), date(2026, 1, 9), date(2026, 2, 1)).due
    datetime.date(2026, 1, 6)
    """
    if interview is None or interview <= today:
        return card
    asked = _asked(card.box, card.due, card.on)
    return replace(card, due=min(card.due, asked + timedelta(days=WEEK), interview))


def draw(
    ids: Sequence[str],
    cards: Mapping[str, Card],
    today: date,
    dice: random.Random,
    last: str = "",
    left: int | None = None,
) -> str | None:
    """The next question: what is due, longest first; else a new one by lot; else none is due.

    last: the question just asked, which comes again only when nothing else is there. left: how many
    the evening still holds; when the new ones need them all, only new ones come.
    """
    due = sorted(
        (i for i in ids if i in cards and cards[i].due <= today), key=lambda i: cards[i].due
    )
    new = [i for i in ids if i not in cards]
    others = [i for i in due if i != last]
    # something new after every second repetition, or a learner with many cards never sees the rest
    pressed = left is not None and len(new) >= left
    if new and (pressed or not others or dice.random() < 1 / 3):
        return dice.choice(new)
    return (others or due or [None])[0]


def waiting(ids: Sequence[str], cards: Mapping[str, Card], today: date) -> tuple[int, int, int]:
    """How many of these questions are new, how many due, how many resting."""
    kept = [cards[i] for i in ids if i in cards]
    due = sum(card.due <= today for card in kept)
    return len(ids) - len(kept), due, len(kept) - due
