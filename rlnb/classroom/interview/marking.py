"""What a round of the mock interview is graded by: the ticks that each key lists, and the advice.

The ticks of a question are the sentences of its key after the first: those that bring a number are
its evidence, the others its reasons. A learner ticks what they said aloud; points follow from the
ticks by `RUBRIC`, and the report names, in the key's own words, what was not ticked.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from rlnb.classroom.interview.cards import markdown, where
from rlnb.classroom.questions import FollowUp, Question, first_sentence

__all__ = [
    "HASTY", "OWN", "POINTS", "RUBRIC", "Marks", "Ticks", "advice", "hasty", "seconds", "ticks",
]  # fmt: skip

POINTS = 2  # for each criterion
HASTY = (15, 5)  # seconds below which a full mark for the answer, for the follow-up, is doubted

# What 0, 1 and 2 points are for. Reasons and evidence are counted from the ticks.
RUBRIC = {
    "first sentence": ("none, wrong, or late", "right, needs the next one",
                       "answers by itself"),
    "reasons": ("none ticked", "some ticked", "two in three, or more"),
    "evidence": ("none", "a case without a number", "a number, or a plot"),
    "follow-up": ("nothing, or wrong", "the direction", "the point of its key"),
}  # fmt: skip
# Evidence of one's own, with its points.
OWN = (("a plot of my own: I named both axes", 2), ("a case of my own, without a number", 1),
       ("a number of my own: I said what it was measured on", 2))  # fmt: skip

_END = re.compile(r"(?<=[.!?])(?<!Dr\.)(?<!et al\.)(?<!e\.g\.)[\"”')]*\s+(?=\S)")
_NAME = re.compile(r"\(\d\d(?:, \d\d)*\)|@\d+")  # page (16), pass@32
_NUMBER = re.compile(r"\d[.,]\d|\d ?%|\b\d{2,}\b|\d+e-\d|10\^")


@dataclass(frozen=True)
class Ticks:
    """The sentences of a key after its first: the reasons, and those that bring a number."""

    reasons: tuple[str, ...]
    numbers: tuple[str, ...]


@cache
def ticks(question: Question) -> Ticks:
    """What a full answer says. A key with a number in every sentence has reasons all the same."""
    rest = question.short[len(first_sentence(question.short)) :]
    said = [s.strip() for text in (rest, question.full) for s in _END.split(text.strip()) if s]
    numbers = tuple(s for s in said if _NUMBER.search(_NAME.sub("", s)))
    reasons = tuple(s for s in said if s not in numbers)
    if not reasons:
        reasons, numbers = numbers[:1], numbers[1:]
    return Ticks(reasons, numbers)


@dataclass(frozen=True)
class Marks:
    """What a learner said of a round: points for two criteria, the ticks, the seconds it took.

    reasons, numbers: the places of the ticked sentences; own: of the ticked lines of OWN.
    """

    first: int
    follow_up: int
    reasons: Collection[int] = ()
    numbers: Collection[int] = ()
    own: Collection[int] = ()
    seconds: tuple[float, float] | None = None

    def points(self, question: Question) -> dict[str, int]:
        """Criterion -> 0, 1 or 2. Raises ValueError for a mark or a tick that does not exist."""
        key = ticks(question)
        if not {self.first, self.follow_up} <= set(range(POINTS + 1)):
            raise ValueError(f"grade: points are 0, 1 or 2, got {self.first}, {self.follow_up}.")
        for name, ticked, listed in (
            ("reasons", self.reasons, key.reasons),
            ("numbers", self.numbers, key.numbers),
            ("own", self.own, OWN),
        ):
            if not set(ticked) <= set(range(len(listed))):
                raise ValueError(f"grade: {name} has {len(listed)} ticks, got {sorted(ticked)}.")
        count, of = len(set(self.reasons)), len(key.reasons)
        evidence = max([POINTS] * bool(self.numbers) + [OWN[i][1] for i in self.own] + [0])
        return {
            "first sentence": self.first,
            "reasons": 0 if not count else POINTS if 3 * count >= 2 * of else 1,
            "evidence": evidence,
            "follow-up": self.follow_up,
        }


def hasty(marks: Marks, question: Question) -> str:
    """A sentence where full marks came sooner than one can speak; empty where they did not."""
    if marks.seconds is None:
        return ""
    points, said = marks.points(question), []
    spoken = max(points["reasons"], points["evidence"]) == POINTS
    if spoken and marks.seconds[0] < HASTY[0]:
        words = sum(len(ticks(question).reasons[i].split()) for i in marks.reasons)
        words += sum(len(ticks(question).numbers[i].split()) for i in marks.numbers)
        said.append(f"the answer took {seconds(marks.seconds[0])}, and you ticked {words} words")
    if points["follow-up"] == POINTS and marks.seconds[1] < HASTY[1]:
        said.append(f"the reply took {seconds(marks.seconds[1])}")
    return f"Points came fast: {'; '.join(said)}" if said else ""


def seconds(number: float) -> str:
    """`1 second`, `12 seconds`: whole ones, as the clock shows them."""
    return f"{int(number)} second{'' if int(number) == 1 else 's'}"


def advice(marks: Marks, question: Question, push: FollowUp) -> str:
    """What was not said, in the key's own words, as Markdown; empty when nothing was lost."""
    points, key, out = marks.points(question), ticks(question), []
    if points["first sentence"] < POINTS:
        out.append(f"Open with: *{markdown(first_sentence(question.short))}*")
    missed = [s for i, s in enumerate(key.reasons) if i not in set(marks.reasons)]
    if points["reasons"] < POINTS:
        out.append("You did not tick: " + " ".join(f"*{markdown(s)}*" for s in missed[:2]))
    if points["evidence"] < POINTS and key.numbers:
        out.append(f"A number to bring: *{markdown(key.numbers[0])}*")
    elif points["evidence"] < POINTS:
        cells = ", ".join(f"[{name}]({page})" for name, page in where(question)[:2])
        out.append(f"For evidence run {cells}, and bring one number of it or its plot.")
    if points["follow-up"] < POINTS:
        out.append(f'To "{markdown(push.ask)}" say: *{markdown(push.key)}*')
    if doubt := hasty(marks, question):
        out.append(f"{doubt}. Say it aloud once more, against the clock.")
    return " ".join(part if part.rstrip("*")[-1] in ".?!" else f"{part}." for part in out)
