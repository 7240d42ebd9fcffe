"""One question at a time, sixty seconds, then the answer; what one did not know comes back.

    drill()                    every page, every level
    drill(topic="06_ppo", level="onsite", seed=3)

Every control is reached by Tab and pressed by Space. The clock runs in the browser, so nothing in
the kernel waits; how long an answer took is measured from the draw to the reveal.
"""

from __future__ import annotations

import html
import random
import time
from collections.abc import Callable
from datetime import date

from rlnb.classroom import progress
from rlnb.classroom.figures import Bundle
from rlnb.classroom.interview.repetition import GRADES, Card, after, draw, waiting
from rlnb.classroom.notebook_display import display, ipywidgets, spoken_line, tone, widget_view
from rlnb.classroom.questions import LEVELS, Question, bank, pick, topics

__all__ = ["Drill", "drill"]

SECONDS = 60
SAID = {"no": "No", "partly": "Partly", "knew": "I knew it"}


class Drill:
    """The drill's state and its controls. Tests press `draw()`, `reveal()` and `grade("knew")`."""

    def __init__(
        self,
        topic: str = "",
        level: str = "",
        seed: int | None = None,
        *,
        today: Callable[[], date] = date.today,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.dice, self.today, self.clock = random.Random(seed), today, clock
        self.cards = {
            q.id: card for q in bank() if (card := Card.of(progress.recall("question", q.id)))
        }
        self.question: Question | None = None
        self.open, self.began, self.seconds, self.grades = False, 0.0, 0.0, []
        topic = pick(topic)[0].topic if topic else ""
        pages = [("every page", ""), *((t.replace("_", " "), t) for t in topics())]
        self.topic = ipywidgets.Dropdown(options=pages, value=topic, description="page")
        self.level = ipywidgets.Dropdown(
            options=[("every level", ""), *((name, name) for name in LEVELS)],
            value=level,
            description="level",
        )
        self.clock_face = ipywidgets.IntProgress(
            value=0, min=0, max=SECONDS, description="seconds", bar_style=""
        )
        # it only ticks, in the browser; its own buttons would be two more stops for Tab
        self.ticks = ipywidgets.Play(
            value=0, min=0, max=SECONDS, interval=1000, layout=ipywidgets.Layout(display="none")
        )
        ipywidgets.jslink((self.ticks, "value"), (self.clock_face, "value"))
        self.next = _button("Next question", "draws a question and starts the clock", self.draw)
        self.show = _button("Show the answer", "stops the clock", self.reveal)
        self.marks = {
            g: _button(SAID[g], f"grade yourself: {SAID[g]}", lambda g=g: self.grade(g))
            for g in GRADES
        }
        self.asked, self.answer = ipywidgets.HTML(), ipywidgets.HTML()
        self.status = spoken_line("Press Next question. Answer aloud, then look.")
        self._enable()

    @property
    def chosen(self) -> tuple[Question, ...]:
        """The questions under the present filter."""
        return pick(self.topic.value, self.level.value)

    def draw(self) -> Question | None:
        """Ask the next question and start the clock; None when nothing is due."""
        ids = [q.id for q in self.chosen]
        last = self.question.id if self.question else ""
        drawn = draw(ids, self.cards, self.today(), self.dice, last)
        self.question = next((q for q in self.chosen if q.id == drawn), None)
        self.open, self.answer.value = False, ""
        if self.question is None:
            self.asked.value = ""
            self.status.value = "Nothing is due here today: another page or level, or tomorrow."
        else:
            q = self.question
            text = html.escape(q.question)
            self.asked.value = f"<p><b>{text}</b><br>{q.topic.replace('_', ' ')}, {q.level}</p>"
            self.status.value = f"{SECONDS} seconds, aloud: {q.question}"
            self.began = self.clock()
            self.ticks.value, self.ticks.playing = 0, True
        tone(self.status, "quiet")
        self._enable()
        return self.question

    def reveal(self) -> None:
        """Stop the clock and show the answer."""
        if self.question is None or self.open:
            return
        self.ticks.playing = False
        self.open, self.seconds = True, self.clock() - self.began
        q = self.question
        parts = [("60 seconds", q.short), ("If they ask on", q.full), ("A weak answer", q.weak)]
        parts += [(f.ask, f.key) for f in q.follow_ups]
        self.answer.value = "".join(
            f"<p><b>{html.escape(head)}</b> {html.escape(text)}</p>" for head, text in parts
        )
        late = self.seconds > SECONDS
        self.status.value = (
            f"You took {self.seconds:.0f} seconds{': too long' if late else ''}. "
            "Was your first sentence the answer? Grade yourself."
        )
        tone(self.status, "wrong" if late else "quiet")
        self._enable()

    def grade(self, grade: str) -> None:
        """Keep how well it went; the learner's file says when the question comes back."""
        if self.question is None or not self.open:
            return
        card = after(self.cards.get(self.question.id), grade, self.today())
        self.cards[self.question.id] = card
        self.grades.append(grade)
        progress.record("question", self.question.id, grade=grade, **card.facts())
        self.open = False
        new, due, resting = waiting([q.id for q in self.chosen], self.cards, self.today())
        days = (card.due - self.today()).days
        back = "today" if days == 0 else "tomorrow" if days == 1 else f"in {days} days"
        self.status.value = f"It comes back {back}. Here: {new} new, {due} due, {resting} resting."
        tone(self.status, "done" if grade == "knew" else "quiet")
        self._enable()

    def _enable(self) -> None:
        self.show.disabled = self.question is None or self.open or bool(self.answer.value)
        for mark in self.marks.values():
            mark.disabled = not self.open

    def _ipython_display_(self) -> None:
        rows = [
            ipywidgets.HBox([self.topic, self.level]),
            ipywidgets.HBox([self.next, self.show, self.ticks, self.clock_face]),
            self.asked,
            self.answer,
            ipywidgets.HBox(list(self.marks.values())),
            self.status,
        ]
        data = widget_view(ipywidgets.VBox(rows))
        data["text/plain"] = (
            f"[the drill: {len(bank())} questions, {SECONDS} seconds each; run the page]"
        )
        display(Bundle(data))


def drill(topic: str = "", level: str = "", seed: int | None = None) -> Drill:
    """The drill, ready to be shown. seed: for a draw that can be repeated.

    Raises ValueError for a page or level without questions.
    """
    pick(topic, level)
    return Drill(topic, level, seed)


def _button(name: str, tooltip: str, pressed: Callable[[], object]):
    button = ipywidgets.Button(description=name, tooltip=tooltip)
    button.on_click(lambda _: pressed())
    return button
