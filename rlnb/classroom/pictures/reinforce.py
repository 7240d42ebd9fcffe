"""The pictures of the page on REINFORCE: from a grader that is a program to a push."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.patches import Rectangle
from torch import Tensor

from rlnb.classroom.figures import (
    BLACK,
    GREEN,
    GREY,
    NEGATIVE,
    POSITIVE,
    PURPLE,
    WINE,
    Picture,
    signed,
    static_figure,
)

__all__ = ["areas", "average", "climb", "clouds", "credit", "one_draw", "rate_sweep"]

TEXT = 10.5  # points: the size of the page's own text


def _knob(axes, knobs: Tensor) -> None:
    axes.set(xlim=(float(knobs[0]), float(knobs[-1])))
    axes.set_xlabel("the knob: logit of a 1 as the first token", fontsize=TEXT)
    axes.tick_params(labelsize=TEXT)


def one_draw(knobs: Tensor, rewards: Tensor, here: float, spelt: Sequence[str]) -> Picture:
    """Reward of one answer against the knob, the dice held fixed. knobs, rewards (n,).

    spelt: the answer that the dice give at the left end, and at the right end.
    """
    jumps = int((rewards.diff() != 0).sum())

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.22, 0.62, 0.72))
        axes.plot(knobs, rewards, color=BLACK, lw=2.6)
        at = float(rewards[(knobs - here).abs().argmin()])
        axes.plot([here], [at], "o", ms=11, color=GREEN, clip_on=False, zorder=5)
        axes.set(ylim=(-0.06, 1.08), yticks=(0, 1))
        axes.set_ylabel("reward", fontsize=TEXT)
        _knob(axes, knobs)
        for k, text in enumerate(spelt):
            y = float(rewards[-k])
            axes.text((-1.4, 2.4)[k], y + (0.1 if y < 0.5 else -0.16), f"the dice spell “{text}”",
                      ha="center", fontsize=11.5)  # fmt: skip
        figure.text(0.73, 0.6, "dot: the model as it is", fontsize=11.5)

    return static_figure(
        build,
        size=(900, 230),
        alt=f"Reward of one answer against the knob: flat, with {jumps} jump(s) between 0 and 1.",
        caption="One answer: the same three throws at every setting of the knob.",
    )


def average(
    knobs: Tensor, mean: Tensor, expected: Tensor, close: Sequence[Tensor], here: float
) -> Picture:
    """The mean of many rewards against the knob, and the same under the magnifying glass.

    mean, expected (n,) over knobs; close: knobs, mean and expected near `here`.
    """

    def build(figure, _):
        panels = ((knobs, mean, expected), tuple(close))
        for k, (x, steps, smooth) in enumerate(panels):
            axes = figure.add_axes((0.08 + 0.5 * k, 0.19, 0.4, 0.7))
            axes.plot(x, steps, color=BLACK, lw=2.2, label="mean of 1,000 rewards")
            axes.plot(x, smooth, color=GREEN, lw=2.2, ls="--", label="expected reward J")
            axes.plot([here], [float(smooth[(x - here).abs().argmin()])], "o", ms=10, color=GREEN)
            _knob(axes, x)
            axes.set_title(("from afar", "near the dot, 100 times larger")[k], fontsize=TEXT,
                           weight="bold")  # fmt: skip
            if k == 0:
                axes.set_ylabel("reward", fontsize=TEXT)
                axes.legend(loc="upper left", fontsize=TEXT)

    return static_figure(
        build,
        size=(900, 300),
        alt="Left the mean of 1,000 rewards follows the expected reward. Right, magnified: the "
        "mean is a staircase, flat between its jumps; the expected reward has a slope.",
        caption="A mean of stairs is a finer staircase. Only the expected reward has a slope.",
    )


def areas(names: Sequence[str], chance: Tensor, slope: Tensor, right: Tensor) -> Picture:
    """Each answer as a rectangle: width its probability, height the slope of its log-probability.

    names: of the right answers, in order. chance, slope (answers,): pi and d log pi / d knob.
    """
    labels = iter(names)
    order = sorted(range(len(chance)), key=lambda y: (not right[y], -float(chance[y])))
    total = float((chance * slope)[right].sum())

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.2, 0.88, 0.76))
        x = 0.0
        for y in order:
            wide, high = float(chance[y]), float(slope[y])
            good = bool(right[y])
            color = (POSITIVE if high > 0 else NEGATIVE) if good else "white"
            axes.add_patch(Rectangle((x, 0), wide, high if good else 0, fc=color, ec=BLACK, lw=1))
            if good:
                text = f"{next(labels)}\narea {signed(wide * high, 4)}"
                up = high > 0
                axes.text(x + (wide / 2 if wide > 0.1 else 0), high + (0.06 if up else -0.06),
                          text, ha="center" if wide > 0.1 else "left",
                          va="bottom" if up else "top", fontsize=TEXT)  # fmt: skip
            x += wide
        axes.axhline(0, color=BLACK, lw=1)
        start = float(chance[right].sum())
        axes.text((1 + start) / 2, 0.06, "the twelve wrong answers: reward 0, no area",
                  ha="center", fontsize=11, color=GREY)  # fmt: skip
        axes.set(xlim=(0, 1), ylim=(-0.8, 1.05), yticks=(-0.5, 0, 0.5))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("width: probability of the answer", fontsize=TEXT)
        axes.set_ylabel("height: R × slope of log π", fontsize=TEXT)

    said = ", ".join(
        f"width {float(chance[y]):.3f} height {signed(float(slope[y]), 2)}"
        for y in order
        if right[y]
    )
    return static_figure(
        build,
        size=(900, 300),
        alt=f"Rectangles of the three right answers: {said}. Areas sum to {total:.3f}.",
        caption="Width: how often an answer is drawn. Height: how hard it then pushes the knob. "
        "Area: what it adds to the slope of J. So the mean push over draws is the slope.",
    )


def climb(expected: Sequence[float], losses: Mapping[str, Sequence[float]]) -> Picture:
    """One climb: the expected reward, and two losses that print different things on it."""
    steps = range(len(expected))
    looks = dict(zip(losses, ((BLACK, "-"), (PURPLE, "--")), strict=True))

    def build(figure, _):
        left = figure.add_axes((0.07, 0.2, 0.38, 0.7))
        left.plot(steps, expected, color=GREEN, lw=2.8)
        left.set(ylim=(0, 1))
        left.set_title("expected reward J", fontsize=TEXT, weight="bold")
        right = figure.add_axes((0.56, 0.2, 0.38, 0.7))
        for name, values in losses.items():
            color, line = looks[name]
            right.plot(steps, values, color=color, ls=line, lw=2.6, label=name)
        right.set(ylim=(-1.6, 0.9))
        right.legend(loc="lower right", fontsize=TEXT)
        right.set_title("the loss that the logger prints", fontsize=TEXT, weight="bold")
        for axes in (left, right):
            axes.set_xlabel("gradient step", fontsize=TEXT)
            axes.tick_params(labelsize=TEXT)

    ends = "; ".join(f"{name}: {v[0]:.2f} to {v[-1]:.2f}" for name, v in losses.items())
    return static_figure(
        build,
        size=(900, 290),
        alt=f"Expected reward {expected[0]:.2f} to {expected[-1]:.2f}. Losses, {ends}.",
        caption="One climb, two graders that differ by a constant: the policy is the same at every "
        "step, one loss ends below its start and the other above.",
    )


def clouds(graders: Mapping[str, np.ndarray], edge: float = 16.0) -> Picture:
    """Steps of several graders on one scale, the true gradient as an arrow of length 1.

    graders: name -> (steps, 2), along the true gradient and sideways, in units of its length.
    """
    wide = 0.88 / len(graders)

    def build(figure, _):
        for k, (name, dots) in enumerate(graders.items()):
            axes = figure.add_axes((0.07 + (wide + 0.03) * k, 0.19, wide - 0.01, 0.7))
            axes.axvspan(0, edge, color="#EAF3FA", zorder=0)
            axes.axvline(0, color=BLACK, lw=0.8)
            up = dots[:, 0] > 1e-12
            axes.plot(*dots[up].T, "o", color=POSITIVE, ms=4, alpha=0.5, mec="none")
            axes.plot(*dots[~up].T, "x", color=NEGATIVE, ms=5, alpha=0.8)
            axes.annotate("", (1, 0), (0, 0), arrowprops={
                "arrowstyle": "-|>", "color": BLACK, "lw": 2, "mutation_scale": 9, "shrinkA": 0,
                "shrinkB": 0})  # fmt: skip
            axes.set(xlim=(-edge, edge), ylim=(-edge / 1.8, edge / 1.8), yticks=(-5, 0, 5))
            axes.tick_params(labelsize=TEXT)
            axes.set_title(name, fontsize=TEXT, weight="bold")
            axes.set_xlabel("along the true gradient (its length = 1)", fontsize=TEXT)
            axes.text(edge - 0.3, -edge / 1.8 + 0.5, "uphill", ha="right", fontsize=TEXT,
                      color=POSITIVE)  # fmt: skip
            if k == 0:
                axes.set_ylabel("sideways", fontsize=TEXT)

    said = "; ".join(
        f"{name}: standard deviation along the true gradient {dots[:, 0].std():.1f} of its length"
        for name, dots in graders.items()
    )
    return static_figure(
        build,
        size=(900, 290),
        alt=f"Clouds of {len(next(iter(graders.values())))} steps each. {said}.",
        caption="A dot is a step of 16 answers; its height is its error in one direction across "
        "the gradient, the same in both clouds. The short arrow is the true gradient, the mean of "
        "both. 400 steps each, some outside the frame.",
    )


def credit(tokens: Sequence[str], chances: Sequence[float]) -> Picture:
    """One right answer: the chance to be right before and after each token, and its credit."""

    def build(figure, _):
        axes = figure.add_axes((0.09, 0.26, 0.86, 0.66))
        x = np.arange(len(chances))
        axes.plot(x, chances, "o-", color=BLACK, lw=2.4, ms=9, clip_on=False)
        for k, chance in enumerate(chances):
            fell = k > 0 and chance < chances[k - 1]
            left = k > 0 and not fell
            axes.text(k - (0.04 if left else -0.02), chance + (-0.12 if fell else 0.05),
                      f"{chance:.2f}", fontsize=12, ha="right" if left else "left")  # fmt: skip
        for k, token in enumerate(tokens):
            change = chances[k + 1] - chances[k]
            axes.text(k + 0.5, -0.14, f"“{token}” changed it by {signed(change, 2)}\nits credit in "
                      "the loss: 1", ha="center", va="top", fontsize=11,
                      color=NEGATIVE if change < 0 else BLACK)  # fmt: skip
        axes.set(xlim=(-0.05, len(tokens) + 0.05), ylim=(0, 1), yticks=(0, 0.5, 1))
        axes.set_xticks(x, [""] * len(x))
        axes.tick_params(labelsize=TEXT)
        axes.set_ylabel("chance to be right", fontsize=TEXT)

    changes = "; ".join(
        f"{token}: {signed(chances[k + 1] - chances[k], 2)}" for k, token in enumerate(tokens)
    )
    return static_figure(
        build,
        size=(900, 300),
        alt=f"Chance to end right, {', '.join(f'{c:.2f}' for c in chances)}. Changes: {changes}. "
        "Every token has credit 1.",
        caption="As this policy writes on, the 0 lowered the chance to be right, the 1 raised it. "
        "The reward of this one answer cannot tell them apart.",
    )


def rate_sweep(
    rates: Sequence[float], ends: Mapping[str, Tensor], start: float, caption: str
) -> Picture:
    """Expected reward after training against the learning rate, a line per grader.

    ends: name -> (rates, seeds). Bars are two standard errors of the mean over the seeds.
    """
    looks = ((BLACK, "-"), (PURPLE, "--"), (GREEN, "-."), (WINE, ":"))
    table = {
        name: (runs.mean(1).numpy(), (2 * runs.std(1) / runs.shape[1] ** 0.5).numpy())
        for name, runs in ends.items()
    }

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.19, 0.6, 0.77))
        for (name, (mean, error)), (color, line) in zip(table.items(), looks, strict=False):
            axes.errorbar(rates, mean, error, color=color, ls=line, lw=2.6, marker="o", capsize=3,
                          label=name)  # fmt: skip
        axes.axhline(start, color=GREY, lw=1, ls=(0, (4, 2)))
        axes.text(rates[0], start - 0.07, "start", fontsize=TEXT, color=GREY)
        axes.set(xscale="log", ylim=(0, 1.03))
        axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
        axes.minorticks_off()
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("learning rate (log scale)", fontsize=TEXT)
        axes.set_ylabel("J after 60 steps", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)

    listed = ", ".join(f"{rate:g}" for rate in rates)
    said = "; ".join(f"{n}: " + ", ".join(f"{x:.2f}" for x in m) for n, (m, _) in table.items())
    return static_figure(
        build,
        size=(900, 290),
        alt=f"Expected reward after 60 steps at learning rates {listed}. {said}.",
        caption=caption,
    )
