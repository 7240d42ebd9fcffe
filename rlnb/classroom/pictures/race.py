"""A row of the race: every seed a dot, and the verdict by the rule that was stated before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rlnb.classroom.figures import BLACK, GREY, SKY, Picture, static_figure
from rlnb.training.studies.race.verdicts import Comparison, recorded, results

__all__ = ["arms_and_seeds", "race"]

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

    def build(figure, _):
        axes = figure.add_axes((0.2, 0.17 if len(values) < 7 else 0.12, 0.4, 0.79))
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
        size=(900, 90 + 48 * len(values)),
        alt=f"Race {row}, {measure}, a dot per seed. {said}.",
        caption=caption,
    )


def _said(c: Comparison) -> str:
    what = "SD " if c.statistic == "sd" else ""
    digits = 2 if max(abs(c.low), abs(c.high)) >= 1 else 3
    return (
        f"{c.verdict}\n{what}{c.difference:+.{digits}f} [{c.low:+.{digits}f}, {c.high:+.{digits}f}]"
    ).replace("-", "−")
