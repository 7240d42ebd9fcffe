"""Clip-higher: a rare token under two upper edges, batch after batch, and when they differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import above, at_least, checked, echoing, inside
from rlnb.classroom.figures import BLACK, GREY, ORANGE

__all__ = [
    "BATCHES",
    "EDGES",
    "STARTS",
    "TARGET",
    "Rule",
    "alt",
    "build",
    "compute",
    "equal_though_silenced",
    "rare_token_explorer",
    "readout",
    "update",
]

BATCHES, UPDATES, MAX_STEP, TARGET = 60, 16, 0.3, 0.95
EDGES = {"1.20": 0.2, "1.28": 0.28, "no clip": math.inf}
STARTS = (0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9)
COLORS = {"1.20": BLACK, "1.28": ORANGE, "no clip": GREY}
LINES = {"1.20": "-", "1.28": "--", "no clip": ":"}
TOP = 2.0  # of the left panel
CAPTION = (
    "One good token. Left, one batch: once it is past the edge, further updates do nothing for it. "
    "Right, batch after batch; dots: 0.95 is reached."
)


@dataclass(frozen=True)
class Rule:
    """One upper edge and what becomes of the token under it."""

    edge: float
    inside: np.ndarray  # (updates + 1,) its ratio after each update of the first batch
    path: np.ndarray  # (BATCHES + 1,) its probability after each batch
    silent: int  # updates of the first batch that did nothing
    batches: int | None  # until TARGET; None when BATCHES are not enough

    @property
    def ratio(self) -> float:
        """What the first batch multiplies the probability by."""
        return float(self.inside[-1])


@echoing
@checked(p0=inside(0, 1), updates=at_least(1), step=above(0))
def compute(p0: float = 0.01, updates: int = 8, step: float = 0.06) -> dict[str, Any]:
    """A token with A > 0 of probability `p0`, in batches of `updates` updates each.

    An update adds `step` to the token's logit if its ratio is at most 1 + epsilon when the update
    begins, and nothing otherwise: PPO's clip ends the gradient, it does not cut a step short. The
    other tokens keep their logits. Returns `rules`, a `Rule` for each of EDGES, and the arguments.

    >>> [rule.batches for rule in compute()["rules"].values()]
    [25, 21, 16]
    """
    return {"rules": {name: _rule(edge, p0, updates, step) for name, edge in EDGES.items()}}


def _rule(edge: float, p0: float, updates: int, step: float) -> Rule:
    path, first = [p0], np.ones(updates + 1)
    for batch in range(BATCHES):
        old = path[-1]
        inside = [1.0]
        for _ in range(updates):
            p = old * inside[-1]
            alive = inside[-1] <= 1 + edge
            inside.append(1 / (p + (1 - p) * math.exp(-step)) * inside[-1] if alive else inside[-1])
        path.append(min(old * inside[-1], 1.0))
        if batch == 0:
            first = np.array(inside)
    reached = [n for n, p in enumerate(path) if p >= TARGET]
    silent = int((np.diff(first) == 0).sum())
    return Rule(edge, first, np.array(path), silent, reached[0] if reached else None)


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    left = figure.add_axes((0.07, 0.19, 0.36, 0.69))
    right = figure.add_axes((0.53, 0.19, 0.45, 0.69))
    left.set(
        xlim=(-0.3, UPDATES + 0.3),
        ylim=(0.97, TOP),
        yticks=(1.0, 1.2, 1.28, 1.5, 2.0),
        xticks=range(0, UPDATES + 1, 4),
    )
    left.set_xlabel("updates on the first batch", fontsize=10.5)
    left.set_ylabel("ratio of the token", fontsize=10.5)
    right.set(xlim=(0, BATCHES), ylim=(0, 1.04), yticks=(0, 0.25, 0.5, 0.75, 1))
    right.set_xlabel("batches", fontsize=10.5)
    right.set_ylabel("probability", fontsize=10.5)
    artists = {}
    for axes in (left, right):
        axes.tick_params(labelsize=10.5)
    for name in ("no clip", "1.20", "1.28"):  # the dashes on top: where they agree both are seen
        edge = EDGES[name]
        style = {"color": COLORS[name], "linestyle": LINES[name], "linewidth": 2.4}
        if edge < TOP:
            left.axhline(1 + edge, color=COLORS[name], lw=1, ls=LINES[name])
        artists["inside", name] = left.plot(
            [], [], marker="o", markersize=8 if name == "1.20" else 5, **style
        )[0]
        artists["path", name] = right.plot([], [], **style)[0]
        artists["there", name] = right.plot(
            [],
            [],
            "o",
            ms=12 if name == "1.20" else 8,
            mec="white",
            zorder=4,
            color=COLORS[name],
            clip_on=False,
        )[0]
    right.axhline(TARGET, color=GREY, linewidth=0.9, linestyle=(0, (1, 2)))
    handles = [
        left.plot([], [], color=COLORS[n], linestyle=LINES[n], lw=2.4,
                  label=n if n == "no clip" else f"upper edge {n}")[0]
        for n in EDGES
    ]  # fmt: skip
    figure.legend(handles=handles, loc="upper center", ncols=3, fontsize=10.5, handlelength=3.2,
                  bbox_to_anchor=(0.53, 1.01))  # fmt: skip
    return artists


def update(artists, data):
    """The figure moved to new data."""
    for name, rule in data["rules"].items():
        shown = rule.inside <= TOP
        artists["inside", name].set_data(np.arange(len(rule.inside))[shown], rule.inside[shown])
        artists["path", name].set_data(np.arange(len(rule.path)), rule.path)
        there = [] if rule.batches is None else [rule.batches]
        artists["there", name].set_data(there, [rule.path[n] for n in there])


def readout(data) -> str:
    """The numbers that change: clipped updates and batches under each edge."""
    rules = data["rules"]
    cut = ", ".join(f"{rules[name].silent} under {name}" for name in ("1.20", "1.28"))
    waits = ", ".join(
        f"{name} {f'over {BATCHES}' if rule.batches is None else rule.batches}"
        for name, rule in rules.items()
    )
    return f"First batch: of {data['updates']} updates clipped {cut}. Batches to {TARGET}: {waits}."


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    ratios = ", ".join(f"{name} {rule.ratio:.3f}" for name, rule in data["rules"].items())
    return (
        f"A good token of probability {data['p0']:g}, {data['updates']} updates a batch, each adds "
        f"{data['step']:.2f} to its logit. Ratio after the first batch: {ratios}. "
        f"{readout(data)}"
    )


def equal_though_silenced(data) -> bool:
    """A rare token that both edges clip ends its first batch at one ratio under both."""
    narrow, wide = data["rules"]["1.20"], data["rules"]["1.28"]
    return data["p0"] <= 0.01 and wide.silent > 0 and narrow.ratio == wide.ratio


def rare_token_explorer() -> Explorer:
    """Where the token starts, how many updates a batch has, and how large they are."""
    return Explorer(
        compute,
        build,
        update,
        {
            "p0": choice_slider(0.01, [(f"{p:g}", p) for p in STARTS], "starts at",
                                "probability of the token before the first batch"),
            "updates": slider(8, 1, UPDATES, 1, "updates per batch",
                              "optimizer steps on the same answers"),
            "step": slider(0.06, 0.01, MAX_STEP, 0.01, "step per update",
                           "what one update adds to the token's logit"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 290),
    )  # fmt: skip
