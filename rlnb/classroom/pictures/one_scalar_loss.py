"""The pictures of the page on one scalar loss: who draws the answers, and what that changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import MultipleLocator
from torch import Tensor

from rlnb.classroom.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    NEGATIVE,
    ORANGE,
    POSITIVE,
    WINE,
    Picture,
    signed,
    static_figure,
)

__all__ = ["authors", "copy_or_draw_again", "data_minus_model", "floor", "staircase"]

TEXT = 10.5  # points: the size of the page's own text
RULES = ((BLACK, "-"), (ORANGE, "--"))
LINES = {  # the first of these words in a name decides, so that a rule looks the same everywhere
    "teacher": (BLACK, "-"),
    "graded": (GREEN, "-."),
    "right_only": (BLUE, ":"),
    "": (ORANGE, "--"),
}
PALE_ORANGE = "#F3CF8B"
CHORDS = ((BLUE, "-"), (WINE, "-."), (GREEN, ":"))


def authors(
    runs: Mapping[str, Tensor], caption: str, single: str | None = None, shown: int = 12
) -> Picture:
    """Chance to be right against steps, the mean over the runs per author of the answers.

    runs: name -> (steps, runs). single: whose first `shown` runs are drawn one by one.
    """

    def build(figure, _):
        axes = figure.add_axes((0.075, 0.18, 0.5, 0.77))
        if single:
            axes.plot(runs[single][:, :shown].numpy(), color=PALE_ORANGE, lw=0.9)
        for name, run in runs.items():
            color, line = next(style for word, style in LINES.items() if word in name)
            label = f"{name}: mean" if single else name
            axes.plot(run.mean(1).numpy(), color=color, ls=line, lw=3, label=label)
        if single:
            axes.plot([], color=PALE_ORANGE, lw=1.5, label=f"{single}: {shown} single runs")
        axes.set(xlim=(0, len(next(iter(runs.values()))) - 1), ylim=(0, 1.03))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("step", fontsize=TEXT)
        axes.set_ylabel("chance of a right answer", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 0.9), fontsize=11,
                    handlelength=3.2)  # fmt: skip

    said = "Means at the end: " + "; ".join(f"{n} {run[-1].mean():.2f}" for n, run in runs.items())
    if single:
        low, high = runs[single][-1].min(), runs[single][-1].max()
        said += f". Single runs where {single} end between {low:.2f} and {high:.2f}"
    return static_figure(
        build,
        size=(900, 270),
        alt=f"Chance of a right answer against steps. {said}.",
        caption=caption,
    )


def data_minus_model(
    names: Sequence[str], pi: Tensor, panels: Mapping[str, Tensor], caption: str
) -> Picture:
    """Bars of the model's shares, and an arrow from each to the share in the data: the push.

    panels: title -> shares of the answers trained on, (V,).
    """

    def build(figure, _):
        wide = 0.9 / len(panels) - 0.045
        for k, (title, data) in enumerate(panels.items()):
            axes = figure.add_axes((0.07 + (0.9 / len(panels) + 0.025) * k, 0.13, wide, 0.74))
            axes.bar(range(len(pi)), pi.tolist(), 0.6, color="#DDDDDD", ec=GREY, lw=1)
            for v, (model, share) in enumerate(zip(pi.tolist(), data.tolist(), strict=True)):
                _push(axes, v, model, share)
            axes.set(ylim=(0, 0.78), yticks=(0, 0.2, 0.4, 0.6), xlim=(-0.5, len(pi) - 0.5))
            axes.set_xticks(range(len(pi)), [f"“{name}”" for name in names], fontsize=11)
            axes.tick_params(labelsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            if k == 0:
                axes.set_ylabel("share of the answer", fontsize=TEXT)

    said = ". ".join(
        f"{title}: " + ", ".join(f"{n} {signed(x, 2)}" for n, x in zip(names, (d - pi).tolist(),
        strict=True)) for title, d in panels.items()
    )  # fmt: skip
    return static_figure(
        build, size=(900, 260), alt=f"Bars with arrows, the push. {said}.", caption=caption
    )


def _push(axes, v: int, model: float, share: float) -> None:
    gap = share - model
    color = POSITIVE if gap > 0 else NEGATIVE
    if abs(gap) < 1e-9:
        axes.text(v, model + 0.03, "0", ha="center", fontsize=12, weight="bold", color=GREY)
        return
    axes.annotate("", (v, share), (v, model), arrowprops={"arrowstyle": "-|>", "color": color,
                  "lw": 3, "mutation_scale": 17, "shrinkA": 0, "shrinkB": 0})  # fmt: skip
    axes.text(v, max(share, model) + 0.03, signed(gap, 2), ha="center", fontsize=12,
              weight="bold", color=color)  # fmt: skip


def staircase(nudge: Tensor, draws: Tensor, mean: Tensor, slopes: Mapping[float, float]) -> Picture:
    """Mean reward of a few draws, and of all, against the nudge; a line for each measured slope.

    nudge, draws, mean: (N,). slopes: size of the nudge -> the slope that it reads.
    """
    at_zero = float(np.interp(0.0, nudge.numpy(), draws.numpy()))

    def build(figure, _):
        axes = figure.add_axes((0.075, 0.18, 0.55, 0.77))
        axes.plot(nudge, mean, "--", color=BLACK, lw=1.8, label="all answers, by their chances")
        axes.plot(nudge, draws, color=PALE_ORANGE, lw=2.4, label="20 draws")
        for (size, slope), (color, line) in zip(slopes.items(), CHORDS, strict=True):
            reach = np.array([0.0, max(size, 0.9)])
            axes.plot(reach, at_zero + slope * reach, color=color, ls=line, lw=2.2,
                      label=f"nudge {size:g}: slope {slope:.2f}")  # fmt: skip
            axes.plot(size, at_zero + slope * size, "o", color=color, ms=8, mec=BLACK)
        axes.plot(0, at_zero, "o", color="white", ms=8, mec=BLACK)
        axes.set(xlim=(float(nudge[0]), float(nudge[-1])), ylim=(0.15, 0.65))
        axes.xaxis.set_major_locator(MultipleLocator(0.5))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("added to the logit of “7”", fontsize=TEXT)
        axes.set_ylabel("mean reward", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 0.98), fontsize=11,
                    handlelength=3.2)  # fmt: skip

    said = "; ".join(f"nudge {size:g} reads {slope:.2f}" for size, slope in slopes.items())
    return static_figure(
        build,
        size=(900, 270),
        alt=f"Mean reward of 20 draws against a logit, a staircase around a smooth curve; {said}.",
        caption="A line from the white dot to a coloured one is a measured slope. The mean reward "
        "of 20 draws is a staircase, that of all possible answers a smooth curve.",
    )


def floor(loss: Sequence[float], entropy: float) -> Picture:
    """The loss of SFT against steps: the part that training removes, and the part that stays."""
    steps, height = np.arange(len(loss)), np.asarray(loss)

    def build(figure, _):
        axes = figure.add_axes((0.075, 0.18, 0.86, 0.77))
        axes.fill_between(steps, 0, entropy, color="#DDDDDD", lw=0)
        axes.fill_between(steps, entropy, height, color="#BFDDF0", lw=0)
        axes.plot(steps, height, color=BLACK, lw=2.6)
        axes.axhline(entropy, color=GREY, lw=1.2, ls="--")
        last = steps[-1]
        axes.text(0.5 * last, entropy / 2, f"entropy of the teacher, {entropy:.2f}: it stays",
                  ha="center", va="center", fontsize=12)  # fmt: skip
        axes.annotate("KL from teacher to model:\nthis is what training removes",
                      (0.035 * last, entropy + 0.1), (0.18 * last, 1.45), fontsize=12,
                      va="center", color=BLUE,
                      arrowprops={"arrowstyle": "-", "color": BLUE, "lw": 1.2})  # fmt: skip
        axes.set(xlim=(0, last), ylim=(0, loss[0] * 1.05))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("step", fontsize=TEXT)
        axes.set_ylabel("loss, nats per answer", fontsize=TEXT)

    return static_figure(
        build,
        size=(900, 250),
        alt=f"The loss falls from {loss[0]:.2f} to {loss[-1]:.2f} and stays above the teacher's "
        f"entropy, {entropy:.2f}; the part above it is the KL.",
        caption="The loss is a floor that belongs to the teacher, plus a KL that belongs to the "
        "model. Exact shares, learning rate 0.5.",
    )


def copy_or_draw_again(curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Picture:
    """Chance to be right, and the share of “7” among the right answers; a line per rule."""

    def build(figure, _):
        for k, title in enumerate(("chance of a right answer", "“7” among the right answers")):
            axes = figure.add_axes((0.06 + 0.37 * k, 0.19, 0.3, 0.68))
            for (name, both), (color, line) in zip(curves.items(), RULES, strict=True):
                axes.plot(both[k], color=color, ls=line, lw=2.8, label=name)
            axes.set(ylim=(0.25 if k == 0 else 0.5, 1.03), xlim=(0, len(both[k]) - 1))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("step, all of one length", fontsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 0.8), fontsize=11)

    said = "; ".join(
        f"{name}: right {right[-1]:.3f}, of it “7” {share[-1]:.3f}"
        for name, (right, share) in curves.items()
    )
    return static_figure(
        build,
        size=(900, 270),
        alt=f"Two panels against steps. At the end {said}.",
        caption="Keeping its first right answers, the model keeps both wordings. Drawing again, it "
        "moves towards one.",
    )
