"""One question at a time, sixty seconds, then the answer; an evening with a plan and an end.

    drill(minutes=30, interview="2026-12-13")   tonight's cards; the date is remembered
    drill("06_ppo", level="onsite", seed=3)     one page, one level, a draw to repeat
    drill("06 08 15")                           these pages only
    drill("rewards.10 baselines.6")             these questions first

With a day for the interview the drill counts, by its own rules, what the evenings left will meet.
Write your first sentence, Enter shows the answer, 1, 2 or 3 grades and asks the next question. The
clock runs in the browser, so nothing in the kernel waits; how long an answer took is measured from
the draw to the reveal.
"""

from __future__ import annotations

import html
import random
import time
from collections.abc import Callable
from datetime import date

from rlnb.classroom import progress
from rlnb.classroom.figures import Bundle
from rlnb.classroom.interview import desk
from rlnb.classroom.interview.cards import answer_cells, name_of, typeset
from rlnb.classroom.interview.marking import seconds
from rlnb.classroom.interview.plan import (
    CARD,
    Forecast,
    Sitting,
    core,
    default,
    forecast,
    interview_day,
    known,
    room_of,
    tonight,
)
from rlnb.classroom.interview.repetition import GRADES, Card, after, draw, squeezed
from rlnb.classroom.notebook_display import display, ipywidgets, spoken_line, tone, widget_view
from rlnb.classroom.questions import LEVELS, Question, bank, pick, topics

__all__ = ["Drill", "drill"]

SECONDS = 60
MINUTES = 20  # of an evening of 30: the rest is for the whiteboard
LONGER = 45  # what the plan offers where the evenings are too short for the core
EXTRA = 5  # cards, for whoever goes on after the evening's end
HASTY = 8  # seconds below which "I knew it" is doubted
SAID = {"no": "1 No", "partly": "2 Partly", "knew": "3 I knew it"}


