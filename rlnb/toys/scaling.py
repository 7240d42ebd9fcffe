"""Reward against compute: ScaleRL's sigmoid, its fit, and how well the fit knows the ceiling.

    R(C) = start + (ceiling - start) / (1 + (midpoint / C)^exponent)

Khatri et al. 2025 (ScaleRL, arXiv 2510.13786). Identities: R(midpoint) is half way between start
and ceiling, and d ln[(R - start) / (ceiling - R)] / d ln C = exponent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Sigmoid", "ceiling_error", "fit_sigmoid", "fit_sigmoids"]

EXPONENTS = np.geomspace(0.2, 6.0, 24)  # the coarse grid of the fit
REACH = 12.0  # the midpoint lies within this factor of the data
STEPS, TINY = 25, 1e-6


@dataclass(frozen=True)
class Sigmoid:
    """Four numbers. ceiling and start are rewards, exponent has no unit, midpoint is a compute.

    >>> round(Sigmoid(0.6, 1.5, 20.0, 0.1)(20.0), 10)
    0.35
    """

    ceiling: float
    exponent: float
    midpoint: float
    start: float

    def __call__(self, compute):
        """R at one compute, or at an array of them."""
        share = _rise(np.log(compute), np.log(self.exponent), np.log(self.midpoint))
        reward = self.start + (self.ceiling - self.start) * share
        return float(reward) if np.ndim(compute) == 0 else reward


def fit_sigmoid(
    compute,
    reward,
    *,
    ceiling: float | None = None,
    start: float | None = None,
    highest: float = 1.0,
) -> Sigmoid:
    """The least-squares sigmoid through (compute, reward), both (n,), n >= 4, compute > 0.

    For given exponent and midpoint the curve is linear in start and ceiling, which are then
    solved for (variable projection): a grid over the other two, then Gauss-Newton. `ceiling` and
    `start` may be held at a number; a fitted ceiling is at most `highest`, since a pass rate is
    at most 1. ValueError for too few points, or a compute that is not positive.

    >>> c = np.arange(2.0, 101.0, 2.0)
    >>> fit = fit_sigmoid(c, Sigmoid(0.6, 1.5, 20.0, 0.1)(c))
    >>> [round(x, 4) for x in (fit.ceiling, fit.exponent, fit.midpoint, fit.start)]
    [0.6, 1.5, 20.0, 0.1]
    """
    rewards = np.asarray(reward, dtype=float)[None]
    row = fit_sigmoids(compute, rewards, ceiling=ceiling, start=start, highest=highest)[0]
    return Sigmoid(*(float(x) for x in row))


def fit_sigmoids(
    compute,
    rewards,
    *,
    ceiling: float | None = None,
    start: float | None = None,
    highest: float = 1.0,
) -> np.ndarray:
    """`fit_sigmoid` for many runs at once: (n,), (runs, n) -> (runs, 4), in Sigmoid's order."""
    compute, rewards = np.asarray(compute, dtype=float), np.asarray(rewards, dtype=float)
    if compute.ndim != 1 or rewards.ndim != 2 or rewards.shape[1] != len(compute):
        raise ValueError(
            "compute and reward must be as long as each other, got shapes "
            f"{compute.shape} and {rewards.shape[1:]}."
        )
    if len(compute) < 4:
        raise ValueError(f"a curve with four numbers needs at least 4 points, got {len(compute)}.")
    if compute.min() <= 0:
        raise ValueError(f"compute must be positive, its logarithm is taken; got {compute.min()}.")
    x, held = np.log(compute), (ceiling, start, highest)

    middles = np.linspace(x[0] - np.log(REACH), x[-1] + np.log(REACH), 48)
    grid = np.stack(np.meshgrid(np.log(EXPONENTS), middles, indexing="ij"), -1).reshape(-1, 2)
    error = _error_on_grid(x, rewards, grid, held)  # (candidates, runs)
    best = grid[error.argmin(0)]  # (runs, 2)

    low, high = grid.min(0), grid.max(0)
    residual, ends = _residual(x, rewards, best, held)
    damping = np.full(len(rewards), 1e-3)
    for _ in range(STEPS):
        slopes = np.stack(
            [
                (_residual(x, rewards, best + TINY * axis, held)[0] - residual) / TINY
                for axis in np.eye(2)
            ],
            -1,
        )  # (runs, n, 2)
        curvature = slopes.transpose(0, 2, 1) @ slopes
        curvature += damping[:, None, None] * (np.eye(2) * curvature + 1e-12 * np.eye(2))
        step = np.linalg.solve(curvature, -(slopes * residual[..., None]).sum(1)[..., None])
        tried = np.clip(best + step[..., 0], low, high)
        new, new_ends = _residual(x, rewards, tried, held)
        gain = np.square(residual).sum(1) - np.square(new).sum(1)
        better = gain > 0
        best = np.where(better[:, None], tried, best)
        residual = np.where(better[:, None], new, residual)
        ends = np.where(better, new_ends, ends)
        damping = np.where(better, damping / 10, damping * 10)
        still = (gain <= 0) & (damping < 1e5) | (gain > 1e-10 * np.square(residual).sum(1))
        if not still.any():
            break
    return np.stack([ends[0], np.exp(best[:, 0]), np.exp(best[:, 1]), ends[1]], 1)


