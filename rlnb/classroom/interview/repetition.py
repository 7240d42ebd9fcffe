"""Spaced repetition in boxes (Leitner 1972): what one knows comes back later, what not, at once.

A card of box b comes back after WAIT[b] days. "knew" moves it one box up and lets it rest; "partly"
leaves it in its box and brings it back tomorrow; "no" puts it into box 0, due tonight. With an
interview ahead no card rests longer than a week, and none past the day. What is kept of a question
is its box, the day it is due, and the day it was asked.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

__all__ = ["GRADES", "WAIT", "WEEK", "Card", "after", "draw", "squeezed", "waiting"]

WAIT = (0, 1, 3, 7, 16, 35, 80)  # days, about doubling
WEEK = 7  # the longest rest before an interview
GRADES = ("no", "partly", "knew")


@dataclass(frozen=True)
class Card:
    """Where a question stands: its box, the first day on which it may be asked again, and when it
    was asked; older files do not say the last."""

    box: int = 0
    due: date = date.min
    on: date | None = None

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Card | None:
        """From a learner's file; None for a question never asked, or for facts it cannot read."""
        try:
            on = date.fromisoformat(facts["on"]) if "on" in facts else None
            box = min(max(int(facts["box"]), 0), len(WAIT) - 1)
            return Card(box, date.fromisoformat(facts["due"]), on)
        except (KeyError, TypeError, ValueError):
            return None

    def facts(self) -> dict[str, Any]:
        """As the learner's file keeps it."""
        on = {"on": self.on.isoformat()} if self.on else {}
        return {"box": self.box, "due": self.due.isoformat(), **on}


def after(card: Card | None, grade: str, today: date, interview: date | None = None) -> Card:
    """The card once it has been graded: "no", "partly" or "knew".

    interview: its day, if there is one ahead: no rest is longer than a week or goes past it.

    >>> after(Card(box=1), "knew", date(2026, 1, 1)).facts()
    {'box': 2, 'due': '2026-01-04', 'on': '2026-01-01'}
    """
    if grade not in GRADES:
        raise ValueError(f"after: grade is {grade!r}; expected one of {GRADES}.")
    box = card.box if card else 0
    box = {"no": 0, "partly": box, "knew": min(box + 1, len(WAIT) - 1)}[grade]
    wait = {"no": 0, "partly": 1, "knew": WAIT[box]}[grade]
    if interview is None or interview <= today:
        return Card(box, today + timedelta(days=wait), today)
    return Card(box, min(today + timedelta(days=min(wait, WEEK)), interview), today)


def squeezed(card: Card, today: date, interview: date | None) -> Card:
    """A card that was laid by before the interview had a date: it rests a week at most as well.

    >>> squeezed(Card(6, date(2026, 3, 20)), date(2026, 1, 9), date(2026, 2, 1)).due
    datetime.date(2026, 1, 6)
    """
    if interview is None or interview <= today:
        return card
    asked = card.on or card.due - timedelta(days=WAIT[card.box])
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
