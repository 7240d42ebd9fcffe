"""From the runs of a row to a verdict, by the rule in data/race.json.

difference   mean over seeds of (arm - rival); for the statistic "sd", SD(arm) - SD(rival)
interval     its 99 % percentile interval over 10,000 paired bootstrap resamples of the seeds
verdict      with s the smallest effect of interest
             "no difference larger than s"   the interval lies in [-s, s]
             "better" / "worse"              it lies above / below 0: more / less of the measure
             "inconclusive"                  neither
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rlnb.shipped import data_folder
from rlnb.training.errors import BadInput

__all__ = [
    "LEVEL",
    "RESAMPLES",
    "Comparison",
    "against_cpu",
    "compared",
    "questions",
    "recorded",
    "results",
    "results_at_equal_cpu",
    "verdict",
]

RESAMPLES, LEVEL = 10_000, 0.99


@dataclass(frozen=True)
class Comparison:
    """Two arms of a row. difference, low, high in the measure's units; one pair a seed."""

    row: str
    arm: str
    against: str
    measure: str
    statistic: str
    smallest: float
    difference: float
    low: float
    high: float
    seeds: int
    verdict: str

    @property
    def word(self) -> str:
        """The verdict in the measure's terms: a longer answer is "more", a spread "wider"."""
        if self.statistic == "sd":
            return {"better": "wider", "worse": "narrower"}.get(self.verdict, self.verdict)
        if not self.measure.startswith("pass"):
            return {"better": "more", "worse": "less"}.get(self.verdict, self.verdict)
        return self.verdict

    def __str__(self) -> str:
        measure = f"SD of {self.measure}" if self.statistic == "sd" else self.measure
        return (
            f"{self.arm} against {self.against}: {measure} {self.difference:+.3f} "
            f"[{self.low:+.3f}, {self.high:+.3f}]: {self.word}"
        )


def verdict(low: float, high: float, smallest: float) -> str:
    """One of four words for an interval [low, high] and a smallest effect of interest.

    >>> [verdict(*x, 0.03) for x in ((-.01, .02), (.01, .2), (-.2, -.01), (-.01, .2))]
    ['no difference larger than 0.03', 'better', 'worse', 'inconclusive']
    """
    if -smallest <= low and high <= smallest:
        return f"no difference larger than {smallest:g}"
    if low > 0:
        return "better"
    return "worse" if high < 0 else "inconclusive"


def compared(
    mine: Sequence[float], rival: Sequence[float], statistic: str = "mean"
) -> tuple[float, float, float]:
    """(difference, low, high) of two arms whose k-th numbers belong to one seed.

    statistic: "mean" or "sd" (with n - 1). Raises ValueError for unequal or too few runs.

    >>> compared([0.5, 0.7, 0.6], [0.4, 0.6, 0.5])
    (0.1, 0.1, 0.1)
    """
    a, b = np.asarray(mine, dtype=float), np.asarray(rival, dtype=float)
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise ValueError(
            f"two arms need the same seeds, at least 2: got {a.shape} and {b.shape} runs."
        )
    picks = np.random.default_rng(0).integers(len(a), size=(RESAMPLES, len(a)))

    def value(x: np.ndarray) -> np.ndarray:
        return x.mean(-1) if statistic == "mean" else x.std(-1, ddof=1)

    drawn = value(a[picks]) - value(b[picks])
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    whole = value(a) - value(b)
    return tuple(round(float(x), 6) for x in (whole, low, high))  # type: ignore[return-value]


@cache
def questions() -> dict[str, dict[str, Any]]:
    """The rows of data/race.json by name."""
    text = (data_folder() / "race.json").read_text(encoding="utf-8")
    return {row["name"]: row for row in json.loads(text)["rows"]}


def recorded(row: str, folder: Path | None = None) -> dict[str, Any]:
    """The record of a row, of data/runs/race or of another folder. Raises BadInput if not run."""
    path = (folder or data_folder() / "runs" / "race") / f"{row}.json"
    if not path.is_file():
        raise BadInput(
            f"race: {row!r} is not run; to run it: python -m rlnb.training.studies.race {row} "
            "--out DIR"
        )
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def results(row: str, folder: Path | None = None, measure: str | None = None) -> list[Comparison]:
    """Every comparison of a row that was stated, with its verdict.

    measure: another of the recorded ones; then as a mean, against the row's smallest effect.
    """
    asked, runs = questions()[row], recorded(row, folder)["arms"]
    name = measure or asked["measure"]
    statistic = asked["statistic"] if measure in (None, asked["measure"]) else "mean"
    out = []
    for arm, rival in asked["compare"]:
        values = [runs[x]["measures"][name] for x in (arm, rival)]
        found = compared(*values, statistic)
        out.append(
            Comparison(
                row, arm, rival, name, statistic, asked["smallest_effect"], *found,
                len(values[0]), verdict(*found[1:], asked["smallest_effect"]),
            )
        )  # fmt: skip
    return out


def against_cpu(row: str, folder: Path | None = None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Arm -> CPU seconds (K + 1,) and pass@1 (seeds, K + 1), the start first: the second view.

    A run's seconds are the median over its arm's seeds, for the first runs of a process also made
    the bases; they are spread evenly over the run's answers. Raises BadInput for a row whose curve
    is of another measure.
    """
    out = {}
    for name, arm in recorded(row, folder)["arms"].items():
        if "pass@1" not in arm["start"]:
            raise BadInput(f"race: {row!r} has no curve of pass@1, so no second view in compute.")
        start = [arm["start"]["pass@1"][seed % 3] for seed in arm["seeds"]]
        curve = np.column_stack([start, np.asarray(arm["curve"], dtype=float)])
        share = np.array([0, *arm["answers"]]) / arm["answers"][-1]
        out[name] = (float(np.median(arm["cpu"])) * share, curve)
    return out


def results_at_equal_cpu(row: str, folder: Path | None = None) -> list[Comparison]:
    """The stated comparisons again, each where the cheaper arm's CPU seconds are spent.

    The dearer arm's curve is read there, between its points along straight lines. The rule is the
    row's; it was stated for equal answers, so this is a view and no verdict of the race.
    """
    asked, curves, out = questions()[row], against_cpu(row, folder), []
    statistic = asked["statistic"] if asked["measure"] == "pass@1" else "mean"
    for arm, rival in asked["compare"]:
        spent = min(curves[arm][0][-1], curves[rival][0][-1])
        values = [[float(np.interp(spent, curves[x][0], y)) for y in curves[x][1]]
                  for x in (arm, rival)]  # fmt: skip
        found = compared(*values, statistic)
        out.append(
            Comparison(
                row, arm, rival, f"pass@1 after {spent:.2g} CPU seconds", statistic,
                asked["smallest_effect"], *found, len(values[0]),
                verdict(*found[1:], asked["smallest_effect"]),
            )
        )  # fmt: skip
    return out
