"""The pictures of the page on DAPO: groups that fall silent, and what brings them back."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
from torch import Tensor

from rlnb.classroom.figures import (
    BLACK,
    BLUE,
    GREY,
    NEGATIVE,
    ORANGE,
    POSITIVE,
    Picture,
    signed,
    static_figure,
)
from rlnb.classroom.pictures.recorded_runs import curve, evaluations, running_mean, seeds
from rlnb.shipped import data_folder

__all__ = [
    "RATES",
    "at_answers",
    "hill",
    "late_answers",
    "late_at",
    "late_race",
    "overlong_trap",
    "silent_run",
]

TEXT = 10.5  # points: the size of the page's own text
RUN, GROUP = "chain_dr_grpo", 8
SEED_LINES = ("-", "--", ":")
RATES = (0.5, 1, 2, 4)  # times 3e-4
LATE_RATE = 3e-4
ARMS = {
    "plain": ("chain_plain_lr_half", "chain_stale_0", "chain_plain_lr_2x", "chain_plain_lr_4x"),
    "refilled": (
        "chain_refill_lr_half",
        "chain_refill",
        "chain_refill_lr_2x",
        "chain_refill_lr_4x",
    ),
}
LATE = {"plain": (BLACK, "-", "o"), "refilled": (ORANGE, "--", "s"), "wide": (BLUE, ":", "^")}


def silent_run(answered: bool = False) -> Picture:
    """The recorded run: share of right answers, and (`answered`) of mixed groups."""
    right = [curve(RUN, seed, "reward") for seed in seeds(RUN)]
    mixed = [curve(RUN, seed, "groups/mixed") for seed in seeds(RUN)]

    def build(figure, _):
        steps = np.arange(1, len(right[0]) + 1)
        for k, (title, table) in enumerate(
            (("answers that are right", right), ("groups that are mixed", mixed))
        ):
            axes = figure.add_axes((0.07 + 0.5 * k, 0.19, 0.42, 0.69))
            axes.set(xlim=(1, len(steps)), ylim=(0, 1.03))
            axes.set_xlabel("training step", fontsize=TEXT)
            axes.set_ylabel("share", fontsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            axes.tick_params(labelsize=TEXT)
            if k and not answered:
                axes.text(20, 0.5, "?", fontsize=60, ha="center", va="center", color=GREY)
                continue
            for line, values in zip(SEED_LINES, table, strict=True):
                axes.plot(steps, running_mean(values), color=BLACK, ls=line, lw=2.2)

    ends = ", ".join(f"{x[-10:].mean():.2f}" for x in right)
    alt = f"Three seeds, {len(right[0])} steps. Right answers over the last ten steps: {ends}."
    caption = "Three seeds (line styles), smoothed over five steps."
    if answered:
        alt += " Mixed groups: " + ", ".join(f"{x[-10:].mean():.2f}" for x in mixed) + "."
        caption = "Past step 10 the answers still get better, and fewer and fewer groups are mixed."
    return static_figure(build, size=(900, 290), alt=alt, caption=caption)


def hill(size: int = GROUP) -> Picture:
    """Chance of a mixed group against the pass rate, and where the recorded run was on it."""
    right, mixed = (
        [curve(RUN, seed, name) for seed in seeds(RUN)] for name in ("reward", "groups/mixed")
    )
    ends = {
        name: (np.mean([x[part] for x in right]), np.mean([x[part] for x in mixed]))
        for name, part in (("first ten steps", slice(10)), ("last ten steps", slice(-10, None)))
    }

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.19, 0.88, 0.77))
        p = np.linspace(0, 1, 401)
        axes.plot(p, 1 - p**size - (1 - p) ** size, color=BLACK, lw=2.6)
        for (name, (x, y)), side in zip(ends.items(), ("center", "right"), strict=True):
            axes.plot([x], [y], "o", color=ORANGE, ms=11, mec=BLACK)
            axes.text(x - 0.02 * (side == "right"), y - 0.13 * (side == "center"),
                      f"our run, {name}", fontsize=11, ha=side, va="center")  # fmt: skip
        axes.text(0.035, 0.05, "all wrong", fontsize=11, color="#555555")
        axes.text(0.965, 0.05, "all right", fontsize=11, color="#555555", ha="right")
        axes.set(xlim=(0, 1.004), ylim=(0, 1.06))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("chance p to solve the prompt", fontsize=TEXT)
        axes.set_ylabel(f"share of mixed groups of {size}", fontsize=TEXT)

    said = "; ".join(f"{name}: {x:.2f} right, {y:.2f} mixed" for name, (x, y) in ends.items())
    alt = f"P over p for groups of {size}: 0 at both ends, above 0.9 between 0.25 and 0.75. {said}."
    caption = (
        "Groups are mixed in the middle. The curve is for one prompt; the run has easier and "
        "harder ones and lies below."
    )
    return static_figure(build, size=(900, 270), alt=alt, caption=caption)


def at_answers(run: str, answers: int) -> list[float]:
    """pass@1 of each seed at `answers` generated, on the line between two evaluations."""
    steps, table = evaluations(run)
    out = []
    for seed, values in zip(seeds(run), table, strict=True):
        made = np.concatenate([[0.0], curve(run, seed, "generated").cumsum()])
        out.append(float(np.interp(answers, made[steps], values)))
    return out


@cache
def _late() -> dict[str, list[dict[str, float]]]:
    return json.loads((data_folder() / "runs" / "chain_late_refill.json").read_text("utf-8"))


def late_at(arm: str, by: str, where: float) -> np.ndarray:
    """(rates, seeds): pass@1 of the late runs of `arm` in LATE at `where` updates, or answers.

    by: "updates", "rounds" or "single", as `rlnb.training.studies.late_refill` counts them.
    """
    return np.array(
        [
            [
                np.interp(where, [row[by] for row in rows], [row["pass@1"] for row in rows])
                for seed in range(3)
                for rows in [_late()[f"{arm}, {LATE_RATE * rate:g}, seed {seed}"]]
            ]
            for rate in RATES
        ]
    )


def late_answers(updates: int) -> list[float]:
    """Answers that the late refilled runs at LATE_RATE needed for so many updates, each seed."""
    runs = [_late()[f"refilled, {LATE_RATE:g}, seed {seed}"] for seed in range(3)]
    return [row["single"] for rows in runs for row in rows if row["updates"] == updates]


def late_race(updates: int = 36, answers: int = 5120) -> Picture:
    """The late runs at equal updates and at equal answers, against the learning rate."""
    panels = (
        (f"after {updates} updates", "updates", updates),
        (f"after {answers:,} answers", "rounds", answers),
    )
    table = {(by, arm): 1 - late_at(arm, by, where) for _, by, where in panels for arm in LATE}

    def build(figure, _):
        for k, (title, by, _where) in enumerate(panels):
            axes = figure.add_axes((0.085 + 0.41 * k, 0.19, 0.345, 0.69))
            for j, (name, (color, line, marker)) in enumerate(LATE.items()):
                x, values = np.arange(len(RATES)) + 0.09 * (j - 1), table[by, name]
                axes.plot(x, values.mean(1), color=color, ls=line, lw=2.4, label=name)
                axes.plot(x, values, marker, color=color, ms=6, mec="white", mew=0.8)
            axes.set(yscale="log", ylim=(0.02, 1.1), xlim=(-0.3, len(RATES) - 0.7))
            axes.set_xticks(range(len(RATES)), [f"{3 * rate:g}" for rate in RATES])
            axes.set_yticks((0.03, 0.1, 0.3, 1), ("0.03", "0.1", "0.3", "1"))
            axes.minorticks_off()
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("learning rate, in 1e-4", fontsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            if k == 0:
                axes.set_ylabel("share of answers that are wrong", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)

    said = "; ".join(
        f"{title}, {arm}: "
        + ", ".join(
            f"rate {LATE_RATE * rate:g} {values.min():.2f} to {values.max():.2f}"
            for rate, values in zip(RATES, table[by, arm], strict=True)
        )
        for title, by, _ in panels
        for arm in LATE
    )
    return static_figure(
        build,
        size=(900, 290),
        alt=f"Late in training, share of wrong answers, three seeds. {said}.",
        caption="Lower is better; the scale is a log. At the start 0.07 to 0.08 are wrong. Points: "
        "every seed, 250 problems. Lines: their mean.",
    )


def overlong_trap(lengths: Tensor, penalties: Tensor, advantages: Tensor) -> Picture:
    """Four wrong answers: the penalty on each, and the advantage that the z-score makes of it."""

    def build(figure, _):
        for k, (title, values) in enumerate((("penalty", penalties), ("advantage", advantages))):
            axes = figure.add_axes((0.07 + 0.5 * k, 0.16, 0.42, 0.72))
            colors = [POSITIVE if x > 0 else NEGATIVE for x in values.tolist()]
            axes.bar(range(len(values)), values.tolist(), 0.6, color=colors)
            axes.axhline(0, color=BLACK, lw=0.8)
            axes.set(ylim=(-2.2, 1.2), xlim=(-0.6, len(values) - 0.4))
            axes.set_xticks(range(len(values)), [f"{n:,.0f}" for n in lengths.tolist()])
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("tokens of the answer", fontsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            for i, x in enumerate(values.tolist()):
                text = "0" if x == 0 else signed(x, 2 if abs(x) > 0.01 else 4)
                up = 0.08 if x >= 0 else -0.08
                axes.text(i, x + up, text, ha="center", va="bottom" if x >= 0 else "top",
                          fontsize=11)  # fmt: skip

    said = "; ".join(
        f"{n:.0f} tokens: penalty {p:.4f}, advantage {a:.2f}"
        for n, p, a in zip(lengths, penalties, advantages, strict=True)
    )
    return static_figure(
        build,
        size=(900, 260),
        alt=f"Four wrong answers. {said}.",
        caption="All four are wrong. The only lesson in this group is 40 tokens of length.",
    )
