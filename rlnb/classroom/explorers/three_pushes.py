"""Three possible answers, three possible pushes: what a baseline does to each and to their spread.

The toy. A softmax over three answers, good, poor and wrong, with rewards 1, 0.2 and 0. One answer
is drawn, and the logits are pushed by (R - b)(onehot - pi).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.patches import FancyArrowPatch

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing
from rlnb.classroom.figures import BLACK, GREEN, GREY, NEGATIVE, PALE, POSITIVE, signed

NAMES = ("good", "poor", "wrong")
REWARDS = np.array([1.0, 0.2, 0.0])
BASELINES = np.linspace(-0.4, 1.2, 161)
LOW, HIGH = 0.1, 60.0
NEAR = 0.025  # so far from the mean reward still counts as on it
# the plane of the pushes, which sum to 0 over the logits: one direction per logit, lengths kept
PLANE = np.sqrt(2 / 3) * np.array(
    [[np.cos(angle), np.sin(angle)] for angle in np.radians((90, 210, 330))]
)
LABELS = ((0.3, 1.05, "left"), (-1.56, -0.86, "left"), (1.56, -0.86, "right"))
CAPTION = (
    "Left, an arrow per answer that can be drawn: blue pushes it up, orange down. The mean, black, "
    "never moves with b; the dotted strays from it do. Right: the noise, which they make."
)


@echoing
@checked(good=between(0.01, 0.99))
def compute(baseline: float = 0.0, good: float = 0.3) -> dict[str, Any]:
    """Pushes and noise when the good answer has probability `good`, the others the rest, 3 : 4.

    Returns probabilities (3,), advantages (3,) = R - b, push (3, 3) (row a: answer a is drawn),
    expected (3,), noise = E|push - expected|^2 / |expected|^2 here and as none (b = 0), at_mean,
    lowest (b = best) and curve (161,) over BASELINES; mean_reward and best, the baseline with the
    least noise; and the arguments.

    >>> data = compute()
    >>> [round(data[name], 2) for name in ("noise", "at_mean", "lowest", "best")]
    [2.85, 1.08, 1.06, 0.4]
    """
    pi = np.array([good, (1 - good) * 3 / 7, (1 - good) * 4 / 7])
    scores = np.eye(3) - pi
    size = (scores**2).sum(1)
    mean_reward = float(pi @ REWARDS)
    expected = pi * (REWARDS - mean_reward)
    signal = float(expected @ expected)

    def noise(b: float) -> float:
        return float(pi @ ((REWARDS - b) ** 2 * size)) / signal - 1

    best = float(pi @ (size * REWARDS) / (pi @ size))
    return {
        "probabilities": pi,
        "advantages": REWARDS - baseline,
        "push": (REWARDS - baseline)[:, None] * scores,
        "expected": expected,
        "noise": noise(baseline),
        "none": noise(0.0),
        "at_mean": noise(mean_reward),
        "lowest": noise(best),
        "curve": np.array([noise(b) for b in BASELINES]),
        "mean_reward": mean_reward,
        "best": best,
    }


def build(figure, data):
    left = figure.add_axes((0.0, 0.0, 0.46, 1.0))
    left.set(xlim=(-1.57, 1.57), ylim=(-1.05, 1.25), aspect="equal")
    left.axis("off")
    right = figure.add_axes((0.54, 0.17, 0.44, 0.72))
    right.set(xlim=(BASELINES[0], BASELINES[-1]), ylim=(LOW, HIGH), yscale="log")
    right.set_yticks((0.1, 1, 10), ["0.1", "1", "10"])
    right.minorticks_off()
    right.tick_params(labelsize=10.5)
    right.set_xlabel("baseline b", fontsize=10.5)
    right.set_ylabel("noise (log scale)", fontsize=10.5)
    artists: dict[Any, Any] = {"arrows": [], "labels": []}
    artists["stray"] = []
    for direction, (x, y, side) in zip(PLANE, LABELS, strict=True):
        left.plot(*zip((0, 0), 1.5 * direction, strict=True), color=PALE, lw=1.5, zorder=0)
        artists["stray"] += left.plot((0, 0), (0, 0), ":", color=GREY, lw=1.3, zorder=1)
        arrow = FancyArrowPatch((0, 0), (1, 1), arrowstyle="-|>", mutation_scale=18, shrinkA=0,
                                shrinkB=0)  # fmt: skip
        artists["arrows"].append(left.add_patch(arrow))
        artists["labels"].append(left.text(x, y, "", fontsize=10.5, ha=side, va="center"))
    mean = FancyArrowPatch((0, 0), (1, 1), arrowstyle="-|>", mutation_scale=16, shrinkA=0,
                           shrinkB=0, color=BLACK, lw=3.5, zorder=5)  # fmt: skip
    artists["mean"] = left.add_patch(mean)
    artists["worse"] = right.axhspan(1, HIGH, color=PALE, lw=0)
    artists["word"] = right.text(-0.38, 40, "noisier than b = 0", va="center", fontsize=10.5,
                                 color=GREY)  # fmt: skip
    artists["curve"] = right.plot(BASELINES, data["curve"], color=BLACK, lw=2)[0]
    for name, color, dash in (("mean_reward", GREY, "--"), ("best", GREEN, ":")):
        artists[name] = right.plot([0, 0], [LOW, HIGH], color=color, ls=dash, lw=2)[0]
    right.text(0, 1.03, "dashed: mean reward", color=GREY, fontsize=10.5, weight="bold",
               transform=right.transAxes)  # fmt: skip
    right.text(1, 1.03, "dotted: least noise", color=GREEN, fontsize=10.5, weight="bold",
               ha="right", transform=right.transAxes)  # fmt: skip
    artists["here"] = right.plot([0], [1], "o", ms=11, color=BLACK, mec="white", clip_on=False)[0]
    return artists


def update(artists, data):
    rows = zip(artists["arrows"], artists["labels"], artists["stray"], data["push"],
               data["advantages"], data["probabilities"], NAMES, strict=True)  # fmt: skip
    mean = data["expected"] @ PLANE
    for arrow, label, stray, push, advantage, p, name in rows:
        tip = push @ PLANE
        stray.set_data((mean[0], tip[0]), (mean[1], tip[1]))
        arrow.set_positions((0, 0), tuple(tip))
        length = float(np.hypot(*tip))
        arrow.set_visible(length > 0.02)
        arrow.set_mutation_scale(min(18.0, 90 * length))  # a short arrow has a small head
        color = POSITIVE if advantage > 0 else NEGATIVE
        arrow.set(color=color if advantage else GREY, lw=min(1.5 + 6 * p, 1 + 20 * length))
        label.set_text(f"{name} drawn, p = {p:.2f}\nR − b = {signed(float(advantage), 2)}")
        label.set_color(color if abs(advantage) > 1e-9 else GREY)
    artists["mean"].set_positions((0, 0), tuple(mean))
    artists["mean"].set_mutation_scale(min(16.0, 90 * float(np.hypot(*mean))))
    artists["curve"].set_ydata(np.clip(data["curve"], LOW / 10, HIGH * 10))
    artists["worse"].set_y(data["none"])
    artists["worse"].set_height(HIGH - data["none"])
    for name in ("mean_reward", "best"):
        artists[name].set_xdata([data[name]] * 2)
    artists["here"].set_data([data["baseline"]], [np.clip(data["noise"], LOW, HIGH)])


def readout(data) -> str:
    return (
        f"b = {signed_b(data['baseline'])}: noise {data['noise']:.2f}. With b = 0: "
        f"{data['none']:.2f}. With the mean reward, {data['mean_reward']:.2f}: "
        f"{data['at_mean']:.2f}. With the best b, {data['best']:.2f}: {data['lowest']:.2f}."
    )


def signed_b(b: float) -> str:
    """Two decimals and a true minus."""
    return f"{b:.2f}".replace("-", "−")


def alt(data) -> str:
    pushes = ", ".join(
        f"{name} {signed(float(a), 2)}" for name, a in zip(NAMES, data["advantages"], strict=True)
    )
    mean = ", ".join(signed(float(x), 3) for x in data["expected"])
    return (
        f"Three arrows, one per answer, of weight R − b: {pushes}. Their mean push on the logits: "
        f"{mean}. {readout(data)}"
    )


def mean_reward_is_worse_than_none(data) -> bool:
    """b stands on the mean reward, and is noisier than b = 0."""
    return abs(data["baseline"] - data["mean_reward"]) < NEAR and data["noise"] > data["none"]


def three_pushes_explorer() -> Explorer:
    """The baseline, and how sure the policy is of the good answer."""
    return Explorer(
        compute,
        build,
        update,
        {
            "baseline": slider(0.0, -0.4, 1.2, 0.02, "baseline b", "subtracted from every reward"),
            "good": slider(0.3, 0.05, 0.95, 0.05, "π(good)", "the others share the rest, 3 to 4"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 310),
    )
