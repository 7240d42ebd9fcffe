"""The answers a run was trained on, token by token: what was paid, and how hard each is pushed.

The answers are a recording that ships with the course; nothing is sampled here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Polygon

from rlnb.classroom.cached_text import LARGE, MONO, Letters, letter_width, points
from rlnb.classroom.explorer import Explorer, choice, choice_slider, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing, one_of
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, POSITIVE, signed
from rlnb.training import data_folder, read

__all__ = [
    "RUN",
    "alt",
    "build",
    "compute",
    "harmless_blamed",
    "readout",
    "right_steps_wrong_end",
    "rollouts_explorer",
    "slips",
    "steps",
    "update",
]

RUN = "chain_rollouts_seed0"
PROMPTS, ANSWERS = 2, 8
UNIT = 1e-5  # weights are shown in this unit
TOP = 10.0  # of the colour scale: |A| = 0.92 in a batch of 128 answers and L = 72
LINE, LONGEST = 20, 72  # tokens in a line of the picture, and in the longest answer
SHOW = {"weight": "push on log π", "logit": "push on the token's own logit"}
BUTTONS = {"weight": "log π", "logit": "its own logit"}
STEP = re.compile(r"(\d)([-+*])(\d)=(\d)")
RULES = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
DIVERGING = LinearSegmentedColormap.from_list("push", [NEGATIVE, "#FFFFFF", POSITIVE])
CAPTION = (
    "Eight answers to one problem, recorded on a CPU, seed 0; below, the tokens of one of them. "
    "Blue makes a token likelier, orange less likely, white is not pushed."
)


@lru_cache
def _groups() -> dict[int, list[list[dict[str, Any]]]]:
    """{step: prompts x answers} of the recording."""
    out: dict[int, list[list[dict[str, Any]]]] = {}
    for record in read(data_folder() / "runs" / f"{RUN}.jsonl"):
        if record["record"] == "rollout":
            rows = out.setdefault(record["step"], [[]])
            if len(rows[-1]) == ANSWERS:
                rows.append([])
            rows[-1].append(record)
    return out


def steps() -> tuple[int, ...]:
    """The steps whose answers were recorded."""
    return tuple(_groups())


@echoing
@checked(prompt=between(1, PROMPTS), answer=between(1, ANSWERS), show=one_of(SHOW))
def compute(step: int = 1, prompt: int = 1, answer: int = 1, show: str = "weight") -> dict:
    """One recorded group of eight answers, and the push on every token of one of them.

    prompt 1 or 2 and answer 1 ... 8 count as on the controls. `push` (T,) is positive where the
    update makes the token likelier:

        weight   -dL/dlogp            what the objective says of the token
        logit    -dL/dlogp (1 - p)    what arrives at the token's own logit: d log p/d logit = 1 - p

    Returns also the group's `texts`, `rewards`, `advantages`, the answer's `tokens` and their
    probabilities `p` (T,). Raises ValueError for an entry there is not.

    >>> d = compute(1, 1, 2)
    >>> d["tokens"], d["reward"], d["advantage"]
    (['so', '0', '<eos>'], 0.0, -0.5)
    """
    groups = _groups()
    if step not in groups:
        raise ValueError(f"step must be one of {list(groups)}, the recorded ones, got {step}.")
    group = groups[step][prompt - 1]
    chosen = group[answer - 1]
    p = np.exp(np.array(chosen["logprobs"]))
    push = -np.array(chosen["gradient"])
    return {
        "prompt": chosen["prompt"],
        "texts": [
            "".join(row["tokens"][:-1]) if row["tokens"][-1] == "<eos>" else "".join(row["tokens"])
            for row in group
        ],
        "rewards": [row["reward"] for row in group],
        "advantages": [row["advantage"] for row in group],
        "tokens": chosen["tokens"],
        "p": p,
        "push": push * (1 - p) if show == "logit" else push,
        "reward": chosen["reward"],
        "advantage": chosen["advantage"],
    }


def _written(value: float) -> str:
    """A push in units of UNIT, as short as a cell of the picture needs it."""
    value /= UNIT
    return "0" if abs(value) < 0.05 else signed(value, 1)


def slips(text: str) -> list[bool]:
    """For each written step of an answer, whether its result is wrong modulo 10.

    >>> slips("4+3=7,7-8=9so9"), slips("4+3=1,1-8=3so3"), slips("so9")
    ([False, False], [True, False], [])
    """
    return [
        RULES[op](int(a), int(b)) % 10 != int(c) for a, op, b, c in STEP.findall(text)
    ]  # fmt: skip


def right_steps_wrong_end(data) -> bool:
    """A wrong answer that writes steps, and every step is right."""
    found = slips(data["texts"][data["answer"] - 1])
    return data["reward"] == 0 and bool(found) and not any(found)


def harmless_blamed(data) -> bool:
    """A wrong answer whose `wait` is pushed down nearly as hard, at its logit, as the slip."""
    if data["show"] != "logit" or data["reward"]:
        return False
    hard = np.abs(data["push"])
    waits = [h for h, token in zip(hard, data["tokens"], strict=True) if token == "wait"]
    return bool(waits) and max(waits) > 0.9 * hard.max()


# Places are CSS pixels from the upper left corner. A cell is five fixed-width letters wide.
SIZE = (900, 396)
LEFT, CELL, PITCH, LETTERS = 18.0, 37.0, 42.0, 5
TOP_OF_CELLS = 186.0
HEAD = "reward  advantage  "


def _cells(count: int) -> list[list[tuple[float, float]]]:
    """Four corners for each of the first `count` tokens."""
    out, width = [], LETTERS * letter_width(LARGE)
    for line, column in (divmod(i, LINE) for i in range(count)):
        x, y, w = LEFT + width * column, TOP_OF_CELLS + PITCH * line, width * 0.94
        out.append([(x, y), (x + w, y), (x + w, y + CELL), (x, y + CELL)])
    return out


def _row(i: int) -> float:
    """The middle of the i-th answer's line."""
    return 36 + 18.5 * i


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, SIZE[0]), ylim=(SIZE[1], 0))
    axes.axis("off")
    typed = {"family": MONO, "size": points(LARGE), "va": "center"}
    axes.text(LEFT, 14, HEAD, color=GREY, **typed)
    for i in range(9):  # the legend, with numbers
        value = TOP * (i - 4) / 4
        x = 392 + 55.5 * i
        box = [(x, 362), (x + 51, 362), (x + 51, 388), (x, 388)]
        axes.add_patch(Polygon(box, fc=_colour(value * UNIT), ec=GREY, linewidth=0.6))
        axes.text(x + 25.5, 375, _written(value * UNIT), fontsize=10.5, ha="center", va="center")
    axes.text(LEFT, 375, "push, in units of 0.00001 (no number: below 0.05)", fontsize=10.5,
              va="center")  # fmt: skip
    cells = PolyCollection([], edgecolors=GREY, linewidths=0.6)
    return {
        "marker": axes.plot([LEFT - 9], [36], ">", color=BLACK, ms=7, clip_on=False)[0],
        "title": axes.text(
            LEFT + letter_width(LARGE) * len(HEAD), 14, "", fontweight="bold", **typed
        ),
        "cells": axes.add_collection(cells),
        "letters": axes.add_artist(Letters(LARGE)),
    }


