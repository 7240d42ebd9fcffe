"""The pictures of the page on systems: bytes, waiting, and two engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rlnb.classroom.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    WINE,
    Picture,
    static_figure,
)
from rlnb.classroom.pictures.recorded_runs import evaluations
from rlnb.toys.rollout_queue import Timeline
from rlnb.toys.two_engines import Verdict

__all__ = [
    "bias_and_noise", "bytes_by_method", "gaps", "learning_by_time", "slots_shown",
    "two_timelines",
]  # fmt: skip

TEXT = 10.5  # points: the size of the page's own text
VERSIONS = (SKY, ORANGE, PURPLE, GREEN, WINE, BLUE)
STATE = {
    "weights": (SKY, ""), "gradients": (ORANGE, "//"), "AdamW": (GREEN, ".."),
    "frozen": (GREY, ""), "engine": (PURPLE, "xx"),
}  # fmt: skip


def _axes(figure, box, xlabel="", ylabel=""):
    axes = figure.add_axes(box)
    axes.set_xlabel(xlabel, fontsize=TEXT)
    axes.set_ylabel(ylabel, fontsize=TEXT)
    axes.tick_params(labelsize=TEXT)
    return axes


def bytes_by_method(table: Mapping[str, Mapping[str, float]], caption: str) -> Picture:
    """A stacked bar per method: bytes a parameter, by what they hold. method -> {part: bytes}."""

    def build(figure, _):
        axes = _axes(figure, (0.27, 0.17, 0.7, 0.7), "bytes per parameter of the policy")
        names = list(table)
        for row, name in enumerate(names):
            at = 0.0
            for part, size in table[name].items():
                color, hatch = STATE[part]
                axes.barh(row, size, left=at, color=color, hatch=hatch, ec="white", height=0.65,
                          label=part if row == 0 else None)  # fmt: skip
                at += size
            axes.text(at + 0.4, row, f"{at:.0f}", va="center", fontsize=11, weight="bold")
        axes.set_yticks(range(len(names)), names)
        axes.set(ylim=(len(names) - 0.4, -0.6), xlim=(0, 42))
        axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=5, fontsize=TEXT)

    sums = "; ".join(
        f"{name} " + ", ".join(f"{part} {size:.0f}" for part, size in parts.items())
        + f", together {sum(parts.values()):.0f}"
        for name, parts in table.items()
    )  # fmt: skip
    return static_figure(build, size=(900, 260), caption=caption, alt=f"Bytes a parameter. {sums}.")


def slots_shown(run: Timeline, begin: float, width: float, rows: int) -> list[int]:
    """At most `rows` slots, in order: the one that is busy longest in the window, those that the
    steps in it waited for, and the first."""
    end = begin + width
    seen = [a for a in run.written if a.finished > begin and a.begun < end]
    found = [max(seen, key=lambda a: min(a.finished, end) - max(a.begun, begin)).slot]
    for batch, (low, _) in zip(run.trained, run.steps, strict=True):
        if begin < low < end:
            found.append(max(batch, key=lambda a: a.finished).slot)
    return sorted(list(dict.fromkeys([*found, *range(run.slots)]))[:rows])


def two_timelines(
    runs: Mapping[str, Timeline], width: float, caption: str, rows: int = 16
) -> Picture:
    """Who writes when: a panel per run, a row per slot, a bar per answer, the trainer below."""

    def build(figure, _):
        for k, (name, run) in enumerate(runs.items()):
            each = 0.93 / len(runs)
            axes = _axes(figure, (0.055 + k * each, 0.16, each - 0.035, 0.73),
                         "time, in lengths of a mean answer")  # fmt: skip
            begin = run.steps[len(run.steps) // 2][1]
            shown = slots_shown(run, begin, width, rows)
            for answer in run.written:
                if answer.slot in shown and answer.finished > begin:
                    low, high = max(answer.begun, begin), min(answer.finished, begin + width)
                    if low < high:
                        axes.barh(rows - shown.index(answer.slot), high - low, left=low - begin,
                                  height=0.8, ec="white", lw=0.5,
                                  color=VERSIONS[answer.version % len(VERSIONS)])  # fmt: skip
            for start, end in run.steps:
                low, high = max(start, begin), min(end, begin + width)
                if low < high:
                    axes.barh(-1, high - low, left=low - begin, height=1.2, color=BLACK)
            axes.set(xlim=(0, width), ylim=(-2, rows + 0.8), yticks=())
            axes.set_title(f"{name}: slots busy {run.busy:.0%}", fontsize=11, weight="bold")
            if k == 0:
                axes.set_yticks((-1, rows / 2), ("trainer", "slots"), rotation=90, va="center")

    alt = "; ".join(
        f"{name}: slots busy {run.busy:.0%}, a step takes {run.time_per_step:.2f}"
        for name, run in runs.items()
    )
    return static_figure(build, size=(900, 280), caption=caption,
                         alt=f"Timelines of slots and trainer. {alt}.")  # fmt: skip


LAG_RUNS = {0: "chain_stale_0", 1: "chain_stale_1_no_clip", 4: "chain_stale_4_no_clip",
            8: "chain_stale_8_no_clip"}  # fmt: skip
LAG_LOOK = {0: (BLACK, "-"), 1: (BLUE, "--"), 4: (GREEN, "-."), 8: (WINE, ":")}


def learning_by_time(caption: str) -> Picture:
    """Recorded runs: held-out pass@1 against answers, every seed, by how old the answers were."""
    found = {lag: evaluations(run) for lag, run in LAG_RUNS.items()}

    def build(figure, _):
        axes = _axes(figure, (0.075, 0.17, 0.68, 0.77), "answers learned from", "pass@1, held out")
        ends: list[tuple[float, int, str]] = []
        for lag, (steps, values) in found.items():
            color, dash = LAG_LOOK[lag]
            x = 64 * np.array(steps)
            axes.plot(x, values.T, color=color, ls=dash, lw=1.2, marker="o", ms=3)
            each = "  ".join(f"{x:.3f}" for x in values[:, -1])
            ends.append((float(values[:, -1].mean()), lag, each))
        floor = 0.0
        for value, lag, each in sorted(ends):
            floor = max(value, floor + 0.07)
            color, _dash = LAG_LOOK[lag]
            axes.text(1.02, (floor - 0.3) / 0.7, f"age {lag}: {each}", fontsize=11,
                      color=color, transform=axes.transAxes, va="center")  # fmt: skip
        axes.set(ylim=(0.3, 1.0), xlim=(0, 2600))

    text = "; ".join(
        f"age {lag}: " + ", ".join(f"{x:.3f}" for x in values[:, -1])
        for lag, (_, values) in found.items()
    )
    alt = f"Recorded pass@1 after 2,560 answers, every seed. {text}."
    return static_figure(build, size=(900, 280), caption=caption, alt=alt)


def gaps(tokens: Mapping[str, Sequence[float]], caption: str, edge: float = 3.5) -> Picture:
    """Histograms of log π of the trainer minus log π of the engine, over each other, log axis.

    tokens: name -> gaps; the first is behind, two at most.
    """
    tables = {name: np.asarray(values, dtype=float) for name, values in tokens.items()}
    edges = np.linspace(-edge, edge, 71)

    def build(figure, _):
        axes = _axes(figure, (0.065, 0.17, 0.88, 0.76), "log π − log μ", "tokens")
        for (name, values), color in zip(tables.items(), (SKY, WINE), strict=False):
            axes.hist(np.clip(values, -edge, edge), bins=edges, color=color, ec="none", label=name)
        axes.set(yscale="log", ylim=(0.7, 3e4), xlim=(-edge, edge))
        for at in (-np.log(2), np.log(2)):
            axes.axvline(at, color=BLACK, lw=1, ls=":")
        axes.text(np.log(2) + 0.08, 9e3, "ratio 2", fontsize=TEXT)
        axes.legend(loc="upper right", fontsize=TEXT)

    text = "; ".join(f"{name}: {len(v)} tokens, root mean square {np.sqrt((v**2).mean()):.4f}, "
                     f"{v.min():.2f} to {v.max():.2f}" for name, v in tables.items())  # fmt: skip
    return static_figure(build, size=(900, 270), caption=caption,
                         alt=f"Histograms of the gap between two engines. {text}.")  # fmt: skip


def bias_and_noise(found: Mapping[str, Verdict], caption: str) -> Picture:
    """Each correction as a point: bias across, noise of one answer up."""
    marks = "osD^vP*Xh8"

    def build(figure, _):
        axes = _axes(figure, (0.075, 0.16, 0.55, 0.78), "bias", "noise of one answer")
        for k, (name, v) in enumerate(found.items()):
            color = (BLACK, WINE, SKY, GREEN, PURPLE)[k % 5]
            axes.plot(v.bias, v.noise, marks[k], ms=9, color=color, label=name,
                      mfc="none" if k >= 5 else color, mew=1.8)  # fmt: skip
        axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=TEXT)
        axes.set_xlim(left=-0.02)
        axes.set_ylim(bottom=0)

    text = "; ".join(f"{name}: bias {v.bias:.3f}, noise {v.noise:.2f}" for name, v in found.items())
    return static_figure(build, size=(900, 300), caption=caption,
                         alt=f"Bias and noise of the corrections. {text}.")  # fmt: skip
