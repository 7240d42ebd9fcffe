"""A mock interview: a panel of five, a question and a follow-up each, a rubric, a report.

    interview = mock(seed=7, level="onsite")     # a room: ask, follow-up, key, ticks, five times
    interview.report()                           # Markdown; shown at the end by itself

Each round has four states. The question, 90 seconds, and a box for one's first sentence. Then the
follow-up alone, 45 seconds. Then the key beside one's own sentences, and what it says as ticks: one
ticks what one said aloud, and grades the first sentence and the reply (see marking). The report
adds up, names for every round what was not said, doubts full marks that came too soon, and gives
the drill to do next.
"""

from __future__ import annotations

import html
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rlnb.classroom.figures import Bundle
from rlnb.classroom.interview import desk
from rlnb.classroom.interview.cards import answer_cells, markdown, typeset
from rlnb.classroom.interview.marking import OWN, POINTS, RUBRIC, Marks, advice, hasty, ticks
from rlnb.classroom.notebook_display import display, ipywidgets, spoken_line, tone, widget_view
from rlnb.classroom.questions import LEVELS, FollowUp, Question, first_sentence, pick

__all__ = ["PANEL", "Interview", "Panelist", "Room", "Round", "example_report", "mock"]

ASK, PUSH = 90, 45  # seconds for the answer and for the follow-up
PASS, EDGE = 0.8, 0.6  # of the points
WRAPS = (  # a tick of two lines
    ".rlnb-tick.widget-checkbox, .rlnb-tick label {height:auto; white-space:normal; "
    "line-height:1.4; align-items:baseline} .rlnb-tick {margin:2px 0}"
)


@dataclass(frozen=True)
class Panelist:
    """Who asks, about which pages, and what they listen for; `only`: ids they choose among."""

    name: str
    topics: tuple[str, ...]
    wants: str
    only: tuple[str, ...] = ()


PANEL = (
    Panelist("The theorist", ("01", "02", "03", "04", "05", "15"), "every line with its rule"),
    Panelist("The method builder", ("06", "08", "09", "10", "11", "12", "13", "14"),
             "what changes in one token's gradient"),
    Panelist("The sceptic", ("16", "17"), "which experiment would prove you wrong"),
    Panelist("The engineer", ("07", "18", "19"), "where you would look first"),
    Panelist("The lead", ("14", "15", "16", "18", "19"), "what you would do, and what it costs",
             ("the_zoo.1", "the_zoo.3", "rewards.6", "agents.4", "agents.5", "systems.8",
              "the_zoo.5", "the_zoo.6", "the_zoo.7", "preferences.11", "preferences.15",
              "rewards.15", "agents.11", "agents.12", "agents.14", "systems.20",
              "the_zoo.14", "the_zoo.16", "preferences.16", "agents.16", "systems.25")),
)  # fmt: skip


@dataclass(frozen=True)
class Round:
    """One interviewer's question with its follow-up."""

    panelist: Panelist
    question: Question
    follow_up: FollowUp


