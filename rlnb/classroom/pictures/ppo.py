"""The pictures of the page on PPO's clip."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.patches import Rectangle
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
    VERMILLION,
    WINE,
    Picture,
    signed,
    static_figure,
)
from rlnb.classroom.pictures.recorded_runs import evaluations
from rlnb.objective import Batch

__all__ = ["answers_used", "arrows", "corner", "first_batch", "map_of_silence", "promises", "rates"]

TEXT = 10.5  # points: the size of the page's own text
SEED_LINES = ("-", "--", "-.", ":", (0, (6, 2)), (0, (4, 1, 1, 1, 1, 1)))
RULES = {"no clip": GREEN, "clip alone": SKY, "clip and min": WINE, "single step": GREY}
RULE_LINES = {"no clip": "-", "clip alone": "-.", "clip and min": "--", "single step": ":"}
SILENT = "#D9D9D9"
CLAIMED, TRUE = PURPLE, BLACK  # what the batch says, and what is so


def promises(promised: Tensor, most: float) -> Picture:
    """What the batch promises after each step, every seed, above the largest gain there is.

    promised: (steps + 1, seeds), the mean of rho A.
    """
    claimed = promised.numpy()

    def build(figure, _):
        axes = figure.add_axes((0.07, 0.17, 0.6, 0.79))
        axes.set(ylim=(-0.1, 2.3), xlim=(0, len(claimed) - 1))
        axes.set_xlabel("gradient steps on the one batch", fontsize=TEXT)
        axes.set_ylabel("promise: mean of ρA", fontsize=TEXT)
        axes.tick_params(labelsize=TEXT)
        axes.axhline(0, color=GREY, lw=0.8)
        axes.axhline(most, color=BLACK, ls=(0, (4, 2)), lw=1.4)
        _seeds(axes, claimed, CLAIMED)
        axes.text(1.02, most, f"the most that any policy\ncan gain, {signed(most, 2)}",
                  transform=axes.get_yaxis_transform(), fontsize=11, va="center")  # fmt: skip
        axes.text(1.02, claimed[-1].max(), f"one seed promises {signed(claimed[-1].max(), 2)}",
                  transform=axes.get_yaxis_transform(), fontsize=11, va="center",
                  color=CLAIMED)  # fmt: skip

    ends = ", ".join(f"{x:.2f}" for x in claimed[-1])
    return static_figure(
        build,
        size=(900, 290),
        alt=f"Six seeds, {len(claimed) - 1} steps on one batch. Promised at the end: {ends}. The "
        f"most that any policy can gain: {most:.2f}.",
        caption="Six seeds (line styles), 64 answers each, all steps on the same 64 answers.",
    )


def corner(
    chances: Tensor, before: Tensor, after: Tensor, promised: Tensor, real: Tensor, seed: int,
    most: float,
) -> Picture:  # fmt: skip
    """One seed's policy before and after the steps, and promise against true gain of all seeds.

    chances, before, after: (answers,), each answer's chance to be right and its probabilities.
    promised, real: (seeds,). seed: the one of the left panel.
    """
    said, true = promised.numpy(), real.numpy()
    top = int(after.argmax())

    def build(figure, _):
        left = figure.add_axes((0.075, 0.18, 0.39, 0.71))
        left.vlines(chances, 0, before, color=GREY, lw=3, label="before")
        left.vlines(chances, 0, after, color=TRUE, lw=3, label="after sixty steps")
        left.set(ylim=(0, 1.05), xlim=(0.28, 0.72))
        left.set_xlabel("chance q that the answer is right", fontsize=TEXT)
        left.set_ylabel("probability of the answer", fontsize=TEXT)
        left.set_title(f"the seed that promises {signed(float(said[seed]), 2)}", fontsize=TEXT,
                       weight="bold")  # fmt: skip
        left.legend(fontsize=TEXT, loc="upper right")
        right = figure.add_axes((0.56, 0.18, 0.42, 0.71))
        right.plot(said, true, "o", color=CLAIMED, ms=4, alpha=0.45, mew=0)
        right.plot(said[seed], true[seed], "o", color=TRUE, ms=9, mec="white")
        right.text(said[seed] + 0.12, true[seed] - 0.035, "the seed on the left", fontsize=TEXT)
        right.set(ylim=(-0.2, 0.27), xlim=(0, 6))
        right.set_xlabel("promise after the last step", fontsize=TEXT)
        right.set_ylabel("true gain", fontsize=TEXT)
        right.set_title(f"all {len(said)} seeds", fontsize=TEXT, weight="bold")
        right.axhline(0, color=GREY, lw=0.8)
        right.axhline(most, color=BLACK, ls=(0, (4, 2)), lw=1.2)
        for axes in (left, right):
            axes.tick_params(labelsize=TEXT)

    beyond = int((said > 6).sum())
    return static_figure(
        build,
        size=(900, 310),
        alt=f"Left: before, the fifty answers share the probability; after, the answer with q = "
        f"{chances[top]:.2f} has {after[top]:.2f} of it. Right: true gain against promise for "
        f"{len(said)} seeds, from -0.17 to the most there is, {signed(most, 2)}.",
        caption="Left: one answer is left, and its chance to be right is below the start's "
        f"{chances @ before:.2f}. Right: a batch promises far more than there is to gain, the "
        f"dashed line. ({beyond} of the {len(said)} promise more than 6 and are not drawn.)",
    )


def _seeds(axes, runs: np.ndarray, color: str, width: float = 1.7) -> None:
    for s in range(runs.shape[1]):
        axes.plot(runs[:, s], color=color, ls=SEED_LINES[s % len(SEED_LINES)], lw=width)


def arrows(slopes: Callable[[float, float], Sequence[Sequence[float]]]) -> Picture:
    """The square of (a, b): which way the truth points, and which way the surrogate does."""

    def build(figure, _):
        axes = figure.add_axes((0.07, 0.16, 0.36, 0.8))
        grid = (0.1, 0.3, 0.5, 0.7, 0.9)
        places = [(a, b) for a in grid for b in grid]
        for k, (color, width) in enumerate(((TRUE, 0.012), (CLAIMED, 0.007))):
            ends = np.array([slopes(*place)[k] for place in places])
            axes.quiver(
                *np.array(places).T,
                *ends.T,
                color=color,
                angles="xy",
                scale_units="xy",
                scale=6.2,
                width=width,
                zorder=2 + k,
            )
        axes.plot(0.5, 0.5, "o", color=VERMILLION, ms=9, zorder=5)
        axes.set(xlim=(0, 1.1), ylim=(0, 1.1), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        axes.set_xlabel("chance a of the first token", fontsize=TEXT)
        axes.set_ylabel("chance b of the second", fontsize=TEXT)
        axes.tick_params(labelsize=TEXT)
        for y, color, text in (
            (0.84, TRUE, "→  truth: the way the chance a·b to be right rises"),
            (0.68, CLAIMED, "→  surrogate, from samples at the dot:\n    the same way everywhere"),
            (0.46, VERMILLION, "●  the policy that wrote the samples.\n    Here the two agree."),
        ):
            figure.text(0.5, y, text, fontsize=11.5, va="top", color=color)

    return static_figure(
        build,
        size=(900, 330),
        alt="Arrows on the square of a and b. Black, the true slope (b, a), turns from place "
        "to place; purple, the surrogate's slope, is (0.5, 0.5) everywhere, right at (0.5, 0.5).",
        caption="The surrogate is the tangent of the truth at the old policy: right where it "
        "touches, and more wrong with distance.",
    )


def map_of_silence(batch: Batch, ratio: Tensor, advantages: Tensor) -> Picture:
    """Ratio against advantage, the silent regions shaded, the group's tokens on it."""
    mask = batch.mask
    x, y = ratio.detach()[mask].numpy(), advantages[mask].numpy()

    def build(figure, _):
        for k, name in enumerate(("clip alone", "clip and min")):
            axes = figure.add_axes((0.08 + 0.47 * k, 0.19, 0.44, 0.7))
            axes.set(xscale="log", xlim=(0.3, 8), ylim=(-1, 1), yticks=())
            axes.set_xticks((0.4, 0.8, 1.2, 2, 4, 8), ("0.4", "0.8", "1.2", "2", "4", "8"))
            axes.minorticks_off()
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("ratio ρ (log scale)", fontsize=TEXT)
            if k == 0:
                axes.set_yticks((-0.5, 0.5), ("bad\nA < 0", "good\nA > 0"))
            _shade(axes, both_sides=k == 0)
            _tokens(axes, x, y, both_sides=k == 0)
            axes.axhline(0, color=GREY, lw=0.8)
            axes.axvline(1, color=GREY, lw=0.8)
            fate, weight = ("silent", "normal") if k == 0 else ("alive", "bold")
            where = {"ha": "center", "va": "center", "fontsize": TEXT}
            axes.text(3.1, 0.86, "rose, and should: silent", **where)
            axes.text(3.1, -0.86, f"rose, and should not: {fate}", weight=weight, **where)
            axes.text(0.49, 0.82, f"fell, should\nnot: {fate}", weight=weight, **where)
            axes.text(0.49, -0.82, "fell, and\nshould: silent", **where)
            axes.set_title(name, fontsize=TEXT, weight="bold")

    return static_figure(
        build,
        size=(900, 330),
        alt="Ratio against advantage with the sixteen tokens. Clip alone: both sides of the band "
        "are silent. Clip and min: silent are only A > 0 above 1.2 and A < 0 below 0.8.",
        caption="Sixteen tokens, moved apart a little upwards and downwards; crosses are silent. "
        "The clip alone silences by place. With the min, place and sign must agree.",
    )


