"""The pictures of the page on GRPO: the group as the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from rlnb.classroom.figures import (
    BLACK,
    GREEN,
    GREY,
    NEGATIVE,
    POSITIVE,
    PURPLE,
    SKY,
    WINE,
    Picture,
    signed,
    static_figure,
)
from rlnb.classroom.pictures.recorded_runs import evaluations

__all__ = [
    "advantages_by_rate",
    "fixed_numbers",
    "mean_pushes",
    "mixed_groups",
    "prompt_by_prompt",
    "rate_sweep",
    "recorded_baselines",
    "two_measures",
    "two_prompts",
]

TEXT = 10.5  # points: the size of the page's own text
RULES = {
    "no baseline": (SKY, "--"),
    "mean of the batch": (PURPLE, ":"),
    "mean of the group": (BLACK, "-"),
    "batch, 16 × the answers": (GREEN, "-."),
    "G = 4": (SKY, "-"),
    "G = 8": (BLACK, "--"),
    "G = 16": (PURPLE, "-."),
    "G = 32": (GREEN, ":"),
}


def rate_sweep(
    rates: Sequence[float],
    worlds: Mapping[str, Mapping[str, Tensor]],
    start: float,
    caption: str,
    low: float = 0.5,
) -> Picture:
    """Where training ends against the learning rate: a panel per world, a line per rule.

    worlds: title -> rule -> (rates, seeds) chance to be right at the end. Bars are two standard
    errors of the mean over the seeds. start: the chance before training.
    """
    tables = {
        title: {name: _mean_and_error(runs) for name, runs in rules.items()}
        for title, rules in worlds.items()
    }
    wide = 0.4 if len(tables) > 1 else 0.6

    def build(figure, _):
        for k, (title, rules) in enumerate(tables.items()):
            axes = figure.add_axes((0.08 + 0.5 * k, 0.19, wide, 0.7))
            for name, (mean, error) in rules.items():
                color, line = RULES[name]
                axes.errorbar(rates, mean, 2 * error, color=color, ls=line, lw=2.6, marker="o",
                              capsize=3, label=name)  # fmt: skip
            axes.axhline(start, color=GREY, lw=1, ls=(0, (4, 2)))
            axes.text(rates[-1], start + 0.005, "start", ha="right", fontsize=TEXT, color=GREY)
            axes.set(xscale="log", ylim=(low, 1.02))
            axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
            axes.minorticks_off()
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("learning rate (log scale)", fontsize=TEXT)
            axes.set_ylabel("chance to be right, at the end" if k == 0 else "", fontsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            if len(tables) == 1:
                axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)
            elif len(rules) > 1 and k == len(tables) - 1:
                columns = 1 if len(rules) < 4 else 2
                axes.legend(loc="lower left", bbox_to_anchor=(0.02, 0.1), fontsize=TEXT,
                            ncols=columns)  # fmt: skip

    said = ". ".join(f"{title}: {_ends(rules)}" for title, rules in worlds.items())
    listed = ", ".join(f"{rate:g}" for rate in rates)
    alt = f"Mean chance to be right at the end, learning rates {listed}. {said}."
    return static_figure(build, size=(900, 310), caption=caption, alt=alt)


def _ends(rules: Mapping[str, Sequence[Tensor]]) -> str:
    """For each rule its means, one a rate."""
    means = {name: ", ".join(f"{x.mean():.2f}" for x in runs) for name, runs in rules.items()}
    return "; ".join(f"{name} {listed}" for name, listed in means.items())


def _mean_and_error(runs: Tensor) -> tuple[np.ndarray, np.ndarray]:
    return runs.mean(1).numpy(), (runs.std(1) / runs.shape[1] ** 0.5).numpy()


def two_measures(
    rates: Sequence[float],
    right: Mapping[str, Sequence[Tensor]],
    kept: Mapping[str, Sequence[Tensor]],
    no_noise: Sequence[float],
    start: tuple[float, float],
    caption: str,
) -> Picture:
    """Chance to be right, and how many right answers of the easiest prompt are left: a line a rule.

    right, kept: rule -> for each rate one number a run. no_noise: kept under the mean push. start:
    both numbers before training. Bars are two standard errors.
    """
    titles = ("chance to be right, 16 prompts", "right answers left on the easiest prompt")
    panels = ((right, start[0], (0.5, 1.02), titles[0], None),
              (kept, start[1], (0, 14), titles[1], no_noise))  # fmt: skip

    def build(figure, _):
        for k, (rules, before, limits, title, exact) in enumerate(panels):
            axes = figure.add_axes((0.06 + 0.5 * k, 0.19, 0.42, 0.7))
            if exact is not None:
                axes.plot(rates, exact, color=GREY, lw=1.6, marker="s", ms=4)
                axes.text(rates[-1], exact[-1] + 0.3, "without noise", color=GREY, ha="right",
                          fontsize=TEXT)  # fmt: skip
            for name, runs in rules.items():
                mean, error = _mean_and_error(torch.stack(list(runs)))
                color, line = RULES[name]
                axes.errorbar(rates, mean, 2 * error, color=color, ls=line, lw=2.6, marker="o",
                              capsize=3, label=name)  # fmt: skip
            axes.axhline(before, color=GREY, lw=1, ls=(0, (4, 2)))
            axes.text(rates[-1], before + 0.015 * (limits[1] - limits[0]), "start", color=GREY,
                      ha="right", fontsize=TEXT)  # fmt: skip
            axes.set(xscale="log", ylim=limits)
            axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
            axes.minorticks_off()
            axes.tick_params(labelsize=TEXT)
            axes.set_xlabel("learning rate (log scale)", fontsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            if k == 0:
                axes.legend(loc="lower right", bbox_to_anchor=(1, 0.15), fontsize=TEXT)

    said = ". ".join(f"{title}: {_ends(rules)}" for rules, _, _, title, _ in panels)
    return static_figure(
        build,
        size=(900, 300),
        alt=f"At the end, learning rates {', '.join(f'{rate:g}' for rate in rates)}. {said}.",
        caption=caption,
    )


def prompt_by_prompt(start: Tensor, ends: Mapping[str, Tensor]) -> Picture:
    """Chance to be right on each prompt, before and, per rule, after training; hardest first.

    start: (prompts,). ends: rule -> (seeds, prompts); the bars are two standard errors.
    """
    order = start.argsort()

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.18, 0.6, 0.78))
        x = np.arange(len(start))
        axes.plot(x, start[order], "s", color=GREY, ms=7, label="before")
        for k, (name, runs) in enumerate(ends.items()):
            mean, error = _mean_and_error(runs[:, order].T)
            place = x + 0.25 * (k - (len(ends) - 1) / 2)
            axes.errorbar(place, mean, 2 * error, color=RULES[name][0], ls="", marker="oDv"[k],
                          ms=7, capsize=3, label=name)  # fmt: skip
        axes.set(ylim=(0, 1.08), xticks=())
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("the sixteen prompts, hardest first", fontsize=TEXT)
        axes.set_ylabel("chance to be right", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)

    said = "; ".join(
        f"{name} {runs[:, order[0]].mean():.2f}, all others at least "
        f"{runs[:, order[1:]].mean(0).min():.2f}"
        for name, runs in ends.items()
    )
    return static_figure(
        build,
        size=(900, 280),
        alt=f"Chance to be right on each of {len(start)} prompts. On the hardest, before "
        f"{start[order[0]]:.2f}, after: {said}.",
        caption="Learning rate 16. The batch's mean fails on the hardest prompt alone. With 16 "
        "times the answers, and so less noise, it succeeds there too (green). Bars: two standard "
        "errors.",
    )


def recorded_baselines() -> Picture:
    """The recorded transformer, rewards 0 and 1: no baseline against the mean of the others."""
    runs = {
        "no baseline": ("chain_no_baseline", *RULES["no baseline"]),
        "mean of the others": ("chain_rloo", BLACK, "-"),
    }
    found = {name: evaluations(run) for name, (run, _, _) in runs.items()}

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.18, 0.5, 0.77))
        for k, (name, (steps, table)) in enumerate(found.items()):
            _, color, line = runs[name]
            x = np.asarray(steps) * 64 + 26 * (2 * k - 1)
            axes.plot(x, table.mean(0), color=color, ls=line, lw=2.6)
            axes.plot(x, table.T, "o", color=color, ms=6, mec="white", mew=0.8)
            low, high = table[:, -1].min(), table[:, -1].max()
            y = 0.86 - 0.14 * k
            axes.plot([2740, 2960], [y, y], color=color, ls=line, lw=2.6, clip_on=False)
            axes.text(3020, y, f"{name}: ends at {low:.2f} to {high:.2f}", va="center", fontsize=11)
        axes.text(60, 0.35, f"start {table[0, 0]:.2f}", fontsize=TEXT, color=GREY)
        axes.set(xlim=(-60, 2660), ylim=(0.3, 1.0), xticks=(0, 1280, 2560))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("answers written", fontsize=TEXT)
        axes.set_ylabel("pass@1, 100 held-out problems", fontsize=TEXT)

    ends = "; ".join(
        f"{name}: " + ", ".join(f"{x:.2f}" for x in sorted(table[:, -1]))
        for name, (_, table) in found.items()
    )
    return static_figure(
        build,
        size=(900, 290),
        alt=f"Held-out pass@1 of a small transformer at the end, six seeds each. {ends}.",
        caption="A transformer with 0.3 million weights, rewards 0 and 1. 40 steps of 8 prompts "
        "with 8 answers, AdamW, learning rate 0.0003 for both, no other rate was run. A dot is a "
        "seed, a line their mean. Recorded on a CPU.",
    )


def mean_pushes(truth: Sequence[float], rules: Mapping[str, Sequence[float]]) -> Picture:
    """Expected push on each answer's logit: the true one, and what each rule gives on average."""
    bars = {"truth": list(truth), **{name: list(values) for name, values in rules.items()}}
    colors = ("white", WINE, BLACK, "#5A5A5A", "#A0A0A0")
    hatches = ("//", "", "", "", "")
    edges = (BLACK, "white", "white", "white", "white")

    def build(figure, _):
        axes = figure.add_axes((0.09, 0.13, 0.53, 0.83))
        width = 0.8 / len(bars)
        for k, (name, values) in enumerate(bars.items()):
            x = np.arange(len(values)) + (k - (len(bars) - 1) / 2) * width
            axes.bar(x, values, width * 0.9, color=colors[k], hatch=hatches[k], ec=edges[k],
                     label=name)  # fmt: skip
        axes.axhline(0, color=BLACK, lw=0.8)
        names = [f"answer {i}" for i in range(len(truth))]
        axes.set_xticks(range(len(truth)), names, fontsize=11)
        axes.tick_params(labelsize=TEXT)
        axes.set_ylabel("mean push on its logit", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)

    said = "; ".join(f"{name} " + ", ".join(signed(v, 3) for v in vs) for name, vs in bars.items())
    return static_figure(
        build,
        size=(900, 270),
        alt=f"Bars per answer. {said}.",
        caption="With your own reward in the mean every bar shrinks by the same factor: half at "
        "G = 2, three quarters at G = 4. With the others only nothing shrinks.",
    )


