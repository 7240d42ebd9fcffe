"""TRPO's step in one picture, for the statements of the page on KL."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from rlnb.classroom.figures import BLACK, BLUE, GREY, ORANGE, WINE, Picture, static_figure
from rlnb.classroom.pictures.kl import CORNERS, triangle

__all__ = ["trust_region"]


def trust_region(
    old: Tensor, rewards: Tensor, fisher: Tensor, delta: float, directions: Mapping[str, Tensor]
) -> Picture:
    """The triangle of policies around the old one: the limit, its model, and two ways to climb.

    old, rewards (3,), fisher (3, 3); delta in nats limits KL(old || new). directions: "plain
    gradient" and "natural gradient" -> (3,) on the logits; each is followed up to the limit.
    """
    looks = {"plain gradient": (ORANGE, "--", "s"), "natural gradient": (BLACK, "-", "o")}
    p, pays, F = old.numpy(), rewards.numpy(), fisher.numpy()
    turn = np.linspace(0, 2 * np.pi, 721)[:, None]
    around = _in_plane(turn)
    limit = _moved(p, _until(p, around, delta))
    model = _moved(p, np.sqrt(2 * delta / ((around @ F) * around).sum(1, keepdims=True)) * around)
    most = float((limit @ pays).max() - p @ pays)
    part = np.linspace(0, 1, 50)[:, None]
    paths = {
        name: _moved(p, part * _until(p, d.numpy()[None], delta)) for name, d in directions.items()
    }

    def build(figure, _):
        axes = figure.add_axes((0.01, 0.01, 0.5, 0.98))
        triangle(axes)
        for level in np.arange(0.1, 1.0, 0.1):
            axes.plot(*_level(level, pays).T, color=BLUE, lw=0.8, alpha=0.35, zorder=0)
        axes.plot(*(limit @ CORNERS).T, color=WINE, lw=2.6)
        axes.plot(*(model @ CORNERS).T, color=WINE, lw=1.4, ls=":")
        for name, path in paths.items():
            color, dashes, mark = looks[name]
            axes.plot(*(path @ CORNERS).T, color=color, ls=dashes, lw=2.4)
            axes.plot(*(path[-1] @ CORNERS), mark, color=color, ms=9, mec="white", zorder=5)
        axes.plot(*(p @ CORNERS), "X", color=GREY, ms=11, mec="white", zorder=6)
        key = [
            (GREY, "✕", f"the old policy: the best answer has {p[0]:.2f}"),
            (WINE, "—", f"the limit KL(π_old‖π) = {delta}"),
            (WINE, "···", "the quadratic model of it"),
            (BLUE, "—", "equal reward; it grows to the upper right"),
        ]
        for name, path in paths.items():
            mark = "■" if name.startswith("plain") else "●"
            key.append((looks[name][0], mark, f"{name}: reward +{gain(path):.3f}"))
            key.append((looks[name][0], "", f"the best answer comes to {path[-1][0]:.2f}"))
        for k, (color, mark, text) in enumerate(key):
            figure.text(0.53, 0.9 - 0.112 * k, mark, color=color, fontsize=13, weight="bold",
                        ha="center", va="center")  # fmt: skip
            figure.text(0.56, 0.9 - 0.112 * k, text, fontsize=11.5, va="center")

    def gain(path) -> float:
        return float((path[-1] - p) @ pays)

    told = "; ".join(
        f"{name} gains {gain(path):.3f} and ends at {', '.join(f'{x:.3f}' for x in path[-1])}"
        for name, path in paths.items()
    )
    return static_figure(
        build,
        size=(900, 360),
        alt=f"Triangle of policies over three answers, a limit of {delta} nats around the old "
        f"one. {told}.",
        caption=f"Both steps stop at the same KL. The most that this limit allows is +{most:.3f}; "
        "the natural gradient comes closer to it.",
    )


def _in_plane(angle: np.ndarray) -> np.ndarray:
    """Directions (n, 3) on the logits of three answers that change their softmax, of length 1."""
    across, along = np.array([1, -1, 0]) / 2**0.5, np.array([1, 1, -2]) / 6**0.5
    return np.cos(angle) * across + np.sin(angle) * along


def _moved(p: np.ndarray, step: np.ndarray) -> np.ndarray:
    weights = p * np.exp(step - step.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def _until(p: np.ndarray, directions: np.ndarray, delta: float) -> np.ndarray:
    """The longest steps (n, 3) along the directions whose KL(p || new) is at most delta."""
    low, high = np.zeros((len(directions), 1)), np.full((len(directions), 1), 40.0)
    for _ in range(50):
        middle = (low + high) / 2
        new = np.maximum(_moved(p, middle * directions), 1e-300)
        inside = (p * np.log(p / new)).sum(1, keepdims=True) <= delta
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low * directions


def _level(value: float, rewards: np.ndarray) -> np.ndarray:
    """The two ends of the line of policies whose mean reward is `value`, as points."""
    ends = []
    for a, b in ((0, 1), (1, 2), (0, 2)):
        share = (value - rewards[b]) / (rewards[a] - rewards[b])
        if -1e-9 <= share <= 1 + 1e-9:
            ends.append(share * CORNERS[a] + (1 - share) * CORNERS[b])
    return np.array(ends[:2])
