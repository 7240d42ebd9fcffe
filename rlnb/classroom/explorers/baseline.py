"""A baseline in REINFORCE: what it does to one draw, to the mean of all draws, and to the noise.

The toy. A softmax over four answers, two right and two wrong, small enough for every mean to be a
sum. One answer a is drawn; the logits move by (r_a - b)(onehot(a) - pi).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import echoing
from rlnb.classroom.figures import BLACK, GREEN, GREY, NEGATIVE, PALE, POSITIVE, signed

__all__ = [
    "BASELINES",
    "PROBABILITIES",
    "REWARDS",
    "alt",
    "baseline_explorer",
    "build",
    "compute",
    "update",
]

PROBABILITIES = np.array([0.4, 0.1, 0.3, 0.2])
REWARDS = np.array([1.0, 1.0, 0.0, 0.0])
BASELINES = np.linspace(-1.0, 3.0, 161)
ARMS = len(REWARDS)
MAX_PUSH, MAX_ANSWERS = 4.4, 150
CAPTION = (
    "A baseline changes every single push and the noise, and leaves the mean of all pushes where "
    "it is."
)


@echoing
def compute(baseline: float = 0.0, offset: float = 0.0) -> dict[str, Any]:
    """One-answer REINFORCE on the four-answer toy, exact.

    `baseline` is b, `offset` is added to every reward; both in units of the reward. With the score
    s_a = onehot(a) - pi, a draw of a gives the ascent gradient g_a = (r_a - b) s_a. Returns

        probabilities (4,), rewards (4,) offset included, advantages (4,) = r - b,
        push (4, 4): row a is g_a; own_push (4,): its entry a, on the drawn answer's own logit,
        expected (4,): sum_a pi_a g_a,
        variance: sum_a pi_a |g_a|^2 - |expected|^2,
        answers: variance / |expected|^2, the draws to average until noise equals signal,
        mean_reward, best_baseline = E[|s|^2 r] / E[|s|^2], best_answers: `answers` there,
        curve (161,): `answers` over BASELINES, and the arguments.

    >>> [round(compute(b)["answers"], 2) for b in (0.0, 0.5, 3.0)]
    [3.13, 1.33, 62.33]
    >>> [compute(b)["expected"].round(4).tolist() for b in (0.0, 3.0)]
    [[0.2, 0.05, -0.15, -0.1], [0.2, 0.05, -0.15, -0.1]]
    """
    pi, rewards = PROBABILITIES, REWARDS + offset
    score = np.eye(ARMS) - pi
    size = (score**2).sum(1)
    push = (rewards - baseline)[:, None] * score
    expected = pi @ push
    signal = float((expected**2).sum())

    def answers(b: float) -> float:
        return float(pi @ ((rewards - b) ** 2 * size)) / signal - 1

    best = float(pi @ (size * rewards) / (pi @ size))
    return {
        "probabilities": pi,
        "rewards": rewards,
        "advantages": rewards - baseline,
        "push": push,
        "own_push": push.diagonal().copy(),
        "expected": expected,
        "variance": answers(baseline) * signal,
        "answers": answers(baseline),
        "mean_reward": float(pi @ rewards),
        "best_baseline": best,
        "best_answers": answers(best),
        "curve": np.array([answers(b) for b in BASELINES]),
    }


def build(figure, data):
    left = figure.add_axes((0.07, 0.3, 0.25, 0.55))
    middle = figure.add_axes((0.4, 0.3, 0.25, 0.55))
    right = figure.add_axes((0.735, 0.3, 0.25, 0.55))
    names = [f"{p:.1f}" for p in PROBABILITIES]
    for axes, title, limit in (
        (left, "one draw: push on the drawn logit", MAX_PUSH),
        (middle, "mean of all draws: push on each logit", 0.26),
    ):
        axes.set(xlim=(-0.6, ARMS - 0.4), ylim=(-limit, limit), xticks=range(ARMS))
        axes.set_xticklabels(
            [f"{n}\n{'right' if r else 'wrong'}" for n, r in zip(names, REWARDS, strict=True)]
        )
        axes.set_title(title, fontsize=9.5)
        axes.axhline(0, color=BLACK, linewidth=0.8)
    left.set_ylabel(r"$(r_a-b)(1-\pi_a)$", labelpad=1)
    middle.set_ylabel(r"$\pi_a(r_a-\mathbb{E}\,r)$", labelpad=0)
    for axes in (left, middle):
        axes.set_xlabel(r"answer, by its probability $\pi_a$", labelpad=1)
    right.set(
        xlim=(BASELINES[0], BASELINES[-1]),
        ylim=(1, MAX_ANSWERS),
        yscale="log",
        yticks=(1, 3, 10, 30, 100),
    )
    right.set_yticklabels(["1", "3", "10", "30", "100"])
    right.minorticks_off()
    right.set_title("draws until noise equals signal", fontsize=9.5)
    right.set_xlabel("baseline $b$", labelpad=1)
    right.axhspan(1, 1.29, color=PALE)
    artists = {
        "bars": left.bar(range(ARMS), np.zeros(ARMS), 0.62, ec="white", lw=0),
        "numbers": [left.text(a, 0, "", ha="center", va="center", fontsize=9) for a in range(ARMS)],
        "means": middle.bar(range(ARMS), np.zeros(ARMS), 0.62, ec="white", lw=0),
        "mean_numbers": [
            middle.text(a, 0, "", ha="center", va="center", fontsize=9) for a in range(ARMS)
        ],
        "curve": right.plot(BASELINES, data["curve"], color=BLACK)[0],
        "best": right.plot([0, 0], [1, MAX_ANSWERS], "--", color=GREEN, lw=1.4)[0],
        "here": right.plot([0], [1], "o", ms=10, color=BLACK, mec="white", clip_on=False)[0],
        "text": [figure.text(0.07, 0.1 - 0.075 * line, "", fontsize=9.5) for line in range(2)],
    }
    handles = [
        left.fill_between([], [], color=POSITIVE, label="pushed up"),
        left.fill_between(
            [], [], color=NEGATIVE, hatch="//", ec="white", lw=0, label="pushed down"
        ),
        right.plot([], [], "o", ms=8, color=BLACK, mec="white", label="this baseline")[0],
        right.plot([], [], "--", color=GREEN, lw=1.4, label="best baseline")[0],
        right.fill_between([], [], color=GREY, alpha=0.2, lw=0, label="no b gets here"),
    ]
    figure.legend(handles=handles, loc="upper center", ncols=5, bbox_to_anchor=(0.53, 1.01))
    return artists


def update(artists, data):
    for bars, numbers, values, gap, digits in (
        ("bars", "numbers", data["own_push"], 0.45, 2),
        ("means", "mean_numbers", data["expected"], 0.03, 2),
    ):
        for bar, text, v in zip(artists[bars], artists[numbers], values, strict=True):
            bar.set_height(v)
            bar.set(facecolor=POSITIVE if v > 0 else NEGATIVE, hatch="//" if v < 0 else "")
            text.set_text(signed(float(v), digits))
            text.set_y(v + (gap if v >= 0 else -gap))
    artists["curve"].set_ydata(data["curve"])
    artists["best"].set_xdata([data["best_baseline"]] * 2)
    artists["here"].set_data([data["baseline"]], [data["answers"]])
    for text, line in zip(artists["text"], _lines(data), strict=True):
        text.set_text(line)


def _lines(data) -> tuple[str, str]:
    rewards = ", ".join(f"{r:g}" for r in data["rewards"].round(2))
    b = f"{data['baseline']:.2f}".replace("-", "−")
    return (
        f"b = {b}, rewards {rewards}, mean reward {data['mean_reward']:.2f}: "
        f"variance of one draw {data['variance']:.4f}",
        f"draws until noise equals signal: {data['answers']:.1f} here, "
        f"{data['best_answers']:.1f} at the best baseline {data['best_baseline']:.2f}",
    )


def alt(data) -> str:
    pushes = ", ".join(signed(float(v), 2) for v in data["own_push"])
    means = ", ".join(signed(float(v), 2) for v in data["expected"])
    first, second = _lines(data)
    return (
        f"REINFORCE on four answers, two right and two wrong. {first}. Push on the drawn answer's "
        f"logit: {pushes}. Mean of all draws: {means}, at any baseline. {second[0].upper()}"
        f"{second[1:]}."
    )


def baseline_explorer() -> Explorer:
    """The baseline, and an offset added to every reward."""
    return Explorer(
        compute,
        build,
        update,
        {
            "baseline": slider(0.0, -1.0, 3.0, 0.05, "baseline b", "subtracted from every reward"),
            "offset": slider(
                0.0, 0.0, 2.0, 0.05, "added to all rewards", "1 turns rewards 1 and 0 into 2 and 1"
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 380),
    )