@dataclass
class Interview:
    """Five rounds, and what was said in those that are graded."""

    rounds: tuple[Round, ...]
    level: str
    seed: int
    marks: list[Marks] = field(default_factory=list)

    def grade(self, marks: Marks) -> Interview:
        """Grade the present round. Raises ValueError for marks that do not exist, or a sixth."""
        if len(self.marks) == len(self.rounds):
            raise ValueError("grade: all rounds are graded; see report().")
        marks.points(self.rounds[len(self.marks)].question)
        self.marks.append(marks)
        return self

    @property
    def points(self) -> list[dict[str, int]]:
        """For each graded round: criterion -> 0, 1 or 2."""
        return [m.points(r.question) for r, m in zip(self.rounds, self.marks, strict=False)]

    @property
    def total(self) -> int:
        """Points so far, of at most 40."""
        return sum(sum(given.values()) for given in self.points)

    def report(self) -> str:
        """The report as Markdown: rounds, criteria, a line for each lost point, what to drill."""
        most = POINTS * len(RUBRIC)
        rows = [
            f"| {r.panelist.name} | {markdown(r.question.question)} | "
            f"{sum(given.values())} of {most} | {_lost(given)} |"
            for r, given in zip(self.rounds, self.points, strict=False)
        ]
        sums = {name: sum(given[name] for given in self.points) for name in RUBRIC}
        by_criterion = [
            f"| {name} | {RUBRIC[name][-1]} | {got} of {POINTS * len(self.points)} |"
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
            *self._advice(),
        ]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/markdown": self.report(), "text/plain": self.report()}

    @property
    def again(self) -> tuple[str, ...]:
        """The ids of the rounds that lost points, the weakest first."""
        lost = [
            (sum(given.values()), r.question.id)
            for r, given in zip(self.rounds, self.points, strict=False)
            if sum(given.values()) < POINTS * len(RUBRIC)
        ]
        return tuple(name for _, name in sorted(lost, key=lambda pair: pair[0]))

    def _advice(self) -> list[str]:
        out = []
        for r, marks in zip(self.rounds, self.marks, strict=False):
            q, said = r.question, advice(marks, r.question, r.follow_up)
            if not said:
                continue
            weak = ""
            if sum(marks.points(q).values()) <= POINTS:
                weak = f" Weak would be: {markdown(q.weak)}"
            out.append(
                f"- **{r.panelist.name}** (`{q.id}`, page [{q.topic[:2]}]({q.topic}.ipynb)): "
                f"{said}{weak}"
            )
        if self.again:
            out += ["", f'The drill to do next: `drill("{" ".join(self.again)}")`.']
        return out


def _lost(given: Mapping[str, int]) -> str:
    lost = [name for name, points in given.items() if points < POINTS]
    return ", ".join(lost) or "nothing"


def _verdict(total: int, most: int, graded: int, rounds: int) -> str:
    if graded < rounds:
        return f"{graded} of {rounds} rounds are graded."
    passed, edge = round(PASS * most), round(EDGE * most)
    lines = f"A pass begins at {passed}; from {edge} on it is close."
    if total >= passed:
        return f"You would pass: the panel heard answers, reasons and numbers. {lines}"
    if total >= edge:
        return f"Close: the ideas are there, the lost points say what to add. {lines}"
    return f"Not yet: do the drill below, then ask for another seed. {lines}"


def panel(seed: int, level: str) -> tuple[Round, ...]:
    """One question for each interviewer, the same for the same seed and level; none twice."""
    dice = random.Random(f"{seed} {level}")
    rounds: list[Round] = []
    for who in reversed(PANEL):  # the lead has the fewest to choose among, and chooses first
        taken = {r.question.id for r in rounds}
        questions = [q for topic in who.topics for q in pick(topic, level) if q.id not in taken]
        if who.only:
            questions = [q for q in questions if q.id in who.only]
        question = dice.choice(questions)
        rounds.append(Round(who, question, dice.choice(question.follow_ups)))
    return tuple(reversed(rounds))


