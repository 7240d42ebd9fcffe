"""KL estimators away from the reference: value, spread, and the gradient as a loss.

One state, four tokens, everything by enumeration. The policy leaves the reference on a straight
line in logits; at distance 1 it is the policy of the page's tables. Samples may be stale: drawn
half-way back, at half the distance.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing, one_of
from rlnb.classroom.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, signed

__all__ = [
    "DISTANCES",
    "ESTIMATORS",
    "LOGITS",
    "REFERENCE",
    "alt",
    "build",
    "compute",
    "kl_estimator_explorer",
    "update",
]

REFERENCE = np.array([0.1, 0.4, 0.2, 0.3])
LOGITS = np.array([0.3, -0.5, 1.1, 0.0])
LARGEST = 3.0
DISTANCES = np.linspace(0, LARGEST, 121)
SAMPLES = {"fresh": 1.0, "stale": 0.5}  # where the samples were drawn, as a share of the distance
ESTIMATORS = ("k1", "k2", "k3", "ratio k3")
NAMES = {"k1": "$k_1$", "k2": "$k_2$", "k3": "$k_3$", "ratio k3": r"$\rho\,k_3$"}
LOOK = {
    "k1": (ORANGE, ":", ".."),
    "k2": (GREEN, "--", "//"),
    "k3": (BLUE, "-", ""),
    "ratio k3": (PURPLE, "-.", "xx"),
}
TRUTH = r"truth, KL$(\pi\,\|\,\pi_\mathrm{ref})$"
HIGHEST, STEEPEST, LOW, HIGH = 2.5, 0.6, 0.01, 30.0
WIDTH = 0.16
CAPTION = (
    "On fresh samples k3 is quiet near the reference and the noisiest far from it, and as a loss "
    "k1 pulls nowhere at any distance; stale samples bend every estimator but the ratio-corrected "
    "one."
)


@echoing
@checked(samples=one_of(SAMPLES), distance=between(0, LARGEST))
def compute(distance: float = 1.0, samples: str = "fresh") -> dict[str, Any]:
    """The estimators at one distance and along the whole line, by enumeration.

    distance in [0, 3]: logits = log ref + distance (LOGITS - log ref). samples: "fresh" from the
    policy, or "stale", from the policy at half the distance. With l = log pi - log ref,
    rho = pi / pi_old and q the policy that sampled, per estimator k:

        value       E_q k, nats                 spread    standard deviation of k under q, nats
        gradient    (4,) E_q grad k with respect to the logits, k used as a loss
        length      its norm; cosine            with grad KL(pi || ref); nan when either is 0

    kl, truth: KL(pi || ref) and its gradient. forward, forward_gradient: KL(ref || pi) and its.
    curves: name -> {"value", "spread"}, each (121,) over DISTANCES, and "kl" (121,).

    >>> d = compute()
    >>> round(d["kl"], 6), round(d["value"]["k3"], 6), round(d["spread"]["k3"], 6)
    (0.41416, 0.41416, 0.388715)
    """
    return _at(distance, samples) | {"curves": _curves(samples)}


@cache
def _curves(samples: str) -> dict[str, Any]:
    line = [_at(x, samples) for x in DISTANCES]
    curves: dict[str, Any] = {
        name: {key: np.array([point[key][name] for point in line]) for key in ("value", "spread")}
        for name in ESTIMATORS
    }
    return curves | {"kl": np.array([point["kl"] for point in line])}


def _policy(distance: float) -> np.ndarray:
    """(4,) probabilities."""
    log_ref = np.log(REFERENCE)
    weights = np.exp(log_ref + distance * (LOGITS - log_ref))
    return weights / weights.sum()


def _at(distance: float, samples: str) -> dict[str, Any]:
    pi, q = _policy(distance), _policy(distance * SAMPLES[samples])
    log_ratio, rho = np.log(pi / REFERENCE), pi / q
    score = np.eye(4) - pi  # row a: grad log pi(a)
    kl = float(pi @ log_ratio)
    truth = pi * (log_ratio - kl)
    k3 = np.expm1(-log_ratio) + log_ratio
    slope3 = 1 - np.exp(-log_ratio)
    # name -> estimator per token, and its derivative with respect to log pi
    table = {
        "k1": (log_ratio, np.ones(4)),
        "k2": (log_ratio**2 / 2, log_ratio),
        "k3": (k3, slope3),
        "ratio k3": (rho * k3, rho * (k3 + slope3)),
    }
    value = {name: float(q @ k) for name, (k, _) in table.items()}
    gradient = {name: (q * slope) @ score for name, (_, slope) in table.items()}
    return {
        "kl": kl,
        "truth": truth,
        "forward": float(REFERENCE @ -log_ratio),
        "forward_gradient": pi - REFERENCE,
        "value": value,
        "spread": {
            name: float(np.sqrt(max(q @ (k - value[name]) ** 2, 0.0)))
            for name, (k, _) in table.items()
        },
        "gradient": gradient,
        "length": {name: float(np.linalg.norm(g)) for name, g in gradient.items()},
        "cosine": {name: _cosine(g, truth) for name, g in gradient.items()},
    }


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    product = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / product if product > 1e-12 else float("nan")


def build(figure, data):
    left = figure.add_axes((0.055, 0.325, 0.275, 0.525))
    middle = figure.add_axes((0.4, 0.325, 0.235, 0.525))
    right = figure.add_axes((0.7, 0.325, 0.29, 0.525))
    left.set(ylim=(-0.2, HIGHEST), yticks=(0, 1, 2))
    left.set_title("mean (nats)", fontsize=9.5)
    middle.set(yscale="log", ylim=(LOW, HIGH), yticks=(0.01, 0.1, 1, 10))
    middle.set_yticklabels(["0.01", "0.1", "1", "10"])
    middle.minorticks_off()
    middle.set_title("standard deviation (nats)", fontsize=9.5)
    for axes in (left, middle):
        axes.set(xlim=(0, LARGEST), xticks=(0, 1, 2, 3))
        axes.set_xlabel("distance from the reference", labelpad=1)
    right.set(xlim=(-0.55, 3.55), ylim=(-STEEPEST, STEEPEST), yticks=(-0.5, 0, 0.5))
    right.set_xticks(range(4), [f"token {a}" for a in range(4)])
    right.set_title("mean gradient as a loss (cut at ±0.6)", fontsize=9.5)
    for axes in (left, right):
        axes.axhline(0, color=GREY, lw=0.8)
    artists: dict[str, Any] = {
        "here": [axes.axvline(1, color=GREY, lw=1) for axes in (left, middle)],
        "truth": left.plot(DISTANCES, data["curves"]["kl"], color=BLACK, lw=3.2, alpha=0.35)[0],
        "value": {},
        "spread": {},
        "dots": {},
        "bars": {},
    }
    for name in ESTIMATORS:
        color, dash, _ = LOOK[name]
        look = {"color": color, "linestyle": dash, "lw": 1.8}
        dot = {"marker": "o", "color": color, "ms": 6.5, "mec": "white", "ls": ""}
        artists["value"][name] = left.plot(DISTANCES, DISTANCES, **look)[0]
        artists["spread"][name] = middle.plot(DISTANCES, 1 + DISTANCES, **look)[0]
        artists["dots"][name] = [left.plot([1], [1], **dot)[0], middle.plot([1], [1], **dot)[0]]
    for row, name in enumerate(("truth", *ESTIMATORS)):
        color, hatch = (BLACK, "") if name == "truth" else (LOOK[name][0], LOOK[name][2])
        place = np.arange(4) + WIDTH * (row - 2)
        artists["bars"][name] = list(
            right.bar(
                place, np.zeros(4), WIDTH, color=color, hatch=hatch, edgecolor="white", lw=0.4
            )
        )
    artists["text"] = [figure.text(0.055, 0.15 - 0.062 * i, "", fontsize=9.2) for i in range(3)]
    handles = [left.plot([], [], color=BLACK, lw=3.2, alpha=0.5, label=TRUTH)[0]]
    handles += [
        left.plot([], [], color=LOOK[n][0], ls=LOOK[n][1], lw=2, label=NAMES[n])[0]
        for n in ESTIMATORS
    ]
    figure.legend(
        handles=handles,
        loc="upper center",
        ncols=5,
        handlelength=3.2,
        columnspacing=2.2,
        bbox_to_anchor=(0.52, 1.01),
    )
    return artists


def update(artists, data):
    distance = data["distance"]
    for line in artists["here"]:
        line.set_xdata([distance, distance])
    artists["truth"].set_ydata(data["curves"]["kl"])
    for name in ESTIMATORS:
        curve = data["curves"][name]
        artists["value"][name].set_ydata(curve["value"])
        artists["spread"][name].set_ydata(np.clip(curve["spread"], LOW / 10, HIGH * 10))
        spread = data["spread"][name]
        for dot, y, shown in zip(
            artists["dots"][name],
            (data["value"][name], spread),
            (data["value"][name] <= HIGHEST, LOW <= spread <= HIGH),
            strict=True,
        ):
            dot.set_data([distance], [y])
            dot.set_visible(bool(shown))
    for name, bars in artists["bars"].items():
        heights = data["truth"] if name == "truth" else data["gradient"][name]
        for bar, height in zip(bars, heights, strict=True):
            bar.set_height(float(np.clip(height, -STEEPEST, STEEPEST)))
    for text, line in zip(artists["text"], _lines(data), strict=True):
        text.set_text(line)


def _lines(data) -> tuple[str, str, str]:
    def each(key):
        return ", ".join(f"{name} {_number(data[key][name])}" for name in ESTIMATORS)

    cosines = ", ".join(
        f"{name} {'no gradient' if data['length'][name] < 1e-12 else _cosine_text(data, name)}"
        for name in ESTIMATORS
    )
    return (
        f"mean against KL {data['kl']:.3f}:  {each('value')}.",
        f"standard deviation:  {each('spread')}.",
        f"cosine with the gradient of KL(π‖ref):  {cosines}.",
    )


def _number(value: float) -> str:
    return signed(value, 3).lstrip("+")


def _cosine_text(data, name: str) -> str:
    cosine = data["cosine"][name]
    return "undefined" if np.isnan(cosine) else _number(cosine)


def alt(data) -> str:
    lines = " ".join(line[0].upper() + line[1:].replace("  ", " ") for line in _lines(data))
    return (
        f"KL estimators at distance {data['distance']:.2f} from the reference, "
        f"{data['samples']} samples. {lines}"
    )


def kl_estimator_explorer() -> Explorer:
    """How far the policy has gone, and who drew the samples."""
    return Explorer(
        compute,
        build,
        update,
        {
            "distance": slider(
                1.0,
                0.0,
                LARGEST,
                0.05,
                "distance",
                "0 is the reference, 1 the policy of the tables",
            ),
            "samples": choice(
                "fresh",
                [("the policy itself", "fresh"), ("an older policy, half-way back", "stale")],
                "samples from",
                "who drew the tokens",
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 410),
    )
