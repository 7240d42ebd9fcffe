"""The pictures of the page on rewards: push on a proxy and watch gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rlnb.classroom.figures import BLACK, BLUE, GREY, ORANGE, Picture, static_figure
from rlnb.classroom.pictures.recorded_runs import curve, evaluations, seeds

__all__ = ["at_equal_nats", "one_ruler", "paid_and_true", "score_and_gold"]

TEXT = 10.5
GRADERS = {"A": (BLACK, "-", "o"), "B": (ORANGE, "--", "s")}
ANSWERS_A_STEP = 64
PAYS = {
    "A": (BLACK, "-", "o"),
    "B": (ORANGE, ":", "s"),
    "B, capped at 2": (BLUE, "--", "^"),
    "GRPO's z-score of pass or fail": (BLUE, "-", "^"),
    "GRPO's z-score of the score": (BLACK, "--", "o"),
    "the score itself": (ORANGE, ":", "s"),
}


def paid_and_true(*, truth: bool = True) -> Picture:
    """The recorded sorting model: what it is paid, and how many held-out problems it solves.

    truth False: only what it is paid, and only the run with the weak check.
    """
    runs = {"paid for any list in order": "sort_is_sorted"}
    if truth:
        runs["control: paid for the right list"] = "sort_verify"

    def build(figure, _):
        for k, (title, run) in enumerate(runs.items()):
            axes = figure.add_axes((0.075 + 0.48 * k, 0.18, 0.4 if truth else 0.6, 0.71))
            for seed in seeds(run):
                pay = curve(run, seed, "reward")
                smooth = np.convolve(pay, np.ones(5) / 5, "valid")
                axes.plot(ANSWERS_A_STEP * np.arange(3, len(smooth) + 3), smooth, color=GREY,
                          lw=1.6, ls="--")  # fmt: skip
            if truth:
                steps, table = evaluations(run)
                axes.plot(ANSWERS_A_STEP * np.array(steps), table.T, "o-", color=BLUE, lw=2.4, ms=5)
            axes.set(xlim=(0, 2600), ylim=(-0.03, 1.05), xticks=(0, 1280, 2560))
            axes.set_title(title, fontsize=TEXT, weight="bold")
            axes.set_xlabel("answers written", fontsize=TEXT)
            axes.tick_params(labelsize=TEXT)
            if k == 0:
                axes.set_ylabel("share", fontsize=TEXT)
                axes.text(1250, 0.72, "paid, in training", color=GREY, fontsize=11.5)
                if truth:
                    axes.text(820, 0.33, "right, on held-out problems", color=BLUE, fontsize=11.5)

    paid = _first_and_last("sort_is_sorted")
    said = f"Paid: from {paid[0]:.2f} to {paid[1]:.2f}, mean of three seeds."
    if truth:
        for title, run in runs.items():
            _, table = evaluations(run)
            said += f" Right, {title}: " + "; ".join(
                f"{row[0]:.2f} to {row[-1]:.2f}" for row in table
            )
        said += "."
    return static_figure(
        build,
        size=(900, 290),
        alt=said,
        caption="Three seeds. Pay is a mean over five steps."
        if not truth
        else "Three seeds each. Left: the pay rises, and what was wanted is gone. Right: the "
        "control; at this learning rate even pay for the right list teaches little.",
    )


def _first_and_last(run: str) -> tuple[float, float]:
    """Mean pay of the first and of the last five steps, over the seeds."""
    pay = np.array([curve(run, seed, "reward") for seed in seeds(run)])
    return float(pay[:, :5].mean()), float(pay[:, -5:].mean())


def score_and_gold(
    draws: Sequence[int], graders: Mapping[str, tuple[Sequence[float], Sequence[float]]]
) -> Picture:
    """Best of N by each grader: what the grader says of it, and what it is worth.

    graders: "A" or "B" -> (mean score, mean gold), each (len(draws),).
    """

    def build(figure, _):
        for k, name in enumerate(("score: what the grader says", "gold: what it is worth")):
            axes = figure.add_axes((0.07 + 0.49 * k, 0.18, 0.42, 0.71))
            for grader, both in graders.items():
                color, line, mark = GRADERS[grader]
                axes.plot(range(len(draws)), both[k], mark + line, color=color, lw=2.4, ms=6)
                axes.text(len(draws) - 0.8, both[k][-1], grader, color=color, fontsize=13,
                          weight="bold", va="center")  # fmt: skip
            axes.set(xlim=(-0.3, len(draws) - 0.2), ylim=(0, 20 if k == 0 else 2.6))
            axes.set_xticks(range(0, len(draws), 2), [f"{n:,}" for n in draws[::2]])
            axes.tick_params(labelsize=TEXT)
            axes.set_title(name, fontsize=TEXT, weight="bold")
            axes.set_xlabel("N, answers to choose from", fontsize=TEXT)

    said = ". ".join(
        f"{grader}, gold: " + ", ".join(f"{n}: {g:.2f}" for n, g in zip(draws, gold, strict=True))
        for grader, (_, gold) in graders.items()
    )
    return static_figure(
        build,
        size=(900, 290),
        alt=f"Mean score and gold of the best of N. {said}.",
        caption="Both axes in stds of gold, means over 128 prompts. Each grader sees its scores "
        "rise. Gold turns under B, and under A it does not.",
    )


def one_ruler(
    paths: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
) -> Picture:
    """Gold against KL: a panel per grader, best of N and the KL-regularised optimum in each.

    paths: grader -> way -> (kl, gold).
    """
    looks = {
        "best of N": ("-", "o"),
        "RL, paid the score": (":", "D"),
        "RL, paid the rank": ("--", "^"),
    }

    def build(figure, _):
        for k, (grader, ways) in enumerate(paths.items()):
            axes = figure.add_axes((0.07 + 0.49 * k, 0.18, 0.42, 0.71))
            for way, (kl, gold) in ways.items():
                line, mark = looks[way]
                axes.plot(kl, gold, line, marker=mark, color=GRADERS[grader][0], lw=2.2, ms=5,
                          label=way)  # fmt: skip
            axes.set(xlim=(-0.1, 6.2), ylim=(0, 2.6))
            axes.tick_params(labelsize=TEXT)
            axes.set_title(f"grader {grader}", fontsize=TEXT, weight="bold")
            axes.set_xlabel("KL to the policy at the start, nats", fontsize=TEXT)
            axes.set_ylabel("gold" if k == 0 else "", fontsize=TEXT)
            if k == 0:
                axes.legend(loc="lower right", fontsize=11)

    said = ". ".join(
        f"{grader}, {way}, KL and gold: "
        + ", ".join(f"{a:.2f} {b:.2f}" for a, b in zip(kl, gold, strict=True) if a <= 6.2)
        for grader, ways in paths.items()
        for way, (kl, gold) in ways.items()
    )
    return static_figure(
        build,
        size=(900, 290),
        alt=said + ".",
        caption="Under A all three ways are close. Under B, RL paid the score has at most gold "
        "0.26, whatever the nats.",
    )


def at_equal_nats(
    ways: Mapping[str, tuple[Sequence[float], Sequence[float]]], caption: str
) -> Picture:
    """Gold of the KL-regularised optimum against KL, a line per pay.

    ways: what RL is paid, a key of PAYS -> (kl, gold).
    """

    def build(figure, _):
        axes = figure.add_axes((0.075, 0.18, 0.55, 0.78))
        for name, (kl, gold) in ways.items():
            color, line, mark = PAYS[name]
            axes.plot(kl, gold, line, marker=mark, color=color, lw=2.4, ms=6, label=name)
        axes.set(xlim=(-0.1, 6.2), ylim=(0, 2.6))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("KL to the policy at the start, nats", fontsize=TEXT)
        axes.set_ylabel("gold", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=11.5, title="RL, paid by")

    said = ". ".join(
        f"{name}, KL and gold: "
        + ", ".join(f"{a:.2f} {b:.2f}" for a, b in zip(kl, gold, strict=True) if a <= 6.2)
        for name, (kl, gold) in ways.items()
    )
    return static_figure(
        build, size=(900, 290), alt=f"RL at equal KL under several pays. {said}.", caption=caption
    )