def advantages_by_rate(size: int = 16) -> Picture:
    """Advantage of a right and of a wrong answer against the share of right ones in the group."""
    p = np.arange(1, size) / size

    def build(figure, _):
        rules = {
            "minus the mean": (1 - p, -p),
            "and divided by the std": (np.sqrt((1 - p) / p), -np.sqrt(p / (1 - p))),
        }
        for k, (title, (right, wrong)) in enumerate(rules.items()):
            axes = figure.add_axes((0.08 + 0.49 * k, 0.18, 0.4, 0.71))
            axes.axhline(0, color=GREY, lw=0.8)
            axes.plot(p, right, "o-", color=POSITIVE, lw=2.4, ms=5)
            axes.plot(p, wrong, "s--", color=NEGATIVE, lw=2.4, ms=5)
            axes.set(xlim=(0, 1), ylim=(-4.4, 4.4), yticks=range(-4, 5, 2))
            axes.set_xlabel("share p of right answers in the group", fontsize=TEXT)
            axes.set_ylabel("advantage" if k == 0 else "", fontsize=TEXT)
            axes.tick_params(labelsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            if k == 0:
                axes.text(0.06, 1.3, "right: 1 − p", color=POSITIVE, fontsize=12, weight="bold")
                axes.text(0.94, -1.7, "wrong: −p", color=NEGATIVE, fontsize=12, weight="bold",
                          ha="right")  # fmt: skip
            else:
                says = {"fontsize": 12, "weight": "bold"}
                axes.text(0.22, 2.5, r"right: $\sqrt{(1-p)/p}$", color=POSITIVE, **says)
                axes.text(0.74, -2.9, r"wrong: $-\sqrt{p/(1-p)}$", color=NEGATIVE, ha="right",
                          **says)  # fmt: skip

    top = (size - 1) ** 0.5
    return static_figure(
        build,
        size=(900, 320),
        alt=f"Advantages in a group of {size} against the share of right answers. Minus the mean: "
        f"straight lines, never beyond 1. Divided by the std: up to {top:.2f} for a lone right "
        f"answer and down to −{top:.2f} for a lone wrong one; ±1 at one half.",
        caption=f"Groups of {size}; a dot is a possible group. Dividing by the std makes whatever "
        "is rare in the group loud, right or wrong.",
    )


def two_prompts(pulls: Mapping[str, Sequence[float]]) -> Picture:
    """Two prompts in one batch: the summed advantage of the right answers of each, per rule."""

    def build(figure, _):
        axes = figure.add_axes((0.07, 0.18, 0.5, 0.78))
        for k, (name, (x, y)) in enumerate(pulls.items()):
            color = (BLACK, GREEN)[k]
            axes.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": color,
                          "lw": 3.2, "mutation_scale": 20, "shrinkA": 0, "shrinkB": 0})  # fmt: skip
            angle = np.degrees(np.arctan2(y, x))
            figure.text(0.62, 0.8 - 0.3 * k,
                        f"{name}:\n{x:.2f} to the right, {y:.2f} up,\nan angle of {angle:.0f}°",
                        fontsize=11.5, color=color, weight="bold")  # fmt: skip
        axes.set(xlim=(0, 8.46), ylim=(0, 4.4))  # a unit is as long on either axis
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("pull on prompt A, 8 of 16 right", fontsize=TEXT)
        axes.set_ylabel("pull on prompt B, 1 of 16 right", fontsize=TEXT)

    said = "; ".join(f"{name} ({x:.2f}, {y:.2f})" for name, (x, y) in pulls.items())
    return static_figure(
        build,
        size=(900, 300),
        alt=f"Two arrows in the plane of two prompts' pulls. {said}.",
        caption="The pull is the sum of A over a prompt's right answers. The std lengthens the "
        "arrow and turns it towards the uneven prompt.",
    )


