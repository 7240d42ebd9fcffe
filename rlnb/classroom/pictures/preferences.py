"""The pictures of the page on preferences: two roads, the leash, a triangle, and recorded runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from rlnb.classroom.figures import (
    BLACK,
    GREEN,
    GREY,
    NEGATIVE,
    ORANGE,
    POSITIVE,
    PURPLE,
    SKY,
    Picture,
    signed,
    static_figure,
)
from rlnb.toys.preferences import ANSWERS

__all__ = [
    "CORNERS",
    "corners",
    "kl_paths",
    "on_a_network",
    "probabilities",
    "same_files",
    "triangle",
    "where",
]

TEXT = 10.5  # points: the size of the page's own text
LOOK = {"No": (POSITIVE, "-"), "Never": (NEGATIVE, "--"), "Yes": (BLACK, ":")}
# the corners of the triangle: all on No, all on Never, all on Yes
CORNERS = np.array([[0.0, 0.0], [0.5, 0.866], [1.0, 0.0]])
PATHS = (
    *((BLACK, "-"), (ORANGE, "--"), (PURPLE, "-."), (GREEN, ":"), (SKY, (0, (5, 2)))),
    *((PURPLE, "-"), (PURPLE, ":"), (GREEN, "-"), (GREEN, ":")),  # by reward model, by policy
)
BETAS = ((BLACK, "-"), (GREY, "--"), (BLACK, ":"), (GREY, "-."))


def where(policy: np.ndarray) -> np.ndarray:
    """(n, 3) probabilities as (n, 2) points of the triangle."""
    return np.asarray(policy) @ CORNERS


def corners(axes, *, size: float = TEXT) -> None:
    """An empty triangle whose corners are named."""
    axes.set(xlim=(-0.13, 1.13), ylim=(-0.17, 1.0), aspect="equal")
    axes.axis("off")
    ring = np.vstack([CORNERS, CORNERS[:1]])
    axes.plot(*ring.T, color=GREY, lw=1.2)
    axes.text(-0.01, -0.05, "all on No", ha="center", va="top", fontsize=size, color=POSITIVE)
    axes.text(0.5, 0.89, "all on Never", ha="center", va="bottom", fontsize=size, color=NEGATIVE)
    axes.text(1.01, -0.05, "all on Yes", ha="center", va="top", fontsize=size, color=BLACK)


def same_files(road_1: Tensor, road_2: Tensor, aim: float, start: float, caption: str) -> Picture:
    """Where two roads end on several files, (files,) probabilities of No: a circle and a cross."""
    ends = [(float(x), float(y)) for x, y in zip(road_1, road_2, strict=True)]

    def build(figure, _):
        axes = figure.add_axes((0.09, 0.17, 0.88, 0.7))
        files = np.arange(1, len(ends) + 1)
        for x, word, color, line in (
            (start, f"start {start:.3f}", GREY, "-"),
            (aim, f"aim {aim:.3f}", GREEN, "--"),
        ):
            axes.axvline(x, color=color, ls=line, lw=2)
            axes.text(x, 0.2, word, color=color, fontsize=TEXT, ha="center", va="bottom")
        one, two = zip(*ends, strict=True)
        axes.plot(one, files, "o", ms=12, mfc="none", mec=PURPLE, mew=2)
        axes.plot(two, files, "x", ms=7, color=BLACK, mew=2)
        for file, (x, _other) in zip(files, ends, strict=True):
            axes.text(x + 0.014, file, f"{x:.3f}", fontsize=TEXT, va="center")
        axes.set(xlim=(0.25, 0.9), ylim=(len(ends) + 0.6, 0.3), yticks=files)
        axes.set_xlabel("probability of No at the end", fontsize=TEXT)
        axes.set_ylabel("file of 40 labels", fontsize=TEXT)
        axes.tick_params(labelsize=TEXT)

    said = "; ".join(f"file {k}: {x:.3f} and {y:.3f}" for k, (x, y) in enumerate(ends, 1))
    alt = (
        f"Probability of No at the end of road 1 and of road 2. {said}. The start has {start:.3f}, "
        f"the policy of the true scores {aim:.3f}."
    )
    return static_figure(build, size=(900, 300), alt=alt, caption=caption)


def kl_paths(paths: Mapping[float, Tensor], caption: str) -> Picture:
    """KL to the reference against the training step, a line per beta; the end is written."""
    looks = dict(zip(paths, BETAS, strict=False))

    def build(figure, _):
        axes = figure.add_axes((0.075, 0.17, 0.76, 0.78))
        room = np.inf  # names stand 0.55 decades apart
        for beta, path in sorted(paths.items(), key=lambda item: -float(item[1][-1])):
            color, line = looks[beta]
            room = min(room - 0.55, float(np.log10(path[-1])))
            axes.plot(np.arange(1, len(path) + 1), path, color=color, ls=line, lw=2.4)
            axes.text(1.12 * len(path), 10**room, f"β = {beta:g}: {path[-1]:.3f}",
                      color=color, fontsize=11, va="center")  # fmt: skip
        length = len(next(iter(paths.values())))
        axes.set(xscale="log", yscale="log", xlim=(1, length), ylim=(1e-6, 4))
        axes.set_xlabel("training step", fontsize=TEXT)
        axes.set_ylabel("KL(π ‖ π_ref), nats", fontsize=TEXT)
        axes.tick_params(labelsize=TEXT)

    said = "; ".join(
        f"β = {beta:g}: {path[9]:.3f} after 10 steps, {path[-1]:.3f} at the end"
        for beta, path in paths.items()
    )
    alt = f"KL to the reference during training. {said}."
    return static_figure(build, size=(900, 290), alt=alt, caption=caption)


def probabilities(paths: Mapping[str, Tensor], caption: str) -> Picture:
    """A panel per world: the three probabilities against the training step. paths (steps, 3)."""

    def build(figure, _):
        share = 0.95 / len(paths)
        for k, (name, path) in enumerate(paths.items()):
            axes = figure.add_axes((0.06 + share * k, 0.19, share - 0.13, 0.69))
            ends = dict(zip(ANSWERS, path[-1].tolist(), strict=True))
            order = sorted(ends, key=lambda answer: ends[answer])
            for i, answer in enumerate(ANSWERS):
                color, line = LOOK[answer]
                axes.plot(path[:, i], color=color, ls=line, lw=2.6)
                y = max(ends[answer], 0.04 + 0.12 * order.index(answer))
                axes.text(1.03 * len(path), min(y, 1.0), f"{answer} {ends[answer]:.2f}",
                          color=color, fontsize=11, va="center", weight="bold")  # fmt: skip
            axes.set(ylim=(0, 1.02), xlim=(0, len(path) - 1))
            axes.set_title(name, fontsize=11, weight="bold", loc="left")
            axes.set_xlabel("training step", fontsize=TEXT)
            axes.set_ylabel("probability" if k == 0 else "", fontsize=TEXT)
            axes.tick_params(labelsize=TEXT, labelleft=k == 0)
            axes.locator_params(axis="x", nbins=4)

    said = "; ".join(
        f"{name}: " + ", ".join(f"{a} {p:.2f}" for a, p in zip(ANSWERS, path[-1], strict=True))
        for name, path in paths.items()
    )
    alt = f"Probabilities of the three answers during training. At the end, {said}."
    return static_figure(build, size=(900, 270), alt=alt, caption=caption)


def triangle(
    paths: Mapping[str, Tensor], caption: str, looks: Sequence[int] = (0, 1, 2, 3, 4)
) -> Picture:
    """Where policies go: each path (steps, 3) of probabilities, a dot at its end, named beside.

    looks: which of the nine colours and lines each path has, so that a method keeps its own.
    """
    drawn = {name: PATHS[look] for name, look in zip(paths, looks, strict=False)}

    def build(figure, _):
        axes = figure.add_axes((0.0, 0.0, 0.5, 1.0))
        corners(axes)
        start = where(next(iter(paths.values()))[:1].numpy())[0]
        for k, (name, path) in enumerate(paths.items()):
            color, line = drawn[name]
            points = where(path.numpy())
            axes.plot(*points.T, color=color, ls=line, lw=5 - 0.9 * min(k, 2))
            axes.plot(*points[-1], "o", color=color, ms=9, mec="white", zorder=5)
        axes.plot(*start, "s", color=GREY, ms=9, zorder=6)
        axes.text(start[0] + 0.04, start[1] + 0.03, "start", color=GREY, fontsize=TEXT)
        key = figure.add_axes((0.5, 0.0, 0.5, 1.0))
        key.set(xlim=(0, 1), ylim=(0, 1))
        key.axis("off")
        for k, (name, path) in enumerate(paths.items()):
            color, line = drawn[name]
            y = 0.86 - 0.17 * k
            key.plot([0.02, 0.13], [y, y], color=color, ls=line, lw=3)
            key.plot([0.13], [y], "o", color=color, ms=9)
            ends = ", ".join(f"{a} {p:.2f}" for a, p in zip(ANSWERS, path[-1], strict=True))
            key.text(0.18, y + 0.035, name, fontsize=11, weight="bold", va="center")
            key.text(0.18, y - 0.04, ends, fontsize=TEXT, va="center")

    said = "; ".join(
        f"{name} ends at " + ", ".join(f"{a} {p:.2f}" for a, p in zip(ANSWERS, x[-1], strict=True))
        for name, x in paths.items()
    )
    alt = f"A triangle whose corners are all on No, all on Never, all on Yes. {said}."
    return static_figure(build, size=(900, 330), alt=alt, caption=caption)


def on_a_network(
    arms: Mapping[str, Sequence[Mapping[str, Any]]], header: Mapping[str, Any], caption: str
) -> Picture:
    """The recorded transformer, a column per arm (name -> a run per seed), beta 0.1.

    Above rewards/chosen and rewards/rejected, below pass@1 on held-out problems, a line a seed;
    dashed the accuracy of the log, mean over seeds and the five steps up to each.
    """
    start, graded, beta = header["pass@1"], [0, *header["graded"]], 0.1

    def build(figure, _):
        share = 0.94 / len(arms)
        low = beta * min(min(run["rejected"]) for runs in arms.values() for run in runs)
        for k, (arm, runs) in enumerate(arms.items()):
            above = figure.add_axes((0.075 + share * k, 0.56, share - 0.03, 0.37))
            below = figure.add_axes((0.075 + share * k, 0.12, share - 0.03, 0.36))
            above.axhline(0, color=GREY, lw=0.8)
            below.axhline(start, color=GREY, lw=0.8)
            for run in runs:
                steps = np.arange(1, len(run["chosen"]) + 1)
                above.plot(steps, beta * np.array(run["chosen"]), color=POSITIVE, lw=1.6)
                above.plot(steps, beta * np.array(run["rejected"]), color=NEGATIVE, ls="--", lw=1.6)
                below.plot(graded, [start, *run["pass@1"]], "o-", color=BLACK, lw=1.6, ms=4)
            order = np.mean([run["accuracy"] for run in runs], axis=0)
            ends = np.arange(5, len(order) + 1)
            smooth = [order[n - 5 : n].mean() for n in ends]
            below.plot(ends, smooth, color=PURPLE, ls="--", lw=2.2)
            above.set(ylim=(1.05 * low, 0.4), xlim=(0, graded[-1]), xticklabels=())
            below.set(ylim=(0.25, 1.04), xlim=(0, graded[-1]), yticks=(0.4, 0.6, 0.8, 1.0))
            above.set_title(arm, fontsize=11, weight="bold")
            below.set_xlabel("training step", fontsize=TEXT)
            for axes in (above, below):
                axes.tick_params(labelsize=TEXT)
                if k:
                    axes.set_yticklabels(())
            if k == 0:
                above.set_ylabel("β × log-ratio", fontsize=TEXT)
                below.set_ylabel("share", fontsize=TEXT)
                above.text(2, 0.72 * low, "rewards/rejected", color=NEGATIVE, fontsize=TEXT)
                above.text(15, 0.13, "rewards/chosen", color=POSITIVE, fontsize=TEXT)
                below.text(20, 0.93, "accuracy", color=PURPLE, fontsize=TEXT)
                below.text(8, 0.42, "share right", color=BLACK, fontsize=TEXT)

    said = "; ".join(
        f"{arm}: rewards/chosen at the end "
        + ", ".join(signed(beta * float(np.mean(run["chosen"][-5:])), 2) for run in runs)
        + ", share right at the best "
        + ", ".join(f"{max(run['pass@1']):.2f}" for run in runs)
        + ", at the end "
        + ", ".join(f"{run['pass@1'][-1]:.2f}" for run in runs)
        for arm, runs in arms.items()
    )
    alt = f"Two lines of the log, share of right answers and accuracy, seed by seed. {said}."
    return static_figure(build, size=(900, 400), alt=alt, caption=caption)
