"""Five recorded runs as their dashboards show them, four of them sick: which has what?

The learner picks a run and says what is wrong. A wrong diagnosis is answered with the number that
speaks against it. Behind the letters are files of data/runs; every seed of them fits its diagnosis
and no other (tests/classroom/test_evaluation_page.py).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice, choice_slider
from rlnb.classroom.explorers.arguments import checked, echoing, one_of
from rlnb.classroom.figures import BLACK, GREY, ORANGE
from rlnb.training import data_folder, read, series

__all__ = [
    "DIAGNOSES", "RUNS", "alt", "build", "compute", "five_runs_explorer", "named", "readout",
    "recorded", "signs", "update",
]  # fmt: skip

RUNS = {
    "A": ("dash_verifier", "pays"),
    "B": ("dash_stale", "stale"),
    "C": ("dash_healthy", "healthy"),
    "D": ("dash_rate", "rate"),
    "E": ("dash_cut", "cut"),
}
EARLIER = ("dash_healthy", 1)  # the run to compare with: it went well
DIAGNOSES = {
    "healthy": "healthy",
    "pays": "the grader pays for something else",
    "rate": "learning rate too high",
    "cut": "answers are cut off",
    "stale": "answers come from old weights",
    "entropy": "a term presses the entropy out",
}
STEPS = 40
PANELS = {
    "reward": ("reward; orange: held-out score", (0, 1.03)),
    "entropy": ("entropy, nats per token", (0, 0.62)),
    "length": ("tokens per answer", (0, 76)),
    "cut": ("share cut at the limit", (-0.02, 1.03)),
    "norm": ("gradient norm", (-0.02, 1.1)),
    "ratio": ("largest ratio", (0.8, 150)),
}
METRICS = {
    "reward": "reward", "entropy": "entropy", "length": "completions/mean_length",
    "cut": "completions/clipped_ratio", "norm": "grad_norm", "ratio": "ratio/max",
}  # fmt: skip
CAPTION = (
    "One run in black. In grey another run of the same task that went well. "
    "A ratio is probability at the update over probability when the answer was written."
)


@cache
def recorded(name: str, seed: int) -> dict[str, Any]:
    """The columns of one recorded run, and its held-out evaluations."""
    records = read(data_folder() / "runs" / f"{name}_seed{seed}.jsonl")
    out: dict[str, Any] = {}
    for panel, metric in METRICS.items():
        found = series(records, metric)
        column = np.array([found.get(k, np.nan) for k in range(1, STEPS + 1)], float)
        if panel == "ratio":  # a step in which every group is silent has none
            column = np.where(np.isnan(column), 1.0, column)
        out[panel] = column
    held = series(records, "pass@1", kind="eval")
    out["at"], out["held"] = np.array(list(held)), np.array(list(held.values()))
    return out


def signs(run: dict[str, Any]) -> dict[str, tuple[bool, str, str]]:
    """Diagnosis -> does it fit, the number that says so, the number that speaks against it."""
    held, start = run["held"], run["held"][0]
    early = held[1:4].min()
    soon = int(np.argmax(held[1:] < start - 0.1)) + 1  # the first evaluation that is far lower
    paid, end = run["reward"][-5:].mean(), held[-3:].mean()
    cut, ratio = run["cut"][0], run["ratio"].max()
    H, low = run["entropy"], run["entropy"][:10].min()
    limits = f"the reward ends at {paid:.2f}, the held-out score at {end:.2f}"
    return {
        "healthy": (
            end > 0.8 and paid - end < 0.1 and ratio < 1.5,
            f"{limits}, and the ratio stays at 1",
            f"a healthy run ends where grey does, near 0.9, in both; here {limits}",
        ),
        "pays": (
            paid - end > 0.12 and ratio < 1.5 and cut < 0.2,
            f"{limits}: what is paid for is not what is asked",
            f"then the reward alone would end high; {limits}",
        ),
        "rate": (
            early < start - 0.1,
            f"the score falls from {start:.2f} to {held[soon]:.2f} within {run['at'][soon]} steps; "
            "more follows",
            "a step that is too large breaks the model at once; the held-out score starts at "
            f"{start:.2f} and is {early:.2f} or more in the first 12 steps",
        ),
        "cut": (
            cut > 0.2,
            f"{cut:.0%} of the answers are cut at step 1, and the score starts at {start:.2f}",
            f"a limit that is too tight cuts from the first step on; there it is {cut:.0%}",
        ),
        "stale": (
            ratio > 1.5,
            f"the ratio climbs to {ratio:.0f}; with fresh answers and one update it is 1",
            f"then the ratio would leave 1; the largest is {ratio:.2f}",
        ),
        "entropy": (
            low < 0.3 * H[0] and held[2] < start + 0.1,
            "entropy goes first, and nothing is learned",
            f"then entropy would go first; in ten steps it goes from {H[0]:.2f} to {H[9]:.2f}"
            + (", up" if H[9] > H[0] else ", while the score rises"),
        ),
    }  # fmt: skip


@echoing
@checked(run=one_of(RUNS), said=one_of((None, *DIAGNOSES)))
def compute(run: str = "A", said: str | None = None) -> dict[str, Any]:
    """The columns of run A to E (40,), those of the earlier run, and the answer to a diagnosis.

    right: None while nothing was said; because: the number for it, or against it.

    >>> compute("C", "cut")["right"], compute("C", "cut")["because"][-2:]
    (False, '0%')
    """
    name, truth = RUNS[run]
    columns = recorded(name, 0)
    because = ""
    if said is not None:
        _, for_it, against = signs(columns)[said]
        because = for_it if said == truth else against
    return {
        "run": run, "said": said, "columns": columns, "earlier": recorded(*EARLIER),
        "right": None if said is None else said == truth, "because": because,
    }  # fmt: skip


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    artists, steps = {}, np.arange(1, STEPS + 1)
    for i, (panel, (title, limits)) in enumerate(PANELS.items()):
        axes = figure.add_axes((0.045 + 0.33 * (i % 3), 0.59 - 0.5 * (i // 3), 0.275, 0.33))
        axes.set(xlim=(-1, STEPS + 1), ylim=limits, xticks=(0, 10, 20, 30, 40))
        if panel == "ratio":
            axes.set_yscale("log")
            axes.set_yticks([1, 10, 100], ["1", "10", "100"])
            axes.minorticks_off()
        axes.tick_params(labelsize=10.5)
        axes.set_title(title, fontsize=10.5, loc="left", pad=3)
        axes.plot(steps, data["earlier"][panel], color=GREY, lw=3, alpha=0.45)
        artists[panel] = axes.plot(steps, steps * np.nan, color=BLACK, lw=1.6)[0]
        if panel == "reward":
            artists["held"] = axes.plot([], [], "D", color=ORANGE, mec=BLACK, ms=5)[0]
    return artists


def update(artists, data):
    """The figure moved to new data."""
    for panel in PANELS:
        artists[panel].set_ydata(data["columns"][panel])
    artists["held"].set_data(data["columns"]["at"], data["columns"]["held"])


def readout(data) -> str:
    """The numbers that change, as a sentence."""
    if data["said"] is None:
        return f"Run {data['run']}: what do you see?"
    verdict = "That fits" if data["right"] else "No"
    return f"Run {data['run']}, {DIAGNOSES[data['said']]}? {verdict}: {data['because']}."


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    c = data["columns"]
    said = ", ".join(
        f"{PANELS[panel][0].partition(';')[0]} {c[panel][0]:.2f} at step 1, "
        f"{c[panel][9]:.2f} at 10, {c[panel][-1]:.2f} at 40"
        for panel in PANELS
    )
    return f"Dashboard of run {data['run']}: {said}; held-out score {c['held'][0]:.2f} at the " + (
        f"start, {c['held'].min():.2f} at its lowest, {c['held'][-1]:.2f} at the end."
    )


def named(run: str):
    """The goal: this run, rightly diagnosed."""
    return lambda data: data["run"] == run and data["right"] is True


def five_runs_explorer() -> Explorer:
    """Which run, and what is wrong with it."""
    return Explorer(
        compute,
        build,
        update,
        {
            "run": choice_slider("A", [(name, name) for name in RUNS], "run", "five runs"),
            "said": choice(
                None,
                [("looking", None), *((words, key) for key, words in DIAGNOSES.items())],
                "your diagnosis",
                "what is wrong with this run",
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 320),
    )
