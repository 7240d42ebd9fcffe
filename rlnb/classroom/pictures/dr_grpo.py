"""The pictures of the page on Dr. GRPO: what a token weighs, and who shares the divisor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from torch import Tensor

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
from rlnb.classroom.pictures.recorded_runs import curve, running_mean, seeds

__all__ = ["four_losses", "lengths_by_memory", "recorded_lengths", "step_sizes", "who_shares"]

TEXT = 10.5  # points: the size of the page's own text
LOOK = {"right": (POSITIVE, "-"), "wrong": (NEGATIVE, "--")}
RUNS = {  # a divisor's name -> the recorded run
    "own length: GRPO": "pick_grpo",
    "tokens of the step: DAPO": "pick_dapo",
    "a constant: Dr. GRPO": "pick_dr_grpo",
}
FULL = 3.0  # times the mean push: the full colour


def lengths_by_memory(runs: Mapping[str, Tensor], start: float, caption: str) -> Picture:
    """Mean length of right and of wrong answers during training: a panel per run.

    runs: title -> (seeds, steps, 2), wrong first. A thin line is a seed (twenty are drawn), a thick
    one the mean of all seeds.
    """
    data = {title: run.numpy() for title, run in runs.items()}
    top = max(run[:, -1].max() for run in data.values())

    def build(figure, _):
        for k, (title, run) in enumerate(data.items()):
            axes = figure.add_axes((0.07 + 0.49 * k, 0.19, 0.31, 0.69))
            x = np.arange(1, run.shape[1] + 1)
            axes.axhline(start, color=GREY, lw=0.8)
            for index, name in ((1, "right"), (0, "wrong")):
                color, line = LOOK[name]
                axes.plot(x, run[:20, :, index].T, color=color, lw=0.5, alpha=0.35)
                axes.plot(x, run[:, :, index].mean(0), color=color, ls=line, lw=2.8)
            ends = {name: run[:, -1, i].mean() for i, name in ((0, "wrong"), (1, "right"))}
            apart = abs(ends["wrong"] - ends["right"]) > 0.08 * top
            for name, end in ends.items():
                y = end if apart else end + (0.04 if name == "wrong" else -0.04) * top
                axes.text(1.03 * len(x), y, f"{name}: {end:.1f}", color=LOOK[name][0], va="center",
                          fontsize=TEXT, weight="bold")  # fmt: skip
            axes.set(xlim=(0, len(x)), ylim=(0, top))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("training step", fontsize=TEXT)
            axes.set_ylabel("mean length, tokens" if k == 0 else "", fontsize=TEXT)
            axes.set_title(title, fontsize=11, weight="bold")

    said = "; ".join(
        f"{title}: wrong {run[:, -1, 0].mean():.1f}, right {run[:, -1, 1].mean():.1f}"
        for title, run in data.items()
    )
    alt = f"Mean length during training, all start at {start:g} tokens. At the end, {said}."
    return static_figure(build, size=(900, 300), alt=alt, caption=caption)


def four_losses(
    pushes: Mapping[str, Tensor], lengths: Sequence[int], rewards: Sequence[float], *, caption: str
) -> Picture:
    """Two by two: the push on every token of a batch, as a multiple of the loss's mean push.

    pushes: title -> (B,), the push on a token of each answer; B/2 answers to each of two prompts.
    """
    half = len(lengths) // 2
    data = {title: _relative(push.numpy(), np.asarray(lengths)) for title, push in pushes.items()}
    rows = [i + (0.5 if i >= half else 0) for i in range(len(lengths))]

    def build(figure, _):
        for k, (title, push) in enumerate(data.items()):
            column, line = k % 2, k // 2
            axes = figure.add_axes((0.14 + 0.44 * column, 0.5 - 0.5 * line, 0.42, 0.42))
            axes.set(xlim=(0, 8.7), ylim=(len(lengths) + 0.55, -0.1))
            axes.axis("off")
            axes.set_title(title, fontsize=11, weight="bold", loc="left", pad=3)
            loudest = np.isclose(np.abs(push), np.abs(push).max())
            for i, y in enumerate(rows):
                for j in range(lengths[i]):
                    axes.add_patch(Rectangle((j + 0.04, y + 0.06), 0.92, 0.86, lw=0.8, ec=GREY,
                                             fc=_color(push[i])))  # fmt: skip
                axes.text(lengths[i] + 0.2, y + 0.5, signed(float(push[i]), 2), va="center",
                          fontsize=TEXT, weight="bold" if loudest[i] else "normal")  # fmt: skip
                if column == 0:
                    name = "right" if rewards[i] > 0 else "wrong"
                    prompt = f"{'AB'[i // half]} "
                    axes.text(-0.15, y + 0.5, prompt + name, ha="right", va="center",
                              fontsize=TEXT, color=LOOK[name][0])  # fmt: skip

    said = "; ".join(
        f"{title}: " + ", ".join(signed(float(p), 2) for p in push) for title, push in data.items()
    )
    alt = f"Push on a token of each of eight answers, times the mean push. {said}."
    return static_figure(build, size=(900, 500), alt=alt, caption=caption)


def _relative(push: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return push / ((np.abs(push) * lengths).sum() / lengths.sum())


def _color(push: float) -> tuple[float, ...]:
    share = min(abs(push) / FULL, 1) ** 0.8
    return tuple(1 - share * (1 - c) for c in to_rgb(POSITIVE if push > 0 else NEGATIVE))


def who_shares(
    exact: Mapping[int, float], ends: Mapping[int, tuple[float, float]], start: float, caption: str
) -> Picture:
    """Left the push on length against the number of answers that share a divisor, right the run.

    exact: n -> push on "stop" at A = 1, an average token weighing 1. ends: n -> mean length of
    wrong and right answers at the end; n = 0 is a constant divisor.
    """
    sizes = sorted(n for n in ends if n)
    places = {n: float(np.log2(n)) for n in sizes}
    places[0] = places[sizes[-1]] + 1.4

    def build(figure, _):
        left = figure.add_axes((0.07, 0.2, 0.36, 0.68))
        names = [str(n) for n in sizes] + ["constant"]
        left.plot([places[n] for n in sizes], [exact[n] for n in sizes], "o-", color=BLACK, ms=7)
        left.plot([places[0]], [0], "o", color=BLACK, ms=7)
        for n in sizes:
            left.text(places[n] + 0.1, exact[n] + 0.07, f"{exact[n]:.3f}", fontsize=TEXT)
        left.text(places[0], 0.08, "0", fontsize=TEXT, ha="center")
        left.set(ylim=(-0.05, 1.8))
        left.set_title("length bias, exact", fontsize=11, weight="bold")
        right = figure.add_axes((0.55, 0.2, 0.36, 0.68))
        right.axhline(start, color=GREY, lw=0.8)
        for index, name in ((0, "wrong"), (1, "right")):
            color, line = LOOK[name]
            look = {"marker": "os"[index], "color": color, "ms": 7}
            right.plot([places[n] for n in sizes], [ends[n][index] for n in sizes], ls=line, **look)
            right.plot([places[0]], [ends[0][index]], **look)
            at = (0.2, ends[1][0]) if name == "wrong" else (0.25, -3.5)
            right.text(*at, name, color=color, fontsize=11, weight="bold", va="center")
        right.set(ylim=(-7, 80))
        right.set_title("length after the 200 steps", fontsize=11, weight="bold")
        for axes in (left, right):
            axes.set_xticks([places[n] for n in (*sizes, 0)], names)
            axes.set(xlim=(-0.4, places[0] + 0.7))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("answers that share a divisor", fontsize=TEXT)

    pushes = ", ".join(f"{n}: {exact[n]:.3f}" for n in sizes)
    said = ", ".join(f"{n or 'constant'}: {w:.1f} and {r:.1f}" for n, (w, r) in ends.items())
    alt = f"Push on length by answers that share a divisor: {pushes}; constant: 0. "
    alt += f"Length of wrong and right answers after training: {said}."
    return static_figure(build, size=(900, 300), alt=alt, caption=caption)


def _both(run: str) -> dict[str, np.ndarray]:
    """Of wrong and of right answers, (seeds, steps): the mean length, in tokens."""
    return {
        kind: np.array([curve(run, seed, f"completions/mean_length_{kind}") for seed in seeds(run)])
        for kind in ("wrong", "right")
    }


def gaps(run: str) -> np.ndarray:
    """(seeds, steps): mean length of wrong answers minus that of right ones, in tokens."""
    both = _both(run)
    return both["wrong"] - both["right"]


def recorded_lengths(caption: str) -> Picture:
    """The recorded transformer, a panel per divisor: lengths of right and of wrong answers."""
    found = {name: _both(run) for name, run in RUNS.items()}

    def build(figure, _):
        for k, (name, tables) in enumerate(found.items()):
            axes = figure.add_axes((0.06 + 0.32 * k, 0.19, 0.2, 0.68))
            ends = {}
            for kind, table in tables.items():
                color, line = LOOK[kind]
                for row in table:
                    x = np.arange(1, len(row) + 1)
                    axes.plot(x, running_mean(row, 10), color=color, ls=line, lw=1.7)
                ends[kind] = float(np.nanmean(table[:, -10:]))
            apart = max(0.0, 6 - (ends["wrong"] - ends["right"])) / 2
            for kind, sign in (("wrong", 1), ("right", -1)):
                y = ends[kind] + sign * apart
                axes.text(82, y, f"{kind} {ends[kind]:.0f}", va="center", fontsize=TEXT,
                          color=LOOK[kind][0], weight="bold")  # fmt: skip
            axes.set(xlim=(0, 80), ylim=(0, 75))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("training step", fontsize=TEXT)
            axes.set_ylabel("tokens" if k == 0 else "", fontsize=TEXT)
            axes.set_title(name, fontsize=11, weight="bold", loc="left")

    said = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{kind} " + " ".join(f"{np.nanmean(row[-10:]):.1f}" for row in table)
            for kind, table in tables.items()
        )
        for name, tables in found.items()
    )
    alt = f"Lengths of wrong and right answers, mean of the last ten steps, seed by seed. {said}."
    return static_figure(build, size=(900, 290), alt=alt, caption=caption)


def step_sizes(paths: Mapping[str, tuple[Tensor, Tensor]], caption: str) -> Picture:
    """A panel per optimizer: one weight against the step, for the whole gradient and a fraction."""

    def build(figure, _):
        for k, (name, (whole, part)) in enumerate(paths.items()):
            axes = figure.add_axes((0.085 + 0.32 * k, 0.2, 0.24, 0.67))
            axes.axhline(0, color=GREY, lw=0.8)
            axes.plot(whole, color=BLACK, lw=2.4, label="whole")
            axes.plot(part, color=ORANGE, lw=2.4, ls="--", label="a sixteenth")
            reach = 1.2 * max(whole.abs().max(), part.abs().max())
            axes.set(ylim=(-reach, reach))
            axes.tick_params(labelsize=TEXT)
            axes.locator_params(nbins=5)
            axes.set_xlabel("step", fontsize=TEXT)
            axes.set_ylabel("the weight" if k == 0 else "", fontsize=TEXT)
            axes.set_title(name, fontsize=11, weight="bold")
            if k == 0:
                axes.legend(loc="upper left", fontsize=TEXT)

    said = "; ".join(f"{n}: {signed(float(w[-1]), 2)} and {signed(float(p[-1]), 2)}"
                     for n, (w, p) in paths.items())  # fmt: skip
    alt = f"A weight after 40 steps with the whole gradient and with a sixteenth. {said}."
    return static_figure(build, size=(900, 270), alt=alt, caption=caption)
