"""Slots that write, a trainer that takes batches, and how far ahead the slots may run."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider, slider, switch
from rlnb.classroom.explorers.arguments import between, checked
from rlnb.classroom.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, WINE
from rlnb.classroom.pictures.systems import slots_shown
from rlnb.toys.rollout_queue import simulate

BATCH, TRAIN, STEPS = 64, 0.5, 400
ROWS, BARS, WINDOW = 16, 260, 8.0
SLOTS = (8, 16, 24, 32, 64)
COLORS = (SKY, ORANGE, PURPLE, GREEN, WINE, BLUE)
STEPS_SHOWN = 20
OLDEST = 8
CAPTION = (
    "Left: up to 16 of the slots, those that a step waits for among them; below, in black, the "
    "trainer. A bar is an answer, its colour the update that made its weights (six colours, then "
    "again), white is waiting. Right: the ages of the answers when they are learned from."
)


@checked(slots=between(1, 512), lag=between(0, 16), tail=between(0, 2))
def compute(
    slots: int = 64, lag: float = 0, tail: float = 1.0, in_order: bool = False
) -> dict[str, Any]:
    """The simulation of `rollout_queue`: 64 answers a step, a step of the trainer takes half as
    long as a mean answer, and takes the answers as they are done, or as they were begun.

    Returns busy (share of the slots' time), time (mean answers' lengths per step), open (answers
    begun and not yet taken at an update, mean), staleness (mean over answers), oldest, shares
    (OLDEST + 1,), bars [(row, begin, width, version)], training [(begin, end)], and the arguments.

    >>> found = compute(64, 0, 1.0)
    >>> found["staleness"], found["oldest"]
    (0.0, 0)
    """
    run = simulate(slots, BATCH, lag, tail, TRAIN, STEPS, in_order=in_order)
    begin = run.steps[STEPS // 2][0]
    seen = [a for a in run.written if a.finished > begin and a.begun < begin + WINDOW]
    row = {slot: k for k, slot in enumerate(slots_shown(run, begin, WINDOW, ROWS))}
    bars = []
    for a in (a for a in seen if a.slot in row):
        low, high = max(a.begun, begin), min(a.finished, begin + WINDOW)
        bars.append((row[a.slot], low - begin, high - low, a.version))
    training = [(max(low, begin) - begin, min(high, begin + WINDOW) - begin)
                for low, high in run.steps if high > begin and low < begin + WINDOW]  # fmt: skip
    ends = np.array([end for _, end in run.steps])
    untaken = np.searchsorted([a.begun for a in run.written], ends) - BATCH * np.arange(
        1, STEPS + 1
    )
    ages = run.staleness
    shares = np.bincount(np.minimum(ages, OLDEST), minlength=OLDEST + 1) / len(ages)
    return {"slots": slots, "lag": lag, "tail": tail, "in_order": in_order, "busy": run.busy,
            "time": run.time_per_step,
            "open": float(untaken[STEPS // 2 - 1 : -1].mean()),
            "staleness": float(ages.mean()), "oldest": int(ages.max()),
            "shares": shares, "bars": bars, "training": training}  # fmt: skip


def build(figure, data):
    left = figure.add_axes((0.045, 0.17, 0.53, 0.76))
    left.set(xlim=(0, WINDOW), ylim=(-2.2, ROWS - 0.3), yticks=())
    left.set_xlabel("time, in lengths of a mean answer", fontsize=10.5)
    left.set_ylabel("slots", fontsize=10.5)
    left.tick_params(labelsize=10.5)
    right = figure.add_axes((0.65, 0.17, 0.33, 0.76))
    right.set(xlim=(-0.6, OLDEST + 0.6), ylim=(0, 1.0), xticks=range(OLDEST + 1))
    right.set_xticklabels([*map(str, range(OLDEST)), f"{OLDEST}+"])
    right.set_xlabel("age, in updates", fontsize=10.5)
    right.set_ylabel("share of the answers", fontsize=10.5)
    right.tick_params(labelsize=10.5)
    return {
        "bars": left.barh(np.zeros(BARS), np.zeros(BARS), height=0.8, ec="white", lw=0.5),
        "trainer": left.barh(
            np.full(STEPS_SHOWN, -1.4), np.zeros(STEPS_SHOWN), height=1.0, color=BLACK
        ),
        "ages": right.bar(range(OLDEST + 1), np.zeros(OLDEST + 1), color=GREY),
        "numbers": right.text(
            OLDEST + 0.5, 0.97, "", ha="right", va="top", fontsize=11, weight="bold", color=BLACK
        ),  # fmt: skip
    }


def update(artists, data):
    bars = data["bars"][:BARS]
    for k, bar in enumerate(artists["bars"]):
        bar.set_visible(k < len(bars))
        if k < len(bars):
            row, begin, width, version = bars[k]
            bar.set(x=begin, width=width, y=row - 0.4)
            bar.set_facecolor(COLORS[version % len(COLORS)])
    for k, bar in enumerate(artists["trainer"]):
        low, high = data["training"][k] if k < len(data["training"]) else (0.0, 0.0)
        bar.set(x=low, width=high - low)
    for bar, share in zip(artists["ages"], data["shares"], strict=True):
        bar.set_height(share)
    artists["numbers"].set_text(
        f"busy {data['busy']:.0%}\nstep {data['time']:.2f}\nmean age {data['staleness']:.2f}\n"
        f"oldest {data['oldest']}"
    )


def readout(data) -> str:
    return (
        f"Slots busy {data['busy']:.0%}; a step takes {data['time']:.2f}; {data['open']:.0f} "
        f"answers open at an update; mean age {data['staleness']:.2f}, the oldest {data['oldest']}."
    )


def alt(data) -> str:
    ages = ", ".join(f"{share:.0%}" for share in data["shares"])
    return (
        f"Timeline of {min(data['slots'], ROWS)} of {data['slots']} slots, and bars of the ages. "
        f"Batches ahead {data['lag']}, spread {data['tail']:.2f}, taken "
        f"{'in order' if data['in_order'] else 'as they are done'}. {readout(data)} "
        f"Shares by age: {ages}."
    )


def fresh_and_quick(data) -> bool:
    """Spread 1 or more, mean age at most 0.5, and of such settings the shortest step: half a batch
    ahead, with slots for a whole one."""
    return data["tail"] >= 1 and round(data["staleness"], 2) <= 0.5 and data["time"] <= 1.5


def none_too_old(data) -> bool:
    """No answer older than two updates, at the shortest step: in order, two batches ahead."""
    return data["tail"] >= 1 and data["oldest"] <= 2 and data["time"] <= 3.3


def stale_queue_explorer(ordered: bool = True) -> Explorer:
    """Slots, batches ahead, how unequal the answers are; ordered: and which the trainer takes."""
    order = {
        "in_order": switch(False, "take the answers in the order they were begun",
                           "otherwise the trainer takes whichever 64 are done first"),
    }  # fmt: skip
    return Explorer(
        compute,
        build,
        update,
        {
            "slots": choice_slider(64, [(str(n), n) for n in SLOTS], "slots",
                                   "answers that are written at once; 64 make a batch"),
            "lag": slider(0.0, 0.0, 4.0, 0.5, "batches ahead",
                          "that may be begun before the next update"),
            "tail": slider(1.0, 0.0, 1.2, 0.1, "spread of the lengths", "std of the log length"),
        }
        | (order if ordered else {}),
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 270),
    )  # fmt: skip