def ceiling_error(compute, curve: Sigmoid, noise: float) -> float:
    """Standard error of a fitted ceiling when `curve` is true and every point has this noise.

    noise sqrt([(J^T J)^-1]_11), J (n, 4) the slopes of R: what an unbiased fit of n points cannot
    beat, and what least squares reaches once the ceiling is pinned down. No bound on the ceiling.
    inf when the points do not tell the four numbers apart.
    """
    share = _rise(
        np.log(np.asarray(compute, dtype=float)), np.log(curve.exponent), np.log(curve.midpoint)
    )
    bent = (curve.ceiling - curve.start) * share * (1 - share)
    far = np.log(np.asarray(compute, dtype=float) / curve.midpoint)
    slopes = np.stack([share, bent * far, bent, 1 - share], 1)
    size = np.linalg.norm(slopes, axis=0)
    size = np.where(size > 0, size, 1)
    information = (slopes / size).T @ (slopes / size)
    if len(slopes) < 4 or np.linalg.cond(information) > 1e14:
        return float("inf")
    return float(noise * np.sqrt(np.linalg.inv(information)[0, 0]) / size[0])


def _rise(x, log_exponent, middle):
    """1 / (1 + (midpoint / C)^exponent), of logarithms."""
    return 1 / (1 + np.exp(np.clip(-np.exp(log_exponent) * (x - middle), -700, 700)))


def _ends(s_s, s_f, f_f, s_r, f_r, held):
    """Ceiling and start that fit best: sums of products of s, f = 1 - s and the reward r."""
    ceiling, start, highest = held
    if ceiling is None:
        if start is None:
            ceiling = (f_f * s_r - s_f * f_r) / np.maximum(s_s * f_f - s_f**2, 1e-300)
        else:
            ceiling = (s_r - start * s_f) / np.maximum(s_s, 1e-300)
        ceiling = np.minimum(ceiling, highest)
    if start is None:
        start = (f_r - ceiling * s_f) / np.maximum(f_f, 1e-300)
    return np.broadcast_to(ceiling, s_r.shape), np.broadcast_to(start, s_r.shape)


def _error_on_grid(x, rewards, grid, held):
    """(candidates, runs) sum of squares; infinite where the fitted curve would fall."""
    s = _rise(x, grid[:, :1], grid[:, 1:])  # (candidates, n)
    f = 1 - s
    s_s, s_f, f_f = (np.einsum("kn,kn->k", a, b)[:, None] for a, b in ((s, s), (s, f), (f, f)))
    s_r, f_r = s @ rewards.T, f @ rewards.T
    top, bottom = _ends(s_s, s_f, f_f, s_r, f_r, held)
    error = (
        top**2 * s_s + 2 * top * bottom * s_f + bottom**2 * f_f - 2 * top * s_r - 2 * bottom * f_r
    )  # less the sum of r^2
    return np.where((top >= bottom) & (s_s * f_f - s_f**2 > 1e-12), error, np.inf)


def _residual(x, rewards, at, held):
    """(runs, n) curve - reward at (ln exponent, ln midpoint) `at` (runs, 2), and its two ends."""
    s = _rise(x, at[:, :1], at[:, 1:])
    f = 1 - s
    s_s, s_f, f_f, s_r, f_r = (
        np.einsum("rn,rn->r", a, b) for a, b in ((s, s), (s, f), (f, f), (s, rewards), (f, rewards))
    )
    top, bottom = _ends(s_s, s_f, f_f, s_r, f_r, held)
    return top[:, None] * s + bottom[:, None] * f - rewards, np.stack([top, bottom])