def _colour(push: float):
    return DIVERGING(0.5 + 0.5 * max(-1.0, min(1.0, push / UNIT / TOP)))


def _spread(words: list[str]) -> list[str]:
    """A text for each line of cells, every word in the middle of its five letters, or near it."""
    placed = [
        word.ljust(LETTERS) if len(word) == LETTERS - 1 else word.center(LETTERS) for word in words
    ]
    return ["".join(placed[i : i + LINE]) for i in range(0, LONGEST, LINE)]


def readout(data) -> str:
    """The answer that is shown, and the push that colours it."""
    verdict = "right" if data["reward"] else "wrong"
    text = (
        f"Answer {data['answer']}, {verdict}: advantage {signed(data['advantage'], 3)}, "
        f"{len(data['tokens'])} tokens. Shown: {SHOW[data['show']]}"
    )
    return text + (", times 1 − π." if data["show"] == "logit" else ".")


def update(artists, data):
    """The figure moved to new data."""
    artists["title"].set_text(f"step {data['step']}   {data['prompt']}")
    artists["marker"].set_ydata([_row(data["answer"] - 1)])
    rows = zip(data["texts"], data["rewards"], data["advantages"], strict=True)
    written = [
        (LEFT, _row(i), f"{reward:^6.0f}  {signed(advantage, 3):^9s}  {text}")
        for i, (text, reward, advantage) in enumerate(rows)
    ]
    artists["cells"].set_verts(_cells(len(data["tokens"])))
    artists["cells"].set_facecolor([_colour(x) for x in data["push"]])
    numbers = [_written(x) for x in data["push"]]
    for below, words in (
        (11, [t.replace("<eos>", "end") for t in data["tokens"]]),
        (27, ["" if n == "0" else n for n in numbers]),
    ):
        written += [
            (LEFT + 2, TOP_OF_CELLS + PITCH * i + below, text)
            for i, text in enumerate(_spread(words))
        ]
    artists["letters"].lines = [(x, y, text, BLACK, "left") for x, y, text in written]


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    strongest = int(np.abs(data["push"]).argmax())
    group = ", ".join(
        f"{r:.0f} ({signed(a, 3)})"
        for r, a in zip(data["rewards"], data["advantages"], strict=True)
    )
    return (
        f"Recorded group at step {data['step']}, prompt {data['prompt']} Rewards (advantages): "
        f"{group}. {readout(data)} Its tokens: {' '.join(data['tokens'])}. Strongest push: "
        f"{_written(data['push'][strongest])} times 0.00001 on token {strongest + 1}, "
        f"“{data['tokens'][strongest]}”, of probability {data['p'][strongest]:.3f}."
    )


def rollouts_explorer() -> Explorer:
    """Step, prompt, answer, and which of two pushes colours the tokens.

    It opens on an answer of the last step in which one token, the slip, takes nearly all the push.
    """
    controls = {
        "step": choice_slider(
            40,
            [(str(s), s) for s in steps()],
            "optimizer step",
            "the steps whose answers were recorded",
        ),
        "prompt": slider(2, 1, PROMPTS, 1, "prompt", "two of the step's sixteen"),
        "answer": slider(1, 1, ANSWERS, 1, "answer", "the eight answers to it"),
        "show": choice(
            "logit",
            [(label, name) for name, label in BUTTONS.items()],
            "push on",
            "the objective's weight of log π, or what arrives at the token's own logit",
        ),
    }
    for control in controls.values():
        control.style.description_width = "9em"
        control.layout.width = "98%"
    return Explorer(
        compute, build, update, controls, alt=alt, caption=CAPTION, readout=readout, size=SIZE,
        columns=2,
    )  # fmt: skip
