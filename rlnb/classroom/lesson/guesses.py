"""The learner commits before the page shows.

    predict("ppo.1", "How many does it silence?", ["8", "6", "4", "2"])
    ...
    reveal("ppo.1", "4", "Three good tokens that rose and a bad one that fell.", picture,
           instead={"8": "that would be every token outside the band"})

`predict` leaves the question as text and buttons beside it. `reveal` leaves the answer, folded for
a reader without a kernel. In a live session it waits: until the learner has pressed a button the
cell says so, and when they press, it opens by itself, however many cells further down it stands.
So "Run All" spoils nothing. Once open, a guess no longer changes.
"""

from __future__ import annotations

import html
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlnb.classroom import progress
from rlnb.classroom.figures import Bundle, Picture
from rlnb.classroom.notebook_display import (
    HAS_JUPYTER,
    display,
    ipywidgets,
    spoken_line,
    tone,
    widget_view,
)

__all__ = ["predict", "reveal", "score"]

LETTERS = "abcdefgh"
CLOSE = 0.1  # a guessed number this near, relatively, counts as right
_counts: dict[tuple[str, ...], Any] = {}  # keys -> the line of a score that stands on the page


@dataclass
class Question:
    """One guess: what was asked, and who waits for the answer."""

    key: str
    text: str
    options: tuple[str, ...]  # empty when a number is asked for
    unit: str = ""
    close: float = CLOSE
    waiting: list[Callable[[], None]] = field(default_factory=list)

    @property
    def facts(self) -> dict:
        """What the learner's file says of it."""
        return progress.recall("guess", self.key)

    @property
    def guess(self) -> str | float | None:
        """What was said; None before that, and when it is none of today's options."""
        said = self.facts.get("guess")
        if self.options:
            return said if said in self.options else None
        return said if isinstance(said, int | float) else None

    def keep(self, said: str | float) -> bool:
        """Write the guess down, once, and open whatever waited for it."""
        if self.guess is not None and self.facts.get("closed"):
            return False
        progress.record("guess", self.key, guess=said)
        for open_answer in self.waiting:
            open_answer()
        return True


_ASKED: dict[str, Question] = {}


def predict(
    key: str, question: str, options: Sequence[str] = (), *, unit: str = "", close: float = CLOSE
) -> None:
    """Ask for a guess: one of `options`, or a number when there are none.

    key: the page's name and a number, "ppo.1". unit: shown beside a number's field, "nats".
    close: how far off, relatively, a number may be and count as right.
    Raises ValueError for a key without a dot, one option, or more options than letters.
    """
    if "." not in key:
        raise ValueError(
            f"predict: key must be a page's name and a number like 'ppo.1', got {key!r}."
        )
    if len(options) == 1 or len(options) > len(LETTERS) or len(set(options)) != len(options):
        raise ValueError(
            f"predict({key!r}): give 2 to {len(LETTERS)} different options, or none to ask for a "
            f"number; got {list(options)}."
        )
    asked = Question(key, question, tuple(options), unit, close)
    if key in _ASKED:  # asked again: an answer that waits goes on waiting
        asked.waiting = _ASKED[key].waiting
    _ASKED[key] = asked
    lines = [f"**Your guess.** {question}", ""]
    lines += [f"- **{LETTERS[i]}** · {option}" for i, option in enumerate(options)]
    if not options:
        lines.append(f"- a number{f', in {unit}' if unit else ''}")
    # live, the buttons say the options; formulas do not fit on a button
    twice = _is_live() and not any("$" in option for option in options)
    _say("\n".join(lines[:1] if twice else lines), _plain(lines))
    _show(_buttons(asked) if options else _number(asked), "[your guess: run the page to make one]")


def reveal(
    key: str,
    right: str | float,
    because: str = "",
    *pictures: Picture,
    instead: Mapping[str, str] | None = None,
) -> None:
    """The answer to a guess, with the pictures that belong to it.

    right: one of the options, or the number. The text is the same for everybody. instead: for a
    wrong option, a sentence to whoever chose it, what is true in it and where it breaks. Raises
    ValueError when nothing was asked under this key, `right` is none of its options, or `instead`
    speaks of something that was no wrong option.
    """
    if key not in _ASKED:
        raise ValueError(
            f"reveal({key!r}): nothing was asked under this key; run its predict first."
        )
    asked = _ASKED[key]
    if asked.options and right not in asked.options:
        raise ValueError(f"reveal({key!r}): {right!r} is none of {list(asked.options)}.")
    if not asked.options and not isinstance(right, int | float):
        raise ValueError(f"reveal({key!r}): a number was asked for, got {right!r}.")
    instead = dict(instead or {})
    if strange := [option for option in instead if option not in asked.options or option == right]:
        raise ValueError(
            f"reveal({key!r}): instead has {strange[0]!r}, which is no wrong option; those are "
            f"{[option for option in asked.options if option != right]}."
        )
    answer = _answer(asked, right, because, instead)
    if not _is_live():
        display(answer)
        for picture in pictures:
            display(picture)
        return
    _Waiting(asked, right, answer, pictures, instead)


def score(*keys: str) -> None:
    """How many of these guesses were right, for this learner only; it follows later guesses."""
    _counts[keys] = spoken_line()
    _count_again()
    _show(_counts[keys], "[your guesses, counted: run the page]")


def _count_again() -> None:
    for keys, line in _counts.items():
        line.value = _counted(keys)


