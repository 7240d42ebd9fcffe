"""Two bells that drift apart: how few samples of one carry the weight for the other."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.figures import BLACK, ORANGE

SAMPLES = 1000
TOPS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 120)  # ends of the axis of shares, percent
X = np.linspace(-4, 7, 331)
CAPTION = (
    "Above, the two policies. Below, the 1,000 samples of the old one: where each lies, and which "
    "share of all the weight it carries."
)


@cache
def _drawn(batch: int) -> np.ndarray:
    generator = torch.Generator().manual_seed(batch)
    return torch.randn(SAMPLES, generator=generator, dtype=torch.float64).numpy()


def compute(mu: float = 0.5, batch: int = 0) -> dict[str, Any]:
    """The old policy is normal around 0, today's around `mu`, both of width 1.

    batch: the seed of the 1,000 samples. Returns x and share (1000,), the share of the total weight
    that each carries; reported = (sum w)^2 / sum w^2; formula = 1000 exp(-mu^2), the value of
    a very large batch; top, the end of the axis in percent; and the arguments.

    >>> round(compute(2.0)["formula"], 1)
    18.3
    """
    x = _drawn(batch)
    weight = np.exp(mu * x - mu**2 / 2)
    share = weight / weight.sum()
    return {
        "x": x,
        "share": share,
        "reported": float(1 / (share**2).sum()),
        "top": next(top for top in TOPS if 110 * share.max() < top),
        "formula": float(SAMPLES * np.exp(-(mu**2))),
        "mu": mu,
        "batch": batch,
    }


def build(figure, data):
    top = figure.add_axes((0.105, 0.6, 0.88, 0.37))
    low = figure.add_axes((0.105, 0.17, 0.88, 0.36))
    for axes in (top, low):
        axes.set(xlim=(X[0], X[-1]))
        axes.tick_params(labelsize=10.5)
    top.set(ylim=(0, 0.46), yticks=(), xticklabels=())
    top.set_ylabel("probability", fontsize=10.5)
    low.set_ylabel("share of all\nweight (%)", fontsize=10.5)
    low.set_xlabel("the sample x", fontsize=10.5)
    top.plot(X, np.exp(-(X**2) / 2) / np.sqrt(2 * np.pi), color=ORANGE, lw=2.6)
    top.text(-1.5, 0.3, "old policy", fontsize=11, ha="right")
    return {
        "today": top.plot([], [], color=BLACK, lw=2.6)[0],
        "name": top.text(0, 0, "today's policy", fontsize=11),
        "dots": low.plot([], [], "o", color=ORANGE, ms=5, mec="white", mew=0.4)[0],
        "axis": low.yaxis,
        "text": low.text(
            0.01, 0.94, "", fontsize=11, weight="bold", va="top", transform=low.transAxes
        ),
    }


def update(artists, data):
    bell = np.exp(-((X - data["mu"]) ** 2) / 2) / np.sqrt(2 * np.pi)
    artists["today"].set_data(X, bell)
    artists["name"].set_position((data["mu"] + 1.5, 0.3))
    share = 100 * data["share"]
    artists["dots"].set_data(data["x"], share)
    low, top = artists["dots"].axes, min(data["top"], 100)
    low.set_ylim(-0.03 * top, 1.2 * top)
    low.set_yticks((0, top / 2, top), ("0", f"{top / 2:g}", f"{top:g}"))
    artists["text"].set_text(
        f"the heaviest sample: {share.max():.1f} %\n"
        f"effective samples, this batch reports: {data['reported']:.0f}\n"
        f"large-batch formula: {data['formula']:.1f}"
    )


def readout(data) -> str:
    return (
        f"μ = {data['mu']:.2f}, batch {data['batch']}: it reports {data['reported']:.0f} effective "
        f"samples of 1,000; the large-batch formula gives {data['formula']:.1f}."
    )


def alt(data) -> str:
    return (
        f"Two bells of width 1, {data['mu']:.2f} apart, and 1,000 samples of the left one with "
        f"their shares of the weight, at most {100 * data['share'].max():.1f} %. {readout(data)}"
    )


def reports_too_little(data) -> bool:
    """At drift 2, a batch that reports less than the formula: it holds a rare heavy sample."""
    return abs(data["mu"] - 2) < 1e-9 and data["reported"] < data["formula"]


def drift_explorer() -> Explorer:
    """The distance between the policies, and which batch was drawn."""
    return Explorer(
        compute,
        build,
        update,
        {
            "mu": slider(0.5, 0.0, 3.0, 0.05, "drift μ", "distance between the two bells"),
            "batch": slider(0, 0, 19, 1, "batch", "another draw of 1,000 samples"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 330),
    )
