"""The pictures of the page on GRPO's two divisors: the group's std and the answer's length."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

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
from rlnb.classroom.pictures import recorded_runs as recorded

__all__ = [
    "bonus_runs", "by_type", "length_runs", "odd_one_out", "score_by_length",
    "valley_and_arch",
]  # fmt: skip

TEXT = 10.5  # points: the size of the page's own text
RULES = {
    "z-score": (ORANGE, "-", "divided by the std"),
    "mean only": (BLACK, "--", "minus the mean only"),
}
SIDES = {"wrong": (NEGATIVE, "--"), "right": (POSITIVE, "-")}


def length_runs(panels: Mapping[str, str], caption: str) -> Picture:
    """Mean length of right and wrong answers over training, every seed; a panel per recorded run.

    panels: a key of `recorded_runs.RUNS` -> the panel's title.
    """
    smooth = {
        method: {
            kind: np.array([recorded.running_mean(row) for row in table])
            for kind, table in recorded.lengths(method).items()
        }
        for method in panels
    }

    def build(figure, _):
        for k, (method, both) in enumerate(smooth.items()):
            axes = figure.add_axes((0.07 + 0.5 * k, 0.19, 0.41, 0.7))
            for kind, (color, line) in SIDES.items():
                x = np.arange(1, both[kind].shape[1] + 1)
                axes.plot(x, both[kind].T, color=color, lw=0.9, alpha=0.5)
                axes.plot(x, both[kind].mean(0), color=color, ls=line, lw=2.8,
                          label=f"{kind} answers")  # fmt: skip
            last_step = both["right"].shape[1]
            for y, name, above in ((13, "shortest possible: 13", -1), (72, "cut off: 72", 1)):
                axes.axhline(y, color=GREY, lw=1, ls=":")
                axes.text(0.98 * last_step, y + 1.5 * above, name, ha="right", fontsize=TEXT,
                          va="bottom" if above > 0 else "top")  # fmt: skip
            axes.set(xlim=(1, last_step), ylim=(0, 84), yticks=range(0, 81, 20))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("step", fontsize=TEXT)
            axes.set_ylabel("mean length, tokens" if k == 0 else "", fontsize=TEXT)
            axes.set_title(panels[method], fontsize=11, weight="bold")
            axes.legend(loc="upper left", fontsize=TEXT, framealpha=1, edgecolor="none")

    def last(method, kind):
        return ", ".join(f"{x:.0f}" for x in recorded.lengths(method)[kind][:, -10:].mean(1))

    said = "; ".join(
        f"{title}: right {last(method, 'right')}, wrong {last(method, 'wrong')}"
        for method, title in panels.items()
    )
    return static_figure(
        build,
        size=(900, 300),
        caption=caption,
        alt=f"Mean length of right and wrong answers over training. Last ten steps, a number a "
        f"seed, in tokens. {said}.",
    )


def odd_one_out(groups: Mapping[str, tuple[float, float, float]]) -> Picture:
    """Per group: the largest advantage, the push on its logit undivided, and divided by the std."""
    titles = ("largest |A|\nafter dividing", "push on its logit,\nminus the mean",
              "push on its logit,\ndivided by the std")  # fmt: skip
    colors = (GREY, BLACK, ORANGE)
    tops = (4.4, 0.57, 0.57)

    def build(figure, _):
        for k, title in enumerate(titles):
            axes = figure.add_axes((0.06 + 0.33 * k, 0.12, 0.25, 0.68))
            values = [triple[k] for triple in groups.values()]
            axes.bar(range(len(groups)), values, 0.55, color=colors[k])
            for i, value in enumerate(values):
                axes.text(i, value + 0.03 * tops[k], f"{value:.2f}", ha="center", fontsize=11,
                          weight="bold")  # fmt: skip
            axes.set(ylim=(0, tops[k]), yticks=(), xlim=(-0.6, len(groups) - 0.4))
            axes.set_xticks(range(len(groups)), list(groups), fontsize=11)
            axes.set_title(title, fontsize=11, weight="bold")
            axes.spines["left"].set_visible(False)

    said = "; ".join(
        f"{name}: largest advantage {a:.2f}, push {b:.2f}, divided {c:.2f}"
        for name, (a, b, c) in groups.items()
    )
    return static_figure(
        build,
        size=(900, 270),
        alt=f"Three pairs of bars. {said}.",
        caption="The largest advantage is in the uneven group, the larger push in the even one. "
        "Dividing brings the two pushes closer.",
    )


def score_by_length(q: float = 0.1, longest: int = 45) -> Picture:
    """What answers of each length add to the mean score of stopping, undivided and over T."""
    T = np.arange(1, 3001)
    share = q * (1 - q) ** (T - 1) * (1 - q * T)
    parts = {"score, 1 − qT": share, "score over T": share / T}

    def build(figure, _):
        for k, (name, values) in enumerate(parts.items()):
            axes = figure.add_axes((0.075 + 0.5 * k, 0.2, 0.41, 0.64))
            shown = values[:longest]
            colors = [POSITIVE if v > 0 else NEGATIVE for v in shown]
            axes.bar(T[:longest], shown, 0.8, color=colors)
            axes.axhline(0, color=BLACK, lw=0.8)
            axes.set(xlim=(0.3, longest + 0.7), ylim=(-0.02, 0.095), yticks=(0, 0.05))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("length T", fontsize=TEXT)
            up, down = values[values > 0].sum(), -values[values < 0].sum()
            axes.set_title(f"{name}: {up:.3f} − {down:.3f} = {abs(up - down):.3f}", fontsize=11,
                           weight="bold")  # fmt: skip
        figure.axes[0].set_ylabel("chance of T times it", fontsize=TEXT)

    said = "; ".join(
        f"{name}: blue {v[v > 0].sum():.3f}, orange {-v[v < 0].sum():.3f}"
        for name, v in parts.items()
    )
    return static_figure(
        build,
        size=(900, 270),
        alt=f"Bars over the length, q = {q:g}, blue above zero for short answers, orange below for "
        f"long ones. {said}.",
        caption="What answers of each length add to the mean score. Left, short ones (blue) and "
        "long ones (orange) balance. Right, long ones hardly count.",
    )


def valley_and_arch() -> Picture:
    """Weight of a prompt and net push on its logit over its pass rate, with the std and without."""
    p = np.linspace(0.01, 0.99, 197)
    std = np.sqrt(p * (1 - p))

    def build(figure, _):
        titles = ("weight of the prompt", "net push on its logit")
        for k, (with_std, without) in enumerate(((1 / std, np.ones_like(p)), (std, std**2))):
            axes = figure.add_axes((0.06 + 0.5 * k, 0.2, 0.42, 0.66))
            for name, y in (("z-score", with_std), ("mean only", without)):
                color, line, said = RULES[name]
                axes.plot(p, y, color=color, ls=line, lw=2.8, label=said)
            axes.set(xlim=(0, 1), ylim=(0, 10.5 if k == 0 else 0.55))
            axes.set_xticks((0, 0.5, 1), ("0", "0.5", "1"))
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("pass rate p", fontsize=TEXT)
            axes.set_title(titles[k], fontsize=11, weight="bold")
        figure.axes[0].legend(loc="upper center", fontsize=TEXT, framealpha=1, edgecolor="none")

    return static_figure(
        build,
        size=(900, 270),
        alt="Two panels over the pass rate p. Weight with the std: 10.1 at 0.01, 2 at one half; "
        "without: 1 everywhere. Net push with the std: 0.10 at 0.01, 0.50 at one half; without: "
        "0.01 and 0.25.",
        caption="Large groups. Left, what a prompt's gradient is multiplied with. Right, what "
        "arrives at its logit.",
    )


def by_type(steps: tuple[int, ...] = (10, 20, 30, 40)) -> Picture:
    """Seven types of prompt in the recorded runs: their curves, and with minus without the std.

    Left pass@1 of each type under either rule, mean of the seeds. Right the paired differences,
    averaged over `steps`: each seed a dot, the mean with two standard errors of the seeds.
    """
    table = {r: np.array([recorded.by_difficulty(r, step) for step in steps]) for r in RULES}
    before = recorded.by_difficulty("mean only", 0).mean(0)
    apart = (table["z-score"] - table["mean only"]).mean(0)  # (seeds, types)
    mean, error = apart.mean(0), apart.std(0, ddof=1) / len(apart) ** 0.5
    kinds = np.arange(apart.shape[1])

    def build(figure, _):
        axes = figure.add_axes((0.07, 0.18, 0.36, 0.72))
        for rule, (color, line, _) in RULES.items():
            curves = np.vstack([before, table[rule].mean(1)])
            axes.plot((0, *steps), curves, color=color, ls=line, lw=3 if line == "-" else 1.5)
        axes.set(xlim=(0, steps[-1]), ylim=(0, 1.03), xticks=(0, *steps))
        axes.set_xlabel("step", fontsize=TEXT)
        axes.set_title("pass@1: solid with the std, dashed without", fontsize=11, weight="bold")
        axes.tick_params(labelsize=TEXT)
        axes = figure.add_axes((0.55, 0.18, 0.43, 0.72))
        axes.axhline(0, color=GREY, lw=0.9)
        axes.errorbar(kinds, mean, yerr=2 * error, fmt="s", color=BLACK, ms=7, capsize=4, lw=2)
        for row in apart:
            axes.plot(kinds + 0.22, row, "o", color=GREY, ms=4)
        axes.set(ylim=(-0.055, 0.055), yticks=(-0.05, 0, 0.05))
        axes.set_xticks(kinds, [f"{rate:.2f}" for rate in before])
        axes.set_xlabel("type, by its pass@1 at the start", fontsize=TEXT)
        axes.set_title("with the std minus without", fontsize=11, weight="bold")
        axes.tick_params(labelsize=TEXT)

    said = ", ".join(f"{signed(m, 3)} ± {e:.3f}" for m, e in zip(mean, error, strict=True))
    return static_figure(
        build,
        size=(900, 310),
        alt=f"pass@1 of seven types of prompt, and with minus without the std, hardest type first, "
        f"mean and standard error of three seeds over steps {', '.join(map(str, steps))}: {said}.",
        caption="Left: solid and dashed cover each other. Right: every seed (dots), their mean and "
        "two standard errors.",
    )


def bonus_runs() -> Picture:
    """How many `wait` an answer holds while each is paid 0.01: both rules, every seed."""
    curves = {rule: recorded.waits(rule) for rule in RULES}
    last = {rule: table[:, -10:].mean(1) for rule, table in curves.items()}

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.18, 0.55, 0.78))
        for rule, (color, line, label) in RULES.items():
            table = curves[rule]
            x = np.arange(1, table.shape[1] + 1)
            axes.plot(x, table.T, color=color, lw=0.9, alpha=0.55)
            axes.plot(x, table.mean(0), color=color, ls=line, lw=2.8, label=label)
        axes.set(xlim=(1, 50), ylim=(0, None))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("step", fontsize=TEXT)
        axes.set_ylabel("“wait” per answer", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)

    said = "; ".join(
        f"{RULES[rule][2]} " + ", ".join(f"{x:.2f}" for x in ends) for rule, ends in last.items()
    )
    return static_figure(
        build,
        size=(900, 280),
        alt=f"wait per answer over training, each seed. Over the last ten steps: {said}.",
        caption="Divided by the std, all three seeds learn to write the word that is worth a "
        "hundredth; undivided, none does within these 50 steps.",
    )
