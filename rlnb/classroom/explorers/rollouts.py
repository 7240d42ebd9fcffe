"""The answers a run was trained on, token by token: what was paid, and how hard each is pushed.

The answers are a recording that ships with the course; nothing is sampled here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Polygon

from rlnb.classroom.cached_text import MONO, Letters, letter_width, middle
from rlnb.classroom.explorer import Explorer, choice, choice_slider, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing, one_of
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, POSITIVE, signed
from rlnb.training import data_folder, read

__all__ = ["RUN", "alt", "build", "compute", "rollouts_explorer", "steps", "update"]

RUN = "chain_rollouts_seed0"
PROMPTS, ANSWERS = 2, 8
UNIT = 1e-5  # weights are shown in this unit
TOP = 10.0  # of the colour scale: |A| = 0.92 in a batch of 128 answers and L = 72
LINE, LONGEST = 24, 72  # tokens in a line of the picture, and in the longest answer
SHOW = {"weight": "push on log π", "logit": "push on the token's own logit"}
DIVERGING = LinearSegmentedColormap.from_list("push", [NEGATIVE, "#FFFFFF", POSITIVE])
CAPTION = (
    "Recorded on a CPU, seed 0. Blue makes a token likelier, vermillion less likely. Every token "
    "of an answer gets the same push, right step or wrong; only where the model was unsure "
    "does the push reach a logit."
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


# What moves is set in fixed-width letters; a cell is five of them wide.
SIZE = (900, 470)
LEFT, CELL, ROW, LETTERS = 0.02, 0.086, 0.135, 5
HEAD = "reward  advantage  "


def _line_of_cells(line: int) -> float:
    """Lower edge of a line of tokens, in figure coordinates."""
    return 0.375 - ROW * line


def _cells(count: int, width: float) -> list[list[tuple[float, float]]]:
    """Four corners for each of the first `count` tokens."""
    out, w = [], width * 0.94
    for line, column in (divmod(i, LINE) for i in range(count)):
        x, y = LEFT + width * column, _line_of_cells(line)
        out.append([(x, y), (x + w, y), (x + w, y + CELL), (x, y + CELL)])
    return out


def _row(i: int) -> float:
    return 0.905 - 0.048 * i


def build(figure, data):
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.axis("off")
    figure.text(LEFT, 0.955, HEAD, color=GREY, family=MONO, size=9)
    for i in range(9):  # the legend, with numbers
        value = TOP * (i - 4) / 4
        x = LEFT + 0.37 + 0.0653 * i
        box = [(x, 0.005), (x + 0.057, 0.005), (x + 0.057, 0.052), (x, 0.052)]
        axes.add_patch(Polygon(box, fc=_colour(value * UNIT), ec=GREY, linewidth=0.6))
        figure.text(x + 0.0285, 0.018, _written(value * UNIT), fontsize=9, ha="center")
    figure.text(LEFT, 0.018, "push, in units of 0.00001 (no number: below 0.05)", fontsize=9)
    cells = PolyCollection([], edgecolors=GREY, linewidths=0.6)
    return {
        "marker": axes.plot([LEFT - 0.008], [0.9], ">", color=BLACK, ms=7, clip_on=False)[0],
        "title": figure.text(
            LEFT + letter_width() / SIZE[0] * len(HEAD),
            0.955,
            "",
            family=MONO,
            size=9,
            fontweight="bold",
        ),
        "chosen": figure.text(LEFT, 0.487, "", fontsize=9.5),
        "cells": axes.add_collection(cells),
        "letters": axes.add_artist(Letters()),
    }


def _colour(push: float):
    return DIVERGING(0.5 + 0.5 * max(-1.0, min(1.0, push / UNIT / TOP)))


def _spread(words: list[str]) -> list[str]:
    """A text for each line of cells, every word in the middle of its five letters, or near it."""
    placed = [
        word.ljust(LETTERS) if len(word) == LETTERS - 1 else word.center(LETTERS) for word in words
    ]
    return ["".join(placed[i : i + LINE]) for i in range(0, LONGEST, LINE)]


def _chosen(data) -> str:
    verdict = "right" if data["reward"] else "wrong"
    text = (
        f"Answer {data['answer']}, {verdict}: advantage {signed(data['advantage'], 3)}, "
        f"{len(data['tokens'])} tokens. Shown: {SHOW[data['show']]}"
    )
    return text + (", times (1 − its probability)." if data["show"] == "logit" else ".")


def update(artists, data):
    artists["title"].set_text(f"step {data['step']}   {data['prompt']}")
    artists["marker"].set_ydata([_row(data["answer"] - 1) + 0.012])
    rows = zip(data["texts"], data["rewards"], data["advantages"], strict=True)
    written = [
        (LEFT, _row(i), f"{reward:^6.0f}  {signed(advantage, 3):^9s}  {text}")
        for i, (text, reward, advantage) in enumerate(rows)
    ]
    artists["chosen"].set_text(_chosen(data))
    width = LETTERS * letter_width() / SIZE[0]
    artists["cells"].set_verts(_cells(len(data["tokens"]), width))
    artists["cells"].set_facecolor([_colour(x) for x in data["push"]])
    numbers = [_written(x) for x in data["push"]]
    for above, words in (
        (0.047, [t.replace("<eos>", "end") for t in data["tokens"]]),
        (0.01, ["" if n == "0" else n for n in numbers]),
    ):
        written += [
            (LEFT + 0.002, _line_of_cells(i) + above, text) for i, text in enumerate(_spread(words))
        ]
    artists["letters"].lines = [
        (x * SIZE[0], middle(y, SIZE[1]), text, BLACK, "left") for x, y, text in written
    ]


def alt(data) -> str:
    strongest = int(np.abs(data["push"]).argmax())
    group = ", ".join(
        f"{r:.0f} ({signed(a, 3)})"
        for r, a in zip(data["rewards"], data["advantages"], strict=True)
    )
    return (
        f"Recorded group at step {data['step']}, prompt {data['prompt']} Rewards (advantages): "
        f"{group}. {_chosen(data)} Its tokens: {' '.join(data['tokens'])}. Strongest push: "
        f"{_written(data['push'][strongest])} times 0.00001 on token {strongest + 1}, "
        f"“{data['tokens'][strongest]}”, of probability {data['p'][strongest]:.3f}."
    )


def rollouts_explorer() -> Explorer:
    """Step, prompt, answer, and which of two pushes colours the tokens."""
    return Explorer(
        compute,
        build,
        update,
        {
            "step": choice_slider(
                1,
                [(str(s), s) for s in steps()],
                "optimizer step",
                "the steps whose answers were recorded",
            ),
            "prompt": slider(1, 1, PROMPTS, 1, "prompt", "two of the step's sixteen"),
            "answer": slider(1, 1, ANSWERS, 1, "answer", "the eight answers to it"),
            "show": choice(
                "weight",
                [(label, name) for name, label in SHOW.items()],
                "colour",
                "the objective's weight, or what arrives at the logit",
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=SIZE,
    )
