"""The pictures of the page on GSPO: one ratio per answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from rlnb.classroom.figures import (
    BLACK,
    GREEN,
    GREY,
    NEGATIVE,
    POSITIVE,
    PURPLE,
    Picture,
    static_figure,
)

__all__ = ["leaps", "settling", "spread_by_length", "where_it_shows"]

TEXT = 10.5  # points: the size of the page's own text
BAND = "#E3E3E3"
LOW, HIGH = 3e-4, 4e-4  # GSPO's band on s, below and above 1
TICKS = (0.5, 0.8, 1.0, 1.2, 2.0, 3.0)


def leaps(panels: Mapping[str, Tensor], epsilon: float = 0.2) -> Picture:
    """The token ratios of one answer in their order, a panel per name; `epsilon` shades a band."""
    data = {name: ratio.numpy() for name, ratio in panels.items()}
    wide = 0.91 / len(data)

    def build(figure, _):
        for k, (name, ratio) in enumerate(data.items()):
            axes = figure.add_axes((0.08 + wide * k, 0.18, wide - 0.03, 0.7))
            axes.axhspan(1 - epsilon, 1 + epsilon, color=BAND, lw=0)
            axes.vlines(np.arange(len(ratio)), 1, ratio, color=BLACK, lw=1.4)
            axes.set(yscale="log", ylim=(0.3, 3.3), xlim=(-2, len(ratio) + 1))
            axes.set_yticks(TICKS, [f"{x:g}" for x in TICKS] if k == 0 else [""] * len(TICKS))
            axes.minorticks_off()
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("token of the answer", fontsize=TEXT)
            axes.set_ylabel("ratio ρ (log scale)" if k == 0 else "", fontsize=TEXT)
            axes.set_title(name, fontsize=TEXT, weight="bold")

    said = "; ".join(
        f"{name}: {x.min():.2f} to {x.max():.2f}, {int((abs(x - 1) > epsilon).sum())} outside"
        for name, x in data.items()
    )
    return static_figure(
        build,
        size=(900, 280),
        alt=f"Token ratios of one answer of {len(ratio_of(data))} tokens. {said}.",
        caption=f"One of the 64 answers, a line a token. Grey: the band 1 ± {epsilon:g}.",
    )


def ratio_of(data: Mapping[str, np.ndarray]) -> np.ndarray:
    """The first panel's ratios."""
    return next(iter(data.values()))