def mixed_groups(sizes: Sequence[int] = (4, 8, 16, 64)) -> Picture:
    """Share of groups with a right and a wrong answer in them, against the pass rate."""
    p = np.linspace(0.001, 0.999, 400)
    looks = ((GREY, ":"), (BLACK, "-"), (GREY, "--"), (BLACK, "-."))

    def build(figure, _):
        axes = figure.add_axes((0.08, 0.18, 0.6, 0.78))
        for size, (color, line) in zip(sizes, looks, strict=True):
            share = 1 - p**size - (1 - p) ** size
            axes.plot(p, share, color=color, ls=line, lw=2.6, label=f"G = {size}")
        axes.set(xlim=(0, 1), ylim=(0, 1.03))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("chance p that the policy answers this prompt right", fontsize=TEXT)
        axes.set_ylabel("share of groups that teach", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11)

    at = (0.01, 0.1, 0.5)
    said = "; ".join(
        f"G {size}: " + ", ".join(f"{1 - q**size - (1 - q) ** size:.2f}" for q in at)
        for size in sizes
    )
    return static_figure(
        build,
        size=(900, 280),
        alt=f"Share of mixed groups against the pass rate; at 0.01, 0.1 and 0.5: {said}.",
        caption="A group teaches only if it holds both a right and a wrong answer. Near 0 and "
        "near 1 most groups are silent.",
    )


