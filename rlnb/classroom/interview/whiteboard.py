"""Ten functions against the clock, judged by `check`.

    hand_in(gae)      the first run starts the clock, the run that passes stops it

The functions are checked exercises of the course: whoever wrote them on their pages writes them
here once more, from memory and in minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlnb.classroom import check, progress
from rlnb.classroom.figures import Bundle
from rlnb.classroom.notebook_display import display

__all__ = ["BOARD", "Sheet", "hand_in", "whiteboard"]


@dataclass(frozen=True)
class Sheet:
    """One function: its minutes, and the slip that interviewers wait for."""

    name: str
    signature: str
    minutes: int
    returns: str
    slip: str


BOARD = (
    Sheet("token_logprobs", "logits, tokens", 4, "the log-prob of each token",
          "labels not shifted, or gather along the wrong axis"),
    Sheet("group_advantages", "rewards, num_generations", 4, "(B,) z-scores per group",
          "view(G, -1), or statistics of the whole batch"),
    Sheet("baseline_leave_one_out", "rewards, num_generations", 3, "(B,) mean of the others",
          "divides by G instead of G - 1"),
    Sheet("surrogate_clip", "ratio, advantage, epsilon", 3, "PPO's clipped surrogate, maximised",
          "max where A is negative; one of the two terms not multiplied by A"),
    Sheet("gae", "rewards, values, gamma, lam", 6, "(T,) advantages; V after the end is 0",
          "bootstraps past the end"),
    Sheet("k3", "logprobs, ref_logprobs", 2, "the estimator per token",
          "the log-ratio upside down"),
    Sheet("sequence_ratio", "logprobs, old_logprobs, mask", 4, "(B,) GSPO's ratio",
          "padding inside the mean; a sum instead of the mean"),
    Sheet("token_mean", "per_token, mask", 3, "one mean over all unmasked tokens",
          "a mean over padding, or a mean of means"),
    Sheet("dpo_loss", "logprobs, ref_logprobs, mask, beta", 5, "the loss; chosen rows first",
          "means where DPO sums; rejected minus chosen"),
    Sheet("pass_at_k", "n, c, k", 4, "the unbiased estimate", "1 - (1 - c/n)^k"),
)  # fmt: skip
_BEGAN: dict[str, float] = {}


def whiteboard() -> None:
    """Show the ten functions, what each returns and the minutes it gets."""
    rows = [f"| `{s.name}({s.signature})` | {s.returns} | {s.minutes} |" for s in BOARD]
    text = "\n".join(("| write | which returns | minutes |", "|---|---|---|", *rows))
    plain = "\n".join(f"{s.name}({s.signature}): {s.returns}; {s.minutes} minutes" for s in BOARD)
    display(Bundle({"text/markdown": text, "text/plain": plain}))


def hand_in(function: Callable[..., Any], clock: Callable[[], float] = time.monotonic):
    """Judge a function by its name; say how long it took. Returns the verdict of the check.

    Raises ValueError for a function that is not on the board.
    """
    name = function.__name__
    sheet = next((s for s in BOARD if s.name == name), None)
    if sheet is None:
        raise ValueError(
            f"hand_in: no function {name!r} is on the board; there are "
            f"{', '.join(s.name for s in BOARD)}."
        )
    now = clock()
    began = _BEGAN.setdefault(name, now)
    verdict = getattr(check, name)(function)
    if not progress.is_kept():  # a built page says the same for everybody
        return verdict
    minutes = (now - began) / 60
    if verdict.passed:
        del _BEGAN[name]
        late = "" if minutes <= sheet.minutes else f", {sheet.minutes} were planned"
        print(f"{minutes:.1f} minutes{late}. The usual slip: {sheet.slip}.")
        best = progress.recall("whiteboard", name).get("minutes", minutes)
        progress.record("whiteboard", name, minutes=round(min(minutes, best), 2))
    elif now == began:
        print(f"The clock runs: {sheet.minutes} minutes.")
    else:
        print(f"{minutes:.1f} of {sheet.minutes} minutes.")
    return verdict
