"""Aggregation: what a token weighs, what its answer gets, and what one more token would change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice, slider
from rlnb.classroom.explorers.arguments import at_least, checked, echoing, one_of
from rlnb.classroom.figures import BLUE, GREY, ORANGE, signed
from rlnb.objective import (
    Batch,
    constant_length,
    local_token_mean,
    prompt_mean,
    sequence_mean,
    sequence_sum,
    token_mean,
    token_sum,
)
from rlnb.objective.batch import Totals

__all__ = [
    "NAMES",
    "RULES",
    "Rule",
    "alt",
    "build",
    "compute",
    "token_weight",
    "token_weights_explorer",
    "update",
]

LONGEST, LIMITS = 40, (40, 200)
GENERATIONS = 2  # answers to each of the two prompts
CAPTION = (
    "Four of the seven rules give every token of the step one and the same weight: token_mean, "
    "constant_length and the two sums. The last column is another matter: token_mean's one weight "
    "falls when an answer grows, its own included, and a weight that knows its own length pushes "
    "on length."
)


@dataclass(frozen=True)
class Rule:
    """One aggregation: the part, and what TRL (`loss_type`) and verl (`loss_agg_mode`) call it."""

    part: Any
    trl: str = "–"
    verl: str = "–"

    @property
    def name(self) -> str:
        return type(self.part).__name__


RULES = (
    Rule(sequence_mean(), "grpo", "seq-mean-token-mean"),
    Rule(token_mean(), "dapo", "token-mean"),
    Rule(local_token_mean(), "bnpo"),
    Rule(prompt_mean()),
    Rule(constant_length(), "dr_grpo", "seq-mean-token-sum-norm*"),
    Rule(sequence_sum(), "luspo", "seq-mean-token-sum"),
    Rule(token_sum(), verl="token-sum"),
)
NAMES = tuple(rule.name for rule in RULES)


def _batch(lengths: tuple[int, ...], limit: int) -> Batch:
    steps = torch.arange(max(lengths))
    mask = (steps < torch.tensor(lengths)[:, None]).to(torch.float64)
    return Batch(
        torch.zeros_like(mask),
        mask,
        torch.zeros(len(lengths)),
        GENERATIONS,
        max_completion_length=limit,
    )


def token_weight(part: Any, lengths: tuple[int, ...], limit: int, micro: int = 4) -> np.ndarray:
    """(B,): the weight c of a token of each answer, for two prompts with two answers each.

    `lengths` in tokens, four of them; `limit` is constant_length's L; `micro` is the number of
    rows in a micro-batch. A local mean is averaged over the micro-batches, as TRL does it.
    """
    batch = _batch(lengths, limit)
    totals = Totals.of_groups(batch)
    if isinstance(part, local_token_mean):
        starts = range(0, len(lengths), micro)
        pieces = [part(batch.rows(range(i, i + micro)), totals)[:, 0] for i in starts]
        return (torch.cat(pieces) / len(pieces)).numpy()
    return part(batch, totals)[:, 0].numpy()


@echoing
@checked(
    divisor=one_of(("limit", "width")),
    micro=one_of((1, 2, 4)),
    first=at_least(1),
    second=at_least(1),
    other=at_least(1),
)
def compute(
    first: int = 4,
    second: int = 12,
    other: int = 3,
    limit: int = 64,
    micro: int = 1,
    divisor: str = "limit",
) -> dict[str, Any]:
    """All seven aggregations on two prompts with two answers each.

    `first` and `second` are the lengths of the answers to one prompt, `other` the length of both
    answers to the other prompt, in tokens; `limit` is L; `micro` the rows per micro-batch (1, 2 or
    4); `divisor` is "limit" or "width", the padded width in the place of L. Returns lengths (4,),
    the constant that was used, the arguments, and by rule name

        weights {name: (4,)}   c of a token of each answer
        shares  {name: (3,)}   c T over the step's sum: answer 1, answer 2, the other prompt
        longer  {name: float}  relative change of answer 1's weight when it grows by a token

    >>> d = compute()
    >>> d["weights"]["sequence_mean"].round(4).tolist(), round(d["longer"]["sequence_mean"], 4)
    ([0.0625, 0.0208, 0.0833, 0.0833], -0.2)
    """
    lengths = (first, second, other, other)
    grown = (first + 1, *lengths[1:])
    weights, shares, longer = {}, {}, {}
    for rule in RULES:
        c, after = (
            token_weight(rule.part, each, max(each) if divisor == "width" else limit, micro)
            for each in (lengths, grown)
        )
        part = c * lengths / (c * lengths).sum()
        weights[rule.name] = c
        shares[rule.name] = np.array([part[0], part[1], part[2] + part[3]])
        longer[rule.name] = float(after[0] / c[0] - 1)
    return {
        "lengths": np.array(lengths),
        "constant": max(lengths) if divisor == "width" else limit,
        "weights": weights,
        "shares": shares,
        "longer": longer,
    }


# answer, its colour, marker; bars stand in this order, marks one above the other by LIFT, so that
# equal weights are a vertical line of three
LOOKS = (
    ("answer 1", BLUE, {"marker": "o", "ms": 7.5}),
    ("answer 2", ORANGE, {"marker": "s", "ms": 7}),
    ("both answers to the other prompt", GREY, {"marker": "^", "ms": 7.5}),
)
LIFT = (-0.26, 0.0, 0.26)
SMALLEST_LABEL = 0.1
TOP, BOTTOM = 0.84, 0.21


def _height(row: int) -> float:
    """Of a row's middle, as a share of the figure."""
    return BOTTOM + (TOP - BOTTOM) * (len(RULES) - 0.5 - row) / len(RULES)


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    left = figure.add_axes((0.265, BOTTOM, 0.295, TOP - BOTTOM))
    right = figure.add_axes((0.58, BOTTOM, 0.3, TOP - BOTTOM))
    rows = np.arange(len(RULES))
    for axes in (left, right):
        axes.set(ylim=(len(RULES) - 0.5, -0.5), yticks=[])
    left.set(xscale="log", xlim=(8e-4, 1.8))
    right.set(xlim=(0, 1), xticks=(0, 0.25, 0.5, 0.75, 1))
    left.minorticks_off()
    left.set_xlabel("weight $c$ of one token", labelpad=0)
    right.set_xlabel("share of the step's weight, $cT$ over its sum", labelpad=0)
    for row, rule in enumerate(RULES):
        left.axhline(row, color=GREY, lw=0.5, zorder=0)
        said = f"{rule.trl} · {rule.verl}" if rule.name != "prompt_mean" else "in neither"
        figure.text(0.255, _height(row), rule.name, ha="right", va="bottom", weight="bold")
        figure.text(0.255, _height(row) - 0.006, said, ha="right", va="top", fontsize=9, color=GREY)
    figure.text(0.255, TOP + 0.01, "TRL · verl", ha="right", va="bottom", fontsize=9, color=GREY)
    figure.text(
        0.995,
        TOP + 0.01,
        "answer 1's weight,\none token longer",
        ha="right",
        va="bottom",
        fontsize=9,
    )
    artists = {}
    for index, (_, color, mark) in enumerate(LOOKS):
        artists["bars", index] = right.barh(
            rows, np.ones(len(RULES)), 0.6, color=color, ec="white", lw=0.6
        )
        artists["marks", index] = left.plot(
            np.ones(len(RULES)), rows + LIFT[index], ls="", color=color, **mark
        )[0]
    # a text takes longer to paint than seven bars: one share is written, the rest is on the axis
    artists["labels"] = [right.text(0, row, "", ha="center", va="center", size=9) for row in rows]
    artists["longer"] = [
        figure.text(0.975, _height(row), "", ha="right", va="center", size=10) for row in rows
    ]
    figure.text(0.995, 0.025, "* with loss_scale_factor set", ha="right", fontsize=9, color=GREY)
    artists["text"] = figure.text(0.01, 0.025, "", fontsize=9.5)
    handles = [
        left.plot([], [], lw=6, color=color, label=label, **mark)[0] for label, color, mark in LOOKS
    ]
    figure.legend(
        handles=handles,
        loc="upper center",
        ncols=3,
        bbox_to_anchor=(0.47, 1.005),
        handlelength=2.6,
        columnspacing=2,
    )
    return artists


