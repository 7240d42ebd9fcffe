"""How much noise a baseline leaves: a fixed number, the mean of the others, GRPO's z-score.

Four softmax toys with one-token answers. Everything is exact: the fixed number has a formula, the
group estimators are enumerated over all groups of G answers (`rlnb.toys.estimator_moments`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice, choice_slider, slider
from rlnb.classroom.explorers.arguments import checked, echoing, one_of
from rlnb.classroom.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PALE, PURPLE, VERMILLION
from rlnb.objective import ZOO
from rlnb.toys import Bandit, estimator_moments

__all__ = [
    "BASELINES",
    "SIZES",
    "TOYS",
    "alt",
    "baseline_variance_explorer",
    "build",
    "compute",
    "update",
]

TOYS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "graded": ((0.5, 0.3, 0.2), (1.0, 0.2, 0.0)),
    "graded, best one rare": ((0.3, 0.3, 0.4), (1.0, 0.2, 0.0)),
    "two arms": ((0.9, 0.1), (1.0, 0.0)),
    "fifty arms": ((0.02,) * 50, (1.0,) * 45 + (0.0,) * 5),
}
SIZES = (2, 3, 4, 6, 8, 12, 16)
BASELINES = np.linspace(-0.5, 1.5, 201)
ESTIMATORS = ("group mean", "leave-one-out", "z-score")
LOOK = {  # colour, dashes, marker
    "group mean": (VERMILLION, "--", "s"),
    "leave-one-out": (PURPLE, "-", "o"),
    "z-score": (BLUE, "-.", "^"),
}
NAMED = {
    "none": (ORANGE, ":"),
    "mean reward": (BLACK, "-."),
    "greedy answer": (PURPLE, ":"),
    "optimal": (GREEN, "--"),
}
LOW, HIGH, LONGEST = 0.05, 100.0, 3.6
CAPTION = (
    "A baseline near the optimal one lowers the noise and one far from it raises it; group mean "
    "and leave-one-out differ in length only, and their noise per answer is the same."
)


@echoing
@checked(toy=one_of(TOYS), num_generations=one_of(SIZES))
def compute(toy: str = "graded", baseline: float = 0.56, num_generations: int = 4) -> dict:
    """Noise of one-answer REINFORCE at a fixed b, and of the estimators from a group of G.

    With the score s_a = onehot(a) - pi and the truth g = grad J,

        variance        sum_a pi_a (r_a - b)^2 |s_a|^2 - |g|^2, for one answer
        named           none 0, mean reward E r, greedy answer (ReMax), optimal
                        E[|s|^2 r] / E[|s|^2]: name -> (b, variance / variance at b = 0)
        relative        variance / variance at b = 0; curve (201,): the same over BASELINES
        groups          name -> {"length", "cosine", "noise"}, each (7,) over SIZES:
                        E[g_hat] . g / |g|^2 (1 when unbiased), the cosine of E[g_hat] and g, and
                        answers until noise equals signal, G var / |E g_hat|^2, over that at b = 0
        here            index of num_generations in SIZES

    Raises ValueError for an unknown toy or a group size that is not in SIZES.

    >>> d = compute("graded", 1.0)
    >>> round(d["variance"], 4), round(d["named"]["optimal"][0], 4)
    (0.2732, 0.3819)
    >>> d["groups"]["group mean"]["length"].round(4).tolist()[:3]
    [0.5, 0.6667, 0.75]
    """
    pi, rewards, size = _tables(toy)
    mean = float(pi @ rewards)
    truth = pi * (rewards - mean)
    signal = float(truth @ truth)

    def variance(b: float) -> float:
        return float(pi @ ((rewards - b) ** 2 * size)) - signal

    none = variance(0.0)
    best = float(pi @ (size * rewards) / (pi @ size))
    named = {
        "none": 0.0,
        "mean reward": mean,
        "greedy answer": float(rewards[pi.argmax()]),
        "optimal": best,
    }
    return {
        "variance": variance(baseline),
        "relative": variance(baseline) / none,
        "named": {name: (b, variance(b) / none) for name, b in named.items()},
        "curve": np.array([variance(b) for b in BASELINES]) / none,
        "groups": _groups(toy),
        "here": SIZES.index(num_generations),
    }


def _tables(toy: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    pi, rewards = (np.array(x) for x in TOYS[toy])
    score = np.eye(len(pi)) - pi
    return pi, rewards, (score**2).sum(1)


@cache
def _groups(toy: str) -> dict[str, dict[str, np.ndarray]]:
    pi, rewards, size = _tables(toy)
    policy = Bandit(np.log(pi))
    found = {}
    for name, objective in (
        ("leave-one-out", ZOO["rloo"]),
        ("z-score", ZOO["grpo"].replace(terms=())),
    ):
        rows = []
        for count in SIZES:
            m = estimator_moments(policy, list(rewards), objective, count)
            signal = float(m.truth.square().sum())
            none = float(pi @ (rewards**2 * size)) / signal - 1  # answers at b = 0
            rows.append(
                (
                    float((m.mean * m.truth).sum()) / signal,
                    m.cosine,
                    count * m.trace / float(m.mean.square().sum()) / none,
                )
            )
        found[name] = dict(zip(("length", "cosine", "noise"), np.array(rows).T, strict=True))
    # r - mean of all = (G-1)/G (r - mean of the others): shorter, otherwise the same
    shrink = 1 - 1 / np.array(SIZES)
    loo = found["leave-one-out"]
    return {"group mean": loo | {"length": loo["length"] * shrink}} | found


def build(figure, data):
    left = figure.add_axes((0.07, 0.28, 0.27, 0.57))
    middle = figure.add_axes((0.415, 0.28, 0.245, 0.57))
    right = figure.add_axes((0.745, 0.28, 0.245, 0.57))
    for axes in (left, right):
        axes.set(yscale="log", ylim=(LOW, HIGH), yticks=(0.1, 1, 10, 100))
        axes.set_yticklabels(["0.1", "1", "10", "100"])
        axes.minorticks_off()
        axes.axhspan(1, HIGH, color=PALE, lw=0)
    left.set(xlim=(BASELINES[0], BASELINES[-1]))
    left.set_xlabel("baseline $b$, the same for every answer", labelpad=1)
    left.set_title("noise of one answer (b = 0 is 1)", fontsize=9.5)
    right.text(17, 14, "worse than no baseline", ha="right", va="center", color=GREY, fontsize=9)
    middle.set(ylim=(0, LONGEST))
    middle.axhline(1, color=GREY, lw=0.8)
    middle.set_title("length of the mean (truth is 1)", fontsize=9.5)
    right.set_title("noise per answer (b = 0 is 1)", fontsize=9.5)
    for axes in (middle, right):
        axes.set(xscale="log", xlim=(1.8, 18), xticks=(2, 4, 8, 16))
        axes.set_xticklabels(["2", "4", "8", "16"])
        axes.minorticks_off()
        axes.set_xlabel("group size $G$", labelpad=1)
    artists: dict[str, Any] = {
        "named": {
            name: left.plot([0, 0], [LOW, HIGH], linestyle=dash, color=color, lw=1.5)[0]
            for name, (color, dash) in NAMED.items()
        },
        "curve": left.plot(BASELINES, np.ones_like(BASELINES), color=BLACK, lw=1.8)[0],
        "here": left.plot([0], [1], "o", ms=9, color=BLACK, mec="white", clip_on=False)[0],
        "length": {},
        "noise": {},
        "dots": {},
        "text": [figure.text(0.07, 0.11 - 0.075 * line, "", fontsize=9.5) for line in range(2)],
    }
    for name in ESTIMATORS:
        color, dash, marker = LOOK[name]
        look = {"color": color, "linestyle": dash, "lw": 1.8}
        dot = {"marker": marker, "color": color, "ms": 8, "mec": "white", "ls": ""}
        if name == "group mean":  # hollow: on the right it stands around another
            dot |= {"ms": 12, "mfc": "none", "mec": color, "mew": 1.6}
        artists["length"][name] = middle.plot(SIZES, np.ones(len(SIZES)), **look)[0]
        # one line for two: they coincide
        if name != "group mean":
            artists["noise"][name] = right.plot(SIZES, np.ones(len(SIZES)), **look)[0]
        artists["dots"][name] = [middle.plot([2], [1], **dot)[0], right.plot([2], [1], **dot)[0]]
    lines = [
        left.plot([], [], linestyle=dash, color=color, lw=1.5, label=f"$b$: {name}")[0]
        for name, (color, dash) in NAMED.items()
    ]
    curves = [
        left.plot(
            [], [], color=LOOK[n][0], linestyle=LOOK[n][1], marker=LOOK[n][2], mec="white", label=n
        )[0]
        for n in ESTIMATORS
    ]
    figure.legend(
        handles=lines + curves,
        loc="upper center",
        ncols=7,
        columnspacing=0.9,
        handletextpad=0.4,
        handlelength=2.2,
        fontsize=9,
        bbox_to_anchor=(0.52, 1.01),
    )
    return artists


def update(artists, data):
    for name, (b, _) in data["named"].items():
        artists["named"][name].set_xdata([b, b])
    artists["curve"].set_ydata(np.clip(data["curve"], LOW / 10, HIGH * 10))
    artists["here"].set_data([data["baseline"]], [np.clip(data["relative"], LOW, HIGH)])
    size, i = data["num_generations"], data["here"]
    for name in ESTIMATORS:
        values = data["groups"][name]
        artists["length"][name].set_ydata(values["length"])
        artists["dots"][name][0].set_data([size], [values["length"][i]])
        artists["dots"][name][1].set_data([size], [np.clip(values["noise"][i], LOW, HIGH)])
        if name in artists["noise"]:
            artists["noise"][name].set_ydata(values["noise"])
    for text, line in zip(artists["text"], _lines(data), strict=True):
        text.set_text(line)


def _lines(data) -> tuple[str, str]:
    b = f"{data['baseline']:.2f}".replace("-", "−")
    named = ", ".join(
        f"{name} {at:.2f} ({noise:.2f})"
        for name, (at, noise) in data["named"].items()
        if name != "none"
    )
    i, groups = data["here"], data["groups"]
    lengths = ", ".join(f"{name} {groups[name]['length'][i]:.2f}" for name in ESTIMATORS)
    return (
        f"b = {b}: noise {data['relative']:.2f}; {named}",
        f"G = {data['num_generations']}: {lengths} (cosine {groups['z-score']['cosine'][i]:.3f}); "
        f"noise {groups['leave-one-out']['noise'][i]:.2f}, z-score "
        f"{groups['z-score']['noise'][i]:.2f}",
    )


def alt(data) -> str:
    first, second = _lines(data)
    return (
        f"Noise left by a baseline, in units of the noise without one, toy '{data['toy']}'. "
        f"{first}. Length of the mean gradient and noise per answer at {second}."
    )


def baseline_variance_explorer() -> Explorer:
    """The toy, a fixed baseline, and the size of the group that estimates one."""
    return Explorer(
        compute,
        build,
        update,
        {
            "toy": choice(
                "graded",
                [(name, name) for name in TOYS],
                "toy",
                "probabilities and rewards of the answers",
            ),
            "baseline": slider(0.56, -0.5, 1.5, 0.02, "baseline b", "one number for every answer"),
            "num_generations": choice_slider(
                4, [(str(n), n) for n in SIZES], "group size G", "answers to one prompt"
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 390),
    )
