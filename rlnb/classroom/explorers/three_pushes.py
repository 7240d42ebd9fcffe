"""Three possible answers, three possible pushes: what a baseline does to their noise.

The toy. A softmax over three answers, good, poor and wrong, with rewards 1, 0.2 and 0. One answer
is drawn, and the logits are pushed by (R - b)(onehot - pi). A grader that adds c points to all
rewards, and subtracts nothing, is b = -c.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing
from rlnb.classroom.figures import BLACK, GREEN, GREY, NEGATIVE, PALE, POSITIVE, signed

NAMES = ("good", "poor", "wrong")
REWARDS = np.array([1.0, 0.2, 0.0])
BASELINES = np.linspace(-1.4, 2.2, 181)
LOW, HIGH = 0.1, 60.0
WIDEST = 4.0  # where the bars end
ABOVE = 0.1  # the task: how far above the mean reward
CAPTION = (
    "Left: what each draw adds to the noise, its chance times its squared distance from the mean "
    "push. The three parts add up to the dot on the right. There, lower is better."
)


@echoing
@checked(good=between(0.01, 0.99))
def compute(baseline: float = 0.0, good: float = 0.3) -> dict[str, Any]:
    """Pushes and noise when the good answer has probability `good`, the others the rest, 3 : 4.

    Returns probabilities (3,), advantages (3,) = R - b, push (3, 3) (row a: answer a is drawn),
    expected (3,), noise = E|push - expected|^2 / |expected|^2, here and as none (b = 0), at_mean,
    lowest (b = best) and curve (181,) over BASELINES; parts (3,), what each draw adds to the noise
    here; mean_reward and best, the baseline with the least noise; and the arguments.

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
    push = (REWARDS - baseline)[:, None] * scores

    def noise(b: float) -> float:
        return float(pi @ ((REWARDS - b) ** 2 * size)) / signal - 1

    best = float(pi @ (size * REWARDS) / (pi @ size))
    return {
        "probabilities": pi,
        "advantages": REWARDS - baseline,
        "push": push,
        "expected": expected,
        "parts": pi * ((push - expected) ** 2).sum(1) / signal,
        "noise": noise(baseline),
        "none": noise(0.0),
        "at_mean": noise(mean_reward),
        "lowest": noise(best),
        "curve": np.array([noise(b) for b in BASELINES]),
        "mean_reward": mean_reward,
        "best": best,
    }


def build(figure, data):
    left = figure.add_axes((0.21, 0.17, 0.24, 0.72))
    left.set(xlim=(0, WIDEST), ylim=(2.6, -0.6), yticks=(), xticks=range(5))
    left.tick_params(labelsize=10.5)
    left.set_xlabel("part of the noise", fontsize=10.5)
    right = figure.add_axes((0.55, 0.17, 0.43, 0.72))
    right.set(xlim=(BASELINES[0], BASELINES[-1]), ylim=(LOW, HIGH), yscale="log")
    right.set_yticks((0.1, 1, 10), ["0.1", "1", "10"])
    right.set_xticks((-1, 0, 1, 2))
    right.minorticks_off()
    right.tick_params(labelsize=10.5)
    right.set_xlabel("baseline b", fontsize=10.5)
    right.set_ylabel("noise (log scale)", fontsize=10.5)
    artists: dict[Any, Any] = {
        "bars": left.barh(range(3), np.ones(3), 0.55, lw=0),
        "numbers": [left.text(0, y, "", fontsize=11, weight="bold", va="center") for y in range(3)],
        "labels": [
            left.text(-0.15, y, "", fontsize=10.5, ha="right", va="center") for y in range(3)
        ],
    }
    artists["worse"] = right.axhspan(1, HIGH, color=PALE, lw=0)
    artists["word"] = right.text(0.02, 0.93, "noisier than b = 0", va="center", fontsize=10.5,
                                 color=GREY, transform=right.transAxes)  # fmt: skip
    artists["curve"] = right.plot(BASELINES, data["curve"], color=BLACK, lw=2)[0]
    for name, color, dash in (("mean_reward", GREY, "--"), ("best", GREEN, ":")):
        artists[name] = right.plot([0, 0], [LOW, HIGH], color=color, ls=dash, lw=2)[0]
    right.text(0, 1.03, "dashed: mean reward", color=GREY, fontsize=10.5, weight="bold",
               transform=right.transAxes)  # fmt: skip
    right.text(1, 1.03, "dotted: least noise", color=GREEN, fontsize=10.5, weight="bold",
               ha="right", transform=right.transAxes)  # fmt: skip
    artists["zero"] = right.plot([0], [1], "o", ms=9, color="white", mec=BLACK, mew=1.6)[0]
    artists["zero_word"] = right.text(0, 1, "b = 0", fontsize=10.5, va="center")
    artists["here"] = right.plot([0], [1], "o", ms=11, color=BLACK, mec="white", clip_on=False)[0]
    return artists


