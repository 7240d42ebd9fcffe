"""The pictures of the page on baselines: one mean push, and noises that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from torch import Tensor

from rlnb.classroom.explorers.three_pushes import compute
from rlnb.classroom.figures import (
    BLACK,
    GREEN,
    GREY,
    NEGATIVE,
    PALE,
    POSITIVE,
    PURPLE,
    SKY,
    WINE,
    Picture,
    signed,
    static_figure,
)

__all__ = ["group_sizes", "noise_parabola", "push_table", "rate_lines", "two_prompts"]

TEXT = 10.5  # points: the size of the page's own text
LOOKS = ((BLACK, "-", "o"), (PURPLE, "--", "s"), (GREEN, "-.", "^"), (SKY, ":", "D"),
         (WINE, (0, (6, 2)), "v"))  # fmt: skip


def rate_lines(
    rates: Sequence[float], panels: Mapping[str, Mapping[str, Tensor]], start: float, caption: str
) -> Picture:
    """Mean reward at the end against the learning rate: panel -> line -> (rates, seeds).

    Bars are two standard errors. start: the mean reward before training.
    """
    tables = {
        title: {
            name: (runs.mean(1).numpy(), (runs.std(1) / runs.shape[1] ** 0.5).numpy())
            for name, runs in lines.items()
        }
        for title, lines in panels.items()
    }
    several = len(tables) > 1
    looks = dict(zip((n for lines in panels.values() for n in lines), LOOKS, strict=False))

    def build(figure, _):
        for k, (title, lines) in enumerate(tables.items()):
            axes = figure.add_axes((0.08 + 0.48 * k, 0.18, 0.42 if several else 0.62, 0.72))
            for place, (name, (mean, error)) in enumerate(lines.items()):
                color, dash, marker = looks[name]
                wide = place == 2  # the third may lie under the second: a broad pale line
                axes.errorbar(rates, mean, 2 * error, color=color, ls="-" if wide else dash,
                              lw=8 if wide else 2.4, alpha=0.4 if wide else 1, capsize=3,
                              marker="" if wide else marker, label=name,
                              zorder=1 if wide else 2)  # fmt: skip
            axes.axhline(start, color=GREY, lw=1, ls=(0, (4, 2)))
            axes.text(rates[0], start - 0.02, "before training", va="top", fontsize=TEXT,
                      color=GREY)  # fmt: skip
            axes.set(xscale="log", ylim=(0.2, 1.03))
            shown = rates[:: 2 if several else 1]
            axes.set_xticks(shown, [f"{rate:g}" for rate in shown])
            axes.minorticks_off()
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("learning rate (log scale)", fontsize=TEXT)
            axes.set_ylabel("mean reward at the end" if k == 0 else "", fontsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            if several:
                axes.legend(loc="lower center", bbox_to_anchor=(0.45, 0.22), fontsize=TEXT)
            else:
                axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)

    said = "; ".join(
        f"{title + ': ' if title else ''}{name} " + ", ".join(f"{x:.2f}" for x in mean)
        for title, lines in tables.items()
        for name, (mean, _) in lines.items()
    )
    listed = ", ".join(f"{rate:g}" for rate in rates)
    return static_figure(
        build,
        size=(900, 310),
        caption=caption,
        alt=f"Mean reward at the end, learning rates {listed}. {said}.",
    )


def push_table(pushes: Mapping[str, Tensor], chance: Sequence[float], caption: str) -> Picture:
    """A panel per baseline: rows are the answers drawn and their mean, columns the logits.

    pushes: name -> (3, 3), row y the push when y is drawn. Blue up, orange down, white 0.
    """
    names = ("good", "poor", "wrong")
    rows = [f"{name} drawn, p = {p:g}" for name, p in zip(names, chance, strict=True)]
    data = {
        name: np.vstack([push.numpy(), np.asarray(chance) @ push.numpy()]) + 0.0
        for name, push in pushes.items()
    }

    def build(figure, _):
        left, width = 0.18, 0.82 / len(data)
        for k, (name, table) in enumerate(data.items()):
            axes = figure.add_axes((left + width * k, 0.02, width - 0.02, 0.78))
            axes.set(xlim=(-0.5, 2.5), ylim=(3.75, -0.5), xticks=range(3))
            axes.set_title(name, fontsize=11, weight="bold")
            for spine in axes.spines.values():
                spine.set_visible(False)
            for i, row in enumerate(table):
                y = i + (0.2 if i == 3 else 0)
                for j, value in enumerate(row):
                    away = to_rgb(POSITIVE if value > 0 else NEGATIVE)
                    light = 1 - 0.55 * min(abs(value), 0.7) / 0.7
                    face = [1 - (1 - c) * (1 - light) for c in away]
                    lw, edge = (2, BLACK) if i == 3 else (0.5, GREY)
                    axes.add_patch(Rectangle((j - 0.47, y - 0.44), 0.94, 0.88, fc=face, lw=lw,
                                             ec=edge))  # fmt: skip
                    word = signed(value, 2) if abs(value) > 1e-9 else "0"
                    axes.text(j, y, word, ha="center", va="center", fontsize=11,
                              weight="bold" if i == 3 else "normal")  # fmt: skip
            axes.xaxis.tick_top()
            axes.set_xticks(range(3), names, fontsize=TEXT)
            axes.set_yticks((0, 1, 2, 3.2), (*rows, "mean push") if k == 0 else [""] * 4,
                            fontsize=TEXT)  # fmt: skip
            axes.tick_params(length=0)

    said = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{row} " + " ".join(signed(float(v), 2) for v in values)
            for row, values in zip((*rows, "mean"), table, strict=True)
        )
        for name, table in data.items()
    )
    return static_figure(
        build, size=(900, 230), caption=caption, alt=f"Pushes on the three logits. {said}."
    )


def noise_parabola(marks: Mapping[str, float]) -> Picture:
    """Noise of one answer against b, for the page's toy; marks: name -> b."""
    b = np.linspace(-0.5, 1.3, 181)
    found = {name: compute(x) for name, x in marks.items()}
    none, best = compute()["none"], compute()["best"]

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.17, 0.88, 0.79))
        axes.axhspan(none, 9, color=PALE, lw=0)
        axes.text(best, 8.4, "noisier than b = 0", ha="center", va="center", fontsize=TEXT,
                  color=GREY)  # fmt: skip
        axes.plot(b, [compute(float(x))["noise"] for x in b], color=BLACK, lw=2.4)
        axes.plot([best] * 2, [0, compute()["lowest"]], ":", color=GREEN, lw=2.4)
        axes.text(best + 0.015, 0.4, f"least noise: b = {best:.2f}", color=GREEN, fontsize=11,
                  weight="bold", va="center")  # fmt: skip
        for name, data in found.items():
            x, y = data["baseline"], data["noise"]
            axes.plot([x], [y], "o", ms=10, color=BLACK, mec="white")
            left = x < best
            axes.text(x + (-0.03 if left else 0.04), y - 0.4,
                      f"{name}: {y:.2f}", fontsize=11, ha="right" if left else "left",
                      va="center")  # fmt: skip
        axes.set(xlim=(-0.5, 1.3), ylim=(0, 9), yticks=(0, 2, 4, 6, 8))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("baseline b", fontsize=TEXT)
        axes.set_ylabel("noise of one answer", fontsize=TEXT)

    said = "; ".join(f"{name} {data['noise']:.2f}" for name, data in found.items())
    return static_figure(
        build,
        size=(900, 300),
        alt=f"Noise against b: a parabola with its bottom at {best:.2f}. {said}.",
        caption=f"A parabola. It is as high at twice the best b, {2 * best:.2f}, as at 0: a "
        "baseline helps between the two and hurts outside.",
    )


