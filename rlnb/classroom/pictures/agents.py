"""The pictures of the page on agents: a text with two authors, and what the recorded desk shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from rlnb.classroom.figures import (
    BLACK,
    GREY,
    NEGATIVE,
    ORANGE,
    PALE,
    POSITIVE,
    Picture,
    signed,
    static_figure,
)
from rlnb.training.studies.agents import records

__all__ = ["desk_runs", "first_run", "pushes", "transcript", "two_panels"]

TEXT = 10.5
STYLES: Mapping[str, tuple[str, Any, str]] = {
    "masked": (BLACK, "-", "memory emptied"),
    "leak": (ORANGE, "--", "memory not emptied"),
    "unmasked": (ORANGE, "--", "mask forgotten"),
    "coin": (GREY, ":", "reward is a coin"),
}

Row = Sequence[tuple[str, str]]  # (author, token)


def transcript(rows: Mapping[str, Row], *, caption: str) -> Picture:
    """A row per trajectory, a box per token: white the policy's, grey and hatched the desk's."""
    return _strips({"": {name: (row, None) for name, row in rows.items()}}, caption=caption)


def pushes(
    rows: Mapping[str, Row], panels: Mapping[str, Mapping[str, Sequence[float]]], *, caption: str
) -> Picture:
    """The same rows once per panel, coloured by the push on each token; a 0 is hatched."""
    return _strips(
        {
            title: {name: (rows[name], list(found)) for name, found in values.items()}
            for title, values in panels.items()
        },
        caption=caption,
    )


def _strips(
    panels: Mapping[str, Mapping[str, tuple[Row, list[float] | None]]], *, caption: str
) -> Picture:
    longest = max(len(row) for rows in panels.values() for row, _ in rows.values())
    count = len(next(iter(panels.values())))
    height = len(panels) * (count * (36 if len(panels) < 3 else 28) + 34) + 34
    desk = any(
        a != "policy" for rows in panels.values() for row, _ in rows.values() for a, _ in row
    )

    pushed = [p for rows in panels.values() for _, push in rows.values() for p in push or ()]
    hardest = max([0.6, *map(abs, pushed)])

    def build(figure, _):
        each = 1 / len(panels) * (1 - 30 / height)
        for k, (title, rows) in enumerate(panels.items()):
            top = 1 - k * each
            axes = figure.add_axes((0.16, top - each + 0.01, 0.83, each - 26 / height - 0.01))
            axes.set(xlim=(0, longest), ylim=(len(rows), 0))
            axes.axis("off")
            axes.set_title(title, fontsize=11, weight="bold", loc="left", pad=4)
            for i, (name, (row, push)) in enumerate(rows.items()):
                axes.text(-0.3, i + 0.5, name, ha="right", va="center", fontsize=TEXT)
                for j, (author, token) in enumerate(row):
                    _token(axes, i, j, author, token, None if push is None else push[j], hardest)
        key = "bold frame: the desk wrote it      " if desk else ""
        if any(push is not None for rows in panels.values() for _, push in rows.values()):
            key += "blue: pushed up, orange: down, darker: harder      hatched: no push"
        figure.text(0.57, 0.02, key.strip(), ha="center", fontsize=TEXT)

    said = []
    for title, rows in panels.items():
        for name, (row, push) in rows.items():
            text = " ".join(t if a == "policy" else f"[{t}]" for a, t in row)
            theirs = [p for p, (a, _) in zip(push or (), row, strict=False) if a != "policy"]
            moved = f", pushes on the desk's {', '.join(signed(p, 2) for p in theirs)}"
            said.append(f"{title + ', ' if title else ''}{name}: {text}{moved if theirs else ''}")
    alt = "Trajectories token by token, the desk's in brackets. " + "; ".join(said) + "."
    return static_figure(build, size=(900, height), alt=alt, caption=caption)


def _token(
    axes, i: int, j: int, author: str, token: str, push: float | None, hardest: float = 0.6
) -> None:
    desk = author != "policy"
    box = Rectangle((j + 0.04, i + 0.1), 0.92, 0.8, ec=BLACK if desk else "#B5B5B5",
                    lw=2.2 if desk else 1.0, fc="white", zorder=3 if desk else 2)  # fmt: skip
    color = BLACK
    if push is None:
        box.set_facecolor(PALE if desk else "white")
    elif push == 0:
        box.set(facecolor=PALE, hatch="////")
    else:
        base = to_rgb(POSITIVE if push > 0 else NEGATIVE)
        share = min(abs(push) / hardest, 1)
        box.set_facecolor(tuple(1 - share * (1 - c) for c in base))
        color = "white" if share > 0.6 else BLACK
    axes.add_patch(box)
    text = axes.text(j + 0.5, i + 0.5, token, ha="center", va="center", fontsize=TEXT, color=color,
                     family="monospace", zorder=4)  # fmt: skip
    if len(token) > 3:
        text.set_fontsize(9)
    if push == 0:
        text.set_bbox({"fc": PALE, "ec": "none", "pad": 1})


def _smooth(values: Sequence[float], window: int = 5) -> np.ndarray:
    """Mean over the last `window` steps, fewer at the start."""
    x = np.asarray(values, float)
    return np.array([x[max(0, k - window + 1) : k + 1].mean() for k in range(len(x))])


def first_run(*, caption: str) -> Picture:
    """The page's first curve, before it says what kind of run that is: reward in training."""
    return two_panels(["leak"], held_out=False, caption=caption)