class Drill:
    """The drill's state and its controls. Tests press `draw()`, `reveal()` and `grade("knew")`."""

    def __init__(
        self,
        topic: str = "",
        level: str = "",
        seed: int | None = None,
        *,
        minutes: int = MINUTES,
        interview: date | None = None,
        first: tuple[str, ...] = (),
        today: Callable[[], date] = date.today,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.dice, self.today, self.clock = random.Random(seed), today, clock
        kept = progress.everything().get("question", {})
        self.cards = {q.id: c for q in bank() if (c := Card.of(kept.get(q.id, {})))}
        self.asked_today = sum(f.get("on") == today().isoformat() for f in kept.values())
        self.first, self.question, self.open = list(first), None, False
        self.seconds, self.grades, self.sat, self.over = 0.0, [], None, False
        topic = " ".join(pick(name)[0].topic for name in topic.split())
        pages = [("every page", ""), *((name_of(t), t) for t in topics())]
        if " " in topic:
            pages.append(("pages " + ", ".join(t[:2] for t in topic.split()), topic))
        self.topic = ipywidgets.Dropdown(options=pages, value=topic, description="page")
        self.level = ipywidgets.Dropdown(
            options=[("every level", ""), *((name, name) for name in LEVELS)],
            value=level,
            description="level",
        )
        self.minutes = ipywidgets.IntText(
            value=minutes, description="minutes", layout=ipywidgets.Layout(width="10em")
        )
        self.day = ipywidgets.DatePicker(value=interview, description="interview")
        self.timer = desk.Timer(clock)
        self.next = desk.button("Next question", "draws a question, starts the clock", self.draw)
        self.sentence = desk.line("first sentence", "write or say it; Enter = answer", self.reveal)
        # the last letters may arrive after Enter
        self.sentence.observe(lambda _: self._show_answer(), "value")
        self.show = desk.button("Show the answer", "stops the clock", self.reveal)
        self.marks = {
            g: desk.button(SAID[g], f"grade yourself: {SAID[g]}", lambda g=g: self.grade(g))
            for g in GRADES
        }
        self.key = ipywidgets.Text(
            description="grade", placeholder="1, 2, 3", layout=ipywidgets.Layout(width="12em")
        )
        self.key.observe(lambda change: self._pressed(change["new"]), "value")
        for control in (self.topic, self.level, self.minutes, self.day):
            control.observe(lambda _: self._planned(), "value")
        self.asked, self.answer = desk.heard(), ipywidgets.HTML()
        self.plan, self.ahead, self.status = spoken_line(), desk.heard(), spoken_line()
        self.sitting = Sitting((), ())
        self._plan()
        self.status.value = "Press Next question. Answer aloud, write the first sentence."
        self._enable()

    @property
    def chosen(self) -> tuple[Question, ...]:
        """The questions under the present filter; page 21 only when it is asked for."""
        if self.topic.value:
            pages = self.topic.value.split()
            return tuple(q for page in pages for q in pick(page, self.level.value))
        return tuple(q for q in default() if self.level.value in ("", q.level))

    @property
    def interview(self) -> date | None:
        """Its day, while it is still ahead."""
        day = self.day.value
        return day if day is not None and day > self.today() else None

    def draw(self) -> Question | None:
        """Ask the next question and start the clock; None when the evening's cards are done."""
        if self.over:  # pressed once more after the end: a few on top
            self._plan(EXTRA)
            self.over, self.sat = False, None
        self.sat = self.clock() if self.sat is None else self.sat
        self.open, self.answer.value, self.sentence.value = False, "", ""
        late = self.clock() - self.sat >= 60 * self.minutes.value
        self.question = None if late and not self.first else self._drawn()
        if self.question is None:
            self._end(late)
        else:
            q = self.question
            where = f"{html.escape(name_of(q.topic))} · {q.level}"
            self.asked.value = f"<p><b>{typeset(q.question)}</b><br>{where}</p>"
            if not self.grades:
                self.status.value = f"{SECONDS} seconds, aloud. Enter shows the answer."
            self.timer.start(SECONDS)
        self._say_plan()
        self._enable()
        if self.question is not None:
            desk.focus(self.sentence)  # last: a disabled box takes no focus
        return self.question

    def _drawn(self) -> Question | None:
        every = {q.id: q for q in bank()}
        if self.first:
            return every[self.first.pop(0)]
        last = self.question.id if self.question else ""
        left = self.room - self.asked_today
        drawn = draw(self.sitting.ids, self.cards, self.today(), self.dice, last, left)
        return every[drawn] if drawn else None

    def _end(self, late: bool) -> None:
        self.over = True
        self.asked.value = ""
        self.timer.stop()
        done = len(self.grades)
        if late:
            said = f"{self.minutes.value} minutes are over: {done} answers. Enough for tonight."
        elif done:
            said = f"Tonight's cards are done: {done} answers, {self.grades.count('knew')} known."
        else:
            said = "Nothing is due here tonight: another page or level, or tomorrow."
        self.status.value = f"{said} Next question goes on all the same."
        tone(self.status, "done" if done else "quiet")

    def reveal(self) -> None:
        """Stop the clock and show the answer beside one's own sentence."""
        if self.question is None or self.open:
            return
        self.open, self.seconds = True, self.timer.stop()
        self._show_answer()
        late = self.seconds > SECONDS
        self.status.value = (
            f"{seconds(self.seconds)}{': too long' if late else ''}. Was your first sentence "
            "the answer? Type 1 no, 2 right idea without its reason, 3 I knew it."
        )
        tone(self.status, "wrong" if late else "quiet")
        self._enable()
        desk.focus(self.key)

    def _show_answer(self) -> None:
        if self.question is None or not self.open:
            return
        q = self.question
        asked_on = "".join(
            f"<details><summary>They ask on: {typeset(f.ask)} (answer it, then unfold)</summary>"
            f"{typeset(f.key)}</details>"
            for f in q.follow_ups
        )
        more = desk.paragraphs(("More", q.full), ("A weak answer", q.weak))
        cells = f"<p>Computed in: {html.escape(answer_cells(q))}.</p>"
        self.answer.value = desk.beside(self.sentence.value, q.short) + more + asked_on + cells

    def grade(self, grade: str) -> None:
        """Keep how well it went and ask the next question."""
        if self.question is None or not self.open:
            return
        today, asked = self.today(), self.question.id
        card = after(self.cards.get(asked), grade, today, self.interview)
        self.cards[asked] = card
        self.grades.append(grade)
        self.asked_today += 1
        progress.record("question", asked, grade=grade, **card.facts())
        self.open = False
        days = (card.due - today).days
        back = "tonight" if days == 0 else "tomorrow" if days == 1 else f"in {days} days"
        doubt = grade == "knew" and self.seconds < HASTY
        said = f" You knew it after {seconds(self.seconds)}: was it said aloud?" if doubt else ""
        self.status.value = f"The last one comes back {back}.{said} {SECONDS} seconds, aloud:"
        tone(self.status, "wrong" if doubt else "done" if grade == "knew" else "quiet")
        self.draw()

    def _pressed(self, written: str) -> None:
        """A grade typed as 1, 2 or 3."""
        if written and self.open and written[-1] in "123":
            self.grade(GRADES[int(written[-1]) - 1])
        if written:
            self.key.value = ""

    def _planned(self) -> None:
        """The filter, the minutes or the date were changed: keep the date, plan anew."""
        day = self.day.value.isoformat() if self.day.value else ""
        progress.record("plan", "drill", interview=day, minutes=self.minutes.value)
        self.over, self.sat = False, None
        self._plan()

    def _plan(self, room: int | None = None) -> None:
        today = self.today()
        self.cards = {i: squeezed(c, today, self.interview) for i, c in self.cards.items()}
        if room is None:
            room = max(room_of(self.minutes.value) - self.asked_today, 0)
        self.room = self.asked_today + room
        self.sitting = tonight(
            self.chosen, self.cards, today, room, self.interview, random.Random(self.dice.random())
        )
        self._say_plan()
        self._look_ahead()

    def _look_ahead(self) -> None:
        """What the evenings left will meet: the scheduler itself, played to the interview."""
        if self.interview is None:
            self.ahead.value = "Set the day of the interview: this line counts what you will meet."
            return
        minutes = self.minutes.value
        told = self._forecast(minutes)
        said = (
            f"{told.evenings} evening{'s' * (told.evenings != 1)} x {minutes} minutes: you will "
            f"meet about {told.met} of {told.of}, and know about {told.known} on two days."
        )
        if told.met < told.of:
            more = (
                f" With {LONGER} minutes: {self._forecast(LONGER).met}." if minutes < LONGER else ""
            )
            said += f"{more} Too few? Name your pages: <code>drill('06 08 15')</code>."
        self.ahead.value = said

    def _forecast(self, minutes: int) -> Forecast:
        return forecast(self.chosen, self.cards, self.today(), self.interview, minutes)

    def _say_plan(self) -> None:
        today, cards = self.today(), self.cards
        new = sum(i not in cards for i in self.sitting.ids)
        due = sum(i in cards and cards[i].due <= today for i in self.sitting.ids)
        knew, all_ = known(core(), cards)
        said = [f"Tonight {new} new, {due} due", f"core: {knew} of {all_} known on two days"]
        topic = self.question.topic if self.question else self.topic.value
        if topic and " " not in topic:
            of_page = [q for q in core() if q.topic == topic] or pick(topic)
            knew, all_ = known(of_page, cards)
            said.append(f"page {topic[:2]}: {100 * knew / all_:.0f} % known")
        self.plan.value = "; ".join(said) + "."

    def _enable(self) -> None:
        self.show.disabled = self.question is None or self.open
        self.sentence.disabled = self.show.disabled
        self.key.disabled = not self.open
        for mark in self.marks.values():
            mark.disabled = not self.open

    def _ipython_display_(self) -> None:
        rows = [
            ipywidgets.HBox([self.topic, self.level]),
            ipywidgets.HBox([self.minutes, self.day]),
            self.plan,
            self.ahead,
            ipywidgets.HBox([self.next, *self.timer.shown]),
            self.asked,
            ipywidgets.HBox([self.sentence, self.show]),
            self.answer,
            self.status,
            ipywidgets.HBox([self.key, *self.marks.values()]),
        ]
        data = widget_view(ipywidgets.VBox(rows))
        data["text/plain"] = (
            f"[the drill: {len(default())} questions, {len(core())} of them first, "
            f"{SECONDS} seconds each; run the page]"
        )
        display(Bundle(data))


def drill(
    topic: str = "",
    level: str = "",
    seed: int | None = None,
    *,
    minutes: int | None = None,
    interview: str | date | None = None,
) -> Drill:
    """The drill, ready to be shown.

    topic: pages, "06 08", or ids of questions to begin with, "rewards.10 baselines.6". minutes of
    the evening and the day of the interview, "2026-12-13", are remembered in the learner's file.
    seed: for a draw that can be repeated. Raises ValueError for a page, level or day that is none.
    """
    ids = {q.id for q in bank()}
    named = tuple(topic.split())
    first = named if named and set(named) <= ids else ()
    topic = "" if first else topic
    for page in topic.split() or [""]:
        pick(page, level)
    kept = progress.recall("plan", "drill")
    if interview is None:
        day = _kept_day(kept.get("interview"))
    else:
        day = interview if isinstance(interview, date) else interview_day(interview)
    if minutes is None:
        minutes = kept.get("minutes") if isinstance(kept.get("minutes"), int) else MINUTES
    if minutes < CARD:
        raise ValueError(f"drill: minutes is {minutes}; one card takes {CARD}.")
    room = Drill(topic, level, seed, minutes=minutes, interview=day, first=first)
    if day:
        progress.record("plan", "drill", interview=day.isoformat(), minutes=minutes)
    return room


def _kept_day(text: object) -> date | None:
    try:
        return interview_day(text)
    except ValueError:
        return None
