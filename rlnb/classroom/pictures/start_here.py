"""Page 00: a run in which the reward rises, and what its loss says."""

from __future__ import annotations

import numpy as np

from rlnb.classroom.figures import BLUE, GREY, NEGATIVE, POSITIVE, Picture, static_figure
from rlnb.classroom.pictures.recorded_runs import curve, final, running_mean, seeds
from rlnb.training.studies.loss_value import kept

__all__ = ["lengths_and_loss", "reward_and_loss"]

RUN = "chain_dr_grpo"


def reward_and_loss() -> Picture:
    """The reward and the loss of the same recorded run, side by side, every seed."""
    every = seeds(RUN)
    reward = np.array([running_mean(curve(RUN, seed, "reward")) for seed in every])
    loss = np.array([curve(RUN, seed, "loss") for seed in every])
    mixed = np.array([running_mean(curve(RUN, seed, "groups/mixed")) for seed in every])
    steps = np.arange(1, reward.shape[1] + 1)

    def build(figure, _):
        for k, (title, rows, color) in enumerate(
            (
                ("share of right answers", reward, BLUE),
                ("loss", loss, GREY),
                ("groups with unequal rewards", mixed, GREY),
            )
        ):
            axes = figure.add_axes((0.05 + 0.335 * k, 0.18, 0.27, 0.68))
            for row in rows:
                axes.plot(steps, row, color=color, lw=1.8)
            axes.set(xlim=(1, steps[-1]), ylim=(-0.07, 0.02) if k == 1 else (0, 1))
            axes.set_title(title, fontsize=11, weight="bold")
            axes.set_xlabel("step", fontsize=11)
            axes.tick_params(labelsize=10.5)

    first, last = reward[:, 0].mean(), reward[:, -1].mean()
    return static_figure(
        build,
        size=(900, 250),
        alt=f"Three panels over {steps[-1]} steps, three seeds each. The share of right answers "
        f"rises from {first:.2f} to {last:.2f}; the loss between {loss.min():.2f} and "
        f"{loss.max():.2f}; groups whose rewards differ fall to {mixed[:, -1].mean():.2f}.",
        caption="Three seeds. The outer panels are running means over five steps. A step has "
        "16 sums only, so the left one starts where luck puts it; on held-out sums the share goes "
        "from 0.389 to " + ", ".join(f"{x:.3f}" for x in final(RUN)) + ".",
    )


def lengths_and_loss() -> Picture:
    """The mean length of right and of wrong answers, and the loss, step by step, every seed."""
    rows = kept()
    steps = np.arange(1, len(rows[0]["loss"]) + 1)

    def column(seed: int, name: str) -> np.ndarray:
        return np.array([np.nan if x is None else x for x in rows[seed][name]])

    def build(figure, _):
        left = figure.add_axes((0.07, 0.18, 0.4, 0.68))
        right = figure.add_axes((0.58, 0.18, 0.4, 0.68))
        for seed in rows:
            left.plot(steps, running_mean(column(seed, "right")), color=POSITIVE, lw=1.8)
            left.plot(steps, running_mean(column(seed, "wrong")), color=NEGATIVE, lw=1.8, ls="--")
            right.plot(steps, column(seed, "loss"), color=GREY, lw=1.8)
        left.text(4, 36, "right", color=POSITIVE, fontsize=11, weight="bold", ha="center")
        left.text(12, 12, "wrong", color=NEGATIVE, fontsize=11, weight="bold", ha="center")
        left.set(xlim=(1, steps[-1]), ylim=(0, 45))
        right.set(xlim=(1, steps[-1]), ylim=(-0.07, 0.02))
        right.axhline(0, color=GREY, lw=0.8)
        for axes, title in ((left, "mean length, tokens"), (right, "loss")):
            axes.set_title(title, fontsize=11, weight="bold")
            axes.set_xlabel("step", fontsize=11)
            axes.tick_params(labelsize=10.5)

    return static_figure(
        build,
        size=(900, 250),
        alt="Two panels over 40 steps, three seeds. Right answers are 22 to 28 tokens long in the "
        "first step and wrong ones 10 to 12; from step 20 on right ones are near 35, and the few "
        "wrong ones between 31 and 43. The loss rises from "
        "about -0.04 to 0 over the same steps.",
        caption="As the lengths meet, the loss comes to 0. Left running means over five steps; "
        "late in the run few answers are wrong, so the dashed lines scatter.",
    )
