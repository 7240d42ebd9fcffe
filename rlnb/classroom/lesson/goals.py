"""An explorer with something to do: the page knows when it is done.

    task("ppo.t", explorers.token_gates_explorer(),
         ("Give the good token at 1.25 its gradient back, and no other.", goal))

A goal is a sentence and a predicate on the explorer's data. Its line turns green when the predicate
holds, and stays green: the learner's file remembers. The sentences are text, the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlnb.classroom import progress
from rlnb.classroom.explorer import Explorer
from rlnb.classroom.figures import Bundle
from rlnb.classroom.notebook_display import display, ipywidgets, spoken_line, tone, widget_view

__all__ = ["Goal", "Task", "task"]

Goal = tuple[str, Callable[[Any], bool]]


class Task:
    """An explorer, its goals, and which of them have been reached. `solved` is for tests."""

    def __init__(self, key: str, explorer: Explorer, goals: tuple[Goal, ...]):
        self.key, self.explorer, self.goals = key, explorer, goals
        before = progress.recall("task", key)
        self.solved = [bool(before.get(str(i))) for i in range(1, len(goals) + 1)]
        self.lines = [spoken_line() for _ in goals]
        for line in self.lines:
            line.layout.margin = "0 24px 0 0"
        explorer.listeners.append(self._look)
        self._look(explorer.data)

    def _look(self, data: Any) -> None:
        for i, (_, reached) in enumerate(self.goals):
            if not self.solved[i] and bool(reached(data)):
                self.solved[i] = True
                progress.record("task", self.key, **{str(i + 1): True})
            done = self.solved[i]
            self.lines[i].value = (
                f"Task {i + 1}: that's it ✔" if done else f"Task {i + 1}: not yet ○"
            )
            tone(self.lines[i], "done" if done else "quiet")

    def _ipython_display_(self) -> None:
        several = len(self.goals) > 1
        text = "\n\n".join(
            f"**Task{f' {i}' if several else ''}.** {sentence}"
            for i, (sentence, _) in enumerate(self.goals, start=1)
        )
        plain = text.replace("**", "").replace("$", "").replace("\\", "")
        display(Bundle({"text/markdown": text, "text/plain": plain}))
        # one row for all: three lines more would push the picture off a laptop's screen
        data = widget_view(ipywidgets.HBox(self.lines))
        data["text/plain"] = "[a line per task, green when it is done: run the page]"
        display(Bundle(data))
        display(self.explorer)


def task(key: str, explorer: Explorer, *goals: Goal) -> Task:
    """Show `explorer` under its goals, pairs (sentence, predicate on `explorer.data`).

    Raises ValueError for a key without a dot, no goal, or a goal that holds before anything moved.
    """
    if "." not in key:
        raise ValueError(f"task: key must be a page's name and more, like 'ppo.t', got {key!r}.")
    if not goals:
        raise ValueError(f"task({key!r}): a task needs at least one goal (sentence, predicate).")
    for sentence, reached in goals:
        if reached(explorer.data):
            raise ValueError(f"task({key!r}): {sentence!r} holds before anything has moved.")
    return Task(key, explorer, goals)