def _shade(axes, both_sides: bool) -> None:
    regions = [(1.2, 8, 0, 1), (0.3, 0.8, -1, 0)]
    if both_sides:
        regions += [(1.2, 8, -1, 0), (0.3, 0.8, 0, 1)]
    for left, right, low, high in regions:
        size = (right - left, high - low)
        axes.add_patch(
            Rectangle((left, low), *size, fc=SILENT, ec="white", hatch="//", lw=0, zorder=0)
        )


def _tokens(axes, x: np.ndarray, y: np.ndarray, both_sides: bool) -> None:
    silent = (y > 0) & (x > 1.2) | (y < 0) & (x < 0.8)
    if both_sides:
        silent = (x > 1.2) | (x < 0.8)
    lift = 0.11 * (np.arange(len(x)) % 3 - 1)  # tokens at the same place
    for quiet in (True, False):
        for sign, color in ((1, POSITIVE), (-1, NEGATIVE)):
            pick = (silent == quiet) & (np.sign(y) == sign)
            mark = "X" if quiet else "o"
            axes.plot(x[pick], (y + lift)[pick], mark, ms=9, mec="white", mfc=color, ls="")


def rates(learning_rates: Sequence[float], ends: Mapping[str, np.ndarray]) -> Picture:
    """Where training ends against the learning rate, a thin line for each starting policy.

    ends: rule -> (rates, starts) chance to be right at the end, the mean of the seeds.
    """

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.19, 0.62, 0.77))
        for name, runs in ends.items():
            look = {"color": RULES[name], "ls": RULE_LINES[name]}
            axes.plot(learning_rates, runs, lw=0.8, alpha=0.6, **look)
            axes.plot(learning_rates, runs.mean(1), lw=3, marker="o", label=name, **look)
        axes.axhline(0.7, color=BLACK, lw=1, ls=":")
        axes.text(1.02, 0.7, "the best of the fifty answers", fontsize=TEXT, va="center",
                  transform=axes.get_yaxis_transform())  # fmt: skip
        axes.set(xscale="log", ylim=(0.46, 0.72))
        axes.set_xticks(learning_rates, [f"{r:g}" for r in learning_rates])
        axes.minorticks_off()
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("learning rate (log scale)", fontsize=TEXT)
        axes.set_ylabel("chance to be right at the end", fontsize=TEXT)
        axes.legend(fontsize=11, loc="upper left", bbox_to_anchor=(1.01, 0.75))

    said = "; ".join(
        f"{name} " + ", ".join(f"{x:.2f}" for x in runs.mean(1)) for name, runs in ends.items()
    )
    listed = ", ".join(f"{r:g}" for r in learning_rates)
    return static_figure(
        build,
        size=(900, 310),
        alt=f"Mean chance at the end, at learning rates {listed}: {said}.",
        caption="300 batches, thirty steps on each; grey: one. Thin: six starting policies, 10 "
        "seeds each; thick: their mean. High is good, and wide is room.",
    )