def update(artists, data):
    """The figure moved to new data."""
    start = np.zeros(len(RULES))
    for index in range(len(LOOKS)):
        share = np.array([data["shares"][name][index] for name in NAMES])
        artists["marks", index].set_xdata([data["weights"][name][index] for name in NAMES])
        for row, bar in enumerate(artists["bars", index]):
            bar.set(x=start[row], width=share[row])
            if index == 1:
                label = artists["labels"][row]
                label.set_visible(bool(share[row] >= SMALLEST_LABEL))
                label.set(x=start[row] + share[row] / 2, text=f"{share[row]:.2f}")
        start = start + share
    for text, name in zip(artists["longer"], NAMES, strict=True):
        text.set_text(_percent(data["longer"][name]))
    artists["text"].set_text(_line(data))


def _percent(change: float) -> str:
    return f"{signed(100 * change, 1)} %" if abs(change) > 1e-12 else "0"


def _line(data) -> str:
    first, second, other, _ = data["lengths"]
    name = "L" if data["divisor"] == "limit" else "width"
    return (
        f"tokens: {first}, {second} | {other}, {other}   ·   {name} {data['constant']}   ·   "
        f"micro-batch {data['micro']}"
    )


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    rows = []
    for name in NAMES:
        c, share = data["weights"][name], data["shares"][name]
        rows.append(
            f"{name}: weights {c[0]:.4f}, {c[1]:.4f}, {c[2]:.4f}, shares {share[0]:.2f}, "
            f"{share[1]:.2f}, {share[2]:.2f}, one token longer "
            f"{_percent(data['longer'][name])}"
        )
    return (
        f"Seven aggregations; {_line(data).replace('   ·   ', '; ')}. Weight of a token of "
        f"answer 1, answer 2 and the other prompt, and shares of the step. {'. '.join(rows)}."
    )


def token_weights_explorer() -> Explorer:
    """Lengths of two answers to one prompt and of those to another, L, micro-batch, divisor."""
    return Explorer(
        compute,
        build,
        update,
        {
            "first": slider(4, 1, LONGEST, 1, "answer 1, tokens", "length of the first answer"),
            "second": slider(12, 1, LONGEST, 1, "answer 2, tokens", "the same prompt"),
            "other": slider(
                3,
                1,
                LONGEST,
                1,
                "other prompt, tokens",
                "length of both answers to the other prompt",
            ),
            "limit": slider(64, *LIMITS, 1, "L", "constant_length's constant, in tokens"),
            "divisor": choice(
                "limit",
                [("L", "limit"), ("the padded width", "width")],
                "constant rule uses",
                "verl's default, loss_scale_factor unset, is the width of the tensor at hand",
            ),
            "micro": choice(
                1,
                [("one row", 1), ("one prompt", 2), ("everything", 4)],
                "micro-batch holds",
                "only local_token_mean depends on it",
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 312),
    )
