"""A KL penalty over three answers: its mean push, and the way downhill."""

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
    "Every point is a policy over three answers; on a ring KL(π‖π_ref) is the same. The policy is "
    "the dot, softmax(log π_ref + distance · R){older}. Green: one gradient step down "
    "KL(π‖π_ref); its path to the reference is curved. Orange: your penalty. The arrows have one "
    "length, the bars tell the sizes."
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
    """The mean push of one form of the KL penalty, by enumeration, and the way downhill.

    The policy is the reference with logits raised by distance x reward, distance in [0, 5]. An
    older policy stands half-way; sampler (3,) is the one that wrote the answers. "ρ constant"
    weighs each sample by rho = pi / pi_old; with "ρ differentiated" autograd differentiates that
    rho in a loss (in the reward all is constant). Returns policy (3,), kl; value: the estimate's
    mean over the samples; home and push (3,): minus the gradient of KL(pi || ref) and of the
    penalty, in the logits; angle between them in degrees, nan where either is 0.

    >>> d = compute(3.0, "k3")
    >>> round(d["kl"], 4), round(d["value"], 4), round(d["angle"])
    (0.66, 0.66, 26)
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
    return {
        "policy": pi,
        "sampler": q,
        "kl": float(pi @ ell),
        "value": float(q @ (rho * k)),
        "home": home,
        "push": push,
        "angle": _angle(push, home),
    }


def _policy(distance: float) -> np.ndarray:
    weights = REFERENCE * np.exp(distance * REWARDS)
    return weights / weights.sum()


def _angle(a: np.ndarray, b: np.ndarray) -> float:
    product = float(np.linalg.norm(a) * np.linalg.norm(b))
    if product < 1e-12:
        return math.nan
    return math.degrees(math.acos(min(1.0, max(-1.0, float(a @ b) / product))))


def build(figure, data):
    axes = figure.add_axes((0.0, 0.0, 0.42, 1))
    triangle(axes)
    _rings(axes)
    path = np.array([_policy(t) for t in np.linspace(0, FURTHEST, 60)])
    axes.plot(*(path @ CORNERS).T, color=GREY, lw=1, ls=":")
    axes.plot(*(REFERENCE @ CORNERS), "P", color=BLACK, ms=10)
    axes.text(
        *(REFERENCE @ CORNERS - (0.035, 0)), "reference", ha="right", va="center", fontsize=TEXT
    )
    bars = figure.add_axes((0.77, 0.1, 0.225, 0.74))
    bars.set(xlim=(-0.6, 2.6), ylim=(-0.9, 0.9), yticks=(-0.5, 0, 0.5))
    bars.set_xticks(range(3), ("pays 1", "pays ½", "pays 0"))
    bars.tick_params(labelsize=TEXT)
    bars.axhline(0, color=GREY, lw=0.8)
    bars.set_title("push on the three logits", fontsize=TEXT)
    figure.text(0.44, 0.88, "value", fontsize=12, weight="bold")
    figure.text(0.44, 0.5, "push", fontsize=12, weight="bold")
    return {
        "home": axes.plot([], [], color=GREEN, lw=7, alpha=0.6, solid_capstyle="butt")[0],
        "home tip": axes.plot([], [], color=GREEN, ms=15, ls="")[0],
        "push": axes.plot([], [], color=ORANGE, lw=3, solid_capstyle="butt")[0],
        "push tip": axes.plot([], [], color=ORANGE, ms=11, ls="")[0],
        "sampler": axes.plot([], [], "o", mfc="white", mec=BLACK, mew=1.6, ms=8)[0],
        "here": axes.plot([], [], "o", color=BLACK, ms=9, mec="white")[0],
        "home bars": bars.bar(np.arange(3) - 0.2, np.zeros(3), 0.38, color=GREEN, alpha=0.6),
        "push bars": bars.bar(np.arange(3) + 0.2, np.zeros(3), 0.38, color=ORANGE, hatch="//",
                              ec="white", lw=0.6),
        "text": [figure.text(0.44, y, "", fontsize=11.5) for y in (0.79, 0.7, 0.41, 0.32, 0.23)],
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
    artists["sampler"].set_data(*(data["sampler"] @ CORNERS)[:, None])
    # a push on the logits moves the probabilities by (diag pi - pi pi') push
    pi = data["policy"]
    for name in ("home", "push"):
        move = pi * (data[name] - pi @ data[name]) @ CORNERS
        size = float(np.linalg.norm(move))
        shown = size > 1e-9
        if shown:
            move = move / size * 0.2
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
    size = float(np.linalg.norm(data["push"]))
    true = float(np.linalg.norm(data["home"]))
    if size < 1e-9:
        told = ["no push on average", "", ""]
    elif true < 1e-9:
        told = ["it pushes, at the reference", "", ""]
    else:
        told = [
            f"{data['angle']:.0f}° from downhill",
            f"length {size:.3f}, right one {true:.3f}",
            "it pushes uphill" if data["angle"] > 90 else "",
        ]
    return [
        f"KL(π‖π_ref) = {data['kl']:.3f} nats",
        f"the penalty reads {data['value']:.3f}".replace("-", "−"),
        *told,
    ]


def readout(data) -> str:
    return f"{'; '.join(line for line in _lines(data) if line)}."


def alt(data) -> str:
    setting = f"{data['estimate']} in the {data['place']}, samples {data['samples']}"
    return (
        f"Triangle of policies over three answers, reference and policy. {setting}: {readout(data)}"
    )


def reads_right(data) -> bool:
    """The mean of the estimate is the KL, to a hundredth of it, and there is a KL to read."""
    return data["kl"] > 0.01 and abs(data["value"] / data["kl"] - 1) < 0.01


def right_and_uphill(data) -> bool:
    """Fresh samples, the right value, and more than 90 degrees from downhill."""
    return data["samples"] == "fresh" and reads_right(data) and data["angle"] > 90


def right_on_old(data) -> bool:
    """In the loss, on old samples: the right value, and exactly downhill."""
    old_loss = data["samples"] != "fresh" and data["place"] == "loss"
    return old_loss and reads_right(data) and data["angle"] < 0.01


def uphill_on_old(data) -> bool:
    """In the loss, on old samples: more than 90 degrees from downhill."""
    return data["samples"] != "fresh" and data["place"] == "loss" and data["angle"] > 90


def kl_pull_explorer(old: bool = False) -> Explorer:
    """How far the policy has gone, and which penalty; with `old` also who wrote the samples."""
    controls = {
        "distance": slider(3.0, 0.0, FURTHEST, 0.1, "distance", "0 is the reference"),
        "estimate": choice("k2" if old else "k3", _same(ESTIMATES), "estimate", "k1, k2 or k3"),
        "place": choice("loss", [(f"in the {place}", place) for place in PLACES], "penalty",
                        "where it stands"),
    }  # fmt: skip
    if old:
        controls["samples"] = choice("older", _same(SAMPLES), "samples", "who wrote the answers")
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
