"""A mock interview: a panel of five, a question and a follow-up each, a rubric, a report.

    interview = mock(seed=7, level="onsite")     # shows the first question; buttons lead on
    interview.report()                           # Markdown; shown at the end by itself

The learner answers aloud and grades each of five answers by four criteria, 0 to 2 points. The
report adds them up, by interviewer and by criterion, and says what to read.
"""

from __future__ import annotations

import html
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from rlnb.classroom.figures import Bundle
from rlnb.classroom.interview.cards import markdown
from rlnb.classroom.notebook_display import display, ipywidgets, spoken_line, widget_view
from rlnb.classroom.questions import LEVELS, FollowUp, Question, pick

__all__ = ["PANEL", "RUBRIC", "Interview", "Panelist", "Room", "Round", "mock"]

POINTS = 2  # for each criterion


@dataclass(frozen=True)
class Panelist:
    """Who asks, about which pages, and what they listen for."""

    name: str
    topics: tuple[str, ...]
    wants: str


PANEL = (
    Panelist("The theorist", ("01", "02", "03", "04", "05"), "every line with its rule"),
    Panelist("The method builder", ("06", "08", "09", "10", "11", "12", "13"),
             "what changes in one token's gradient"),
    Panelist("The sceptic", ("16", "17"), "which experiment would prove you wrong"),
    Panelist("The engineer", ("07", "19", "21"), "where you would look first"),
    Panelist("The lead", ("14", "15", "18"), "what you would choose, and why"),
)  # fmt: skip

RUBRIC = {
    "first sentence": "answers the question by itself",
    "mechanism": "says why, derived and not recited",
    "evidence": "gives a number, a case, or how to measure",
    "follow-up": "holds when asked on",
}


@dataclass(frozen=True)
class Round:
    """One interviewer's question with its follow-up."""

    panelist: Panelist
    question: Question
    follow_up: FollowUp


@dataclass
class Interview:
    """Five rounds and the points given so far, one mapping criterion -> 0, 1, 2 for each."""

    rounds: tuple[Round, ...]
    level: str
    seed: int
    points: list[dict[str, int]] = field(default_factory=list)

    def grade(self, **points: int) -> Interview:
        """Grade the present round; the criteria by their names, "_" for a space or hyphen.

        Raises ValueError for a missing criterion, other points than 0 to 2, or a sixth round.
        """
        if len(self.points) == len(self.rounds):
            raise ValueError("grade: all rounds are graded; see report().")
        names = {name.replace(" ", "_").replace("-", "_"): name for name in RUBRIC}
        if set(points) != set(names):
            raise ValueError(f"grade: expected {sorted(names)}, got {sorted(points)}.")
        if bad := {k: v for k, v in points.items() if v not in range(POINTS + 1)}:
            raise ValueError(f"grade: points are 0, 1 or 2, got {bad}.")
        self.points.append({names[key]: value for key, value in points.items()})
        return self

    @property
    def total(self) -> int:
        """Points so far, of at most 40."""
        return sum(sum(given.values()) for given in self.points)

    def report(self) -> str:
        """The report as Markdown: rounds, criteria, a sentence on each, and what to read."""
        most = POINTS * len(RUBRIC)
        rows = [
            f"| {r.panelist.name} | {markdown(r.question.question)} | "
            f"{sum(given.values())} of {most} | {_weakest(given)} |"
            for r, given in zip(self.rounds, self.points, strict=False)
        ]
        sums = {name: sum(given[name] for given in self.points) for name in RUBRIC}
        by_criterion = [
            f"| {name} | {RUBRIC[name]} | {got} of {POINTS * len(self.points)} |"
            for name, got in sums.items()
        ]
        lines = [
            f"### Mock interview · {self.level} · seed {self.seed} · "
            f"{self.total} of {most * len(self.rounds)}",
            "",
            _verdict(self.total, most * len(self.rounds), len(self.points), len(self.rounds)),
            "",
            "| who | asked | points | lost on |",
            "|---|---|---|---|",
            *rows,
            "",
            "| criterion | a full answer | points |",
            "|---|---|---|",
            *by_criterion,
            "",
            *self._advice(sums),
        ]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/markdown": self.report(), "text/plain": self.report()}

    def _advice(self, sums: Mapping[str, int]) -> list[str]:
        out = []
        if self.points and (low := min(sums.values())) < POINTS * len(self.points):
            name = next(name for name, got in sums.items() if got == low)
            out.append(f"- Practise **{name}**: {ADVICE[name]}")
        for r, given in zip(self.rounds, self.points, strict=False):
            if sum(given.values()) <= POINTS * len(RUBRIC) // 2:
                q = r.question
                out.append(
                    f"- Read [{q.topic[:2]}]({q.topic}.ipynb) again, then draw `{q.id}` in the "
                    f"drill. Weak would be: {markdown(q.weak)}"
                )
        return out


ADVICE = {
    "first sentence": "say the answer before the reason; the drill's reveal begins with it.",
    "mechanism": "derive one line of it on paper, with the rule that leads to it.",
    "evidence": "add one number or one plot you would draw; each answer names its cell.",
    "follow-up": "after each answer ask yourself when it fails.",
}