MODEL_ARMS = {
    "8 steps a batch, clip and min": ("chain_reuse_8_clip", WINE, "--"),
    "8 steps a batch, no clip": ("chain_reuse_8_no_clip", GREEN, "-"),
    "1 step, 4 times the rate": ("chain_reuse_1_lr_4x", BLACK, ":"),
    "1 step, 2 times the rate": ("chain_reuse_1_lr_2x", BLACK, "-."),
    "1 step": ("chain_reuse_1", GREY, "-"),
    "1 step, 8 times the rate": ("chain_reuse_1_lr_8x", ORANGE, "-"),
}
NOT_DRAWN = ("1 step", "1 step, 8 times the rate")  # both end lower than the other two rates
ANSWERS_A_BATCH = 64


def answers_used() -> Picture:
    """The recorded transformer: held-out pass@1 against the answers written, six arms."""
    arms = {name: evaluations(run) for name, (run, _, _) in MODEL_ARMS.items()}

    def build(figure, _):
        axes = figure.add_axes((0.07, 0.15, 0.5, 0.81))
        floor = 1.05
        order = sorted(arms.items(), key=lambda item: -item[1][1][:, -1].mean())
        for name, (steps, runs) in order:
            if name in NOT_DRAWN:
                continue
            _, color, line = MODEL_ARMS[name]
            x = np.asarray(steps) * ANSWERS_A_BATCH
            axes.plot(x, runs.T, color=color, lw=0.6, alpha=0.5)
            axes.plot(x, runs.mean(0), color=color, ls=line, lw=2.8)
            floor = min(runs[:, -1].mean(), floor - 0.062)
            text = f"{name}: {runs[:, -1].min():.2f} to {runs[:, -1].max():.2f}"
            axes.plot([x[-1] * 1.02, x[-1] * 1.09], [floor] * 2, color=color, ls=line, lw=2.8,
                      clip_on=False)  # fmt: skip
            axes.text(x[-1] * 1.11, floor, text, va="center", fontsize=11)
        axes.set(ylim=(0, 1), xlim=(0, x[-1]), xticks=range(0, 1281, 256))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("answers written", fontsize=TEXT)
        axes.set_ylabel("pass@1 on 100 held-out problems", fontsize=TEXT)

    left_out = np.concatenate([arms[name][1][:, -1] for name in NOT_DRAWN])
    low, high = left_out.min(), left_out.max()
    ends = "; ".join(
        f"{name}: " + ", ".join(f"{x:.2f}" for x in runs[:, -1]) for name, (_, runs) in arms.items()
    )
    middle = "; ".join(
        f"{name}: " + ", ".join(f"{x:.2f}" for x in runs[:, steps.index(8)])
        for name, (steps, runs) in arms.items()
    )
    return static_figure(
        build,
        size=(900, 350),
        alt="Held-out pass@1 of a small transformer, start 0.37, three seeds each. After 512 "
        f"answers: {middle}. After 1,280: {ends}.",
        caption="A transformer with 0.3 million weights that adds up chains of small numbers. 20 "
        "batches of 64 answers, AdamW, rate 0.0002 unless said. Thin: three seeds; the legend has "
        f"their ends. One step at 1 and 8 times the rate, not drawn: {low:.2f} to {high:.2f}. "
        "Recorded on a CPU.",
    )


