"""Two ways to be far from a target: KL(target || model) and KL(model || target), both live.

The target is a mixture of two unit Gaussians, the model is a single one, too small for it on
purpose. With a model that could be the target both directions would end there.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice, slider
from rlnb.classroom.explorers.arguments import checked, echoing, one_of
from rlnb.classroom.figures import BLACK, BLUE, GREY, ORANGE, PALE, PURPLE

__all__ = ["alt", "build", "compute", "kl_explorer", "update"]

STEP = 0.05
WIDE = np.arange(-1280, 1281) * STEP  # -64 to 64: the integrals
SHOWN = slice(1080, 1481)  # -10 to 10: the picture
NODES = np.arange(-80, 81) * 0.1  # of a standard normal: equal steps, as it is smooth
NODE_WEIGHTS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
FITS = ("hand", "forward", "reverse")
MAX_DENSITY, MAX_TERM, MAX_KL = 0.6, 1.2, 4.0
FORWARD, REVERSE = PURPLE, ORANGE
NAMES = {"forward": "KL(target‖model)", "reverse": "KL(model‖target)"}
CAPTION = (
    "KL(target‖model) is paid where the target is and the model is not, so its best model covers "
    "both peaks; KL(model‖target) is paid where the model is and the target is not, so its best "
    "model picks one once they are far apart."
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
    top = figure.add_axes((0.075, 0.56, 0.6, 0.33))
    bottom = figure.add_axes((0.075, 0.25, 0.6, 0.25))
    right = figure.add_axes((0.79, 0.25, 0.19, 0.64))
    x = data["x"]
    top.set(xlim=(-10, 10), ylim=(0, MAX_DENSITY), yticks=(0, 0.2, 0.4, 0.6), ylabel="density")
    for axes in (top, bottom):
        axes.set_xticks(range(-9, 10, 3))
    top.tick_params(labelbottom=False)
    bottom.set(xlim=(-10, 10), ylim=(-0.5, MAX_TERM), yticks=(0, 1), ylabel="nats per $x$")
    bottom.set_xlabel("$x$", labelpad=1)
    bottom.axhline(0, color=GREY, linewidth=0.8)
    right.set(xlim=(-0.6, 1.6), ylim=(0, 1.1 * MAX_KL), xticks=(0, 1), yticks=range(5))
    right.set_ylabel("KL in nats")
    right.set_xticklabels(["target\n‖model", "model\n‖target"])
    artists = {
        "area": top.fill([0, 0, 0], [0, 0, 0], color=PALE)[0],
        "target": top.plot(x, x, color=BLACK, lw=1.4)[0],
        "model": top.plot(x, x, "--", color=BLUE)[0],
        "forward_term": bottom.plot(x, x, color=FORWARD)[0],
        "reverse_term": bottom.plot(x, x, "-.", color=REVERSE)[0],
        "bars": right.bar(
            [0, 1], [0, 0], 0.66, color=[FORWARD, REVERSE], ec="white", lw=0, hatch=["", "//"]
        ),
        "best": [
            right.plot([i - 0.42, i + 0.42], [0, 0], color=BLACK, lw=1.6)[0] for i in range(2)
        ],
        "values": [right.text(i, 0, "", ha="center", va="bottom", fontsize=10) for i in range(2)],
        "text": [figure.text(0.075, 0.1 - 0.065 * line, "", fontsize=9.5) for line in range(2)],
    }
    handles = [
        top.fill_between([], [], color=PALE, ec=BLACK, lw=1.2, label="target $p$"),
        top.plot([], [], "--", color=BLUE, label="model $q$")[0],
        bottom.plot([], [], color=FORWARD, label=r"$p\,\log(p/q)$")[0],
        bottom.plot([], [], "-.", color=REVERSE, label=r"$q\,\log(q/p)$")[0],
        right.plot([], [], color=BLACK, lw=1.6, label="least any Gaussian can reach")[0],
    ]
    figure.legend(
        handles=handles,
        loc="upper center",
        ncols=5,
        bbox_to_anchor=(0.53, 1.005),
        handlelength=2.4,
        columnspacing=1.6,
    )
    return artists


def update(artists, data):
    x = data["x"]
    outline = np.column_stack([x, data["target"]])
    artists["area"].set_xy(np.vstack([[x[0], 0], outline, [x[-1], 0]]))
    for name in ("target", "model", "forward_term", "reverse_term"):
        artists[name].set_ydata(data[name])
    for i, way in enumerate(("forward", "reverse")):
        height = min(data[way], MAX_KL)
        artists["bars"][i].set_height(height)
        artists["best"][i].set_ydata([data["best"][way][2]] * 2)
        artists["values"][i].set_text(f"{data[way]:.2f}")
        artists["values"][i].set_y(max(height, data["best"][way][2]) + 0.05)
    for line, sentence in zip(artists["text"], _lines(data), strict=True):
        line.set_text(sentence)


def _lines(data) -> list[str]:
    found = {
        "hand": "",
        "forward": ", the best for KL(target‖model)",
        "reverse": ", the best for KL(model‖target)",
    }[data["fit"]]
    mean, deviation = _plain(data["mean"]), f"{data['deviation']:.2f}"
    parts = [
        f"{NAMES[way]} = {data[way]:.4f}, at least {data['best'][way][2]:.4f}"
        for way in ("forward", "reverse")
    ]
    return [f"model: mean {mean}, deviation {deviation}{found}", "  ·  ".join(parts)]


def _plain(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def alt(data) -> str:
    model, kls = _lines(data)
    d, w = data["distance"], data["weight"]
    return (
        f"Target with peaks at ±{d:.2f}, weight {w:.2f} on the right one, and a Gaussian "
        f"{model}. Below, where each KL is paid; on the right, both as bars: "
        f"{kls.replace('  ·  ', '; ')} nats."
    )


def kl_explorer() -> Explorer:
    """Two peaks and their weights, a Gaussian to drag, and the best one in either direction."""
    return Explorer(
        compute,
        build,
        update,
        {
            "mean": slider(1.0, -6.0, 6.0, 0.1, "model: mean", "where the model stands"),
            "deviation": slider(2.0, 0.7, 6.0, 0.1, "model: deviation", "how wide the model is"),
            "fit": choice(
                "hand",
                [
                    ("by hand", "hand"),
                    ("best KL(target‖model)", "forward"),
                    ("best KL(model‖target)", "reverse"),
                ],
                "model is set",
                "by your two sliders, or to the least KL in one direction",
            ),
            "distance": slider(3.0, 0.0, 5.0, 0.1, "target: peaks at ±", "0 is a single peak"),
            "weight": slider(
                0.5, 0.05, 0.95, 0.05, "target: weight right", "share of the right peak"
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 430),
    )