def _counted(keys: Sequence[str]) -> str:
    facts = [progress.recall("guess", key) for key in keys]
    made = [f for f in facts if f.get("guess") is not None and "right" in f]
    right = sum(bool(f["right"]) for f in made)
    return (
        f"Your guesses here: {right} right, {len(made) - right} wrong, "
        f"{len(keys) - len(made)} not made. The wrong ones are worth keeping."
    )


class _Waiting:
    """An answer that opens when the guess is made, wherever on the page it stands."""

    def __init__(self, asked, right, answer, pictures, instead):
        self.asked, self.right, self.answer, self.opened = asked, right, answer, False
        self.instead = instead
        shown = [answer, *(bundle for picture in pictures for bundle in picture.bundles())]
        self.places = [(uuid.uuid4().hex, bundle) for bundle in shown]
        closed = _markdown("*The answer opens here as soon as you have made your guess above.*")
        nothing = _markdown("")
        self.handles = [
            display(closed if i == 0 else nothing, display_id=place)
            for i, (place, _) in enumerate(self.places)
        ]
        self.said = spoken_line()
        _show(self.said, "[your guess beside it]")
        if asked.guess is None:
            asked.waiting.append(self.open)
        else:
            self.open()

    def open(self) -> None:
        if self.opened:
            return
        self.opened = True
        for handle, (_, bundle) in zip(self.handles, self.places, strict=True):
            handle.update(bundle)
        guess = self.asked.guess
        right = _is_right(guess, self.right, self.asked.close)
        progress.record("guess", self.asked.key, closed=True, right=right)
        if right:
            self.said.value, color = f"You said so: {_worded(self.asked, guess)}.", "done"
        else:
            said = _worded(self.asked, guess)
            reply = self.instead.get(guess, "In one sentence: what had you overlooked?")
            self.said.value = f"You said: {said}. {_plain([reply])}"
            color = "wrong"
        tone(self.said, color)
        _count_again()


def _is_live() -> bool:
    """There are buttons, and what is pressed is remembered."""
    return HAS_JUPYTER and progress.is_kept()


def _is_right(guess: str | float | None, right: str | float, close: float) -> bool:
    if isinstance(guess, int | float) and isinstance(right, int | float):
        return abs(guess - right) <= close * max(abs(right), 1e-12)
    return guess == right


def _worded(asked: Question, said: str | float | None) -> str:
    """'b, about 1.23' or '3.6 nats'."""
    if said in asked.options:
        return f"{LETTERS[asked.options.index(str(said))]}, {said}"
    return f"{said} {asked.unit}".strip()


def _answer(
    asked: Question, right: str | float, because: str, instead: Mapping[str, str]
) -> Bundle:
    """Folded for a reader who has no kernel; open in a live session, where the guess came first.

    There the sentence to a wrong guess stands beside it; a reader without a kernel gets them all.
    """
    text = f"**{_worded(asked, right)}.** {because}".strip()
    if _is_live():
        return _markdown(text)
    if instead:
        said = (
            f"- *Had you said {_worded(asked, option)}?* {instead[option]}" for option in instead
        )
        text += "\n\n" + "\n".join(said)
    folded = f"<details><summary>The answer</summary>\n\n{text}\n\n</details>"
    return Bundle({"text/markdown": folded, "text/plain": _plain([text])})


def _buttons(asked: Question):
    closed = bool(asked.facts.get("closed")) and asked.guess is not None
    names = [
        (f"{LETTERS[i]} · {_plain([option])}", option) for i, option in enumerate(asked.options)
    ]
    buttons = ipywidgets.ToggleButtons(
        options=names,
        value=asked.guess,
        disabled=closed,
        description="",
        style={"button_width": "auto"},
        layout=ipywidgets.Layout(width="100%"),
    )
    note = spoken_line(
        "Your guess is kept; the answer has been opened."
        if closed
        else "Press one before you go on."
        if asked.guess is None
        else "Kept."
    )

    def pressed(change) -> None:
        if change["new"] is None:
            return
        kept = asked.keep(change["new"])
        note.value = "Kept." if kept else "Too late: the answer is open."
        buttons.disabled = bool(asked.facts.get("closed"))

    buttons.observe(pressed, "value")
    return ipywidgets.VBox([buttons, note])


def _number(asked: Question):
    before = asked.guess
    typed = ipywidgets.Text(
        value="" if before is None else f"{before:g}",
        description="your number",
        style={"description_width": "initial"},
        placeholder="type it and press Enter",
        continuous_update=False,
        disabled=before is not None and bool(asked.facts.get("closed")),
    )
    note = spoken_line(asked.unit)

    def entered(change) -> None:
        text = change["new"].strip().replace("−", "-").rstrip("%")
        try:
            said = float(text)
        except ValueError:
            note.value = f"{text!r} is no number; write it like 0.25."
            return
        kept = asked.keep(said)
        note.value = "Kept." if kept else "Too late: the answer is open."
        typed.disabled = bool(asked.facts.get("closed"))

    typed.observe(entered, "value")
    return ipywidgets.HBox([typed, note])


def _plain(lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    for mark in ("**", "$", "\\"):
        text = text.replace(mark, "")
    return html.unescape(text)


def _markdown(text: str) -> Bundle:
    return Bundle({"text/markdown": text, "text/plain": _plain([text])})


def _say(markdown: str, plain: str) -> None:
    display(Bundle({"text/markdown": markdown, "text/plain": plain}))


def _show(widget, plain: str) -> None:
    """A widget with words for readers who cannot see it."""
    data = widget_view(widget)
    data["text/plain"] = plain
    display(Bundle(data))
