"""A row of the race: every seed a dot, and the verdict by the rule that was stated before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rlnb.classroom.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    NEGATIVE,
    ORANGE,
    POSITIVE,
    SKY,
    Picture,
    static_figure,
)
from rlnb.training.studies.race.verdicts import Comparison, against_cpu, recorded, results

__all__ = ["ASKED", "arms_and_seeds", "board", "race", "two_budgets"]

TEXT = 10.5
RIVAL, ARM = GREY, SKY
# a row for every verdict there is: words -> row and arm of data/race.json
ASKED: dict[str, tuple[str, str]] = {
    "clip at 0.2, 8 updates": ("clip", "clip, 8 updates"),
    "clip at 0.2, 32 updates": ("clip", "clip, 32 updates"),
    "refill silent groups": ("dynamic", "refill, easy base"),
    "KL term, β = 0.04": ("kl", "beta 0.04"),
    "sampler in bfloat16": ("precision", "7 bits"),
}
FAR = 8.0  # smallest effects: an interval that goes on beyond ends in an arrow


def arms_and_seeds(row: str, measure: str, only: Sequence[str] = ()) -> dict[str, list[float]]:
    """Arm -> the measure of every seed, in the order of the record; `only` these arms."""
    arms = recorded(row)["arms"]
    return {name: arms[name]["measures"][measure] for name in only or arms}


def race(
    row: str,
    *,
    caption: str,
    only: Sequence[str] = (),
    measure: str | None = None,
    unit: str = "",
    words: Mapping[str, str] | None = None,
) -> Picture:
    """Dots of all seeds, a bar at the mean, and beside an arm its difference and verdict.

    only: these arms, from the top. measure: another than the row's first. unit: of the axis.
    words: other labels for arms. A verdict stands beside the arm that was asked about.
    """
    found = results(row, measure=measure)
    measure = found[0].measure
    values = arms_and_seeds(row, measure, only)
    beside = {c.arm: c for c in found if c.against in values}
    labels = {name: (words or {}).get(name, name) for name in values}

    height = 70 + 46 * len(values)

    def build(figure, _):
        axes = figure.add_axes((0.23, 45 / height, 0.4, 1 - 55 / height))
        for k, (name, seeds) in enumerate(values.items()):
            colour = ARM if name in beside else RIVAL
            lift = np.linspace(-0.22, 0.22, len(seeds))
            axes.plot(seeds, k + lift, "o", ms=5, mfc=colour, mec=BLACK, mew=0.5, alpha=0.85)
            axes.plot([np.mean(seeds)] * 2, [k - 0.36, k + 0.36], color=BLACK, lw=2.4)
            if name in beside:
                axes.text(1.03, k, _said(beside[name]), transform=axes.get_yaxis_transform(),
                          va="center", fontsize=TEXT)  # fmt: skip
        axes.set(ylim=(len(values) - 0.5, -0.5))
        axes.set_yticks(range(len(values)), labels.values(), fontsize=TEXT)
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel(unit or measure, fontsize=TEXT)
        axes.grid(axis="x", color="#DDDDDD", lw=0.8)
        axes.set_axisbelow(True)

    said = "; ".join(
        f"{labels[name]} mean {np.mean(seeds):.3f}, seeds {min(seeds):.3f} to {max(seeds):.3f}"
        + (f", {_said(beside[name])}" if name in beside else "")
        for name, seeds in values.items()
    ).replace("\n", " ")
    return static_figure(
        build,
        size=(900, height),
        alt=f"Race {row}, {measure}, a dot per seed. {said}.",
        caption=caption,
    )


def _said(c: Comparison) -> str:
    what = "SD " if c.statistic == "sd" else ""
    digits = 2 if max(abs(c.low), abs(c.high)) >= 1 else 3
    return (
        f"{c.word}\n{what}{c.difference:+.{digits}f} [{c.low:+.{digits}f}, {c.high:+.{digits}f}]"
    ).replace("-", "−")


def board(asked: Mapping[str, tuple[str, str]], *, caption: str) -> Picture:
    """A line per comparison: its interval, in units of the smallest effect of interest.

    asked: words -> (row, arm), the arm as data/race.json names it. The grey band is "no difference
    that matters"; blue lies above 0, orange below, grey decides nothing.
    """
    found = {
        words: next(c for c in results(row) if c.arm == arm) for words, (row, arm) in asked.items()
    }

    height = 42 + 29 * len(found)

    def build(figure, _):
        axes = figure.add_axes((0.385, 32 / height, 0.315, 1 - 38 / height))
        axes.axvspan(-1, 1, color="#E4E4E4", lw=0)
        axes.axvline(0, color=GREY, lw=1)
        for k, (words, c) in enumerate(found.items()):
            low, middle, high = (x / c.smallest for x in (c.low, c.difference, c.high))
            colour = {"better": POSITIVE, "worse": NEGATIVE}.get(c.verdict, GREY)
            axes.plot(np.clip([low, high], -FAR, FAR), [k, k], color=colour, lw=3)
            if abs(middle) <= FAR:
                axes.plot([middle], [k], "o", color=colour, ms=8, mec=BLACK)
            for end in {np.sign(x) * FAR for x in (low, high) if abs(x) > FAR}:
                mark = ">" if end > 0 else "<"
                axes.plot([end], [k], mark, color=colour, ms=9, clip_on=False)
            axes.text(-FAR * 1.08, k, words, ha="right", va="center", fontsize=TEXT)
            axes.text(FAR * 1.08, k, _short(c), va="center", fontsize=TEXT)
        axes.set(xlim=(-FAR, FAR), ylim=(len(found) - 0.5, -0.5), yticks=())
        axes.set_xticks((-5, -1, 1, 5), ("−5 s", "−s", "+s", "+5 s"), fontsize=TEXT)

    said = "; ".join(f"{words}: {_short(c)}" for words, c in found.items())
    return static_figure(
        build, size=(900, height), alt=f"Verdicts of the race. {said}.", caption=caption
    )


def _short(c: Comparison) -> str:
    what = "SD " if c.statistic == "sd" else ""
    word = c.word.replace("no difference larger than", "no difference above")
    return f"{what}{c.difference:+.{2 if abs(c.difference) >= 1 else 3}f}, {word}".replace("-", "−")


LINES = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-."), (BLACK, ":"))


def two_budgets(rows: Mapping[str, Sequence[str]], *, caption: str) -> Picture:
    """pass@1 of a row's arms against answers (left) and against CPU seconds (right).

    rows: row -> the arms to show, up to four. Thin lines are seeds, thick ones means.
    """
    height = 34 + 210 * len(rows)
    curves = {row: against_cpu(row) for row in rows}

    def build(figure, _):
        for line, (row, only) in enumerate(rows.items()):
            low = 1 - (190 + 210 * line) / height
            left = figure.add_axes((0.07, low, 0.325, 165 / height))
            right = figure.add_axes((0.455, low, 0.325, 165 / height), sharey=left)
            for name, (colour, style) in zip(only, LINES, strict=False):
                arm = recorded(row)["arms"][name]
                seconds, seeds = curves[row][name]
                for axes, x in ((left, [0, *arm["answers"]]), (right, seconds)):
                    axes.plot(x, seeds.T, color=colour, lw=0.5, alpha=0.25)
                    axes.plot(x, seeds.mean(0), color=colour, ls=style, lw=2.4, label=name)
            for axes in (left, right):
                axes.tick_params(labelsize=TEXT)
                axes.set_xlim(left=0)
                axes.margins(x=0.02)
            right.tick_params(labelleft=False)
            left.set_ylabel("pass@1", fontsize=TEXT)
            right.legend(
                loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=TEXT, frameon=False
            )
            if line == len(rows) - 1:
                left.set_xlabel("answers generated", fontsize=TEXT)
                right.set_xlabel("CPU seconds of the run", fontsize=TEXT)

    said = "; ".join(
        f"{name} ends at {seeds[:, -1].mean():.2f} after "
        f"{recorded(row)['arms'][name]['answers'][-1]:,} answers, {seconds[-1]:.2f} CPU seconds"
        for row, only in rows.items()
        for name in only
        for seconds, seeds in (curves[row][name],)
    )
    return static_figure(
        build,
        size=(900, height),
        alt=f"pass@1 against answers and against CPU seconds. {said}.",
        caption=caption,
    )
