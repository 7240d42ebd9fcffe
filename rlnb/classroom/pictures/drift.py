"""The pictures of the page on rewards: a sorting model under three pays, and a KL penalty."""

from __future__ import annotations

import json

import numpy as np

from rlnb.classroom.figures import BLACK, BLUE, VERMILLION, Picture, static_figure
from rlnb.shipped import data_folder

__all__ = ["gained", "penalised_pays", "penalty_ends", "right_and_nats", "three_pays"]

TEXT = 10.5
ANSWERS_A_STEP = 64
COLOURS = {"right list": BLUE, "in order": VERMILLION, "coin": BLACK}  # what is paid
PENALTIES = {0.0: ("-", "o"), 0.1: ("--", "s"), 1.0: (":", "^")}  # line and marker of each beta
NAMES = {0.0: "no penalty", 0.1: "β = 0.1", 1.0: "β = 1"}


def _panel(figure, box, title: str, xlabel: str, top: float, first: bool):
    """Axes for a share of right answers up to `top`; the first of a row names it."""
    axes = figure.add_axes(box)
    axes.set(ylim=(-0.03, top))
    axes.set_title(title, fontsize=TEXT, weight="bold")
    axes.set_xlabel(xlabel, fontsize=TEXT)
    axes.tick_params(labelsize=TEXT, labelleft=first)
    if first:
        axes.set_ylabel("share of answers right", fontsize=TEXT)
    return axes


def three_pays() -> Picture:
    """The sorting model under three pays, and under the right one at a tenth of the rate."""
    rows = _penalised()
    fast = {pay: rows[pay, 40, 0.0, 3e-4] for pay in COLOURS}
    slow = {"right list": rows["right list", 400, 0.0, 3e-5]}
    panels = (
        (fast, 40, "3e-4", {"right list": (1500, 0.52), "in order": (900, 0.24),
                            "coin": (-90, 0.06)}),
        (slow, 400, "3e-5", {"right list": (13000, 0.68)}),
    )  # fmt: skip
    line, marker = PENALTIES[0.0]

    def build(figure, _):
        for k, (pays, steps, rate, places) in enumerate(panels):
            axes = _panel(figure, (0.075 + 0.48 * k, 0.19, 0.42, 0.7),
                          f"learning rate {rate}, {steps} steps", "answers written", 0.78,
                          first=k == 0)  # fmt: skip
            for pay, runs in pays.items():
                for run in runs:
                    at = np.linspace(0, ANSWERS_A_STEP * steps, len(run))
                    axes.plot(at, run, color=COLOURS[pay], ls=line, marker=marker, lw=1.6, ms=4)
                axes.text(*places[pay], f"paid: {pay}", color=COLOURS[pay], fontsize=11)

    said = "; ".join(
        f"learning rate {rate}, paid {pay}: "
        + ", ".join(f"{run[-1]:.2f}" for run in pays[pay])
        + f" from {pays[pay][0][0]:.2f}"
        for pays, _, rate, _ in panels
        for pay in pays
    )
    return static_figure(
        build,
        size=(900, 300),
        alt=f"Share of answers right, on held-out problems, at the end, three seeds each: {said}.",
        caption="Three seeds each, one start. Right: steps a tenth as large, ten times as many.",
    )