class Room:
    """The interview as controls. `state` is "asked", "pushed", "key" or "done".

    Enter in the box and the one button lead on: answer, follow-up, key; ticks, grades, next.
    """

    def __init__(self, interview: Interview, clock: Callable[[], float] = time.monotonic):
        self.interview, self.state = interview, "ready"
        self.asked, self.key = desk.heard(), ipywidgets.HTML()
        self.timer = desk.Timer(clock)
        self.status = spoken_line()
        self.sentence = desk.line("first sentence", "say it all; write the first", self.go_on)
        self.reply = desk.line("your reply", "say it; write its point", self.go_on)
        for box in (self.sentence, self.reply):  # the last letters may arrive after Enter
            box.observe(lambda _: self._show_key(), "value")
        self.next = desk.button("Start", "the next step of this round", self.go_on)
        self.seconds: list[float] = []
        self.marks = {
            name: ipywidgets.ToggleButtons(
                options=[(f"{i} · {what}", i) for i, what in enumerate(RUBRIC[name])],
                value=None,
                description=name,
                style={"button_width": "17em", "description_width": "8em"},
            )
            for name in ("first sentence", "follow-up")
        }
        for mark in self.marks.values():
            mark.add_class("widget-inline-hbox")  # the name beside the buttons
        self.ticks: dict[str, list] = {"reasons": [], "numbers": [], "own": []}
        self.ticked, self.reply_key = ipywidgets.VBox([]), ipywidgets.HTML()
        self.doubted = False
        self._handle = None
        self.status.value = (
            f"Five questions, {ASK} seconds and a follow-up of {PUSH} each. Press Start."
        )
        self._show(())

    @property
    def done(self) -> bool:
        """Whether all rounds are graded."""
        return len(self.interview.marks) == len(self.interview.rounds)

    @property
    def round(self) -> Round:
        """The present one."""
        return self.interview.rounds[len(self.interview.marks)]

    def go_on(self) -> None:
        """To the next state: ready, asked, pushed, key, and the next question or the report."""
        step = {"ready": self._ask, "asked": self._push, "pushed": self._reveal, "key": self._keep}
        if self.state in step:
            step[self.state]()

    def _ask(self) -> None:
        self.state = "asked"
        for mark in self.marks.values():
            mark.value = None
        self.key.value = self.sentence.value = self.reply.value = ""
        self.doubted, self.reply_key.value = False, ""
        r, number = self.round, len(self.interview.marks) + 1
        self.next.description = "I have answered: ask me the follow-up"
        self.asked.value = (
            f"<p>{number} of {len(self.interview.rounds)}. <b>{html.escape(r.panelist.name)}</b> "
            f"wants {html.escape(r.panelist.wants)}.</p>"
            f"<p><b>{typeset(r.question.question)}</b></p>"
        )
        self._say(f"{ASK} seconds, aloud. Write the first sentence; Enter goes on.")
        self.timer.start(ASK)
        self._show((self.sentence,))
        desk.focus(self.sentence)

    def _push(self) -> None:
        self.seconds = [self.timer.stop()]
        self.state, self.next.description = "pushed", "I have replied: show the key"
        self.asked.value = f"<p>They ask on:</p><p><b>{typeset(self.round.follow_up.ask)}</b></p>"
        self._say(f"{PUSH} seconds, aloud. Write its point; Enter goes on.")
        self.timer.start(PUSH)
        self._show((self.reply,))
        desk.focus(self.reply)

    def _reveal(self) -> None:
        self.seconds.append(self.timer.stop())
        self.state, self.next.description = "key", "Keep these grades"
        self.asked.value = f"<p><b>{typeset(self.round.question.question)}</b></p>"
        self._show_key()
        self._lay_ticks()
        took = [
            f"{int(s)} of {limit} s" for s, limit in zip(self.seconds, (ASK, PUSH), strict=True)
        ]
        self._say(f"You took {took[0]} and {took[1]}. Tick what you said, not what you knew.")
        self._show((self.key, self.ticked, self.reply_key, *self.marks.values()))

    def _lay_ticks(self) -> None:
        key = ticks(self.round.question)
        listed = {"reasons": key.reasons, "numbers": key.numbers, "own": [t for t, _ in OWN]}
        self.ticks = {name: [_tick(text) for text in texts] for name, texts in listed.items()}
        self.ticked.children = [
            ipywidgets.HTML(
                f"<style>{WRAPS}</style><b>Reasons:</b> tick what you said, in whatever words."
            ),
            *self.ticks["reasons"],
            ipywidgets.HTML("<b>Evidence:</b> one number of the key is enough, or a plot."),
            *self.ticks["numbers"],
            *self.ticks["own"],
        ]

    def _show_key(self) -> None:
        if self.state != "key":
            return
        q, push = self.round.question, self.round.follow_up
        self.key.value = desk.beside(self.sentence.value, first_sentence(q.short))
        self.reply_key.value = (
            f"<p><b>They asked on:</b> {typeset(push.ask)}</p>"
            + desk.beside(self.reply.value, push.key)
            + desk.paragraphs(("A weak answer", q.weak))
            + f"<p>Computed in: {html.escape(answer_cells(q))}.</p>"
        )

    def _keep(self) -> None:
        if missing := [name for name, mark in self.marks.items() if mark.value is None]:
            self._say(f"Not graded yet: {', '.join(missing)}.", "wrong")
            return
        on = {n: [i for i, box in enumerate(row) if box.value] for n, row in self.ticks.items()}
        marks = Marks(
            self.marks["first sentence"].value,
            self.marks["follow-up"].value,
            **on,
            seconds=(self.seconds[0], self.seconds[1]),
        )
        doubt = hasty(marks, self.round.question)
        if doubt and not self.doubted:  # once; whoever insists is believed, and the report says it
            self.doubted = True
            self._say(f"{doubt}. Untick what you only thought; or press once more.", "wrong")
            return
        self.interview.grade(marks)
        if not self.done:
            self._ask()
            return
        self.state, self.asked.value = "done", ""
        self.next.disabled = True
        self._show(())
        self._say(f"{self.interview.total} points. The report stands below.", "done")
        if self._handle is not None:
            self._handle.update(_shown(self.interview.report()))

    def _say(self, text: str, how: str = "quiet") -> None:
        self.status.value = text
        tone(self.status, how)

    def _show(self, controls: tuple) -> None:
        """Only what the present state needs."""
        every = (self.sentence, self.reply, self.key, self.ticked, self.reply_key)
        for control in (*every, *self.marks.values()):
            control.layout.display = None if control in controls else "none"

    def _ipython_display_(self) -> None:
        rows = [
            self.asked,
            self.sentence,
            self.reply,
            self.key,
            self.marks["first sentence"],
            self.ticked,
            self.reply_key,
            self.marks["follow-up"],
            ipywidgets.HBox([self.next, *self.timer.shown]),
            self.status,
        ]
        data = widget_view(ipywidgets.VBox(rows))
        who = ", ".join(r.panelist.name.lower() for r in self.interview.rounds)
        data["text/plain"] = f"[a mock interview; run the page to be asked by {who}]"
        display(Bundle(data))
        report = _shown("*The report appears here after the fifth answer.*")
        self._handle = display(report, display_id=f"mock-{id(self)}")