def where_it_shows(gap: Tensor, A: Tensor) -> Picture:
    """log ratio of good and bad: token by token, and the mean over each answer.

    gap (n, T) log rho, A (n,).
    """
    levels = {"one token": gap, "the mean over an answer": gap.mean(1)}
    sides = {"good, A > 0": (A > 0, POSITIVE, "-"), "bad, A < 0": (A < 0, NEGATIVE, "--")}

    def build(figure, _):
        for k, (title, x) in enumerate(levels.items()):
            axes = figure.add_axes((0.04 + 0.49 * k, 0.2, 0.45, 0.68))
            edge = 0.03 if k == 0 else 0.012
            bins = np.linspace(-edge, edge, 31 if k == 0 else 17)
            for name, (side, color, line) in sides.items():
                values = x[side].flatten().clamp(-edge, edge).numpy()
                axes.hist(values, bins, density=True, histtype="step", color=color, ls=line,
                          lw=2.4, label=name)  # fmt: skip
            axes.axvline(0, color=GREY, lw=0.9)
            axes.set(yticks=(), xlim=(-edge, edge))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("log ratio", fontsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            if k == 0:
                axes.legend(loc="upper right", fontsize=TEXT)

    means = "; ".join(
        f"{name}: mean log ratio {float(gap[side].mean()):+.4f}"
        for name, (side, _, _) in sides.items()
    )
    return static_figure(
        build,
        size=(900, 260),
        alt="Distributions of log ratios, of tokens (good and bad alike) and of the answers' "
        f"means (good further right). {means}.",
        caption="Height: how frequent. The outermost bar holds everything beyond. Token by token "
        "good and bad look alike; answer by answer they part.",
    )


def spread_by_length(lengths: Sequence[int], spreads: Sequence[float], sigma: float) -> Picture:
    """Spread of log s against the length: measured, and sigma / sqrt(T)."""

    def build(figure, _):
        axes = figure.add_axes((0.1, 0.18, 0.52, 0.77))
        x = np.asarray(lengths, dtype=float)
        line = np.array([x[0], 8 * x[-1]])
        axes.plot(line, sigma / np.sqrt(line), color=GREY, ls="--", lw=2.2, label="σ/√T")
        axes.plot(x, spreads, "o", color=BLACK, ms=8, label="measured spread of log s")
        for width, color, dashes, name in (
            (0.2, PURPLE, ":", "PPO's ε, 0.2"),
            ((LOW + HIGH) / 2, GREEN, "-", "GSPO's ε, 3e-4 and 4e-4"),
        ):
            axes.axhline(width, color=color, ls=dashes, lw=2.6, label=name)
        axes.set(xscale="log", yscale="log", ylim=(1e-4, 0.5))
        axes.set_xticks((*lengths, 2048), [str(n) for n in (*lengths, 2048)])
        axes.minorticks_off()
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("length T of the answers", fontsize=TEXT)
        axes.set_ylabel("distance from 1 (log scale)", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)

    said = ", ".join(f"{s:.5f} at {n}" for n, s in zip(lengths, spreads, strict=True))
    return static_figure(
        build,
        size=(900, 290),
        alt=f"Spread of log s: {said}. The line sigma over root T, sigma {sigma:.4f}, runs "
        f"through and would meet a band of 3.5e-4 at about {(sigma / 3.5e-4) ** 2:.0f} tokens; "
        "0.2 is far above.",
        caption="Even without a single flip a band of 0.2 is out of reach for s. Its natural size "
        "is the spread of one token divided by √T.",
    )


def settling(lengths: Sequence[int], gaps: Mapping[str, Tensor], kl: float) -> Picture:
    """log s against length, a panel per world: 5 to 95 % and mean; the band, and -KL in the first.

    gaps[name] (n, T) log rho. The axis is linear within 1e-3 of 0 and logarithmic beyond.
    """
    tables = {
        name: np.array([
            np.quantile(gap[:, :T].mean(1).numpy(), (0.05, 0.5, 0.95)) for T in lengths
        ])
        for name, gap in gaps.items()
    }  # fmt: skip
    ticks = (-0.1, -0.01, -0.001, 0, 0.001, 0.01, 0.1)

    def build(figure, _):
        for k, (name, table) in enumerate(tables.items()):
            axes = figure.add_axes((0.1 + 0.46 * k, 0.18, 0.42, 0.7))
            axes.set_yscale("symlog", linthresh=1e-3, linscale=1.2)
            axes.axhspan(-LOW, HIGH, color=GREEN, alpha=0.45, lw=0)
            axes.fill_between(lengths, table[:, 0], table[:, 2], color=GREY, alpha=0.3, lw=0)
            axes.plot(lengths, table[:, 1], color=BLACK, marker="o", lw=2.2)
            axes.set_xscale("log")
            axes.set(ylim=(-0.2, 0.2))
            axes.set_xticks(lengths, [str(n) for n in lengths])
            labels = [f"{x:g}".replace("-", "−") for x in ticks]
            axes.set_yticks(ticks, labels if k == 0 else [""] * len(ticks))
            axes.minorticks_off()
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("length T of the answers", fontsize=TEXT)
            axes.set_ylabel("log s (stretched at 0)" if k == 0 else "", fontsize=TEXT)
            axes.set_title(name, fontsize=TEXT, weight="bold")
            if k == 0:
                axes.axhline(-kl, color=NEGATIVE, ls="--", lw=2)
                axes.text(lengths[0], -kl * 0.86, "−KL, exact", fontsize=TEXT, color=NEGATIVE,
                          va="bottom", weight="bold")  # fmt: skip
            else:
                axes.text(lengths[-1], -0.13, "grey: 5 to 95 % of the answers\n"
                          "black: the median\ngreen: GSPO's band", fontsize=TEXT,
                          ha="right")  # fmt: skip

    said = "; ".join(
        f"{name}: median {t[0, 1]:+.4f} at {lengths[0]} tokens, {t[-1, 1]:+.4f} at {lengths[-1]}, "
        f"there 5 to 95 % from {t[-1, 0]:+.4f} to {t[-1, 2]:+.4f}"
        for name, t in tables.items()
    )
    return static_figure(
        build,
        size=(900, 320),
        alt=f"log s against length. {said}. Minus the KL: {-kl:.4f}.",
        caption="With flips, longer answers only make it surer that s is below the band. With "
        "the old experts held, they bring s towards it.",
    )
