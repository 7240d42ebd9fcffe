"""What a prompt weighs, by its pass rate: z-score, mean only, and the mean in the denominator."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice, choice_slider, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing, one_of
from rlnb.classroom.figures import BLACK, METHOD_COLORS, PURPLE

__all__ = [
    "RATES",
    "SIZES",
    "TOP",
    "alt",
    "build",
    "chances",
    "compute",
    "difficulty_explorer",
    "push",
    "update",
    "weight",
]

SIZES = (2, 4, 8, 16, 32, 64)
RATES = np.round(np.arange(0.01, 0.995, 0.01), 2)  # the pass rates of the curves
METHODS = {"zscore": "z-score (GRPO)", "mean": "mean only (Dr. GRPO)", "maxrl": "MaxRL"}
SHOWN = {"weight": r"weight on $\nabla p$", "signal": r"net signal, weight $\cdot\,p(1-p)$"}
TOP = {"weight": 10.5, "signal": 1.05}
LOOK = {
    "zscore": {"color": METHOD_COLORS["grpo"], "ls": "-"},
    "mean": {"color": METHOD_COLORS["dr_grpo"], "ls": "--"},
    "maxrl": {"color": PURPLE, "ls": "-."},
}
DOT = {"ms": 9, "mfc": BLACK, "mec": "white", "mew": 1.4, "ls": ""}
CAPTION = (
    "The z-score's weight is the same at p and 1−p; only MaxRL prefers hard prompts (its weight "
    "can leave the axis near p = 0). Near 0 and 1 most groups say nothing under any of them."
)


@lru_cache
def _binomial(size: int) -> np.ndarray:
    return np.array([math.comb(size, k) for k in range(size + 1)], dtype=float)


def chances(p: np.ndarray, size: int) -> np.ndarray:
    """(M,) pass rates -> (M, G+1): probability of k right answers among G."""
    k = np.arange(size + 1)
    p = np.asarray(p, dtype=float)[:, None]
    return _binomial(size) * p**k * (1 - p) ** (size - k)


def push(method: str, size: int) -> np.ndarray:
    """(G+1,): the sum of A over the right answers of a group with k right ones.

    sqrt(k (G-k)) for the z-score, k (G-k) / G for the mean alone, G - k for (r - mean) / mean,
    all of them 0 at k = 0 and k = G. The wrong answers have minus the same.
    """
    k = np.arange(size + 1.0)
    if method == "zscore":
        return np.sqrt(k * (size - k))
    if method == "mean":
        return k * (size - k) / size
    return np.where(k > 0, size - k, 0.0)


def weight(p: np.ndarray, size: int, method: str) -> np.ndarray:
    """(M,) pass rates -> (M,): E[push] / (G p (1-p)), the factor on grad p."""
    p = np.asarray(p, dtype=float)
    return chances(p, size) @ push(method, size) / (size * p * (1 - p))


@echoing
@checked(rate=between(0.01, 0.99), size=one_of(SIZES), method=one_of(METHODS), show=one_of(SHOWN))
def compute(
    rate: float = 0.1, size: int = 16, method: str = "zscore", show: str = "weight"
) -> dict[str, Any]:
    """Weight of a prompt with pass rate `rate` in the expected gradient, rewards 0 or 1, eps 0.

    The expected gradient of a group of `size` answers is weight * grad p, exactly, for any of the
    three advantages: `method` is "zscore" (r - mean)/std, "mean" r - mean, or "maxrl" (r -
    mean)/mean, with 0 for a group without a right answer. `show` is what the figure draws:
    "weight", or "signal" = weight * p (1-p), the push on the logit of the pass rate. `rate` lies
    in [0.01, 0.99]. Returns weight and signal at `rate`, mirror (the weight at 1 - rate), silent
    (probability of an all-equal group), right (expected number of right answers), rates (99,),
    curves {method: (99,)} of what is shown, silent_curve (99,), and the arguments.

    >>> [round(compute(p)["weight"], 4) for p in (0.5, 0.1, 0.9, 0.01)]
    [1.9341, 2.8478, 2.8478, 3.733]
    """
    curves = {name: weight(RATES, size, name) for name in METHODS}
    if show == "signal":
        curves = {name: curve * RATES * (1 - RATES) for name, curve in curves.items()}
    here, mirror = weight(np.array([rate, 1 - rate]), size, method)
    return {
        "weight": float(here),
        "mirror": float(mirror),
        "signal": float(here * rate * (1 - rate)),
        "silent": float(rate**size + (1 - rate) ** size),
        "right": rate * size,
        "rates": RATES,
        "curves": curves,
        "silent_curve": RATES**size + (1 - RATES) ** size,
    }


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    left = figure.add_axes((0.075, 0.29, 0.4, 0.61))
    right = figure.add_axes((0.575, 0.29, 0.41, 0.61))
    left.set(xlim=(0, 1), ylim=(0, 1.0), yticks=[], xlabel="pass rate $p$ of the prompt")
    right.set(xlim=(0, 1), ylim=(0, 1.03), xlabel="pass rate $p$ of the prompt")
    right.set_yticks(np.linspace(0, 1, 6))
    right.set_ylabel("P(all right or all wrong)", labelpad=4)
    nothing = np.full(len(RATES), np.nan)
    ticks = np.linspace(0, 1, 5)[:-1] + 0.0
    artists = {
        "ticks": [left.text(-0.015, t, "", ha="right", va="center", size=9) for t in ticks],
        "name": left.text(-0.14, 0.5, "", rotation=90, ha="center", va="center", size=10),
        "p": [a.plot([0.5, 0.5], [0, 1.03], ":", color=BLACK, lw=1.1)[0] for a in (left, right)],
    }
    for name, look in LOOK.items():
        artists[name] = left.plot(RATES, nothing, **look)[0]
    artists["silent"] = right.plot(RATES, nothing, "-", color=BLACK, lw=2.2)[0]
    artists["here"] = left.plot([], [], "o", **DOT)[0]
    artists["silent here"] = right.plot([], [], "o", **DOT)[0]
    artists["text"] = [figure.text(0.075, 0.115 - 0.066 * i, "", fontsize=9.5) for i in range(2)]
    handles = [left.plot([], [], **LOOK[n], label=label)[0] for n, label in METHODS.items()]
    handles.append(left.plot([], [], "o", **DOT, label="here")[0])
    silent = [right.plot([], [], "-", color=BLACK, lw=2.2, label="P(no signal)")[0]]
    for some, middle in ((handles, 0.27), (silent, 0.78)):
        figure.legend(
            handles=some,
            loc="upper center",
            ncols=4,
            bbox_to_anchor=(middle, 1.005),
            handlelength=2.2,
            columnspacing=1.0,
        )
    return artists


def update(artists, data):
    """The figure moved to new data."""
    top = TOP[data["show"]]
    for text, share in zip(artists["ticks"], np.linspace(0, 1, 5)[:-1], strict=True):
        value = share * (10 if data["show"] == "weight" else 1)
        text.set(text=f"{value:g}", y=value / top)
    artists["name"].set_text(SHOWN[data["show"]])
    for name, curve in data["curves"].items():
        artists[name].set_ydata(np.where(curve <= top, curve / top, np.nan))
        artists[name].set_linewidth(3.0 if name == data["method"] else 1.6)
    for line in artists["p"]:
        line.set_xdata([data["rate"]] * 2)
    value = data[data["show"]]
    artists["here"].set_data([data["rate"]], [min(value / top, 1.0)])
    artists["silent"].set_ydata(data["silent_curve"])
    artists["silent here"].set_data([data["rate"]], [data["silent"]])
    for text, line in zip(artists["text"], _lines(data), strict=True):
        text.set_text(line)


def _lines(data) -> tuple[str, str]:
    p, beyond = data["rate"], data[data["show"]] > TOP[data["show"]]
    return (
        f"{METHODS[data['method']]}, G = {data['size']}, p = {p:.2f}: weight {data['weight']:.4f}, "
        f"at 1−p {data['mirror']:.4f}  ·  net signal {data['signal']:.4f}"
        f"{'  ·  above the axis' if beyond else ''}",
        f"P(no signal) {data['silent']:.4f}  ·  {data['right']:.2f} right answers expected among "
        f"{data['size']}",
    )


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    first, second = (" ".join(line.split()) for line in _lines(data))
    name = {"weight": "Weight on the gradient of the pass rate", "signal": "Net signal"}
    return (
        f"{name[data['show']]} (left) and probability of a group without signal (right) against "
        f"the pass rate, for z-score, mean only and MaxRL. {first}. {second}."
    )


def difficulty_explorer() -> Explorer:
    """Pass rate, group size, method, weight or net signal."""
    return Explorer(
        compute,
        build,
        update,
        {
            "rate": slider(0.1, 0.01, 0.99, 0.01, "pass rate p", "how often the prompt is solved"),
            "size": choice_slider(
                16, [(str(g), g) for g in SIZES], "group size G", "answers to the one prompt"
            ),
            "method": choice(
                "zscore",
                [("z-score", "zscore"), ("mean only", "mean"), ("MaxRL", "maxrl")],
                "advantage",
                "(r − mean)/std, r − mean, (r − mean)/mean",
            ),
            "show": choice(
                "weight",
                [("weight on ∇p", "weight"), ("net signal", "signal")],
                "left panel",
                "the factor on the gradient of the pass rate, or that times p(1−p)",
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 370),
    )