def fixed_numbers(ends: Mapping[float, float], start: float, chance: float) -> Picture:
    """A fixed number b as baseline: where one prompt ends, and the advantages b gives.

    ends: b -> chance to be right at the end. start: that chance before. chance: where the prompt's
    own pass rate would stand.
    """
    numbers = sorted(ends)

    def build(figure, _):
        axes = figure.add_axes((0.09, 0.3, 0.89, 0.62))
        axes.plot(numbers, [ends[b] for b in numbers], "o-", color=BLACK, lw=1.6, ms=7)
        axes.axhline(start, color=GREY, lw=1, ls=":")
        axes.axvline(chance, color=POSITIVE, lw=1, ls="--")
        axes.text(chance + 0.02, 0.08, "pass rate", color=POSITIVE, fontsize=10.5)
        axes.text(0.62, start + 0.03, "start", color=GREY, fontsize=10.5)
        axes.set(ylim=(0, 1.05), xlim=(numbers[0] - 0.08, numbers[-1] + 0.12))
        axes.set_xlabel("b", fontsize=11)
        axes.set_ylabel("chance at the end", fontsize=11)
        axes.tick_params(labelsize=10.5)
        for b in (numbers[0], numbers[-1]):
            figure.text(
                0.12 if b == numbers[0] else 0.98,
                0.03,
                f"b = {signed(b, 1)}: right {signed(1 - b, 1)}, wrong {signed(-b, 1)}",
                ha="left" if b == numbers[0] else "right",
                fontsize=11,
            )

    pairs = ", ".join(f"{b:g}: {ends[b]:.2f}" for b in numbers)
    return static_figure(
        build,
        size=(900, 260),
        alt=f"Chance of the hardest prompt at the end against b. {pairs}.",
        caption="Far below, wrong answers are pushed up nearly as much as right ones. Far above, "
        "nearly all that is pushed is wrong answers down, at random which.",
    )
