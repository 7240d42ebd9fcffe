"""The pictures of the page on importance sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from rlnb.classroom.figures import BLACK, GREEN, GREY, ORANGE, PURPLE, Picture, static_figure

__all__ = ["batch_means", "climbs", "running", "turned"]

TEXT = 10.5  # points: the size of the page's own text
STYLES = {
    "not weighted": (ORANGE, "-"),
    "weighted": (BLACK, "-"),
    "weighted, first answer cut": (GREEN, "-"),
    "ratios ignored": (ORANGE, "--"),
    "one ratio per token": (PURPLE, "-"),
    "whole-answer ratio": (BLACK, ":"),
    "new answers at each step": (GREY, "-"),
}
STRIPS = ("one ratio per token", "whole-answer ratio")  # compared policy by policy
TOP = 150  # degrees, of the axis of angles


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
        axes.set_xlabel("tosses in an answer, T", fontsize=TEXT)
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
        caption="The mean over all answers is 1 at every length. At 1,000 tosses all eight batches "
        "fall short of it.",
    )


def climbs(
    earned: Mapping[str, Tensor],
    *,
    caption: str,
    against: str | None = None,
    level: tuple[str, float] | None = None,
) -> Picture:
    """Mean reward against steps on one batch, a line per trainer.

    earned[name]: (policies, steps + 1), drawn as the mean. against: a trainer; a second panel shows
    how much more each policy ended with under the trainers of STRIPS. level: a line, its name.
    """
    lines = {name: v.mean(0).numpy() for name, v in earned.items()}

    def build(figure, _):
        wide = 0.4 if against else 0.62
        axes = figure.add_axes((0.075, 0.18, wide, 0.78))
        ends = {}
        for name, mean in lines.items():
            color, line = STYLES[name]
            axes.plot(np.arange(len(mean)), mean, color=color, ls=line, lw=2.8)
            ends[name] = float(mean[-1])
        if level:
            axes.axhline(level[1], color=GREY, lw=1.0)
            axes.text(39.5, 0.335, f"thin line: {level[0]}", color=GREY, fontsize=11, ha="right")
        low, high = 0.3, 0.95
        for name, y in zip(ends, _apart(list(ends.values()), 0.055), strict=True):
            at = 0.18 + 0.78 * (y - low) / (high - low)
            figure.text(0.085 + wide, at, name, color=STYLES[name][0], fontsize=11, va="center")
        axes.set(xlim=(0, len(mean) - 1), ylim=(low, high), xticks=(0, 10, 20, 30, 40))
        axes.set_yticks((0.4, 0.6, 0.8))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("gradient steps", fontsize=TEXT)
        axes.set_ylabel("mean reward, exact", fontsize=TEXT)
        if against:
            _strips(figure, earned, against)

    told = "; ".join(
        f"{name}: {mean[0]:.2f}, after 10 steps {mean[10]:.2f}, at the end {mean[-1]:.2f}"
        for name, mean in lines.items()
    )
    if level:
        told += f"; {level[0]}: {level[1]:.2f}"
    if against:
        ahead = {name: int((gain > 0).sum()) for name, gain in _gains(earned, against).items()}
        told += f"; policies that end above {against}, of {len(earned[against])}: {ahead}"
    return static_figure(
        build, size=(900, 310), alt=f"Mean reward against steps. {told}.", caption=caption
    )


def turned(
    steps: Sequence[int], mean: Mapping[str, Tensor], batch: Mapping[str, Tensor], *, caption: str
) -> Picture:
    """Angles between the gradients of the rules and the true one, in degrees, against steps.

    mean[name]: averaged over all old answers; batch[name]: in one batch of 64; each (runs, steps),
    drawn as medians. At 90 degrees, dashed, a small step changes nothing; beyond, it leads back.
    """
    panels = {"averaged over all old answers": mean, "in one batch of 64 old answers": batch}
    lines = {
        title: {name: many.quantile(0.5, dim=0).numpy() for name, many in found.items()}
        for title, found in panels.items()
    }

    def build(figure, _):
        for left, (title, middles) in zip((0.075, 0.575), lines.items(), strict=True):
            axes = figure.add_axes((left, 0.19, 0.245, 0.69))
            axes.axhline(90, color=GREY, ls=(0, (2, 2)), lw=1.2)
            for name, middle in middles.items():
                color, line = STYLES[name]
                axes.plot(steps, middle, color=color, ls=line, lw=2.8, clip_on=False)
            places = _apart([float(middle[-1]) for middle in middles.values()], 12)
            for name, y in zip(middles, places, strict=True):
                color, at = STYLES[name][0], 0.19 + 0.69 * y / TOP
                figure.text(left + 0.255, at, name, color=color, fontsize=11, va="center")
            axes.set(xlim=(0, steps[-1]), ylim=(0, TOP), xticks=range(0, steps[-1] + 1, 2))
            axes.set_yticks((0, 45, 90, 135), ("0°", "45°", "90°", "135°"))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("gradient steps", fontsize=TEXT)
            axes.set_title(title, fontsize=11, loc="left")
        figure.axes[0].text(0.2, 94, "beyond 90° a step leads back", color=GREY, fontsize=10)
        figure.axes[0].set_ylabel("angle to the true gradient", fontsize=TEXT)

    told = "; ".join(
        f"{name}, {title}: " + ", ".join(f"{middle[k]:.0f} at step {steps[k]}" for k in (1, 5, 10))
        for title, middles in lines.items()
        for name, middle in middles.items()
    )
    return static_figure(
        build,
        size=(900, 310),
        alt=f"Angle to the true gradient in degrees, against steps. {told}.",
        caption=caption,
    )


def _gains(earned: Mapping[str, Tensor], against: str) -> dict[str, Tensor]:
    """What each policy ended with beyond `against`, for the trainers of STRIPS."""
    return {name: earned[name][:, -1] - earned[against][:, -1] for name in STRIPS}


def _strips(figure, earned: Mapping[str, Tensor], against: str) -> None:
    axes = figure.add_axes((0.795, 0.18, 0.195, 0.78))
    axes.axhline(0, color=STYLES[against][0], ls=STYLES[against][1], lw=1.8)
    for k, (name, gain) in enumerate(_gains(earned, against).items()):
        ends = gain.sort().values.numpy()
        aside = 0.12 * (np.arange(len(ends)) % 3 - 1)  # dots beside each other
        axes.plot(k + aside, ends, "o", color=STYLES[name][0], ms=5, alpha=0.75)
    axes.set(xlim=(-0.5, len(STRIPS) - 0.5), ylim=(-0.5, 0.5))
    axes.set_xticks(range(len(STRIPS)), ["one ratio\nper token", "whole-answer\nratio"])
    axes.set_yticks((-0.4, 0, 0.4), ("−0.4", "0", "+0.4"))
    axes.tick_params(labelsize=TEXT)
    axes.set_ylabel(f"at the end, above {against}", fontsize=TEXT)


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