def first_batch(paths: Mapping[str, Mapping[str, Sequence[float]]]) -> Picture:
    """The largest ratio of a batch along the steps on it: a panel per learning rate.

    paths: title of the panel -> rule -> the ratio before and after each step.
    """

    def build(figure, _):
        for k, (title, rules) in enumerate(paths.items()):
            axes = figure.add_axes((0.06 + 0.49 * k, 0.19, 0.43, 0.7))
            for name, values in rules.items():
                look = {"color": RULES[name], "ls": RULE_LINES[name], "lw": 2.8}
                axes.plot(values, label=name, **look)
            axes.axhspan(0.8, 1.2, color=BLACK, alpha=0.1, lw=0)
            axes.text(len(values) - 1.3, 0.86, "the band", ha="right", fontsize=TEXT)
            axes.set(ylim=(0.75, 4.2), xlim=(0, len(values) - 1))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("gradient steps on the one batch", fontsize=TEXT)
            axes.set_ylabel("largest of the four ratios" if k == 0 else "", fontsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            if k == 0:
                axes.legend(loc="upper left", fontsize=TEXT)

    said = ". ".join(
        f"{title}: "
        + "; ".join(f"{name} {v[1]:.2f} after step 1, {v[-1]:.2f} at the end"
                    for name, v in rules.items())
        for title, rules in paths.items()
    )  # fmt: skip
    return static_figure(
        build,
        size=(900, 300),
        alt=f"Largest ratio along the steps on one batch. {said}.",
        caption="Small steps are stopped, a little outside the band. A large first step is neither "
        "stopped nor called back.",
    )
