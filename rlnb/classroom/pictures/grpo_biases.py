"""The pictures of the page on GRPO's two divisors: the group's std and the answer's length."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rlnb.classroom.figures import (
    BLACK,
    GREY,
    NEGATIVE,
    ORANGE,
    POSITIVE,
    Picture,
    signed,
    static_figure,
)
from rlnb.classroom.pictures import recorded_runs as recorded

__all__ = ["bonus_runs", "by_type", "length_runs", "odd_one_out", "stop_pushes"]

TEXT = 10.5  # points: the size of the page's own text
RULES = {"z-score": (ORANGE, "-", "divided by s"), "mean only": (BLACK, "--", "the mean only")}
SIDES = {"wrong": (NEGATIVE, "--"), "right": (POSITIVE, "-")}


def length_runs(panels: Mapping[str, str], caption: str) -> Picture:
    """Mean length of right and wrong answers over training, every seed; a panel per recorded run.

    panels: a key of `recorded_runs.RUNS` -> the panel's title.
    """
    smooth = {
        method: {
            kind: np.array([recorded.running_mean(row) for row in table])
            for kind, table in recorded.lengths(method).items()
        }
        for method in panels
    }

    def build(figure, _):
        for k, (method, both) in enumerate(smooth.items()):
            axes = figure.add_axes((0.07 + 0.5 * k, 0.19, 0.41, 0.7))
            for kind, (color, line) in SIDES.items():
                x = np.arange(1, both[kind].shape[1] + 1)
                axes.plot(x, both[kind].T, color=color, lw=0.9, alpha=0.5)
                axes.plot(x, both[kind].mean(0), color=color, ls=line, lw=2.8,
                          label=f"{kind} answers")  # fmt: skip
            axes.set(xlim=(1, both["right"].shape[1]), ylim=(0, 70), yticks=range(0, 71, 20))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("step", fontsize=TEXT)
            axes.set_ylabel("mean length, tokens" if k == 0 else "", fontsize=TEXT)
            axes.set_title(panels[method], fontsize=11, weight="bold")
            axes.legend(loc="upper left", fontsize=TEXT)

    def last(method, kind):
        return ", ".join(f"{x:.0f}" for x in recorded.lengths(method)[kind][:, -10:].mean(1))

    said = "; ".join(
        f"{title}: right {last(method, 'right')}, wrong {last(method, 'wrong')}"
        for method, title in panels.items()
    )
    return static_figure(
        build,
        size=(900, 300),
        caption=caption,
        alt=f"Mean length of right and wrong answers over training. Last ten steps, a number a "
        f"seed, in tokens. {said}.",
    )


def odd_one_out(groups: Mapping[str, tuple[float, float, float]]) -> Picture:
    """Per group: the largest advantage, the push on its logit undivided, and divided by the std."""
    titles = ("largest |A|\nafter dividing", "push on its logit,\nminus the mean",
              "push on its logit,\ndivided by s")  # fmt: skip
    colors = (GREY, BLACK, ORANGE)
    tops = (4.4, 0.57, 0.57)

    def build(figure, _):
        for k, title in enumerate(titles):
            axes = figure.add_axes((0.06 + 0.33 * k, 0.12, 0.25, 0.68))
            values = [triple[k] for triple in groups.values()]
            axes.bar(range(len(groups)), values, 0.55, color=colors[k])
            for i, value in enumerate(values):
                axes.text(i, value + 0.03 * tops[k], f"{value:.2f}", ha="center", fontsize=11,
                          weight="bold")  # fmt: skip
            axes.set(ylim=(0, tops[k]), yticks=(), xlim=(-0.6, len(groups) - 0.4))
            axes.set_xticks(range(len(groups)), list(groups), fontsize=11)
            axes.set_title(title, fontsize=11, weight="bold")
            axes.spines["left"].set_visible(False)

    said = "; ".join(
        f"{name}: largest advantage {a:.2f}, push {b:.2f}, divided {c:.2f}"
        for name, (a, b, c) in groups.items()
    )
    return static_figure(
        build,
        size=(900, 270),
        alt=f"Three pairs of bars. {said}.",
        caption="The loudest answer sits in the uneven group. The larger push still goes to the "
        "even one; dividing only brings the two closer.",
    )


def by_type(steps: tuple[int, ...] = (10, 20, 30, 40)) -> Picture:
    """Seven types of prompt in the recorded runs: one rule against the other, seed against seed.

    A dot is pass@1 of one type at one of `steps`; left one seed under either rule, right two seeds
    under one rule.
    """
    table = {r: np.array([recorded.by_difficulty(r, step) for step in steps]) for r in RULES}
    z, mean = table["z-score"], table["mean only"]  # (steps, seeds, types)
    pairs = {
        "two rules, one seed": (mean.ravel(), z.ravel(), "the mean only", "divided by s"),
        "one rule, two seeds": (
            np.concatenate([t[:, [0, 0, 1]].ravel() for t in table.values()]),
            np.concatenate([t[:, [1, 2, 2]].ravel() for t in table.values()]),
            "a seed",
            "another seed",
        ),
    }

    def build(figure, _):
        for k, (title, (x, y, xname, yname)) in enumerate(pairs.items()):
            axes = figure.add_axes((0.09 + 0.4 * k, 0.17, 0.27, 0.73))
            axes.plot([0, 1], [0, 1], color=GREY, lw=0.9)
            axes.plot(x, y, "o", color=(ORANGE, BLACK)[k], ms=6, mec="white", mew=0.7)
            axes.set(xlim=(0, 1.03), ylim=(0, 1.03), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel(f"pass@1, {xname}", fontsize=TEXT)
            axes.set_ylabel(f"pass@1, {yname}", fontsize=TEXT)
            axes.set_title(title, fontsize=11, weight="bold")

    apart = [float(np.abs(x - y).max()) for x, y, *_ in pairs.values()]
    return static_figure(
        build,
        size=(900, 310),
        alt=f"pass@1 of seven types of prompt at steps {', '.join(map(str, steps))}. Two rules on "
        f"one seed are at most {apart[0]:.2f} apart, two seeds of one rule up to {apart[1]:.2f}.",
        caption="A dot is a type of prompt at step 10, 20, 30 or 40. The two rules lie on the "
        "diagonal; two seeds of the same rule do not.",
    )


def bonus_runs() -> Picture:
    """How many `wait` an answer holds while each is paid 0.01: both rules, every seed."""
    curves = {rule: recorded.waits(rule) for rule in RULES}
    last = {rule: table[:, -10:].mean(1) for rule, table in curves.items()}

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.18, 0.55, 0.78))
        for rule, (color, line, label) in RULES.items():
            table = curves[rule]
            x = np.arange(1, table.shape[1] + 1)
            axes.plot(x, table.T, color=color, lw=0.9, alpha=0.55)
            axes.plot(x, table.mean(0), color=color, ls=line, lw=2.8, label=label)
        axes.set(xlim=(1, 50), ylim=(0, None))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("step", fontsize=TEXT)
        axes.set_ylabel("“wait” per answer", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)

    said = "; ".join(
        f"{RULES[rule][2]} " + ", ".join(f"{x:.2f}" for x in ends) for rule, ends in last.items()
    )
    return static_figure(
        build,
        size=(900, 280),
        alt=f"wait per answer over training, each seed. Over the last ten steps: {said}.",
        caption="Divided by s, all three seeds learn to write the word that is worth a hundredth; "
        "undivided, none does.",
    )


def stop_pushes(found: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Picture:
    """Push on "go on" per estimator, right and wrong answers apart, with two standard errors.

    found: name -> (right, wrong), each (batches,), in units of the mean |cA| of a token.
    """
    rows = list(found.items())
    numbers = {
        name: [(side.mean(), side.std(ddof=1) / len(side) ** 0.5) for side in both]
        for name, both in rows
    }

    def build(figure, _):
        axes = figure.add_axes((0.21, 0.2, 0.5, 0.77))
        axes.axvline(0, color=BLACK, lw=0.9)
        for i, (name, _) in enumerate(rows):
            for (mean, error), kind, shift in zip(numbers[name], ("right", "wrong"), (-0.12, 0.12),
                                                  strict=True):  # fmt: skip
                color, _ = SIDES[kind]
                axes.errorbar(mean, i + shift, xerr=2 * error, color=color, capsize=4, ms=8, lw=2,
                              marker="o" if kind == "right" else "s", ls="",
                              label=f"{kind} answers" if i == 0 else None)  # fmt: skip
        axes.set(ylim=(len(rows) - 0.5, -0.5), xlim=(-0.17, 0.17))
        axes.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=11)
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("← stop sooner    push on “go on”    go on longer →", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)

    said = "; ".join(
        f"{name}: right {signed(right[0], 2)}, wrong {signed(wrong[0], 2)}"
        for name, (right, wrong) in numbers.items()
    )
    return static_figure(
        build,
        size=(900, 300),
        alt=f"Push on going on. {said}.",
        caption="Only the two rows with 1/T pull right and wrong answers apart. Bars: two standard "
        "errors over 16 batches.",
    )
