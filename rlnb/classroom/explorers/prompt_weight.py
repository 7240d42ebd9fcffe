"""What dividing by the group's std does between two prompts: the weight, and the net push."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import between, checked, one_of
from rlnb.classroom.figures import BLACK, GREY, ORANGE

SIZES = (2, 3, 4, 8, 16, 32, 64)
RATES = np.linspace(0.01, 0.99, 99)
LOOK = {"divided": (ORANGE, "-"), "mean": (BLACK, "--")}
CAPTION = (
    "Left: how many times its own gradient a prompt is pushed. Right: what arrives at the logit "
    "of p. The dot is prompt B, the square the medium prompt."
)


def weights(rates: np.ndarray, size: int) -> dict[str, np.ndarray]:
    """(M,) pass rates -> the factor on grad p, exact, under either rule, (M,) each.

    The sum of the right answers' advantages, over all numbers k of right answers in a group, is
    sqrt(k (G - k)) divided by the std and k (G - k) / G without; times 1 / (G p (1 - p)).
    """
    k = np.arange(size + 1)
    count = np.array([math.comb(size, j) for j in k], dtype=float)
    p = np.asarray(rates, dtype=float)[:, None]
    chance = count * p**k * (1 - p) ** (size - k)
    scale = size * p[:, 0] * (1 - p[:, 0])
    return {
        "divided": chance @ np.sqrt(k * (size - k)) / scale,
        "mean": chance @ (k * (size - k) / size) / scale,
    }


@checked(rate=between(0.01, 0.99), size=one_of(SIZES))
def compute(rate: float = 0.3, size: int = 16) -> dict[str, Any]:
    """Prompt B, right with chance `rate`, beside a medium prompt, right half of the time.

    Groups of `size`, rewards 0 or 1, eps 0. Returns weight and net (weight times p (1 - p), the
    push on the logit of p) of B and of the medium prompt, per rule; the curves over `rates`; ratio
    and net_ratio, B against medium when divided; and the arguments.

    >>> data = compute(0.1, 16)
    >>> round(data["weight"]["divided"], 4), round(data["ratio"], 4)
    (2.8478, 1.4724)
    """
    here = weights(np.array([rate, 0.5]), size)
    slope = np.array([rate * (1 - rate), 0.25])
    return {
        "rate": rate,
        "size": size,
        "weight": {name: float(both[0]) for name, both in here.items()},
        "medium": {name: float(both[1]) for name, both in here.items()},
        "net": {name: float((both * slope)[0]) for name, both in here.items()},
        "net_medium": {name: float((both * slope)[1]) for name, both in here.items()},
        "ratio": float(here["divided"][0] / here["divided"][1]),
        "net_ratio": float((here["divided"] * slope)[0] / (here["divided"] * slope)[1]),
        "rates": RATES,
        "curves": weights(RATES, size),
    }


def build(figure, data):
    artists: dict[Any, Any] = {}
    titles = {
        "weight": ("weight on ∇p", 8.4),
        "net": ("net push on the logit: weight · p(1 − p)", 0.56),
    }
    for i, (kind, (title, top)) in enumerate(titles.items()):
        axes = figure.add_axes((0.06 + 0.49 * i, 0.19, 0.43, 0.69))
        axes.set(xlim=(0, 1), ylim=(0, top))
        axes.set_title(title, fontsize=11, weight="bold")
        axes.set_xlabel("pass rate p", fontsize=10.5)
        axes.tick_params(labelsize=10.5)
        if kind == "weight":
            axes.axvline(0.5, color=GREY, lw=0.8, ls=":")
        for name, (color, line) in LOOK.items():
            artists[kind, name] = axes.plot([], [], color=color, ls=line, lw=2.6)[0]
            for mark, shape in (("B", "o"), ("medium", "s")):
                dot = axes.plot([], [], shape, color=color, ms=9, mec="white", mew=1.2)[0]
                artists[kind, name, mark] = dot
    handles = [artists["net", name] for name in LOOK]
    axes.legend(handles, ["divided by the std", "minus the mean only"], loc="lower center",
                fontsize=10.5, framealpha=1, edgecolor="none")  # fmt: skip
    return artists


def update(artists, data):
    slope = data["rates"] * (1 - data["rates"])
    for name in LOOK:
        curve = data["curves"][name]
        artists["weight", name].set_data(data["rates"], curve)
        artists["net", name].set_data(data["rates"], curve * slope)
        for kind, here, medium in (("weight", "weight", "medium"), ("net", "net", "net_medium")):
            artists[kind, name, "B"].set_data([data["rate"]], [data[here][name]])
            artists[kind, name, "medium"].set_data([0.5], [data[medium][name]])


def readout(data) -> str:
    return (
        f"G = {data['size']}, B right with p = {data['rate']:.2f}. Divided by the std, B has "
        f"{data['ratio']:.2f} times the medium prompt's weight, and {data['net_ratio']:.2f} times "
        "its net push."
    )


def alt(data) -> str:
    return (
        f"Weight and net push against the pass rate, with the std and without. {readout(data)} "
        f"Weights {data['weight']['divided']:.2f} and {data['medium']['divided']:.2f}; without the "
        f"std {data['weight']['mean']:.2f} for both."
    )


def heavy_and_pushed(data) -> bool:
    """At least 1.5 times the medium prompt's weight, and at least half of its net push."""
    return data["ratio"] >= 1.5 and data["net_ratio"] >= 0.5


def prompt_weight_explorer() -> Explorer:
    """The pass rate of prompt B, and the group size."""
    return Explorer(
        compute,
        build,
        update,
        {
            "rate": slider(0.3, 0.01, 0.99, 0.01, "pass rate of B", "chance that B is answered"),
            "size": choice_slider(
                16, [(str(g), g) for g in SIZES], "group size G", "answers to each prompt"
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 310),
    )
