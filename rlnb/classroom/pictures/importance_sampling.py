"""The pictures of the page on importance sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from rlnb.classroom.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, Picture, static_figure
from rlnb.classroom.pictures.token_grid import LEFT, answer_labels, empty_grid, paint
from rlnb.objective import Batch

__all__ = ["batch_means", "climbs", "missed", "pushes", "running"]

TEXT = 10.5  # points: the size of the page's own text
STYLES = {
    "not weighted": (ORANGE, "-"),
    "weighted": (BLACK, "-"),
    "weighted, first answer cut": (GREEN, "-"),
    "ratios ignored": (ORANGE, "--"),
    "one ratio per token": (PURPLE, "-"),
    "whole-answer ratio": (BLACK, ":"),
    "whole answer, divided by Σw": (BLUE, "-"),
    "whole answer, capped at 2": (GREEN, (0, (6, 2))),
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


def climbs(earned: Mapping[str, Tensor], best: float, *, caption: str) -> Picture:
    """Mean reward against steps on one batch, a line per trainer.

    earned[name]: (policies, steps + 1), drawn as the mean, with two standard errors at the end.
    best: what the best answer of a batch earns, on average over the policies.
    """
    paths = {
        name: (v.mean(0).numpy(), 2 * float(v[:, -1].std()) / len(v) ** 0.5)
        for name, v in earned.items()
    }

    def build(figure, _):
        axes = figure.add_axes((0.075, 0.18, 0.62, 0.78))
        axes.axhline(best, color=GREY, ls="-", lw=1.0)
        for k, (name, (mean, wide)) in enumerate(paths.items()):
            color, line = STYLES[name]
            steps = np.arange(len(mean))
            axes.plot(steps, mean, color=color, ls=line, lw=2.8)
            end = steps[-1] + 0.7 + 0.5 * k
            axes.errorbar(end, mean[-1], wide, color=color, lw=1.6)
        ends = {name: float(mean[-1]) for name, (mean, _) in paths.items()}
        ends["the best answer of a batch"] = best
        for name, y in zip(ends, _apart(list(ends.values()), 0.05), strict=True):
            color = STYLES.get(name, (GREY,))[0]
            at = 0.18 + 0.78 * (y - 0.3) / 0.65
            figure.text(0.71, at, name, color=color, fontsize=11, va="center")
        axes.set(xlim=(0, len(steps) + 2.5), ylim=(0.3, 0.95), xticks=(0, 10, 20, 30, 40))
        axes.set_yticks((0.4, 0.6, 0.8))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("gradient steps on one batch of 64 answers", fontsize=TEXT)
        axes.set_ylabel("mean reward, exact", fontsize=TEXT)

    told = "; ".join(
        f"{name}: {mean[0]:.2f}, after 10 steps {mean[10]:.2f}, at the end {mean[-1]:.2f}"
        for name, (mean, _) in paths.items()
    )
    return static_figure(
        build,
        size=(900, 310),
        alt=f"Mean reward against steps on one batch. {told}. The best answer of a batch earns "
        f"{best:.2f}.",
        caption=caption,
    )


def missed(
    steps: Sequence[int],
    moved: Sequence[float],
    off: Mapping[str, tuple[Tensor, Tensor]],
    *,
    caption: str,
) -> Picture:
    """How far the gradients of two rules are off, as a share of the true one, against steps.

    moved: mean |rho - 1| at each of the steps. off[name]: (over all old answers, in one batch),
    each (runs, steps); the lines are medians.
    """
    lines = {name: [v.quantile(0.5, dim=0).numpy() for v in both] for name, both in off.items()}

    def build(figure, _):
        axes = figure.add_axes((0.085, 0.25, 0.56, 0.7))
        for name, (mean, batch) in lines.items():
            color = STYLES[name][0]
            axes.plot(steps, mean, color=color, lw=2.8, clip_on=False, zorder=3)
            axes.plot(steps, batch, "o", color=color, ls="--", lw=1.6, ms=4.5)
        axes.set(xlim=(0, steps[-1] + 0.5), ylim=(0, 2))
        axes.set_yticks((0, 0.5, 1, 1.5, 2), ("0", "50 %", "100 %", "150 %", "200 %"))
        shown = [k for k, step in enumerate(steps) if step in (0, 5, 10, 20, 30, 40)]
        axes.set_xticks([steps[k] for k in shown], [f"{steps[k]}\n{moved[k]:.2f}" for k in shown])
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("steps, and how far the words have moved: mean |ρ − 1|", fontsize=TEXT)
        axes.set_ylabel("error of the gradient", fontsize=TEXT)
        for y, name, mark, text in (
            (0.83, "whole-answer ratio", "● ╍", "whole-answer ratio,\na batch of 64"),
            (0.64, "one ratio per token", "● ╍", "one ratio per token,\na batch of 64"),
            (0.46, "one ratio per token", "━━", "one ratio per token,\nall old answers: its bias"),
            (0.28, "whole-answer ratio", "━━", "whole-answer ratio,\nall old answers: no bias"),
        ):
            figure.text(0.665, y, mark, color=STYLES[name][0], fontsize=11, va="center")
            figure.text(0.715, y, text, fontsize=11, va="center")

    told = "; ".join(
        f"at step {step} {name}: {mean[k]:.0%}, in a batch of 64 {batch[k]:.0%}"
        for k, step in enumerate(steps)
        if step in (1, 5, 10, 40)
        for name, (mean, batch) in lines.items()
    )
    return static_figure(
        build,
        size=(900, 310),
        alt=f"Error of the gradient, a share of the true one, over all old answers and in a batch: "
        f"{told}.",
        caption=caption,
    )


def _apart(values: Sequence[float], least: float) -> list[float]:
    """The same values, moved so that no two are nearer than `least`: places for labels."""
    order = sorted(range(len(values)), key=lambda k: values[k])
    places = list(values)
    for low, high in zip(order, order[1:], strict=False):
        places[high] = max(places[high], places[low] + least)
    return places


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
