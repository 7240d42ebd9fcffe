"""Ten functions against the clock, judged by `check`.

    whiteboard()          the ten, folded; a choice; Start shows what is asked and runs the clock
    start("pass_at_k")    the same by a call; again: the clock begins anew
    hand_in(pass_at_k)    judges; the run that passes stops the clock
    whiteboard("batch_loss")    the code round: one long function with faults, and its own clock

One cell below is enough for all ten: `hand_in` goes by the function's name. No clock runs before
the learner starts it, so a page may be run as a whole. The functions are checked exercises of the
course: whoever wrote them on their pages writes them here once more, from memory and in minutes.
"""

from __future__ import annotations

import html
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlnb.classroom import check, progress
from rlnb.classroom.figures import Bundle
from rlnb.classroom.notebook_display import display, ipywidgets, spoken_line, tone, widget_view

__all__ = ["BOARD", "ROUND", "Sheet", "Wall", "hand_in", "start", "whiteboard"]


@dataclass(frozen=True)
class Sheet:
    """One function: what an interviewer would say of it when asked.

    minutes     that it gets
    shapes      of what comes and what goes
    given, gives    one example: the arguments as Python writes them, and the value to 4 digits
    convention  what a good candidate would ask before writing
    slip        what interviewers wait for; said when the function has passed
    """

    name: str
    signature: str
    minutes: int
    shapes: str
    given: str
    gives: str
    convention: str
    slip: str

    @property
    def call(self) -> str:
        """`k3(logprobs, ref_logprobs)`."""
        return f"{self.name}({self.signature})"

    def rows(self) -> tuple[tuple[str, str], ...]:
        """What start() says, line by line."""
        return (
            ("shapes", self.shapes),
            ("example", f"{self.name}({self.given}) gives {self.gives}"),
            ("convention", self.convention),
        )


BOARD = (
    Sheet("token_logprobs", "logits, tokens", 4,
          "logits (B, T, V), tokens (B, T) whole numbers -> (B, T)",
          "[[[1.0, 2.0, 0.0]]], [[0]]", "[[-1.4076]]",
          "the log-prob of each token; logits[:, t] already score tokens[:, t], nothing to shift",
          "labels shifted once too often, or gather along the wrong axis"),
    Sheet("group_advantages", "rewards, num_generations", 4,
          "rewards (B,), the G answers to one prompt side by side; num_generations G -> (B,)",
          "[1.0, 0.0, 0.0, 0.0], 4", "[1.732, -0.5773, -0.5773, -0.5773]",
          "z-scores in each group: population std, plus 1e-6; equal rewards give 0; again (B,)",
          "view(G, -1), or statistics of the whole batch"),
    Sheet("baseline_leave_one_out", "rewards, num_generations", 3,
          "rewards (B,), groups of G side by side -> (B,)",
          "[1.0, 0.0, 0.0, 0.0], 4", "[0.0, 0.3333, 0.3333, 0.3333]",
          "the baseline itself, not reward minus baseline: the mean of the others in the group",
          "divides by G instead of G - 1"),
    Sheet("surrogate_clip", "ratio, advantage, epsilon", 3,
          "ratio and advantage of one shape, epsilon a number -> that shape",
          "[1.5, 0.5], [1.0, 1.0], 0.2", "[1.2, 0.5]",
          "PPO's clipped surrogate per token, to be maximised: no minus, no mean",
          "max where A is negative; one of the two terms not multiplied by A"),
    Sheet("gae", "rewards, values, gamma, lam", 6,
          "rewards (T,), values (T,), two numbers -> (T,)",
          "[0.0, 1.0], [0.5, 0.25], 0.5, 0.5", "[-0.1875, 0.75]",
          "one episode, no mask; it ends after the last token, so the value there is 0",
          "bootstraps past the end"),
    Sheet("k3", "logprobs, ref_logprobs", 2,
          "two tensors of one shape -> that shape",
          "[-1.0], [-0.5]", "[0.1487]",
          "estimates KL(policy, reference) per token; samples came from the policy; no clamp",
          "the log-ratio upside down"),
    Sheet("sequence_ratio", "logprobs, old_logprobs, mask", 4,
          "logprobs, old_logprobs (B, T), mask (B, T) bool -> (B,)",
          "[[-0.2, -1.3]], [[-0.5, -1.2]], [[True, True]]", "[1.1052]",
          "GSPO's ratio, the geometric mean over an answer's tokens; padding may hold nan",
          "padding inside the mean; a sum instead of the mean"),
    Sheet("token_mean", "per_token, mask", 3,
          "per_token (B, T), mask (B, T) bool -> a number",
          "[[1.0, 2.0], [4.0, 9.0]], [[True, True], [True, False]]", "2.3333",
          "one mean over all unmasked tokens of the batch; padding may hold nan or inf",
          "a mean over padding, or a mean of means"),
    Sheet("dpo_loss", "logprobs, ref_logprobs, mask, beta", 5,
          "three times (2 P, T): first the P chosen rows, then the P rejected ones -> a number",
          "[[-1.0], [-3.0]], [[-2.0], [-2.0]], [[True], [True]], 0.5", "0.3133",
          "summed over an answer's tokens, averaged over pairs; minimised; padding may hold nan",
          "means where DPO sums; rejected minus chosen"),
    Sheet("pass_at_k", "n, c, k", 4,
          "n drawn, c of them right, k: three whole numbers -> a number",
          "10, 3, 5", "0.9167",
          "the unbiased estimate from n answers, k at most n; math.comb is allowed",
          "1 - (1 - c/n)^k"),
)  # fmt: skip
ROUND = Sheet(
    "batch_loss", "logprobs, sampled, mask, rewards, num_generations", 20,
    "logprobs, sampled, mask (B, T); rewards (B,), groups side by side -> a number, minimised",
    "[[-1.0], [-1.5]], [[-1.0], [-1.0]], [[True], [True]], [1.0, 0.0], 2", "-0.05",
    "reward minus the group's mean, PPO's clip at 0.2, one mean over the real tokens",
    "the loudest fault is mended, and the three quiet ones stay",
)  # fmt: skip
_SHEETS = {sheet.name: sheet for sheet in (*BOARD, ROUND)}
_BEGAN: dict[str, float] = {}
_TOLD: set[str] = set()  # whose mistake was named since the clock began


