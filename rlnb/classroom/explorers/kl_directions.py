"""Two ways to be far from a target: KL(target || model) and KL(model || target), both live.

The target is a mixture of two unit Gaussians, the model is a single one, too small for it on
purpose. With a model that could be the target both directions would end there.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import checked, echoing, one_of
from rlnb.classroom.figures import BLACK, BLUE, GREY, ORANGE, PALE

__all__ = ["alt", "build", "compute", "kl_explorer", "last_good_peak", "update"]

STEP = 0.05
WIDE = np.arange(-1280, 1281) * STEP  # -64 to 64: the integrals
SHOWN = slice(1080, 1481)  # -10 to 10: the picture
NODES = np.arange(-80, 81) * 0.1  # of a standard normal: equal steps, as it is smooth
NODE_WEIGHTS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
FITS = ("hand", "forward", "reverse")
MAX_DENSITY, MAX_KL = 0.6, 4.0
FORWARD, REVERSE = BLACK, ORANGE
NAMES = {"forward": "KL(teacher‖model)", "reverse": "KL(model‖teacher)"}
TEXT = 10.5  # points: the size of the page's own text
CAPTION = (
    "The teacher's answers lie around two peaks, the model is a single bell. Bars: both KLs in "
    "nats, cut off above 4; a black mark: the least that any bell can reach."
)


@echoing
@checked(fit=one_of(FITS))
def compute(
    distance: float = 3.0,
    weight: float = 0.5,
    mean: float = 1.0,
    deviation: float = 2.0,
    fit: str = "hand",
) -> dict[str, Any]:
    """Both KLs in nats between a target p and a Gaussian model q.

    p = (1 - weight) N(-distance, 1) + weight N(distance, 1), with `weight` in [0, 1];
    q = N(mean, deviation^2), `deviation` in [0.5, 6], unless `fit` is "forward" or "reverse": then
    it is the Gaussian with the least KL in that direction. Returns

        x, target, model (401,): densities for the picture,
        forward_term p log(p/q) and reverse_term q log(q/p) (401,): where each KL is paid,
        forward = KL(p||q), reverse = KL(q||p),
        mean, deviation of the model shown; target_mean, target_deviation, entropy of the target,
        best {"forward", "reverse"}: (mean, deviation, KL) of the best Gaussian, and the arguments.

    The best forward model has the moments of p, the best reverse one is found by descent from
    either peak and from the middle. Of two equally good peaks the right one is taken.

    >>> {way: [round(v, 4) for v in best] for way, best in compute()["best"].items()}
    {'forward': [0.0, 3.1623, 0.462], 'reverse': [2.9843, 1.0234, 0.6888]}
    """
    log_p = _log_target(WIDE, distance, weight)
    target_mean = (2 * weight - 1) * distance
    target_deviation = math.sqrt(1 + distance**2 - target_mean**2)
    p = np.exp(log_p)
    entropy = -float(p @ log_p) * STEP
    best = {"forward": (target_mean, target_deviation), "reverse": _seek(distance, weight)}
    best = {way: (m, s, _kls(log_p, m, s)[way]) for way, (m, s) in best.items()}
    if fit != "hand":
        mean, deviation, _ = best[fit]
    log_q = _log_gaussian(WIDE, mean, deviation)
    kls = _kls(log_p, mean, deviation)
    shown_p, shown_q = p[SHOWN], np.exp(log_q[SHOWN])
    log_ratio = (log_p - log_q)[SHOWN]
    return {
        "x": WIDE[SHOWN],
        "target": shown_p,
        "model": shown_q,
        "forward_term": shown_p * log_ratio,
        "reverse_term": -shown_q * log_ratio,
        **kls,
        "mean": mean,
        "deviation": deviation,
        "target_mean": target_mean,
        "target_deviation": target_deviation,
        "entropy": entropy,
        "best": best,
    }


def _log_gaussian(x, mean: float, deviation: float):
    return -0.5 * ((x - mean) / deviation) ** 2 - math.log(deviation * math.sqrt(2 * math.pi))


def _log_target(x, distance: float, weight: float):
    with np.errstate(divide="ignore"):
        left, right = np.log([1 - weight, weight])
    return np.logaddexp(
        left + _log_gaussian(x, -distance, 1), right + _log_gaussian(x, distance, 1)
    )


def _kls(log_p, mean: float, deviation: float) -> dict[str, float]:
    log_q = _log_gaussian(WIDE, mean, deviation)
    gap = log_p - log_q
    return {
        "forward": max(0.0, float(np.exp(log_p) @ gap) * STEP),  # 0 may come out as -1e-17
        "reverse": max(0.0, -float(np.exp(log_q) @ gap) * STEP),
    }


@lru_cache(maxsize=256)  # dragging the model leaves the target alone
def _seek(distance: float, weight: float) -> tuple[float, float]:
    """The Gaussian with the least KL(q||p): descent on mean and log deviation, three starts."""
    mean = np.array([distance, -distance, 0.0])
    deviation = np.array([1.0, 1.0, math.hypot(1, distance)])
    for _ in range(250):
        x = mean[:, None] + deviation[:, None] * NODES
        log_p = _log_target(x, distance, weight)
        right = weight * np.exp(_log_gaussian(x, distance, 1) - log_p)  # which peak x belongs to
        score = (2 * right - 1) * distance - x  # d log p / dx
        mean = mean + deviation**2 / (1 + deviation**2) * (score @ NODE_WEIGHTS)
        deviation = deviation * np.exp(0.12 * (1 + deviation * ((score * NODES) @ NODE_WEIGHTS)))
        deviation = deviation.clip(0.3, 6)
    log_p = _log_target(WIDE, distance, weight)
    kls = [_kls(log_p, m, s)["reverse"] for m, s in zip(mean, deviation, strict=True)]
    best = min(range(3), key=lambda i: (round(kls[i], 9), i))
    return float(mean[best]), float(deviation[best])


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    left = figure.add_axes((0.07, 0.18, 0.56, 0.71))
    right = figure.add_axes((0.74, 0.18, 0.24, 0.71))
    x = data["x"]
    left.set(xlim=(-10, 10), ylim=(0, MAX_DENSITY), yticks=(0, 0.2, 0.4, 0.6))
    left.set_xticks(range(-9, 10, 3))
    left.set_xlabel("answer", fontsize=TEXT)
    left.set_ylabel("density", fontsize=TEXT)
    right.set(xlim=(-0.6, 1.6), ylim=(0, 1.12 * MAX_KL), yticks=range(5))
    right.set_ylabel("nats", fontsize=TEXT)
    right.set_xticks((0, 1), ["KL(teacher\n‖model)", "KL(model\n‖teacher)"])
    for axes in (left, right):
        axes.tick_params(labelsize=TEXT)
    artists = {
        "area": left.fill([0, 0, 0], [0, 0, 0], color=PALE)[0],
        "target": left.plot(x, x, color=GREY, lw=1.6)[0],
        "model": left.plot(x, x, "--", color=BLUE, lw=2.6)[0],
        "bars": right.bar(
            [0, 1], [0, 0], 0.6, color=["#8A8A8A", REVERSE], ec="white", lw=0, hatch=["", "//"]
        ),
        "breaks": [  # a bar that is cut off: two white strokes near its top
            right.plot([i - 0.36, i + 0.36], [3.2 + k, 3.4 + k], color="white", lw=4, zorder=3)[0]
            for i in range(2)
            for k in (0, 0.22)
        ],
        "best": [
            right.plot([i - 0.42, i + 0.42], [0, 0], color=BLACK, lw=2.2)[0] for i in range(2)
        ],
        "values": [
            right.text(i, 0, "", ha="center", va="bottom", fontsize=12, weight="bold")
            for i in range(2)
        ],
    }
    handles = [
        left.fill_between([], [], color=PALE, ec=GREY, lw=1.6, label="teacher"),
        left.plot([], [], "--", color=BLUE, lw=2.6, label="model")[0],
    ]
    left.legend(handles=handles, loc="upper left", fontsize=TEXT, ncols=2, handlelength=2.2,
                bbox_to_anchor=(0, 1.16))  # fmt: skip
    return artists


def update(artists, data):
    """The figure moved to new data."""
    x = data["x"]
    outline = np.column_stack([x, data["target"]])
    artists["area"].set_xy(np.vstack([[x[0], 0], outline, [x[-1], 0]]))
    for name in ("target", "model"):
        artists[name].set_ydata(data[name])
    for i, way in enumerate(("forward", "reverse")):
        height = min(data[way], MAX_KL)
        artists["bars"][i].set_height(height)
        for stroke in artists["breaks"][2 * i : 2 * i + 2]:
            stroke.set_visible(data[way] > MAX_KL)
        artists["best"][i].set_ydata([data["best"][way][2]] * 2)
        artists["values"][i].set_text(f"{data[way]:.2f}")
        artists["values"][i].set_y(max(height, data["best"][way][2]) + 0.05)


def readout(data) -> str:
    """Both KLs and the least each could be."""
    return "; ".join(
        f"{NAMES[way]} {data[way]:.3f}, least possible {data['best'][way][2]:.3f}"
        for way in ("forward", "reverse")
    )


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    mean = f"{round(data['mean'], 2) + 0.0:.2f}".replace("-", "−")
    return (
        f"Teacher with peaks at ±{data['distance']:.2f} and a bell with mean {mean}, deviation "
        f"{data['deviation']:.2f}. Bars, in nats: {readout(data)}."
    )


def last_good_peak(data) -> bool:
    """A bell on a peak within 0.02 nats of the least reverse KL, peaks no further than ±2.8."""
    on_a_peak = abs(abs(data["mean"]) - data["distance"]) <= 0.3
    least = data["best"]["reverse"][2]
    return 2 <= data["distance"] < 2.85 and on_a_peak and data["reverse"] - least <= 0.02


def kl_explorer() -> Explorer:
    """A bell to drag, and how far the two peaks are apart."""
    return Explorer(
        compute,
        build,
        update,
        {
            "mean": slider(1.0, -6.0, 6.0, 0.1, "model: mean", "where the bell stands"),
            "deviation": slider(1.0, 0.7, 6.0, 0.1, "model: width", "its standard deviation"),
            "distance": slider(
                2.0, 0.0, 5.0, 0.1, "teacher: peaks at ±", "each of width 1, equally high"
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 290),
    )
