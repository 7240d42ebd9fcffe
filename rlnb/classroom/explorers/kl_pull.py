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
FORMS = {
    "k1 loss": "k1 in the loss",
    "k2 loss": "k2 in the loss",
    "k3 loss": "k3 in the loss",
    "k1 reward": "k1 in the reward",
}
SAMPLES = {
    "fresh": "the policy",
    "old": "older, no ρ",
    "old, constant": "older, ρ constant",
    "old, full": "older, ρ differentiated",
}
CAPTION = (
    "Every point is a policy over three answers; rings are equal KL(π‖π_ref). The dot is the "
    "policy, softmax(log π_ref + distance · R); a hollow dot is the older one. Arrows have one "
    "length: the bars tell the sizes. Green is steepest on the logits, so it need not aim at the "
    "reference."
)


@echoing
@checked(distance=between(0, FURTHEST), form=one_of(FORMS), samples=one_of(SAMPLES))
def compute(distance: float = 3.0, form: str = "k2 loss", samples: str = "fresh") -> dict[str, Any]:
    """The mean push of one form of the KL penalty, by enumeration, and the way downhill.

    The policy is the reference with logits raised by distance x reward, distance in [0, 5]. An
    older policy stands half-way; sampler (3,) is the one that wrote the answers. "old, constant"
    weighs each sample by rho = pi / pi_old; in "old, full" autograd differentiates that rho in a
    loss (in the reward all is constant). Returns policy (3,), kl; value: the estimator's mean over
    the samples; home and push (3,): minus the gradient of KL(pi || ref) and of the form, in the
    logits; angle between them in degrees, nan where either is 0.

    >>> d = compute(3.0, "k3 loss")
    >>> round(d["kl"], 4), round(d["value"], 4), round(d["angle"])
    (0.66, 0.66, 26)
    """
    pi, before = _policy(distance), _policy(distance / 2)
    q = pi if samples == "fresh" else before
    rho = pi / q if samples in ("old, constant", "old, full") else np.ones(3)
    ell = np.log(pi / REFERENCE)
    kind, place = form.split()
    k, slope = {
        "k1": (ell, np.ones(3)),
        "k2": (ell**2 / 2, ell),
        "k3": (np.expm1(-ell) + ell, -np.expm1(-ell)),
    }[kind]
    score = np.eye(3) - pi  # row y: gradient of log pi(y) in the logits
    if place == "reward":
        weight = rho * k
    else:
        weight = rho * (slope + (k if samples == "old, full" else 0))
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
            f"length {size:.3f}, true one {true:.3f}",
            "away from the reference" if data["angle"] > 90 else "",
        ]
    return [
        f"KL(π‖π_ref) = {data['kl']:.3f} nats",
        f"mean of samples = {data['value']:.3f}".replace("-", "−"),
        *told,
    ]


def readout(data) -> str:
    return f"{'; '.join(line for line in _lines(data) if line)}."


def alt(data) -> str:
    setting = f"{FORMS[data['form']]}, samples from {SAMPLES[data['samples']]}"
    return (
        f"Triangle of policies over three answers, reference and policy. {setting}: {readout(data)}"
    )


def nearly_downhill(data) -> bool:
    """k3 in the loss, within 5 degrees of downhill."""
    return data["form"] == "k3 loss" and data["angle"] < 5


def far_and_downhill(data) -> bool:
    """Exactly downhill, far from the reference."""
    return data["distance"] >= 3 and data["angle"] < 0.01


def home_with_full(data) -> bool:
    """A penalty in the loss that is exact on old samples with the ratio differentiated."""
    exact = data["kl"] > 0.05 and data["angle"] < 0.01
    return data["samples"] == "old, full" and data["form"].endswith("loss") and exact


def kl_pull_explorer() -> Explorer:
    """How far the policy has gone, which penalty, and who wrote the samples."""
    return Explorer(
        compute,
        build,
        update,
        {
            "distance": slider(3.0, 0.0, FURTHEST, 0.1, "distance", "0 is the reference"),
            "form": choice("k3 loss", [(name, key) for key, name in FORMS.items()], "penalty",
                           "which estimate, and where it stands"),
            "samples": choice("fresh", [(name, key) for key, name in SAMPLES.items()],
                              "samples from", "who wrote the answers"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 290),
    )  # fmt: skip