def update(artists, data):
    rows = zip(artists["bars"], artists["numbers"], artists["labels"], data["parts"],
               data["advantages"], data["probabilities"], NAMES, strict=True)  # fmt: skip
    for bar, number, label, part, advantage, p, name in rows:
        color = POSITIVE if advantage > 1e-9 else NEGATIVE if advantage < -1e-9 else GREY
        beyond = part > WIDEST
        bar.set_width(min(part, WIDEST))
        bar.set_facecolor(color)
        inside = part > 0.8 * WIDEST
        number.set_text(f"{part:.2f}{' →' if beyond else ''}")
        number.set_x(0.98 * min(part, WIDEST) if inside else part + 0.06)
        number.set(ha="right" if inside else "left", color="white" if inside else BLACK)
        label.set_text(f"{name} drawn, p = {p:.2f}\nR − b = {signed(float(advantage), 2)}")
        label.set_color(color)
    artists["curve"].set_ydata(np.clip(data["curve"], LOW / 10, HIGH * 10))
    artists["worse"].set_y(data["none"])
    artists["worse"].set_height(max(HIGH - data["none"], 0.0))
    for name in ("mean_reward", "best"):
        artists[name].set_xdata([data[name]] * 2)
    none = float(np.clip(data["none"], LOW, HIGH))
    artists["zero"].set_data([0], [none])
    left_of_it = data["best"] > 0  # the word stands outside the bowl
    artists["zero_word"].set(x=-0.09 if left_of_it else 0.09, y=none * 0.8,
                             ha="right" if left_of_it else "left")  # fmt: skip
    artists["here"].set_data([data["baseline"]], [np.clip(data["noise"], LOW, HIGH)])


def readout(data) -> str:
    return (
        f"b = {minus(data['baseline'])}: noise {data['noise']:.2f}. b = 0: {data['none']:.2f}. "
        f"Mean reward, {minus(data['mean_reward'])}: {data['at_mean']:.2f}. Best b, "
        f"{minus(data['best'])}: {data['lowest']:.2f}."
    )


def minus(b: float) -> str:
    """Two decimals and a true minus."""
    return f"{b:.2f}".replace("-0.00", "0.00").replace("-", "−")


def alt(data) -> str:
    parts = ", ".join(
        f"{name} (R − b {signed(float(a), 2)}) {part:.2f}"
        for name, a, part in zip(NAMES, data["advantages"], data["parts"], strict=True)
    )
    mean = ", ".join(signed(float(x), 3) for x in data["expected"])
    return f"Parts of the noise: {parts}. The mean push on the logits: {mean}. {readout(data)}"


def above_the_mean_and_quieter(data) -> bool:
    """b is 0.1 or more above the mean reward, and less noisy than it."""
    far = data["baseline"] >= data["mean_reward"] + ABOVE - 1e-9
    return far and data["noise"] < data["at_mean"]


def three_pushes_explorer() -> Explorer:
    """The baseline, and how sure the policy is of the good answer."""
    return Explorer(
        compute,
        build,
        update,
        {
            "baseline": slider(0.0, -1.4, 2.2, 0.02, "baseline b", "subtracted from every reward"),
            "good": slider(0.3, 0.05, 0.95, 0.05, "π(good)", "the others share the rest, 3 to 4"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 300),
    )