def _tick(text: str):
    """A box to tick with a sentence of the key, which wraps."""
    box = ipywidgets.Checkbox(
        value=False, description=text, indent=False, layout=ipywidgets.Layout(width="98%")
    )
    box.add_class("rlnb-tick")
    return box


def _shown(text: str) -> Bundle:
    return Bundle({"text/markdown": text, "text/plain": text})


def mock(seed: int = 0, level: str = "onsite") -> Room:
    """A new interview; another seed asks other questions. Raises ValueError for no such level."""
    if level not in LEVELS:
        raise ValueError(f"mock: level is {level!r}; expected one of {LEVELS}.")
    return Room(Interview(panel(seed, level), level, seed))


def example_report(seed: int = 3, level: str = "onsite") -> Interview:
    """A report: mostly right, few numbers, and once full marks within six seconds."""
    interview = Interview(panel(seed, level), level, seed)
    said = (  # first sentence, follow-up, how many reasons, how many numbers, seconds
        (2, 2, 9, 0, (64.0, 31.0)),
        (2, 2, 9, 1, (81.0, 22.0)),
        (1, 1, 0, 0, (43.0, 12.0)),
        (2, 2, 9, 9, (6.0, 18.0)),
        (2, 2, 9, 1, (88.0, 40.0)),
    )
    for r, (first, follow_up, reasons, numbers, took) in zip(interview.rounds, said, strict=True):
        key = ticks(r.question)
        interview.grade(
            Marks(
                first,
                follow_up,
                range(min(reasons, len(key.reasons))),
                range(min(numbers, len(key.numbers))),
                () if numbers or not reasons else (1,),
                took,
            )
        )
    return interview
