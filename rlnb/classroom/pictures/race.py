"""A row of the race: every seed a dot, and the verdict by the rule that was stated before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rlnb.classroom.figures import BLACK, BLUE, GREEN, GREY, ORANGE, SKY, Picture, static_figure
from rlnb.training.studies.race.verdicts import Comparison, against_cpu, recorded, results

__all__ = ["arms_and_seeds", "both_seeds", "held_out", "race", "two_budgets"]

TEXT = 10.5
RIVAL, ARM = GREY, SKY


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


def both_seeds(arm: str, row: str = "clip") -> tuple[list[float], list[float]]:
    """pass@1 of an arm at the rate it was tuned to: on its tuning seeds, and on the race's.

    >>> [len(seeds) for seeds in both_seeds("clip, 2 updates")]
    [5, 20]
    """
    record = recorded(row)
    raced = record["arms"][arm]
    return record["tuning"][arm][str(raced["rate"])], raced["measures"]["pass@1"]


def held_out(arms: Sequence[str], *, caption: str, row: str = "clip") -> Picture:
    """Of each arm the runs that chose its rate, and below them those on other seeds."""
    values, labels = [], []
    for arm in arms:
        chosen, others = both_seeds(arm, row)
        values += [chosen, others]
        labels += [f"{arm.split(',')[0]}, the {len(chosen)}", f"the {len(others)} others"]
    start = float(np.mean(recorded(row)["arms"][arms[0]]["start"]["pass@1"]))
    height = 60 + 44 * len(values)

    def build(figure, _):
        axes = figure.add_axes((0.17, 48 / height, 0.72, 1 - 56 / height))
        for k, seeds in enumerate(values):
            lift = np.linspace(-0.24, 0.24, len(seeds))
            colour = GREY if k % 2 == 0 else SKY
            axes.plot(seeds, k + lift, "o", ms=6, mfc=colour, mec=BLACK, mew=0.5, alpha=0.85)
            axes.plot([np.mean(seeds)] * 2, [k - 0.38, k + 0.38], color=BLACK, lw=2.4)
            axes.text(1.02, k, f"{np.mean(seeds):.2f}", transform=axes.get_yaxis_transform(),
                      va="center", fontsize=TEXT)  # fmt: skip
        axes.axvline(start, color=BLACK, ls="--", lw=1)
        axes.axhline(1.5, color="#DDDDDD", lw=0.8)
        axes.set(xlim=(0, 1), ylim=(len(values) - 0.5, -0.5))
        axes.set_yticks(range(len(values)), labels, fontsize=TEXT)
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("pass@1 at the end", fontsize=TEXT)

    said = "; ".join(
        f"{label}: mean {np.mean(seeds):.2f}, {min(seeds):.2f} to {max(seeds):.2f}"
        for label, seeds in zip(labels, values, strict=True)
    )
    return static_figure(
        build,
        size=(900, height),
        alt=f"pass@1 of the runs that chose the rate, and of others. {said}. Start {start:.2f}.",
        caption=caption,
    )


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
