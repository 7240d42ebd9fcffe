"""One token under PPO's clip: where it stands on the curve, and the slope it feels there."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice, slider
from rlnb.classroom.explorers.arguments import above, checked
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, POSITIVE, signed
from rlnb.objective import clip

EPSILON = 0.2
RATIOS = np.linspace(0.0, 2.2, 221)
CAPTION = (
    "Thick: the smaller of the two thin lines, the token's objective. The arrow is its push on "
    "log π; where the thick line is flat there is none. Grey: the band."
)


@checked(ratio=above(0))
def compute(ratio: float = 1.0, A: float = 1.0) -> dict[str, Any]:
    """Objective and push of one token with `ratio` > 0 and advantage `A`, epsilon 0.2.

    Returns value, push = dJ/d log pi, curve (the objective at RATIOS),
    raw = ratio A and cut = clip(ratio) A (its two terms at RATIOS), and the arguments.

    >>> compute(1.5, 1.0)["push"], compute(1.5, -1.0)["push"]
    (0.0, -1.5)
    """
    surrogate, ratio = clip(EPSILON), round(ratio, 9)  # a slider's 1.2 may be 1.2000000000000002
    at = torch.tensor([ratio], dtype=torch.float64).log().requires_grad_()
    advantage = torch.tensor([A], dtype=torch.float64)
    value = surrogate(None, advantage, at)
    (push,) = torch.autograd.grad(value.sum(), at)
    grid = torch.tensor(np.maximum(RATIOS, 1e-6)).log()
    curve = surrogate(None, advantage.expand(len(RATIOS)), grid)
    return {
        "ratio": ratio,
        "A": A,
        "value": value.item(),
        "push": round(push.item(), 12) + 0.0,
        "curve": curve.numpy(),
        "raw": RATIOS * A,
        "cut": np.clip(RATIOS, 1 - EPSILON, 1 + EPSILON) * A,
    }


def build(figure, data):
    axes = figure.add_axes((0.08, 0.2, 0.9, 0.76))
    axes.set(xlim=(0, 2.2), ylim=(-2.4, 2.3), xticks=(0, 0.8, 1, 1.2, 2))
    axes.set_xlabel("ratio ρ of this token", fontsize=11)
    axes.set_ylabel("objective of this token", fontsize=11)
    axes.tick_params(labelsize=10.5)
    axes.axvspan(1 - EPSILON, 1 + EPSILON, color=BLACK, alpha=0.08, lw=0)
    axes.axhline(0, color=GREY, lw=0.8)
    artists = {
        "curve": axes.plot(RATIOS, data["curve"], lw=7, alpha=0.4)[0],
        "raw": axes.plot(RATIOS, data["raw"], ":", color=BLACK, lw=1.6, label="ρA")[0],
        "cut": axes.plot(RATIOS, data["cut"], "--", color=BLACK, lw=1.6, label="clip(ρ)A")[0],
    }
    axes.legend(loc="upper left", fontsize=10.5)
    return artists | {
        "arrow": axes.plot([], [], lw=3, color=BLACK, solid_capstyle="butt")[0],
        "tip": axes.plot([], [], color=BLACK, ms=11, ls="")[0],
        "dot": axes.plot([], [], "o", ms=13, mec="white", mew=1.5)[0],
        "text": axes.text(0.04, -2.2, "", fontsize=12, weight="bold", va="bottom"),
    }


def update(artists, data):
    color = POSITIVE if data["A"] > 0 else NEGATIVE
    for line in ("curve", "raw", "cut"):
        artists[line].set_ydata(data[line])
    artists["curve"].set_color(color)
    artists["dot"].set_data([data["ratio"]], [data["value"]])
    artists["dot"].set_markerfacecolor(color)
    length, y = 0.25 * data["push"], data["value"] + 0.3
    artists["arrow"].set_data([data["ratio"], data["ratio"] + length], [y, y])
    artists["tip"].set_data([data["ratio"] + length], [y])
    artists["tip"].set_marker(">" if length > 0 else "<")
    for name in ("arrow", "tip"):
        artists[name].set_visible(length != 0)
    artists["text"].set_text(readout(data))


def readout(data) -> str:
    kind = "good" if data["A"] > 0 else "bad"
    push = "push 0: silent" if data["push"] == 0 else f"push {signed(data['push'], 2)}"
    return f"{kind} token, A = {signed(data['A'], 1)}, ρ = {data['ratio']:.2f}: {push}"


def alt(data) -> str:
    return f"PPO's objective for one token against its ratio, epsilon 0.2. {readout(data)}."


def bad_and_silent(data) -> bool:
    """A bad token without a push."""
    return data["A"] < 0 and data["push"] == 0


def comes_back_slowly(data) -> bool:
    """A good token at half its old probability, and its small push."""
    return data["A"] > 0 and 0.45 <= data["ratio"] <= 0.55


def one_token_explorer() -> Explorer:
    """One token: its ratio, and the sign of its advantage."""
    return Explorer(
        compute,
        build,
        update,
        {
            "ratio": slider(1.0, 0.05, 2.2, 0.05, "ratio ρ", "new probability over old"),
            "A": choice(1.0, [("good, A = +1", 1.0), ("bad, A = −1", -1.0)], "the token",
                        "was the answer better or worse than the mean?"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 290),
    )  # fmt: skip