def _sheet(name: str, caller: str) -> Sheet:
    if name not in _SHEETS:
        raise ValueError(
            f"{caller}: no function {name!r} is on the board; there are {', '.join(_SHEETS)}."
        )
    return _SHEETS[name]


def start(function: str | Callable[..., Any], clock: Callable[[], float] = time.monotonic) -> None:
    """Print what a function gets, returns and assumes, and start its clock; again: anew.

    function: its name, or the function. Raises ValueError for one that is not on the board.
    """
    name = function if isinstance(function, str) else function.__name__
    sheet = _sheet(name, "start")
    print(sheet.call)
    for head, text in sheet.rows():
        print(f"  {head:11}{text}")
    print(f"The clock runs: {sheet.minutes} minutes. hand_in({name}) stops it.")
    _BEGAN[name] = clock()
    _TOLD.discard(name)


def hand_in(function: Callable[..., Any], clock: Callable[[], float] = time.monotonic):
    """Judge a function by its name; say how long it took. Returns the verdict of the check, or
    nothing for a function that has no line yet: a page may be run as a whole.

    What failed is printed whole: the arguments, and the error with the learner's line. Raises
    ValueError for a function that is not on the board.
    """
    name = function.__name__
    sheet = _sheet(name, "hand_in")
    now = clock()
    verdict = getattr(check, name)(function)
    if verdict.kind == "not attempted":
        return None if _is_empty(function) else verdict
    if verdict.kind == "known mistake":
        _TOLD.add(name)
    if verdict.probe is not None and not verdict.passed:
        print(_shown(function, verdict.probe, verdict.kind == "raised"))
    if not progress.is_kept():  # a built page says the same for everybody
        return verdict
    if name not in _BEGAN:
        print("No clock ran: Start the clock, above, sets one.")
        return verdict
    minutes = (now - _BEGAN[name]) / 60
    if verdict.passed:
        del _BEGAN[name]
        late = "" if minutes <= sheet.minutes else f", {sheet.minutes} were planned"
        slip = "" if name in _TOLD else f" The usual slip: {sheet.slip}."
        print(f"{minutes:.1f} minutes{late}.{slip}")
        best = progress.recall("whiteboard", name).get("minutes", minutes)
        progress.record("whiteboard", name, minutes=round(min(minutes, best), 2))
    else:
        print(f"{minutes:.1f} of {sheet.minutes} minutes.")
    return verdict


