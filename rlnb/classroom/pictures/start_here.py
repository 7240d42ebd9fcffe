"""Page 00: a run in which the reward rises and the loss says nothing."""

from __future__ import annotations

import numpy as np

from rlnb.classroom.figures import BLUE, GREY, Picture, static_figure
from rlnb.classroom.pictures.recorded_runs import curve, final, running_mean, seeds

__all__ = ["reward_and_loss"]

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
                ("groups with unequal rewards", mixed, BLUE),
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
        caption="A transformer of 308,016 parameters learns sums of single digits, on a CPU. Three "
        "seeds, page 21's recipe. Held-out share of right answers at the end: "
        + ", ".join(f"{x:.3f}" for x in final(RUN))
        + ". Before: 0.389.",
    )
