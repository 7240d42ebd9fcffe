"""Clip-higher: how many batches a rare token needs, and whether the upper edge is what holds it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import at_least, checked, echoing
from rlnb.classroom.figures import BLACK, GREY, METHOD_COLORS, METHOD_LINES

__all__ = [
    "BATCHES",
    "LOWEST",
    "STARTS",
    "Rule",
    "alt",
    "build",
    "compute",
    "rare_token_explorer",
    "update",
]

BATCHES, UPDATES, MAX_RATIO, LOWEST = 60, 16, 2.1, 5e-5
SYMMETRIC = 0.2  # PPO's and GRPO's edge, to compare with
STARTS = (0.0001, 0.001, 0.01, 0.05, 0.1)
TARGETS = (0.2, 0.5, 0.9)
COLORS = {"symmetric": METHOD_COLORS["grpo"], "chosen": METHOD_COLORS["dapo"], "none": GREY}
LINES = {"symmetric": METHOD_LINES["grpo"], "chosen": METHOD_LINES["dapo"], "none": ":"}
LABELS = {"symmetric": "ε high 0.20", "chosen": "ε high as set", "none": "no clip"}
CAPTION = (
    "A higher edge saves batches only where the updates of one batch would carry the ratio past "
    "1.2. Where both edges hold, 1.28 needs about three quarters of the batches (26 % less in the "
    "limit of many). A sketch: a real clip ends the gradient, it does not stop the token."
)


@dataclass(frozen=True)
class Rule:
    """One upper edge: `epsilon` (infinity for none) and what becomes of the token under it."""

    epsilon: float
    inside: np.ndarray  # (updates + 1,) ratio after each update of one batch
    path: np.ndarray  # (BATCHES + 1,) probability after each batch
    batches: int | None  # until the target; None for never
    free: float  # the ratio after one batch if there were no edge

    @property
    def ratio(self) -> float:
        """What one batch multiplies the probability by."""
        return float(self.inside[-1])

    @property
    def held(self) -> bool:
        """Whether the clip took anything away, so that it and not the updates sets the pace."""
        return self.ratio < self.free


@echoing
@checked(updates=at_least(1), step=at_least(0), epsilon_high=at_least(0))
def compute(
    p0: float = 0.01,
    target: float = 0.5,
    epsilon_high: float = 0.28,
    updates: int = 8,
    step: float = 0.05,
) -> dict[str, Any]:
    """A token with A > 0, pushed by its own advantage alone, batch after batch.

    One update multiplies its probability by 1 + `step`. The first of a batch is taken at ratio 1,
    inside any band, so it is whole; the later ones end at 1 + `epsilon_high`, where the gradient
    does. So one batch multiplies it by

        f = max(1 + step, min((1 + step)^updates, 1 + epsilon_high))

    and it takes the smallest whole n with p0 f^n >= target. Idealised: a real later update is not
    shortened as it meets the edge and may overstep it, and other tokens push too.

    `p0`, `target` probabilities, 0 < p0 <= target <= 1; `step`, `epsilon_high` >= 0;
    `updates` >= 1. Returns `rules`: "symmetric" (0.2), "chosen" and "none", each a `Rule`, and
    the arguments. ValueError for a probability or a count outside its range.

    >>> [rule.batches for rule in compute()["rules"].values()]
    [22, 16, 11]
    """
    if not 0 < p0 <= target <= 1:
        raise ValueError(f"p0 and target need 0 < p0 <= target <= 1, got {p0} and {target}.")
    edges = {"symmetric": SYMMETRIC, "chosen": epsilon_high, "none": math.inf}
    return {"rules": {name: _rule(edge, p0, target, updates, step) for name, edge in edges.items()}}


def _rule(epsilon: float, p0: float, target: float, updates: int, step: float) -> Rule:
    free = (1 + step) ** np.arange(updates + 1)
    edge = np.maximum(1 + epsilon, free[1])  # the first update is never cut
    inside = np.minimum(free, edge)
    growth = math.log(inside[-1])
    # the small number keeps a whole quotient whole: log 4 / log 2 may come out above 2
    needed = math.ceil(math.log(target / p0) / growth - 1e-9) if growth > 0 else None
    if target == p0:
        needed = 0
    path = np.minimum(p0 * np.exp(growth * np.arange(BATCHES + 1)), 1.0)
    return Rule(epsilon, inside, path, needed, float(free[-1]))


def build(figure, data):
    left = figure.add_axes((0.065, 0.35, 0.35, 0.54))
    right = figure.add_axes((0.5, 0.35, 0.48, 0.54))
    left.set(
        xlim=(0, UPDATES),
        ylim=(0.98, MAX_RATIO),
        yticks=(1.0, 1.2, 1.4, 1.6, 1.8, 2.0),
        xlabel="updates on one batch",
        ylabel=r"ratio $\rho$ of the token",
    )
    right.set(
        xlim=(0, BATCHES),
        ylim=(LOWEST, 1.3),
        yscale="log",
        xlabel="batches",
        ylabel="probability of the token",
    )
    right.set_yticks([1e-4, 1e-3, 1e-2, 1e-1, 1], ["0.0001", "0.001", "0.01", "0.1", "1"])
    right.minorticks_off()
    artists = {}
    for name in ("none", "symmetric", "chosen"):
        style = {"color": COLORS[name], "linestyle": LINES[name], "linewidth": 2.2}
        artists["edge", name] = left.axhline(1, color=COLORS[name], linewidth=0.8)
        artists["inside", name] = left.plot([], [], marker="o", markersize=3.5, **style)[0]
        artists["path", name] = right.plot([], [], **style)[0]
        artists["there", name] = right.plot(
            [], [], "o", ms=8, mec="white", zorder=4, color=COLORS[name], clip_on=False
        )[0]
    artists["target"] = right.axhline(0.5, color=BLACK, linewidth=0.9, linestyle=(0, (1, 2)))
    figure.text(
        0.065,
        0.175,
        "edge:  ratio after one batch, and what stopped it;  probability "
        "before and after;  batches to the target",
        fontsize=9,
        color=GREY,
    )
    for row, name in enumerate(("symmetric", "chosen", "none")):
        artists["text", name] = figure.text(
            0.065, 0.122 - 0.053 * row, "", fontsize=9.5, color=COLORS[name]
        )
    figure.legend(
        handles=[
            *(
                left.plot([], [], color=COLORS[n], linestyle=LINES[n], lw=2.2, label=LABELS[n])[0]
                for n in ("symmetric", "chosen", "none")
            ),
            left.plot([], [], "o", ms=8, color=BLACK, mec="white", label="target reached")[0],
            left.plot([], [], color=BLACK, lw=0.9, ls=(0, (1, 2)), label="target")[0],
        ],
        loc="upper center",
        ncols=5,
        bbox_to_anchor=(0.53, 1.005),
        handlelength=3.2,
    )
    return artists


def update(artists, data):
    artists["target"].set_ydata([data["target"]] * 2)
    for name, rule in data["rules"].items():
        artists["edge", name].set_ydata([1 + min(rule.epsilon, MAX_RATIO)] * 2)
        artists["inside", name].set_data(np.arange(len(rule.inside)), rule.inside)
        artists["path", name].set_data(np.arange(len(rule.path)), rule.path)
        seen = rule.batches is not None and rule.batches <= BATCHES
        artists["there", name].set_data(
            [rule.batches] if seen else [], [rule.path[rule.batches]] if seen else []
        )
        artists["text", name].set_text(_line(data, rule))


def _name(rule: Rule) -> str:
    return "no clip" if math.isinf(rule.epsilon) else f"ε high {rule.epsilon:.2f}"


def _pace(rule: Rule) -> str:
    return "free" if math.isinf(rule.epsilon) else "held" if rule.held else "edge not reached"


def _after(data, rule: Rule) -> float:
    return min(data["p0"] * rule.ratio, 1)


def _line(data, rule: Rule) -> str:
    """Short: drawing the letters is most of the time of a move."""
    wait = "never" if rule.batches is None else f"{rule.batches} batches"
    return (
        f"{_name(rule)}:  ratio {rule.ratio:.4f}, {_pace(rule)};  "
        f"{data['p0']:.4g} → {_after(data, rule):.4g};  {wait}"
    )


def _sentence(data, rule: Rule) -> str:
    wait = "never gets" if rule.batches is None else f"{rule.batches} batches"
    return (
        f"{_name(rule)}: ratio {rule.ratio:.4f} a batch ({_pace(rule)}), {data['p0']:.4g} to "
        f"{_after(data, rule):.4g} in the first, {wait} to {data['target']:.2f}"
    )


def alt(data) -> str:
    rules = ". ".join(_sentence(data, rule) for rule in data["rules"].values())
    return (
        f"A token of probability {data['p0']:.4g} with a positive advantage, {data['updates']} "
        f"updates a batch, each worth a factor {1 + data['step']:.2f}. Left: its ratio inside one "
        f"batch; right: its probability over {BATCHES} batches. {rules}."
    )


def rare_token_explorer() -> Explorer:
    """Start and target, the upper edge, and how far the updates of one batch would carry it."""
    return Explorer(
        compute,
        build,
        update,
        {
            "p0": choice_slider(
                0.01,
                [(f"{p:g}", p) for p in STARTS],
                "starts at",
                "probability of the token before the first batch",
            ),
            "target": choice_slider(
                0.5, [(f"{p:g}", p) for p in TARGETS], "target", "probability to reach"
            ),
            "epsilon_high": slider(0.28, 0.0, 1.0, 0.01, "ε high", "the band ends at 1 + ε high"),
            "updates": slider(
                8, 1, UPDATES, 1, "updates per batch", "optimizer steps on the same answers"
            ),
            "step": slider(
                0.05,
                0.0,
                0.2,
                0.01,
                "one update adds",
                "0.05: one update multiplies the probability by 1.05",
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 430),
    )