def _weakest(given: Mapping[str, int]) -> str:
    lost = [name for name, points in given.items() if points < POINTS]
    return ", ".join(lost) or "nothing"


def _verdict(total: int, most: int, graded: int, rounds: int) -> str:
    if graded < rounds:
        return f"{graded} of {rounds} rounds are graded."
    if total >= 0.8 * most:
        return "You would pass: the panel heard answers, reasons and numbers."
    if total >= 0.6 * most:
        return "On the edge: the ideas are there; the lost points say what to add."
    return "Not yet: go through the drill of the weakest page first."


def panel(seed: int, level: str) -> tuple[Round, ...]:
    """One question for each interviewer, the same for the same seed and level."""
    dice = random.Random(f"{seed} {level}")
    rounds = []
    for who in PANEL:
        questions = [q for topic in who.topics for q in pick(topic, level)]
        question = dice.choice(questions)
        rounds.append(Round(who, question, dice.choice(question.follow_ups)))
    return tuple(rounds)


class Room:
    """The interview as controls: a question, the key, four grades, the next; then the report."""

    def __init__(self, interview: Interview):
        self.interview = interview
        self.asked, self.key = ipywidgets.HTML(), ipywidgets.HTML()
        self.status = spoken_line()
        self.show = ipywidgets.Button(
            description="Show the key", tooltip="what a strong answer holds, and the follow-up"
        )
        self.next = ipywidgets.Button(description="Next", tooltip="keep these grades and go on")
        self.marks = {
            name: ipywidgets.ToggleButtons(
                options=[(str(i), i) for i in range(POINTS + 1)],
                value=None,
                description=name,
                tooltips=["missing", "half", RUBRIC[name]],
                style={"button_width": "3em", "description_width": "9em"},
            )
            for name in RUBRIC
        }
        for mark in self.marks.values():
            mark.add_class("widget-inline-hbox")  # the name beside the buttons
        self.show.on_click(lambda _: self.reveal())
        self.next.on_click(lambda _: self.go_on())
        self._handle = None
        self._ask()

    @property
    def done(self) -> bool:
        """Whether all rounds are graded."""
        return len(self.interview.points) == len(self.interview.rounds)

    def reveal(self) -> None:
        """Show what a strong answer holds."""
        if self.done:
            return
        r = self.interview.rounds[len(self.interview.points)]
        q = r.question
        parts = [("Strong", q.short), ("More", q.full), ("Weak", q.weak)]
        parts.append((f"Follow-up: {r.follow_up.ask}", r.follow_up.key))
        self.key.value = "".join(
            f"<p><b>{html.escape(head)}</b> {html.escape(text)}</p>" for head, text in parts
        )
        self.status.value = "Grade yourself by the four criteria, then press Next."

    def go_on(self) -> None:
        """Keep the grades and ask the next question; after the last, show the report."""
        if self.done:
            return
        if not self.key.value:
            self.status.value = "Answer aloud and press Show the key first."
            return
        if missing := [name for name, mark in self.marks.items() if mark.value is None]:
            self.status.value = f"Not graded yet: {', '.join(missing)}."
            return
        given = {n.replace(" ", "_").replace("-", "_"): m.value for n, m in self.marks.items()}
        self.interview.grade(**given)
        self._ask()

    def _ask(self) -> None:
        self.key.value = ""
        for mark in self.marks.values():
            mark.value = None
        if self.done:
            self.asked.value = ""
            self.show.disabled = self.next.disabled = True
            self.status.value = f"{self.interview.total} points. The report stands below."
            if self._handle is not None:
                self._handle.update(_shown(self.interview.report()))
            return
        number = len(self.interview.points)
        r = self.interview.rounds[number]
        self.asked.value = (
            f"<p><b>{html.escape(r.panelist.name)}</b> wants {html.escape(r.panelist.wants)}."
            f"</p><p>{html.escape(r.question.question)}</p>"
        )
        self.status.value = f"Question {number + 1} of 5. {r.question.question}"

    def _ipython_display_(self) -> None:
        rows = [
            self.asked,
            ipywidgets.HBox([self.show, self.next]),
            self.key,
            *self.marks.values(),
            self.status,
        ]
        data = widget_view(ipywidgets.VBox(rows))
        asked = "\n".join(
            f"{r.panelist.name}: {r.question.question}" for r in self.interview.rounds
        )
        data["text/plain"] = f"[a mock interview; run the page to be asked]\n{asked}"
        display(Bundle(data))
        report = _shown("*The report appears here after the fifth answer.*")
        self._handle = display(report, display_id=f"mock-{id(self)}")


def _shown(text: str) -> Bundle:
    return Bundle({"text/markdown": text, "text/plain": text})


def mock(seed: int = 0, level: str = "onsite") -> Room:
    """A new interview; another seed asks other questions. Raises ValueError for no such level."""
    if level not in LEVELS:
        raise ValueError(f"mock: level is {level!r}; expected one of {LEVELS}.")
    return Room(Interview(panel(seed, level), level, seed))
