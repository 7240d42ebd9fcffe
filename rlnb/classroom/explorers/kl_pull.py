"""A KL penalty over three answers: its mean gradient, and that of the KL."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing, one_of
from rlnb.classroom.figures import BLACK, GREEN, GREY, ORANGE
from rlnb.classroom.pictures.kl import CORNERS, TEXT, triangle

REFERENCE = np.array([0.1, 0.3, 0.6])
REWARDS = np.array([1.0, 0.5, 0.0])
FURTHEST = 5.0
LEVELS = (0.05, 0.2, 0.5, 1.0, 1.5)
ESTIMATES = ("k1", "k2", "k3")
PLACES = ("loss", "reward")
SAMPLES = ("fresh", "older", "older, ρ constant", "older, ρ differentiated")
CAPTION = (
    "Every point is a policy over three answers. The policy is the dot, softmax(log π_ref + "
    "distance · R){older}. On the bold ring the KL is what it is at the dot: a step into the ring "
    "lowers the KL, a step out of it raises it. Orange: a step against your penalty's gradient. "
    "Green: against the KL's. Both are steps on the logits, so green does not meet the ring at a "
    "right angle. The arrows show the direction, the bars the sizes."
)


@echoing
@checked(
    distance=between(0, FURTHEST),
    estimate=one_of(ESTIMATES),
    place=one_of(PLACES),
    samples=one_of(SAMPLES),
)
def compute(
    distance: float = 3.0, estimate: str = "k2", place: str = "loss", samples: str = "fresh"
) -> dict[str, Any]:
    """The mean gradient of one form of the KL penalty, by enumeration, and the way downhill.

    The policy is the reference with logits raised by distance x reward, distance in [0, 5]. An
    older policy stands half-way; sampler (3,) is the one that wrote the answers. "ρ constant"
    weighs each sample by rho = pi / pi_old; with "ρ differentiated" autograd differentiates that
    rho in a loss (in the reward all is constant). Returns policy (3,), kl; value: the estimate's
    mean over the samples; home and push (3,): minus the gradient of KL(pi || ref) and of the
    penalty, in the logits; rate: how fast the KL falls along push, over how fast it falls along
    home (nan at the reference); right: whether the two are the same.

    >>> d = compute(3.0, "k3")
    >>> round(d["kl"], 4), round(d["value"], 4), round(d["rate"], 2), d["right"]
    (0.66, 0.66, 0.9, False)
    """
    pi, before = _policy(distance), _policy(distance / 2)
    q = pi if samples == "fresh" else before
    rho = pi / q if "ρ" in samples else np.ones(3)
    ell = np.log(pi / REFERENCE)
    k, slope = {
        "k1": (ell, np.ones(3)),
        "k2": (ell**2 / 2, ell),
        "k3": (np.expm1(-ell) + ell, -np.expm1(-ell)),
    }[estimate]
    score = np.eye(3) - pi  # row y: gradient of log pi(y) in the logits
    if place == "reward":
        weight = rho * k
    else:
        weight = rho * (slope + (k if samples.endswith("differentiated") else 0))
    push, home = -(q * weight) @ score, -pi * (ell - pi @ ell)
    steepest = float(home @ home)
    return {
        "policy": pi,
        "sampler": q,
        "kl": float(pi @ ell),
        "value": float(q @ (rho * k)),
        "home": home,
        "push": push,
        "rate": float(push @ home) / steepest if steepest > 1e-12 else math.nan,
        "right": bool(np.allclose(push, home, rtol=0, atol=1e-9)),
    }


def _policy(distance: float) -> np.ndarray:
    weights = REFERENCE * np.exp(distance * REWARDS)
    return weights / weights.sum()


def ring(level: float) -> np.ndarray:
    """The policies (181, 3) around the reference whose KL from it is `level`; nan where none is.

    >>> points = ring(0.05)
    >>> bool(np.allclose((points * np.log(points / REFERENCE)).sum(1), 0.05))
    True
    """
    turn = np.linspace(0, 2 * np.pi, 181)[:, None]
    across, along = np.array([1, -1, 0]) / 2**0.5, np.array([1, 1, -2]) / 6**0.5
    ray = np.cos(turn) * across + np.sin(turn) * along
    reach = np.where(ray < 0, -REFERENCE / np.minimum(ray, -1e-12), np.inf).min(1, keepdims=True)
    low, high = np.zeros_like(reach), reach * (1 - 1e-9)
    for _ in range(50):
        middle = (low + high) / 2
        points = REFERENCE + middle * ray
        nearer = (points * np.log(points / REFERENCE)).sum(1, keepdims=True) < level
        low, high = np.where(nearer, middle, low), np.where(nearer, high, middle)
    return np.where(low < reach * (1 - 1e-6), REFERENCE + low * ray, np.nan)


def build(figure, data):
    axes = figure.add_axes((0.0, 0.0, 0.42, 1))
    triangle(axes)
    _rings(axes)
    path = np.array([_policy(t) for t in np.linspace(0, FURTHEST, 60)])
    axes.plot(*(path @ CORNERS).T, color=GREY, lw=1, ls=":")
    here = axes.plot([], [], color=BLACK, lw=1.8, alpha=0.75)[0]
    axes.plot(*(REFERENCE @ CORNERS), "P", color=BLACK, ms=10)
    axes.text(
        *(REFERENCE @ CORNERS - (0.035, 0)), "reference", ha="right", va="center", fontsize=TEXT
    )
    bars = figure.add_axes((0.77, 0.1, 0.225, 0.74))
    bars.set(xlim=(-0.6, 2.6), ylim=(-0.9, 0.9), yticks=(-0.5, 0, 0.5))
    bars.set_xticks(range(3), ("pays 1", "pays ½", "pays 0"))
    bars.tick_params(labelsize=TEXT)
    bars.axhline(0, color=GREY, lw=0.8)
    bars.set_title("minus the gradient, per logit", fontsize=TEXT)
    figure.text(0.44, 0.88, "value", fontsize=12, weight="bold")
    figure.text(0.44, 0.5, "gradient", fontsize=12, weight="bold")
    return {
        "ring": here,
        "home": axes.plot([], [], color=GREEN, lw=7, alpha=0.6, solid_capstyle="butt")[0],
        "home tip": axes.plot([], [], color=GREEN, ms=15, ls="")[0],
        "push": axes.plot([], [], color=ORANGE, lw=3, solid_capstyle="butt")[0],
        "push tip": axes.plot([], [], color=ORANGE, ms=11, ls="")[0],
        "sampler": axes.plot([], [], "o", mfc="white", mec=BLACK, mew=1.6, ms=8)[0],
        "here": axes.plot([], [], "o", color=BLACK, ms=9, mec="white")[0],
        "home bars": bars.bar(np.arange(3) - 0.2, np.zeros(3), 0.38, color=GREEN, alpha=0.6),
        "push bars": bars.bar(np.arange(3) + 0.2, np.zeros(3), 0.38, color=ORANGE, hatch="//",
                              ec="white", lw=0.6),
        "text": [figure.text(0.44, y, "", fontsize=11.5) for y in (0.79, 0.7, 0.41, 0.32)],
    }  # fmt: skip


def _rings(axes) -> None:
    side = np.linspace(1e-4, 1, 120)
    a, b = np.meshgrid(side, side)
    c = 1 - a - b
    inside = c > 1e-4
    points = np.stack([a, b, np.where(inside, c, 1e-4)], -1)
    kl = np.where(inside, (points * np.log(points / REFERENCE)).sum(-1), np.nan)
    x, y = np.moveaxis(points @ CORNERS, -1, 0)
    axes.contour(x, y, kl, levels=LEVELS, colors=GREY, linewidths=0.8, alpha=0.6)


def update(artists, data):
    here = data["policy"] @ CORNERS
    artists["here"].set_data([here[0]], [here[1]])
    around = ring(data["kl"]) @ CORNERS if data["kl"] > 1e-6 else np.full((1, 2), np.nan)
    artists["ring"].set_data(around[:, 0], around[:, 1])
    artists["sampler"].set_data(*(data["sampler"] @ CORNERS)[:, None])
    # a push on the logits moves the probabilities by (diag pi - pi pi') push
    pi = data["policy"]
    for name in ("home", "push"):
        change = pi * (data[name] - pi @ data[name])
        move = change @ CORNERS
        size = float(np.linalg.norm(move))
        shown = size > 1e-9
        if shown:
            edge = (-pi / np.where(change < 0, change, -1e-12)).min()  # where a chance is 0
            move = move * min(0.2 / size, 0.95 * edge)
            end = here + move
            artists[name].set_data([here[0], end[0]], [here[1], end[1]])
            artists[f"{name} tip"].set_data([end[0]], [end[1]])
            artists[f"{name} tip"].set_marker(
                (3, 0, math.degrees(math.atan2(move[1], move[0])) - 90)
            )
        artists[name].set_visible(shown)
        artists[f"{name} tip"].set_visible(shown)
        for bar, height in zip(artists[f"{name} bars"], data[name], strict=True):
            bar.set_height(float(np.clip(height, -0.9, 0.9)))
    for text, line in zip(artists["text"], _lines(data), strict=True):
        text.set_text(line)


def _lines(data) -> list[str]:
    if float(np.linalg.norm(data["push"])) < 1e-9:
        told = ["0 on average", ""]
    elif math.isnan(data["rate"]):
        told = ["not 0, at the reference", ""]
    elif data["right"]:
        told = ["the KL's", "(orange lies on green)"]
    elif data["rate"] < -1e-6:
        told = ["not the KL's:", "a step makes the KL rise"]
    else:
        told = ["not the KL's: the KL falls", f"{data['rate']:.2f} times as fast"]
    return [
        f"KL(π‖π_ref) = {data['kl']:.3f} nats",
        f"the penalty's mean is {data['value']:.3f}".replace("-", "−"),
        *told,
    ]


def readout(data) -> str:
    kl, value, *gradient = (line for line in _lines(data) if line)
    return f"{kl}; {value}; gradient: {' '.join(gradient)}."


def alt(data) -> str:
    setting = f"{data['estimate']} in the {data['place']}, samples {data['samples']}"
    return (
        f"Triangle of policies over three answers, reference and policy. {setting}: {readout(data)}"
    )


def reads_right(data) -> bool:
    """The mean of the estimate is the KL, to a hundredth of it, and there is a KL to read."""
    return data["kl"] > 0.01 and abs(data["value"] / data["kl"] - 1) < 0.01


def never_negative_and_weak(data) -> bool:
    """Fresh samples near the reference, k2 or k3, and a step under a tenth as fast as it should."""
    near = data["samples"] == "fresh" and 0.001 < data["kl"] <= 0.02
    return near and data["estimate"] != "k1" and 0 <= data["rate"] < 0.1


def right_and_rising(data) -> bool:
    """Fresh samples, the right value, and a push along which the KL rises."""
    return data["samples"] == "fresh" and reads_right(data) and data["rate"] < -1e-6


def kl_pull_explorer(old: bool = False) -> Explorer:
    """How far the policy has gone, and which penalty; with `old`, in the loss, on whose samples."""
    controls = {
        "distance": slider(3.0 if old else 2.0, 0.0, FURTHEST, 0.1, "distance",
                           "0 is the reference"),
        "estimate": choice("k2", _same(ESTIMATES), "estimate", "k1, k2 or k3"),
    }  # fmt: skip
    if old:
        controls["samples"] = choice("older", _same(SAMPLES), "samples", "who wrote the answers")
    else:
        controls["place"] = choice("loss", [(f"in the {place}", place) for place in PLACES],
                                   "penalty", "where it stands")  # fmt: skip
    return Explorer(
        compute,
        build,
        update,
        controls,
        alt=alt,
        caption=CAPTION.format(older="; the hollow dot is the older one" if old else ""),
        readout=readout,
        size=(900, 290),
    )


def _same(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name, name) for name in names]
