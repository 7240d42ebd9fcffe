"""The pictures of the page on importance sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from rlnb.classroom.figures import BLACK, GREEN, GREY, ORANGE, PURPLE, Picture, static_figure
from rlnb.classroom.pictures.token_grid import LEFT, answer_labels, empty_grid, paint
from rlnb.objective import Batch

__all__ = ["batch_means", "pushes", "running", "used_again"]

TEXT = 10.5  # points: the size of the page's own text
STYLES = {
    "not weighted": (ORANGE, "-"),
    "weighted": (BLACK, "-"),
    "weighted, first answer cut": (GREEN, "-"),
    "ratios ignored": (ORANGE, "--"),
    "one ratio per token": (PURPLE, "-"),
    "whole-answer ratio": (BLACK, ":"),
}


def running(
    means: Mapping[str, Tensor], truth: float, *, low: float = 0.2, caption: str
) -> Picture:
    """Mean reward of the first n answers, every seed; `means[name]` is (seeds, n).

    low: the tick where the wrong means end.
    """

    def build(figure, _):
        axes = figure.add_axes((0.075, 0.19, 0.62, 0.76))
        _truth_line(axes, truth)
        for name, runs in means.items():
            _seeds(axes, runs.numpy(), STYLES[name][0])
            at = (1, float(runs[:, -1].mean()))
            where = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
            axes.annotate(name, at, (8, 0), va="center", fontsize=11, **where)
        _count_axis(axes, next(iter(means.values())).shape[1], "answers of the batch, so far")
        axes.set(ylim=(0, 1), yticks=(0, low, truth, 1))
        axes.set_ylabel("mean reward so far", fontsize=TEXT)

    ends = "; ".join(
        f"{name}: {runs[:, -1].min():.2f} to {runs[:, -1].max():.2f}"
        for name, runs in means.items()
    )
    return static_figure(
        build,
        size=(900, 290),
        alt=f"Running means of {len(next(iter(means.values())))} batches. At the end {ends}. "
        f"Today's policy earns {truth:.2f}.",
        caption=caption,
    )


def batch_means(lengths: Sequence[int], means: Tensor, median: Sequence[float]) -> Picture:
    """Mean product weight of 1,000 answers against their length, and the median answer.

    means: (batches, lengths), median: (lengths,).
    """
    runs = means.numpy()

    def build(figure, _):
        axes = figure.add_axes((0.085, 0.19, 0.55, 0.76))
        axes.axhline(1, color=GREY, ls="--", lw=1.6)
        axes.plot(lengths, runs.T, "-o", color=ORANGE, lw=0.9, ms=4.5)
        axes.plot(lengths, median, color=BLACK, lw=2.8)
        axes.set(yscale="log", ylim=(1e-9, 1e3), xlim=(0, max(lengths) * 1.02))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("tokens in an answer, T", fontsize=TEXT)
        axes.set_ylabel("weight of an answer", fontsize=TEXT)
        for y, color, mark, text in (
            (0.8, GREY, "╍", "the mean over all answers: 1"),
            (0.55, ORANGE, "●", "the mean of 1,000 answers,\neight batches"),
            (0.28, BLACK, "━", "the median answer: half of all\nweigh less"),
        ):
            figure.text(0.66, y, mark, color=color, fontsize=13, weight="bold")
            figure.text(0.685, y, text, fontsize=11)

    return static_figure(
        build,
        size=(900, 310),
        alt=f"Weights on a log axis against answer length. The mean over all answers is 1. At "
        f"{lengths[-1]} tokens the median is {median[-1]:.1e} and eight batches of 1,000 have "
        f"means from {runs[:, -1].min():.1e} to {runs[:, -1].max():.1e}.",
        caption="The mean is 1 at every length. From a few hundred tokens on, the batches no "
        "longer contain it.",
    )


def pushes(batch: Batch, panels: Mapping[str, Tensor], *, caption: str) -> Picture:
    """The running group, a panel per rule: `panels[title]` (B, T) is the push on each token."""
    mask = batch.mask.numpy() > 0

    def build(figure, _):
        width = (1 - LEFT) / len(panels)
        for k, (name, push) in enumerate(panels.items()):
            axes = figure.add_axes((LEFT + width * k, 0.12, width - 0.012, 0.76))
            boxes, texts = empty_grid(axes, mask)
            if k == 0:
                answer_labels(axes, batch.rewards.tolist())
            for at, box in boxes.items():
                paint(box, texts[at], float(push[at]), False)
            axes.set_title(name, fontsize=TEXT, weight="bold")
        key = "blue: pushed up      orange: pushed down"
        figure.text(LEFT + (1 - LEFT) / 2, 0.03, key, ha="center", fontsize=TEXT)

    sums = "; ".join(
        f"{name}: " + ", ".join(f"{x:.2f}" for x in push.detach()[:, 0])
        for name, push in panels.items()
    )
    return static_figure(
        build,
        size=(900, 290),
        alt=f"Token grid. Push on the first token of each answer, {sums}.",
        caption=caption,
    )


def used_again(
    earned: Mapping[str, Tensor], distance: Tensor, errors: Mapping[str, Tensor]
) -> Picture:
    """Left: what is earned, step by step on one batch. Right: error of the mean gradient.

    earned[name]: (policies, steps + 1), drawn as mean and two standard errors. distance and
    errors[name]: (policies, moves), the mean |rho - 1| and a share of the true gradient; lines are
    medians, bars go from the 10th to the 90th percentile.
    """
    x = distance.median(0).values.numpy()
    bands = {name: np.quantile(v.numpy(), (0.1, 0.5, 0.9), axis=0) for name, v in errors.items()}
    paths = {
        name: (v.mean(0).numpy(), 2 * v.std(0).numpy() / len(v) ** 0.5)
        for name, v in earned.items()
    }

    def build(figure, _):
        left = figure.add_axes((0.08, 0.27, 0.4, 0.61))
        right = figure.add_axes((0.59, 0.27, 0.385, 0.61))
        for aside, name in zip((-0.3, 0.3, 0), earned, strict=True):
            color, line = STYLES[name]
            mean, wide = paths[name]
            steps = np.arange(len(mean))
            left.plot(steps, mean, color=color, ls=line, lw=2.8)
            left.errorbar(
                steps[10::10] + aside, mean[10::10], wide[10::10], color=color, lw=1.6, ls="none"
            )
        for aside, name in zip((0.002, -0.002, 0), errors, strict=True):
            color, line = STYLES[name]
            low, middle, high = bands[name]
            right.vlines(x[1:] + aside, low[1:], high[1:], color=color, lw=1.6)
            right.plot(x, middle, color=color, ls=line, lw=2.8)
        left.set(xlim=(0, len(steps) - 0.5), ylim=(0.3, 1), yticks=(0.4, 0.6, 0.8, 1))
        right.set(xlim=(0, x[-1] + 0.005), ylim=(-0.03, 1.2))
        right.set_yticks((0, 0.5, 1), ("0", "50 %", "100 %"))
        for axes in (left, right):
            axes.tick_params(labelsize=TEXT)
        left.set_xlabel("gradient steps on one batch", fontsize=TEXT)
        right.set_xlabel("how far the words have moved: mean |ρ − 1|", fontsize=TEXT)
        left.set_ylabel("mean reward, exact", fontsize=TEXT)
        right.set_ylabel("error, share of the gradient", fontsize=TEXT)
        left.set_title("64 answers of 64 words", fontsize=TEXT, weight="bold")
        right.set_title("all answers of 4 words", fontsize=TEXT, weight="bold")
        for at, name in zip((0.12, 0.4, 0.7), errors, strict=True):
            color, line = STYLES[name]
            key = figure.add_axes((at, 0.02, 0.05, 0.07))
            key.plot([0, 1], [0, 0], color=color, ls=line, lw=2.4)
            key.axis("off")
            figure.text(at + 0.06, 0.035, name, fontsize=11)

    climbs = "; ".join(
        f"{name}: {mean[0]:.2f}, after 10 steps {mean[10]:.2f}, at the end {mean[-1]:.2f}"
        for name, (mean, _) in paths.items()
    )
    ends = "; ".join(
        f"{name}: {band[1, -1]:.0%}, from {band[0, -1]:.0%} to {band[2, -1]:.0%}"
        for name, band in bands.items()
    )
    return static_figure(
        build,
        size=(900, 340),
        alt=f"Left: mean reward against steps on one batch, mean of {len(distance)} policies. "
        f"{climbs}. Right: error of the mean gradient against the mean of |rho - 1|. At the "
        f"largest move {ends}.",
        caption="Left: mean of 20 policies, a batch each; bars are two standard errors. Right: "
        "medians of the same policies, bars hold eight in ten.",
    )


def _seeds(axes, runs: np.ndarray, color: str) -> None:
    count = np.arange(1, runs.shape[1] + 1)
    for run in runs:
        axes.plot(count, run, color=color, lw=1.2, alpha=0.75)


def _truth_line(axes, truth: float) -> None:
    axes.axhline(truth, color=GREY, ls="--", lw=1.8)


def _count_axis(axes, n: int, label: str) -> None:
    axes.set(xscale="log", xlim=(5, n))
    ticks = [t for t in (5, 10, 100, 1000, 4000) if t <= n]
    axes.set_xticks(ticks, [f"{t:,}" for t in ticks])
    axes.minorticks_off()
    axes.tick_params(labelsize=TEXT)
    axes.set_xlabel(label, fontsize=TEXT)