def _blank() -> None: ...


def _is_empty(function: Callable[..., Any]) -> bool:
    """Whether its body is still `...`."""
    return function.__code__.co_code == _blank.__code__.co_code


def _shown(function: Callable[..., Any], probe: Mapping[str, Any], raised: bool) -> str:
    """The arguments that show it, and for an error its last line in the learner's function."""
    lines = ["It was called with"]
    for name, value in probe.items():
        told = value.tolist() if hasattr(value, "tolist") else value
        lines.append(f"  {name} = {told}")
    if raised:
        try:
            function(*probe.values())
        except Exception as error:
            name = function.__code__.co_filename
            own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == name]
            lines += [f"  line {f.lineno} of the cell: {f.line}" for f in own[-1:]]
            lines.append(f"{type(error).__name__}: {error}")
    return "\n".join(lines)


class Wall:
    """A choice of the function, Start, and the clock; Tab reaches each, Space presses."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        names: tuple[str, ...] = tuple(sheet.name for sheet in BOARD),
    ):
        self.clock = clock
        self.name = ipywidgets.Dropdown(options=list(names), description="function")
        self.begin = ipywidgets.Button(
            description="Start the clock", tooltip="shows what is asked and starts the clock anew"
        )
        self.face = ipywidgets.IntText(
            value=0, description="seconds", disabled=True, layout=ipywidgets.Layout(width="10em")
        )
        self.ticks = ipywidgets.Play(
            value=0, min=-1, max=3600, interval=1000, layout=ipywidgets.Layout(display="none")
        )
        ipywidgets.jslink((self.ticks, "value"), (self.face, "value"))
        self.asked = ipywidgets.HTML()
        self.status = spoken_line("Choose a function and press Start the clock.")
        self.begin.on_click(lambda _: self.run())

    def run(self) -> None:
        """Show what the chosen function is asked, and start its clock."""
        sheet = _SHEETS[self.name.value]
        rows = "".join(f"<br><b>{h}:</b> {html.escape(t)}" for h, t in sheet.rows())
        self.asked.value = f"<p><b>write:</b> <code>def {sheet.call}:</code>{rows}</p>"
        self.status.value = f"{sheet.minutes} minutes from now. hand_in({sheet.name}) stops it."
        tone(self.status, "quiet")
        _BEGAN[sheet.name] = self.clock()
        _TOLD.discard(sheet.name)
        self.ticks.playing, self.ticks.value = False, -1  # its first tick comes at once
        self.ticks.playing = True

    def _ipython_display_(self) -> None:
        row = ipywidgets.HBox([self.name, self.begin, self.ticks, self.face])
        # what is asked and the clock stand last: right above the cell one writes in
        data = widget_view(ipywidgets.VBox([self.asked, row, self.status]))
        data["text/plain"] = "[the clock: choose a function and start it; run the page]"
        display(Bundle(data))


def whiteboard(function: str = "") -> Wall:
    """Show the ten functions with what each is asked, in one fold; then the clock's controls.

    function: the clock of this one alone. Raises ValueError for one that is not on the board.
    """
    if function:
        return Wall(names=(_sheet(function, "whiteboard").name,))
    each = "\n\n".join(
        f"<details><summary><code>{s.call}</code> · {s.minutes} minutes</summary>\n\n"
        + "\n".join(f"- **{head}:** {_markdown(said)}" for head, said in s.rows())
        + "\n\n</details>"
        for s in BOARD
    )
    text = (
        "<details><summary>The ten, each with its shapes and an example</summary>\n\n"
        f"{each}\n\n</details>"
    )
    plain = "\n".join(f"{s.call}: {s.convention}; {s.minutes} minutes" for s in BOARD)
    display(Bundle({"text/markdown": text, "text/plain": plain}))
    return Wall()


def _markdown(text: str) -> str:
    return text.replace("[[", "[ [").replace("<", "\\<").replace(">", "\\>").replace("_", "\\_")
