"""What the drill, the mock interview and the whiteboard have on their desk: a clock, a text box.

Everything works by Tab, Space and Enter, and nothing in the kernel waits: the clock ticks in the
browser, and what is measured is the time between two presses.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable

from rlnb.classroom.interview.cards import typeset
from rlnb.classroom.notebook_display import ipywidgets
from rlnb.classroom.questions import first_sentence

__all__ = ["Timer", "beside", "button", "focus", "heard", "line", "paragraphs"]


class Timer:
    """A bar and a number that run for some seconds; `start(90)`, and `stop()` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.clock, self.limit = clock, 60
        self.began: float | None = None
        self.bar = ipywidgets.IntProgress(
            value=0, min=0, max=60, layout=ipywidgets.Layout(width="12em")
        )
        self.number = ipywidgets.IntText(
            value=0,
            description="seconds",
            disabled=True,
            style={"description_width": "5em"},
            layout=ipywidgets.Layout(width="9em"),
        )
        # it only ticks, in the browser; its own buttons would be two more stops for Tab
        self.ticks = ipywidgets.Play(
            value=0, min=-1, max=600, interval=1000, layout=ipywidgets.Layout(display="none")
        )
        ipywidgets.jslink((self.ticks, "value"), (self.bar, "value"))
        ipywidgets.jslink((self.ticks, "value"), (self.number, "value"))

    def start(self, limit: int) -> None:
        """Run from 0; the bar is full at `limit` seconds and the number goes on."""
        self.limit, self.bar.max, self.began = limit, limit, self.clock()
        self.ticks.playing = False
        self.ticks.value, self.ticks.playing = -1, True  # its first tick comes at once

    def stop(self) -> float:
        """Seconds since the start; bar and number stand still, and say what is returned."""
        self.ticks.playing = False
        took = self.clock() - self.began if self.began is not None else 0.0
        self.began, self.ticks.value = None, min(int(took), self.ticks.max)
        return took

    @property
    def shown(self) -> tuple:
        """Its controls, for a row."""
        return self.ticks, self.bar, self.number


def button(name: str, tooltip: str, pressed: Callable[[], object]):
    """A button that calls `pressed` without arguments."""
    made = ipywidgets.Button(
        description=name, tooltip=tooltip, layout=ipywidgets.Layout(width="auto")
    )
    made.on_click(lambda _: pressed())
    return made


def line(name: str, placeholder: str, entered: Callable[[], object]):
    """A text box; Enter calls `entered`, also when nothing was written."""
    made = ipywidgets.Text(
        description=name,
        placeholder=placeholder,
        style={"description_width": "8em"},
        layout=ipywidgets.Layout(width="50em", max_width="98%"),
    )
    if hasattr(made, "on_msg"):
        made.on_msg(lambda _, said, __: entered() if said.get("event") == "submit" else None)
    return made


def heard():
    """A text that may be long and that screen readers announce when it changes."""
    made = ipywidgets.HTML()
    made.add_class("rlnb-said")
    return made


def focus(control) -> None:
    """Put the keyboard on a control, where the front end can."""
    if hasattr(control, "focus"):
        control.focus()


def paragraphs(*parts: tuple[str, str]) -> str:
    """(head, text) as HTML paragraphs, the head in bold with a colon."""
    return "".join(
        f"<p><b>{html.escape(head)}:</b> {typeset(text)}</p>" for head, text in parts if text
    )


def beside(own: str, key: str) -> str:
    """One's own first sentence beside the key's, as a table of two columns."""
    first = first_sentence(key)
    rest = key[len(first) :].strip()
    own = typeset(own) if own.strip() else "<i>nothing written</i>"
    cell = '<td style="vertical-align:top;width:50%;padding:0 1em 0 0;white-space:normal">'
    return (
        f'<table style="width:100%;table-layout:fixed"><tr>{cell}<b>You:</b> {own}</td>'
        f"{cell}<b>Key:</b> {typeset(first)}</td></tr></table>"
        f"<p>{typeset(rest)}</p>"
    )
