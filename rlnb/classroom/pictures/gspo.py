"""The pictures of the page on GSPO: one ratio per answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from rlnb.classroom.figures import BLACK, GREEN, GREY, NEGATIVE, POSITIVE, Picture, static_figure

__all__ = ["leaps", "settling", "where_it_shows"]

TEXT = 10.5  # points: the size of the page's own text
BAND = "#E3E3E3"
LOW, HIGH = 3e-4, 4e-4  # GSPO's band on s, below and above 1
TICKS = (0.5, 0.8, 1.0, 1.2, 2.0, 3.0)


def leaps(panels: Mapping[str, Tensor], caption: str, epsilon: float = 0.2) -> Picture:
    """The token ratios of one answer in their order, a panel per name; `epsilon` shades a band."""
    data = {name: ratio.numpy() for name, ratio in panels.items()}
    wide = 0.91 / len(data)

    def build(figure, _):
        for k, (name, ratio) in enumerate(data.items()):
            axes = figure.add_axes((0.08 + wide * k, 0.18, wide - 0.03, 0.7))
            axes.axhspan(1 - epsilon, 1 + epsilon, color=BAND, lw=0)
            axes.axhline(1, color=BLACK, lw=0.8)
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
        caption=caption,
    )


def ratio_of(data: Mapping[str, np.ndarray]) -> np.ndarray:
    """The first panel's ratios."""
    return next(iter(data.values()))


def where_it_shows(gap: Tensor, A: Tensor, rewarded: Tensor) -> Picture:
    """The share of tokens that rose, by word and by answer.

    gap (n, T) log rho, A (n,), rewarded (n, T) true where the word is one that the reward counts.
    """
    sides = {"good, A > 0": (A > 0, POSITIVE), "bad, A < 0": (A < 0, NEGATIVE)}
    words = {"a rewarded word": rewarded, "any other word": ~rewarded}
    rose = {
        (word, name): float((gap > 0)[side[:, None] & where].double().mean())
        for word, where in words.items()
        for name, (side, _) in sides.items()
    }

    def build(figure, _):
        axes = figure.add_axes((0.14, 0.14, 0.6, 0.82))
        for j, (name, (_, color)) in enumerate(sides.items()):
            x = np.arange(2) + 0.36 * (j - 0.5)
            heights = [rose[word, name] for word in words]
            axes.bar(x, heights, width=0.32, color=color, lw=0, hatch="//" if j else None,
                     edgecolor="white", label=f"in an answer\n{name}")  # fmt: skip
            for at, height in zip(x, heights, strict=True):
                axes.text(at, height + 0.02, f"{height:.0%}", ha="center", fontsize=TEXT)
        axes.axhline(0.5, color=GREY, lw=0.9, ls=":")
        axes.set_xticks((0, 1), list(words))
        figure.legend(loc="center left", bbox_to_anchor=(0.76, 0.55), fontsize=TEXT)
        axes.set(ylim=(0, 1), yticks=(0, 0.5, 1))
        axes.set_yticklabels(("0", "50 %", "100 %"))
        axes.tick_params(labelsize=TEXT)
        axes.set_ylabel("share that rose", fontsize=TEXT)

    shares = ", ".join(f"{word} in an answer {name} {x:.0%}" for (word, name), x in rose.items())
    return static_figure(
        build,
        size=(900, 240),
        alt=f"Share of tokens that rose: {shares}.",
        caption="Three policies. Whether a token rose depends on its word, not on its answer.",
    )


def settling(lengths: Sequence[int], gaps: Mapping[str, Tensor], kls: Sequence[float]) -> Picture:
    """log s against length, a panel per world: 5 to 95 %, the band, and minus its KL.

    gaps[name] (n, T) log rho; kls one KL per token for each panel.
    """
    tables, alive = {}, {}
    for name, gap in gaps.items():
        log_s = [gap[:, :T].mean(1).numpy() for T in lengths]
        tables[name] = np.array([(np.quantile(x, 0.05), x.mean(), np.quantile(x, 0.95))
                                 for x in log_s])  # fmt: skip
        alive[name] = [int(((x > np.log1p(-LOW)) & (x < np.log1p(HIGH))).sum()) for x in log_s]
    ticks, edge = (-0.006, -0.003, 0, 0.003, 0.006), 0.009

    def build(figure, _):
        for k, (name, table) in enumerate(tables.items()):
            axes = figure.add_axes((0.1 + 0.46 * k, 0.18, 0.42, 0.7))
            seen = table.clip(-edge, edge)
            axes.fill_between(lengths, seen[:, 0], seen[:, 2], color=GREY, alpha=0.3, lw=0)
            axes.axhspan(-LOW, HIGH, color=GREEN, alpha=0.6, lw=0)
            axes.set_xscale("log")
            axes.set(ylim=(-edge, edge), xlim=(0.85 * lengths[0], 1.35 * lengths[-1]))
            axes.set_xticks(lengths, [f"{n:,}" for n in lengths])
            labels = [f"{x:g}".replace("-", "−") for x in ticks]
            axes.set_yticks(ticks, labels if k == 0 else [""] * len(ticks))
            axes.minorticks_off()
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("T, tokens in an answer", fontsize=TEXT)
            axes.set_ylabel("log s" if k == 0 else "", fontsize=TEXT)
            axes.set_title(name, fontsize=TEXT, weight="bold")
            axes.axhline(-kls[k], color=NEGATIVE, ls="--", lw=2)
            sides = ["left", *["center"] * (len(lengths) - 2), "right"]
            for T, count, side in zip(lengths, alive[name], sides, strict=True):
                axes.text(T, 0.0072, f"{count} inside", fontsize=TEXT, weight="bold", ha=side)
            words = (
                "dashed: −KL, exact"
                if k == 0
                else "grey: 5 to 95 % of the answers\ngreen: GSPO's band"
            )
            axes.text(1.2 * lengths[-1], -0.0042, words, fontsize=TEXT, ha="right", va="top",
                      color=BLACK if k else NEGATIVE)  # fmt: skip

    said = "; ".join(
        f"{name}: 5 to 95 % from {t[0, 0]:+.4f} to {t[0, 2]:+.4f} at {lengths[0]} tokens, from "
        f"{t[-1, 0]:+.4f} to {t[-1, 2]:+.4f} at {lengths[-1]}; inside the band "
        f"{', '.join(map(str, alive[name]))} of {len(gaps[name])}"
        for name, t in tables.items()
    )
    least = ", ".join(f"{-kl:.4f}" for kl in kls)
    return static_figure(
        build,
        size=(900, 300),
        alt=f"log s against length. {said}. Minus the KL: {least}.",
        caption=f"{len(next(iter(gaps.values())))} answers of one policy, cut after "
        f"{', '.join(f'{n:,}' for n in lengths)} tokens. Dashed, −KL: as routed it lies below the "
        "band, with old experts held inside. The spread shrinks around the dashed line.",
    )
