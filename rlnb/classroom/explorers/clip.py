"""PPO's clip: what a token is paid, beside the slope of that, for both signs of the advantage."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice, choice_slider, slider
from rlnb.classroom.explorers.arguments import checked, echoing, one_of
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, POSITIVE, signed
from rlnb.objective import clip

__all__ = ["SHOWN", "Corner", "alt", "build", "clip_explorer", "compute", "update"]

MAX_RATIO = 4.0
# Midpoints of cells of 0.005: never on an edge of the band, where the slope is not defined.
RATIOS = (np.arange(800) + 0.5) * MAX_RATIO / 800
SIGNS = (1, -1)
SHOWN = {"both": (1, -1), "positive": (1,), "negative": (-1,)}
DASHES = {1: "-", -1: "--"}
COLORS = {1: POSITIVE, -1: NEGATIVE}
BAND = r"band $1-\epsilon_\mathrm{low}$ to $1+\epsilon_\mathrm{high}$"
CAPTION = (
    "Each sign of the advantage has one dead side, and it is the side where the token has already "
    "moved the way it should. The dual clip adds a dead far end for A < 0."
)


@dataclass(frozen=True)
class Corner:
    """One token outside the band: `sign` of its advantage, which way it `moved`, what it gets."""

    sign: int
    moved: str  # "down", "up" or "far up" (beyond the dual clip)
    ratio: float
    objective: float
    slope: float

    @property
    def alive(self) -> bool:
        """Whether the token still has a gradient."""
        return self.slope != 0


@echoing
@checked(sign=one_of(SHOWN))
def compute(
    epsilon_low: float = 0.2,
    epsilon_high: float = 0.2,
    dual: float | None = None,
    sign: str = "both",
) -> dict[str, Any]:
    """The clipped objective per token at A = +1 and A = -1, and its slope, by autograd.

    `epsilon_low` in [0, 1] and `epsilon_high` >= 0 set the band [1 - low, 1 + high]; `dual` is
    c > 1, and None or infinity is off; `sign` is what the figure shows: "both", "positive" or
    "negative". Returns

        ratio (800,), objective and slope {+1: (800,), -1: (800,)} with slope = dJ/d ratio,
        slope_logprob likewise: dJ/d log pi = ratio * slope,
        corners: a tuple of `Corner`, four of them, a fifth beyond c when `dual` is given,
        band: (1 - low, 1 + high), and the arguments.

    The corners stand 5/8 of the way up to the band and a quarter beyond it: at ratio 0.5 and 1.5
    for epsilon 0.2.

    >>> [(c.sign, c.ratio, round(c.slope)) for c in compute()["corners"]]
    [(1, 0.5, 1), (1, 1.5, 0), (-1, 0.5, 0), (-1, 1.5, -1)]
    """
    if dual == math.inf:
        dual = None
    surrogate = clip(epsilon_low, high=epsilon_high, dual=dual)
    low, high = surrogate.edges
    marks = {"down": round(low * 0.625, 6), "up": round(high * 1.25, 6)}
    if dual is not None:
        marks["far up"] = (dual + MAX_RATIO) / 2
    ratio = torch.tensor([*RATIOS, *marks.values()], dtype=torch.float64)
    log_ratio = ratio.log().expand(2, -1).clone().requires_grad_()
    advantages = torch.tensor(SIGNS, dtype=torch.float64)[:, None].expand_as(log_ratio)
    value = surrogate(None, advantages, log_ratio)
    (by_logprob,) = torch.autograd.grad(value.sum(), log_ratio)
    value, by_logprob = value.detach().numpy(), by_logprob.numpy()
    by_ratio = by_logprob / ratio.numpy()
    size = len(RATIOS)
    corners = [
        Corner(s, moved, at, float(value[row, size + i]), float(by_ratio[row, size + i]))
        for row, s in enumerate(SIGNS)
        for i, (moved, at) in enumerate(marks.items())
        if not (s > 0 and moved == "far up")  # the dual clip is for A < 0 only
    ]
    return {
        "ratio": RATIOS,
        "objective": {s: value[row, :size] for row, s in enumerate(SIGNS)},
        "slope": {s: by_ratio[row, :size] for row, s in enumerate(SIGNS)},
        "slope_logprob": {s: by_logprob[row, :size] for row, s in enumerate(SIGNS)},
        "corners": tuple(corners),
        "band": (low, high),
        "dual": dual,
    }


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    left = figure.add_axes((0.075, 0.29, 0.41, 0.6))
    right = figure.add_axes((0.575, 0.29, 0.41, 0.6))
    left.set(xlim=(0, MAX_RATIO), ylim=(-4.2, 2.4), yticks=range(-4, 3))
    right.set(xlim=(0, MAX_RATIO), ylim=(-1.4, 1.4), yticks=(-1, 0, 1))
    for axes, name in ((left, r"objective per token $J$"), (right, r"slope $dJ/d\rho$")):
        axes.set_xlabel(r"ratio $\rho = \pi_\theta / \pi_\mathrm{old}$", labelpad=1)
        axes.set_ylabel(name)
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.axvline(1, color=GREY, linewidth=0.8)
    artists = {"band": [a.axvspan(0.8, 1.2, color=BLACK, alpha=0.09, lw=0) for a in (left, right)]}
    for s in SIGNS:
        style = {"color": COLORS[s], "linestyle": DASHES[s], "linewidth": 2.2}
        ends = [0, MAX_RATIO]
        artists["free", s] = left.plot(ends, [0, s * MAX_RATIO], ":", color=COLORS[s], lw=1.1)[0]
        artists["objective", s] = left.plot(RATIOS, data["objective"][s], **style)[0]
        artists["slope", s] = right.plot(RATIOS, data["slope"][s], **style)[0]
    for axes, name in ((left, "objective"), (right, "slope")):
        for s in SIGNS:
            mark = {"linestyle": "", "markeredgewidth": 1.6, "zorder": 4, "clip_on": False}
            artists[name, s, True] = axes.plot(
                [], [], "o", ms=9, mfc=COLORS[s], mec="white", **mark
            )[0]
            artists[name, s, False] = axes.plot([], [], "x", ms=8, mec=COLORS[s], **mark)[0]
    for row, s in enumerate(SIGNS):
        place = (0.075, 0.1 - 0.07 * row)
        artists["text", s] = figure.text(*place, "", color=COLORS[s], fontsize=9.5)
    figure.legend(
        handles=_legend(left),
        loc="upper center",
        ncols=6,
        bbox_to_anchor=(0.53, 1.005),
        handlelength=2.4,
        columnspacing=1.6,
    )
    return artists


def _legend(axes):
    line = {"linewidth": 2.2}
    mark = {"linestyle": "", "color": BLACK, "markeredgewidth": 1.6}
    return [
        axes.plot([], [], color=COLORS[1], ls=DASHES[1], label="A = +1", **line)[0],
        axes.plot([], [], color=COLORS[-1], ls=DASHES[-1], label="A = −1", **line)[0],
        axes.plot([], [], ":", color=BLACK, lw=1.1, label="no clip")[0],
        axes.fill_between([], [], color=BLACK, alpha=0.09, lw=0, label=BAND),
        axes.plot([], [], "o", ms=8, label="corner, alive", **mark)[0],
        axes.plot([], [], "x", ms=7, label="corner, dead", **mark)[0],
    ]


def update(artists, data):
    """The figure moved to new data."""
    shown = SHOWN[data["sign"]]
    low, high = data["band"]
    for band in artists["band"]:
        band.set_x(low)
        band.set_width(high - low)
    for s in SIGNS:
        artists["objective", s].set_ydata(data["objective"][s])
        artists["slope", s].set_ydata(data["slope"][s])
        for name in ("free", "objective", "slope", "text"):
            artists[name, s].set_visible(s in shown)
        corners = [c for c in data["corners"] if c.sign == s and s in shown]
        for alive in (True, False):
            some = [c for c in corners if c.alive == alive]
            for name in ("objective", "slope"):
                artists[name, s, alive].set_data(
                    [c.ratio for c in some], [getattr(c, name) for c in some]
                )
        artists["text", s].set_text(_sentence(s, corners, "  ·  "))


def _sentence(s: int, corners: list[Corner], between: str) -> str:
    parts = [
        f"{c.moved} at ratio {c.ratio:.2f}: slope {signed(c.slope, 0)}, "
        f"{'alive' if c.alive else 'dead'}"
        for c in corners
    ]
    return f"A = {signed(s, 0)}    " + between.join(parts)


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    dual = "off" if data["dual"] is None else f"at {data['dual']:.2f}"
    low, high = data["band"]
    sides = []
    for s in SHOWN[data["sign"]]:
        corners = [c for c in data["corners"] if c.sign == s]
        sides.append(" ".join(_sentence(s, corners, "; ").split()))
    return (
        f"PPO's clipped objective (left) and its slope (right) against the ratio, band {low:.2f} "
        f"to {high:.2f}, dual clip {dual}. {'. '.join(sides)}."
    )


def clip_explorer() -> Explorer:
    """Epsilon low and high, dual clip, sign of the advantage."""
    caps = [(f"{c:.2f}", c) for c in np.arange(1.5, 3.51, 0.25).tolist()]
    return Explorer(
        compute,
        build,
        update,
        {
            "epsilon_low": slider(0.2, 0.0, 0.9, 0.01, "ε low", "the band starts at 1 − ε low"),
            "epsilon_high": slider(0.2, 0.0, 1.0, 0.01, "ε high", "the band ends at 1 + ε high"),
            "dual": choice_slider(
                math.inf,
                [*caps, ("off", math.inf)],
                "dual clip c",
                "for A < 0 the objective never falls below c·A",
            ),
            "sign": choice(
                "both",
                [("both", "both"), ("A > 0", "positive"), ("A < 0", "negative")],
                "sign of A",
                "which sign of the advantage to draw",
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 370),
    )
