"""Three hundred policies learn from another engine: rule, engine, and how long its flips last."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider
from rlnb.classroom.explorers.arguments import checked, one_of
from rlnb.classroom.figures import BLACK, GREY, ORANGE, WINE
from rlnb.classroom.left_behind import BINS, DRAWS, ENGINES, LASTS, LOW, RULES, SEEN, recorded

CAPTION = (
    "Left: the 300 policies after 240 steps; red: below 0.8. Right: bias and noise of the first "
    "push, in lengths of the true push, median policy; a point is a rule, orange: yours."
)
UNCORRECTED = "no correction"
TICKS = (2, 5, 10, 20, 50, 200, 1000)


@checked(rule=one_of(RULES), engine=one_of(ENGINES), lasts=one_of(LASTS))
def compute(
    rule: str = "TIS, cap 2", engine: str = "mild: 20 % flipped", lasts: str = "the whole run"
) -> dict[str, Any]:
    """lost (policies below 0.8 after 60 and after 240 steps), ends (20,) policies by final reward,
    bias, noise, all (8, 2) bias and noise of every rule, plain (lost, bias and noise without a
    correction), and the arguments.

    >>> compute("no correction", "harsh: all flipped, far", "the whole run")["lost"][0]
    121
    """
    rows = recorded()[engine][lasts]
    mine, plain = rows[rule], rows[UNCORRECTED]
    return {"rule": rule, "engine": engine, "lasts": lasts, **mine,
            "all": np.array([[rows[r]["bias"], rows[r]["noise"]] for r in RULES]),
            "plain": (plain["lost"], plain["bias"], plain["noise"])}  # fmt: skip


def build(figure, data):
    left = figure.add_axes((0.065, 0.18, 0.5, 0.76))
    left.set(xlim=(0, 1), ylim=(0, DRAWS))
    left.set_xlabel("mean reward after 240 steps", fontsize=10.5)
    left.set_ylabel("policies", fontsize=10.5)
    left.axvline(LOW, color=BLACK, lw=0.8, ls=":")
    right = figure.add_axes((0.65, 0.18, 0.33, 0.76))
    right.set(yscale="log")
    right.set_yticks(TICKS, [f"{tick:,}" for tick in TICKS])
    right.minorticks_off()
    right.set_xlabel("bias", fontsize=10.5)
    right.set_ylabel("noise of one answer", fontsize=10.5)
    for axes in (left, right):
        axes.tick_params(labelsize=10.5)
    at = (np.arange(BINS) + 0.5) / BINS
    return {
        "bars": left.bar(at, np.zeros(BINS), width=0.9 / BINS, zorder=3),
        "word": left.text(0.02, 0.93 * DRAWS, "", va="top", fontsize=11, weight="bold", zorder=6),
        "right": right,
        "all": right.plot([], [], "o", color=GREY, ms=6, zorder=3)[0],
        "plain": right.text(0, 1, "no correction", ha="right", va="bottom", fontsize=10.5),
        "mine": right.plot([], [], "D", color=ORANGE, mec=BLACK, ms=9, zorder=4)[0],
    }


def update(artists, data):
    for k, (bar, count) in enumerate(zip(artists["bars"], data["ends"], strict=True)):
        bar.set_height(count)
        bar.set_facecolor(WINE if (k + 0.5) / BINS < LOW else GREY)
    artists["word"].set_text(
        f"{data['rule']}\n"
        + "\n".join(
            f"behind after {step} steps: {n}" for n, step in zip(data["lost"], SEEN, strict=True)
        )
    )
    bias, noise = data["all"].T
    artists["right"].set(xlim=(-0.05 * bias.max(), 1.1 * bias.max()),
                         ylim=(0.7 * noise.min(), 1.5 * noise.max()))  # fmt: skip
    artists["all"].set_data(bias, noise)
    _, x, y = data["plain"]
    artists["plain"].set_position((1.06 * x, 1.03 * y))
    artists["mine"].set_data([data["bias"]], [data["noise"]])


def readout(data) -> str:
    early, late = data["lost"]
    return (
        f"{data['rule']}: {early} behind after {SEEN[0]} steps, {late} after {SEEN[1]}; bias "
        f"{data['bias']:.2f}, noise {data['noise']:.1f}. No correction: {data['plain'][0][1]}."
    )


def alt(data) -> str:
    each = "; ".join(
        f"{name} {bias:.2f} and {noise:.1f}"
        for name, (bias, noise) in zip(RULES, data["all"], strict=True)
    )
    return (
        f"Final rewards of {DRAWS} policies. Engine: {data['engine']}, flips last "
        f"{data['lasts']}. {readout(data)} Bias and noise: {each}."
    )


def late_not_lost(data) -> bool:
    """Over 100 policies behind after 60 steps, and none after 240."""
    return data["lost"][0] > 100 and data["lost"][-1] == 0


def which_rule_explorer() -> Explorer:
    """The rule, the engine, and how long its flips last."""
    return Explorer(
        compute,
        build,
        update,
        {
            "rule": choice_slider("TIS, cap 2", [(name, name) for name in RULES], "rule",
                                  "the factor on a token's push"),
            "engine": choice_slider("mild: 20 % flipped", [(name, name) for name in ENGINES],
                                    "engine", "share of flipped prefixes; far: a larger gap"),
            "lasts": choice_slider("the whole run", [(name, name) for name in LASTS],
                                   "the flips last", "then others are drawn"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 270),
    )  # fmt: skip
