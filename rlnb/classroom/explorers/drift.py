"""Two bells that drift apart: what 1,000 samples of one are worth for the other."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.figures import BLACK, ORANGE

SAMPLES = 1000
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
    that each carries; claimed = (sum w)^2 / sum w^2; true = 1000 exp(-mu^2); and the arguments.

    >>> round(compute(2.0)["true"], 1)
    18.3
    """
    x = _drawn(batch)
    weight = np.exp(mu * x - mu**2 / 2)
    share = weight / weight.sum()
    return {
        "x": x,
        "share": share,
        "claimed": float(1 / (share**2).sum()),
        "true": float(SAMPLES * np.exp(-(mu**2))),
        "mu": mu,
        "batch": batch,
    }


def build(figure, data):
    top = figure.add_axes((0.085, 0.6, 0.9, 0.37))
    low = figure.add_axes((0.085, 0.17, 0.9, 0.36))
    for axes in (top, low):
        axes.set(xlim=(X[0], X[-1]))
        axes.tick_params(labelsize=10.5)
    top.set(ylim=(0, 0.46), yticks=(), xticklabels=())
    top.set_ylabel("probability", fontsize=10.5)
    low.set(ylim=(0, 64), yticks=(0, 20, 40, 60))
    low.set_ylabel("share of all\nweight (%)", fontsize=10.5)
    low.set_xlabel("the sample x", fontsize=10.5)
    top.plot(X, np.exp(-(X**2) / 2) / np.sqrt(2 * np.pi), color=ORANGE, lw=2.6)
    top.text(-1.5, 0.3, "old policy", fontsize=11, ha="right")
    return {
        "today": top.plot([], [], color=BLACK, lw=2.6)[0],
        "name": top.text(0, 0, "today's policy", fontsize=11),
        "dots": low.plot([], [], "o", color=ORANGE, ms=5, mec="white", mew=0.4)[0],
        "text": low.text(-3.9, 60, "", fontsize=11, weight="bold", va="top"),
    }


def update(artists, data):
    bell = np.exp(-((X - data["mu"]) ** 2) / 2) / np.sqrt(2 * np.pi)
    artists["today"].set_data(X, bell)
    artists["name"].set_position((data["mu"] + 1.5, 0.3))
    share = 100 * data["share"]
    artists["dots"].set_data(data["x"], np.minimum(share, 62))
    artists["text"].set_text(
        f"the heaviest sample: {share.max():.1f} %\n"
        f"this batch says: worth {data['claimed']:.0f} of 1,000\n"
        f"in truth: {data['true']:.1f}"
    )


def readout(data) -> str:
    return (
        f"μ = {data['mu']:.2f}, batch {data['batch']}: it says it is worth {data['claimed']:.0f} "
        f"of 1,000 samples; in truth {data['true']:.1f}."
    )


def alt(data) -> str:
    return (
        f"Two bells of width 1, {data['mu']:.2f} apart, and 1,000 samples of the left one with "
        f"their shares of the weight, at most {100 * data['share'].max():.1f} %. {readout(data)}"
    )


def half_is_left(data) -> bool:
    """1,000 samples are truly worth 480 to 520."""
    return 480 <= data["true"] <= 520


def says_too_little(data) -> bool:
    """At drift 2, a batch that claims less than it is worth: it holds one of the heavy samples."""
    return abs(data["mu"] - 2) < 1e-9 and data["claimed"] < data["true"]


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
