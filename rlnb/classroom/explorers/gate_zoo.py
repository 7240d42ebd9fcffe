"""The gate zoo: what each method pays a token, and its weight, against the ratio, on one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice, choice_slider, slider
from rlnb.classroom.explorers.arguments import (
    above,
    at_least,
    between,
    checked,
    echoing,
    inside,
    one_of,
)
from rlnb.classroom.figures import BLACK, GREY, METHOD_COLORS, METHOD_LINES, PALE, signed

__all__ = [
    "DUAL",
    "NAMES",
    "RATIOS",
    "TAU_NEG",
    "alt",
    "build",
    "compute",
    "gate_zoo_explorer",
    "objectives",
    "update",
    "weights",
]

LOWEST, HIGHEST = 0.1, 10.0
RATIOS = np.geomspace(LOWEST, HIGHEST, 401)
DUAL = 3.0  # verl's clip_ratio_c
TAU_NEG = 1.05  # SAPO's tau_neg over its tau_pos
OLD = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.99)
CURSOR = (
    0.1,
    0.25,
    0.5,
    0.7,
    0.75,
    0.8,
    0.9,
    1.0,
    1.1,
    1.2,
    1.3,
    1.5,
    2.0,
    2.5,
    3.0,
    3.5,
    4.0,
    5.0,
    6.0,
    8.0,
    10.0,
)
NAMES = ("none", "ppo", "dual", "cispo", "sapo", "dppo")
LABELS = {
    "none": "no clip",
    "ppo": "PPO",
    "dual": "dual clip",
    "cispo": "CISPO",
    "sapo": "SAPO",
    "dppo": "DPPO",
}
COLORS = {
    "none": GREY,
    "ppo": METHOD_COLORS["ppo"],
    "dual": METHOD_COLORS["dr_grpo"],
    **{name: METHOD_COLORS[name] for name in ("cispo", "sapo", "dppo")},
}
LINES = {
    "none": "-",
    "ppo": METHOD_LINES["ppo"],
    "dual": ":",
    **{name: METHOD_LINES[name] for name in ("cispo", "sapo", "dppo")},
}
WIDTHS = {"none": 1.0, "ppo": 2.6, "dual": 2.4, "cispo": 2.2, "sapo": 2.4, "dppo": 2.0}
SIGNS = {"positive": 1, "negative": -1}
CAPTION = (
    "The same ε is a ratio for PPO (edge 1 ± ε) and CISPO (cap 1 + ε) and an amount of probability "
    "for DPPO, whose edge therefore moves with the old probability. At ratio 1 all weights are 1. "
    "Left: the weight's integral over log ρ, set to 1 at ratio 1; not the loss you log. For A > 0 "
    "the dual clip is PPO and not drawn. Formulas: no run, no seed."
)


def weights(ratio: np.ndarray, sign: int, epsilon: float, tau: float, old: float) -> dict:
    """Method -> the weight on A grad log pi at each ratio; none is rho itself.

    PPO: rho inside and on the side that worsens; dual: also 0 for A < 0 above 3; CISPO:
    min(rho, 1 + epsilon); SAPO: rho sech^2(t (rho - 1)/2), t = tau, 1.05 tau where A < 0; DPPO:
    rho until `epsilon` of probability has moved the way A pushes.
    """
    improving = sign * (ratio - 1)  # > 0 where the token has moved as its advantage wants
    inside = improving <= epsilon
    t = tau if sign > 0 else TAU_NEG * tau
    return {
        "none": ratio,
        "ppo": np.where(inside, ratio, 0.0),
        "dual": np.where(inside & ((sign > 0) | (ratio <= DUAL)), ratio, 0.0),
        "cispo": np.minimum(ratio, 1 + epsilon),
        "sapo": ratio / np.cosh(t / 2 * (ratio - 1)) ** 2,
        "dppo": np.where(old * improving <= epsilon, ratio, 0.0),
    }


def objectives(ratio: np.ndarray, sign: int, epsilon: float, tau: float, old: float) -> dict:
    """Method -> the function of rho whose slope in log rho is sign times the weight, sign at 1.

    For PPO, dual clip and no clip that is the objective itself. SAPO's is shifted by 1 - 2/t, and
    CISPO's and DPPO's printed values contain log pi and mean nothing.
    """

    def held(edge: float) -> np.ndarray:
        return np.minimum(ratio, 1 + edge) if sign > 0 else np.maximum(ratio, 1 - edge)

    cap, t = 1 + epsilon, tau if sign > 0 else TAU_NEG * tau
    ppo = held(epsilon)
    values = {
        "none": ratio,
        "ppo": ppo,
        "dual": ppo if sign > 0 else np.minimum(ppo, DUAL),
        "cispo": np.where(ratio <= cap, ratio, cap * (1 + np.log(ratio / cap))),
        "sapo": 1 + 2 / t * np.tanh(t / 2 * (ratio - 1)),  # (4/t)(sigmoid - 1/2) is (2/t) tanh
        "dppo": held(epsilon / old),
    }
    return {name: sign * value for name, value in values.items()}


@echoing
@checked(
    sign=one_of(SIGNS),
    show=one_of(("all", *NAMES[2:])),
    old=inside(0, 1),
    epsilon=at_least(0),
    tau=above(0),
    ratio=between(LOWEST, HIGHEST),
)
def compute(
    epsilon: float = 0.2,
    tau: float = 1.0,
    old: float = 0.3,
    ratio: float = 1.5,
    sign: str = "positive",
    show: str = "all",
) -> dict[str, Any]:
    """Objective and gradient weight of six surrogates against the ratio, one epsilon for all.

    `epsilon` >= 0; `tau` > 0 is SAPO's for A > 0, 1.05 times that for A < 0; `old` in (0, 1) is
    the token's probability when it was sampled; `ratio` in [0.1, 10] is where the numbers are
    read; `sign` of the advantage: "positive" or "negative"; `show`: "all" or one of "dual",
    "cispo", "sapo", "dppo", drawn beside PPO. Returns ratio (401,), weight and objective
    {name: (401,)}, at {name: weight at `ratio`}, moved (probability, new minus old), possible
    (whether the new probability is at most 1), shown (names; "dual" for A < 0 only) and the
    arguments.

    >>> {name: round(float(w), 3) for name, w in compute(ratio=1.5)["at"].items()}
    {'none': 1.5, 'ppo': 0.0, 'dual': 0.0, 'cispo': 1.2, 'sapo': 1.41, 'dppo': 1.5}
    """
    s = SIGNS[sign]
    here = weights(np.asarray(ratio), s, epsilon, tau, old)
    return {
        "ratio": RATIOS,
        "weight": weights(RATIOS, s, epsilon, tau, old),
        "objective": objectives(RATIOS, s, epsilon, tau, old),
        "at": {name: float(value) for name, value in here.items()},
        "moved": old * (ratio - 1),
        "possible": old * ratio <= 1 + 1e-12,
        "shown": tuple(
            n for n in (NAMES if show == "all" else ("none", "ppo", show)) if n != "dual" or s < 0
        ),  # for A > 0 it is PPO
        "cursor": ratio,
        "sign": s,
    }


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    left = figure.add_axes((0.065, 0.3, 0.32, 0.575))
    right = figure.add_axes((0.455, 0.3, 0.53, 0.575))
    left.set(ylim=(-0.1, 4), yticks=range(5), ylabel=r"objective over $A$")
    right.set(ylim=(-0.08, 3.2), yticks=(0, 1, 2, 3), ylabel=r"weight on $A\,\nabla\log\pi$")
    artists: dict[Any, Any] = {}
    ticks = (0.1, 0.2, 0.5, 1, 2, 5, 10)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlim(LOWEST, HIGHEST)
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axes.minorticks_off()
        axes.set_xlabel(r"ratio $\rho=\pi_\theta/\pi_\mathrm{old}$", labelpad=1)
        axes.axvline(1, color=PALE, linewidth=1.2, zorder=0)
        axes.axhline(0, color=GREY, linewidth=0.8)
    artists["impossible"] = [
        a.axvspan(1, HIGHEST, facecolor=PALE, hatch="//", edgecolor="white", lw=0)
        for a in (left, right)
    ]
    artists["cursor"] = [a.axvline(1, color=BLACK, lw=0.9, ls=(0, (1, 2))) for a in (left, right)]
    for name in NAMES:
        style = {"color": COLORS[name], "linestyle": LINES[name], "linewidth": WIDTHS[name]}
        artists["objective", name] = left.plot(
            RATIOS, data["sign"] * data["objective"][name], **style
        )[0]
        artists["weight", name] = right.plot(RATIOS, data["weight"][name], **style)[0]
    for name in NAMES:
        artists["mark", name] = right.plot([], [], "o", ms=7, color=COLORS[name], mec="white")[0]
    artists["setting"] = figure.text(0.065, 0.115, "", fontsize=9.5)
    for column, name in enumerate(NAMES):
        artists["text", name] = figure.text(
            0.065 + 0.155 * column, 0.04, "", fontsize=10, color=COLORS[name]
        )
    handles = [
        left.plot([], [], color=COLORS[n], linestyle=LINES[n], lw=WIDTHS[n], label=LABELS[n])[0]
        for n in NAMES
    ]
    handles.append(
        left.fill_between(
            [], [], facecolor=PALE, hatch="//", edgecolor="white", label="would need p > 1"
        )
    )
    figure.legend(
        handles=handles,
        loc="upper center",
        ncols=7,
        bbox_to_anchor=(0.52, 1.005),
        handlelength=3.2,
        columnspacing=1.3,
    )
    return artists


def update(artists, data):
    """The figure moved to new data."""
    edge = min(1 / data["old"], HIGHEST)
    for span in artists["impossible"]:
        span.set_x(edge)
        span.set_width(HIGHEST - edge)
    for line in artists["cursor"]:
        line.set_xdata([data["cursor"]] * 2)
    for name in NAMES:
        seen = name in data["shown"]
        artists["objective", name].set_ydata(data["sign"] * data["objective"][name])
        artists["weight", name].set_ydata(data["weight"][name])
        artists["mark", name].set_data([data["cursor"]], [data["at"][name]])
        artists["text", name].set_text(f"{LABELS[name]} {data['at'][name]:.3f}")
        for kind in ("objective", "weight", "mark", "text"):
            artists[kind, name].set_visible(seen)
    artists["setting"].set_text(_setting(data) + ";  weights:")


def _setting(data) -> str:
    new = data["old"] * data["cursor"]
    moved = (
        f"p {data['old']:g} → {new:.4g}, moved {signed(data['moved'], 4)}"
        if data["possible"]
        else "it would need p > 1"
    )
    return f"A {'>' if data['sign'] > 0 else '<'} 0, ratio {data['cursor']:g}: {moved}"


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    listed = ", ".join(f"{LABELS[n]} {data['at'][n]:.3f}" for n in data["shown"])
    return (
        f"Objective over A (left) and weight on A grad log pi (right) against the ratio, ε "
        f"{data['epsilon']:.2f}, SAPO's τ {data['tau']:.1f}, old probability {data['old']:g}. "
        f"{_setting(data)}. Weights there: {listed}."
    )


def gate_zoo_explorer() -> Explorer:
    """Edge, SAPO's temperature, old probability, sign of A; read off at a ratio of your choice."""
    return Explorer(
        compute,
        build,
        update,
        {
            "epsilon": slider(
                0.2, 0.0, 1.0, 0.01, "edge ε", "PPO's band 1 ± ε, CISPO's cap 1 + ε, DPPO's mass ε"
            ),
            "tau": slider(1.0, 0.5, 12.0, 0.5, "SAPO's τ", "temperature for A > 0; 1.05 τ else"),
            "old": choice_slider(
                0.3,
                [(f"{p:g}", p) for p in OLD],
                "old probability",
                "of the token when it was sampled: only DPPO looks at it",
            ),
            "ratio": choice_slider(
                1.5,
                [(f"{r:g}", r) for r in CURSOR],
                "read at ratio",
                "where the weights below the picture are taken",
            ),
            "sign": choice(
                "positive",
                [("A > 0", "positive"), ("A < 0", "negative")],
                "sign of A",
                "which sign of the advantage to draw",
            ),
            "show": choice(
                "all",
                [
                    ("all", "all"),
                    ("dual clip", "dual"),
                    ("CISPO", "cispo"),
                    ("SAPO", "sapo"),
                    ("DPPO", "dppo"),
                ],
                "PPO beside",
                "all methods, or one beside PPO",
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 312),
    )