def two_panels(arms: Sequence[str], *, caption: str, held_out: bool = True) -> Picture:
    """Left the reward in training, right pass@1 on held-out problems at a cleared desk."""
    found = {arm: records()[arm] for arm in arms}

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.19, 0.4 if held_out else 0.6, 0.68))
        for arm, runs in found.items():
            color, line, _ = STYLES[arm]
            for run in runs.values():
                y = _smooth(run["reward"])
                axes.plot(np.arange(1, len(y) + 1), y, color=color, ls=line, lw=2)
        _panel(axes, "step of training", "mean reward in training, over 5 steps")
        if not held_out:
            return
        axes = figure.add_axes((0.57, 0.19, 0.4, 0.68))
        for arm, runs in found.items():
            color, line, label = STYLES[arm]
            for k, run in enumerate(runs.values()):
                axes.plot(*_evals(run, "pass@1"), color=color, ls=line, lw=2, marker="o",
                          label=None if k else label)  # fmt: skip
        _panel(axes, "step of training", "pass@1, held out, cleared desk")
        axes.legend(loc="upper right", fontsize=TEXT)

    said = "; ".join(
        f"{STYLES[arm][2]}: reward of the last ten steps "
        + ", ".join(f"{np.mean(r['reward'][-10:]):.2f}" for r in runs.values())
        + (
            ", held out from "
            + f"{runs[0]['evals'][0]['pass@1']:.2f} to "
            + ", ".join(f"{r['evals'][-1]['pass@1']:.2f}" for r in runs.values())
            if held_out
            else ""
        )
        for arm, runs in found.items()
    )
    return static_figure(build, size=(900, 290), alt=f"Learning curves, three seeds. {said}.",
                         caption=caption)  # fmt: skip


def _panel(axes, xlabel: str, ylabel: str) -> None:
    axes.set_ylim(0, 1.02)
    axes.tick_params(labelsize=TEXT)
    axes.set_xlabel(xlabel, fontsize=TEXT)
    axes.set_title(ylabel, fontsize=TEXT, weight="bold")


def _evals(run: Mapping[str, Any], name: str) -> tuple[list[int], list[float]]:
    return [e["step"] for e in run["evals"]], [e[name] for e in run["evals"]]


def desk_runs(*, caption: str) -> Picture:
    """With the mask and without: pass@1, and log-probability of the desk's `wait`."""
    found = {arm: records()[arm] for arm in ("masked", "unmasked")}
    labels = {"masked": "own tokens only", "unmasked": "mask forgotten"}
    panels = (("pass@1", "pass@1, held out"), ("wait", "log π of the desk's wait"))

    def build(figure, _):
        for k, (name, title) in enumerate(panels):
            axes = figure.add_axes((0.08 + 0.49 * k, 0.19, 0.4, 0.68))
            for arm, runs in found.items():
                color, line, _ = STYLES[arm]
                for i, run in enumerate(runs.values()):
                    axes.plot(*_evals(run, name), color=color, ls=line, lw=2, marker="o", ms=5,
                              label=None if i else labels[arm])  # fmt: skip
            _panel(axes, "step of training", title)
            if name == "wait":
                axes.set_ylim(-16.6, -11.4)
                axes.set_yticks(range(-16, -11), [f"−{y}" for y in range(16, 11, -1)])
            else:
                axes.legend(loc="lower right", fontsize=TEXT)

    said = "; ".join(
        f"{labels[arm]}, {name}: from {signed(runs[0]['evals'][0][name], 2)} to "
        + ", ".join(signed(r["evals"][-1][name], 2) for r in runs.values())
        for name, _ in panels
        for arm, runs in found.items()
    )
    return static_figure(build, size=(900, 290), alt=f"Recorded runs, three seeds each. {said}.",
                         caption=caption)  # fmt: skip
