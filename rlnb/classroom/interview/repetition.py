"""Spaced repetition in boxes (Leitner 1972): what one knows comes back later, what not, at once.

A card of box b comes back after WAIT[b] days. "knew" moves it one box up and lets it rest; "partly"
leaves it in its box and brings it back tomorrow; "no" puts it into box 0, due tonight. With an
interview ahead no card rests longer than a week, and none past the day. Nothing else is kept than
the box and the day it is due.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

__all__ = ["GRADES", "WAIT", "WEEK", "Card", "after", "draw", "squeezed", "waiting"]

WAIT = (0, 1, 3, 7, 16, 35, 80)  # days, about doubling
WEEK = 7  # the longest rest before an interview
GRADES = ("no", "partly", "knew")


@dataclass(frozen=True)
class Card:
    """Where a question stands: its box, and the first day on which it may be asked again."""

    box: int = 0
    due: date = date.min

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Card | None:
        """From a learner's file; None for a question never asked, or for facts it cannot read."""
        try:
            return Card(
                min(max(int(facts["box"]), 0), len(WAIT) - 1), date.fromisoformat(facts["due"])
            )
        except (KeyError, TypeError, ValueError):
            return None

    def facts(self) -> dict[str, Any]:
        """As the learner's file keeps it."""
        return {"box": self.box, "due": self.due.isoformat()}


def after(card: Card | None, grade: str, today: date, interview: date | None = None) -> Card:
    """The card once it has been graded: "no", "partly" or "knew".

    interview: its day, if there is one ahead: no rest is longer than a week or goes past it.

    >>> after(Card(box=1), "knew", date(2026, 1, 1))
    Card(box=2, due=datetime.date(2026, 1, 4))
    """
    if grade not in GRADES:
        raise ValueError(f"after: grade is {grade!r}; expected one of {GRADES}.")
    box = card.box if card else 0
    box = {"no": 0, "partly": box, "knew": min(box + 1, len(WAIT) - 1)}[grade]
    wait = {"no": 0, "partly": 1, "knew": WAIT[box]}[grade]
    if interview is None or interview <= today:
        return Card(box, today + timedelta(days=wait))
    return Card(box, min(today + timedelta(days=min(wait, WEEK)), interview))


def squeezed(card: Card, today: date, interview: date | None) -> Card:
    """A card that was laid by before the interview had a date: it rests a week at most as well.

    >>> squeezed(Card(6, date(2026, 3, 20)), date(2026, 1, 9), date(2026, 2, 1)).due
    datetime.date(2026, 1, 9)
    """
    if interview is None or interview <= today:
        return card
    too_long = max(WAIT[card.box] - WEEK, 0)
    earlier = max(card.due - timedelta(days=too_long), today) if too_long else card.due
    return Card(card.box, min(card.due, earlier, interview))


def draw(
    ids: Sequence[str], cards: Mapping[str, Card], today: date, dice: random.Random, last: str = ""
) -> str | None:
    """The next question: what is due, longest first; else a new one by lot; else none is due.

    last: the question just asked, which comes again only when nothing else is there.
    """
    due = sorted(
        (i for i in ids if i in cards and cards[i].due <= today), key=lambda i: cards[i].due
    )
    new = [i for i in ids if i not in cards]
    others = [i for i in due if i != last]
    # something new after every second repetition, or a learner with many cards never sees the rest
    if new and (not others or dice.random() < 1 / 3):
        return dice.choice(new)
    return (others or due or [None])[0]


def waiting(ids: Sequence[str], cards: Mapping[str, Card], today: date) -> tuple[int, int, int]:
    """How many of these questions are new, how many due, how many resting."""
    kept = [cards[i] for i in ids if i in cards]
    due = sum(card.due <= today for card in kept)
    return len(ids) - len(kept), due, len(kept) - due