def group_sizes(sizes: Sequence[int], noise: Sequence[float]) -> Picture:
    """Noise per answer against G, leave-one-out; no baseline and the known mean as lines."""
    data = compute()

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.18, 0.56, 0.78))
        axes.axhline(data["none"], color=GREY, lw=2, ls="--", label="b = 0")
        axes.plot(sizes, noise, "o-", color=BLACK, lw=2.4, ms=8,
                  label="leave-one-out: mean of\nthe other G − 1 rewards")  # fmt: skip
        axes.axhline(data["at_mean"], color=PURPLE, lw=2, ls=":", label="mean reward, known")
        for size, value in zip(sizes, noise, strict=True):
            axes.text(
                size,
                value + (-0.34 if size == 3 else 0.26),
                f"{value:.2f}",
                ha="center",
                va="center",
                fontsize=TEXT,
            )
        axes.set(ylim=(0, 5), xlim=(1.5, max(sizes) + 0.5), xticks=list(sizes))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("group size G", fontsize=TEXT)
        axes.set_ylabel("noise per answer", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)

    said = ", ".join(f"{n:.2f} at {g}" for g, n in zip(sizes, noise, strict=True))
    return static_figure(
        build,
        size=(900, 280),
        alt=f"Noise per answer with leave-one-out: {said}. None {data['none']:.2f}, mean reward "
        f"{data['at_mean']:.2f}.",
        caption="The mean of a few rewards is itself noisy. From three answers on it beats b = 0 "
        "here, and it nears the known mean as G grows.",
    )


def two_prompts(noise: Mapping[str, Mapping[str, float]], caption: str) -> Picture:
    """Noise per answer of several rules, a group of bars per pair of prompts."""
    looks = (
        (BLACK, ""), ("#A0A0A0", "//"), (GREEN, ""), (PURPLE, ".."), (SKY, "xx"),
    )  # fmt: skip

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.13, 0.6, 0.83))
        rules = list(next(iter(noise.values())))
        for k, rule in enumerate(rules):
            x = np.arange(len(noise)) + (k - (len(rules) - 1) / 2) * 0.17
            values = [row[rule] for row in noise.values()]
            axes.bar(x, values, 0.15, color=looks[k][0], hatch=looks[k][1], ec="white", label=rule)
            for at, value in zip(x, values, strict=True):
                axes.text(at, value + 0.8, f"{value:.0f}", ha="center", fontsize=TEXT)
        axes.set_xticks(range(len(noise)), list(noise), fontsize=11)
        axes.tick_params(labelsize=TEXT)
        axes.set_ylabel("noise per answer", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)

    said = "; ".join(
        f"{pair}: " + ", ".join(f"{rule} {value:.1f}" for rule, value in row.items())
        for pair, row in noise.items()
    )
    return static_figure(
        build, size=(900, 290), alt=f"Noise per answer, two prompts. {said}.", caption=caption
    )