def penalised_pays() -> Picture:
    """The sorting model under three strengths of a KL penalty, a panel per pay and rate."""
    panels = {
        ("coin", 40, 3e-4): "paid: coin",
        ("in order", 40, 3e-4): "paid: in order",
        ("right list", 400, 3e-5): "paid: right list",
    }
    rows = _penalised()

    def build(figure, _):
        for k, ((pay, steps, rate), title) in enumerate(panels.items()):
            told = f"{title}\nlearning rate {'3e-4' if rate > 1e-4 else '3e-5'}"
            axes = _panel(figure, (0.065 + 0.317 * k, 0.2, 0.28, 0.6), told, "steps", 0.72,
                          first=k == 0)  # fmt: skip
            for beta, (line, mark) in PENALTIES.items():
                for i, run in enumerate(rows[pay, steps, beta, rate]):
                    axes.plot(range(len(run)), run, color=COLOURS[pay], ls=line, marker=mark,
                              lw=1.6, ms=4, label=NAMES[beta] if i == 0 else None)  # fmt: skip
            axes.set_xticks((0, 2, 4), (0, steps // 2, steps))
            if k == 2:
                axes.legend(loc="lower left", fontsize=TEXT, handlelength=2.4)

    said = "; ".join(
        f"learning rate {rate:g}, paid {pay}, β = {beta:g}: "
        + ", ".join(f"{run[-1]:.2f}" for run in runs)
        for (pay, steps, beta, rate), runs in rows.items()
        if (pay, steps, rate) in panels
    )
    return static_figure(
        build,
        size=(900, 290),
        alt=f"Share of answers right at the end, from 0.47 at the start: {said}.",
        caption="Three seeds each, one start. Colour: what is paid. Line and marker: the penalty.",
    )


def right_and_nats() -> Picture:
    """The sorting model's right answers against its KL to the start, without and with a penalty."""
    runs = json.loads((data_folder() / "runs" / "sort_nats.json").read_text("utf-8"))["runs"]
    panels = ("coin", "in order")

    def rows(pay: str, beta: float) -> list[dict]:
        return [run for run in runs if (run["pay"], run["beta"]) == (pay, beta)]

    def build(figure, _):
        for k, pay in enumerate(panels):
            axes = _panel(figure, (0.075 + 0.48 * k, 0.19, 0.42, 0.69), f"paid: {pay}",
                          "KL to the start, nats", 0.62, first=k == 0)  # fmt: skip
            for beta, (_, mark) in PENALTIES.items():
                for i, run in enumerate(rows(pay, beta)):
                    late = slice(None) if beta == 0 else slice(1, None)
                    axes.plot(run["nats"][late], run["solved"][late], marker=mark, ls="none",
                              color=COLOURS[pay], mfc="white" if beta == 0 else None, ms=6.5,
                              label=NAMES[beta] if i == 0 else None)  # fmt: skip
            axes.set(xlim=(-0.1, 6.2))
            axes.legend(loc="upper right", fontsize=TEXT)

    said = "; ".join(
        f"{pay}, β = {beta:g}, one run: "
        + ", ".join(
            f"{x:.1f} {y:.2f}"
            for x, y in zip(rows(pay, beta)[0]["nats"], rows(pay, beta)[0]["solved"], strict=True)
        )
        for pay in panels
        for beta in PENALTIES
    )
    return static_figure(
        build,
        size=(900, 290),
        alt=f"KL to the start and share of answers right. {said}.",
        caption="Three seeds each, learning rate 3e-4. Without a penalty: after each of the first "
        "seven steps. With one: after 10, 20, 30 and 40 steps.",
    )


def penalty_ends(rate: float = 3e-4) -> dict[tuple[str, float], str]:
    """(pay, beta) -> what the sorting model solves of 100 after training, lowest to highest seed.

    rate: the learning rate, 3e-4 for 40 steps or 3e-5 for 400.
    """
    told = {}
    for (pay, _, beta, at), runs in _penalised().items():
        if at == rate:
            ends = [round(100 * run[-1]) for run in runs]
            low, high = min(ends), max(ends)
            told[pay, beta] = f"{low}" + (f" to {high}" if high > low else "")
    return told


def gained(rate: float = 3e-5) -> dict[float, int]:
    """beta -> right answers of 100 gained by pay for the right list, mean of the seeds."""
    return {
        beta: round(100 * float(np.mean([run[-1] - run[0] for run in runs])))
        for (pay, _, beta, at), runs in _penalised().items()
        if (pay, at) == ("right list", rate)
    }


def _penalised() -> dict[tuple[str, int, float, float], list[list[float]]]:
    """(pay, steps, beta, learning rate) -> the share solved along each seed's run."""
    runs = json.loads((data_folder() / "runs" / "sort_leash.json").read_text("utf-8"))["runs"]
    rows: dict[tuple[str, int, float, float], list[list[float]]] = {}
    for run in runs:
        key = (run["pay"], run["steps"], run["beta"], run["learning_rate"])
        rows.setdefault(key, []).append(run["solved"])
    return rows
