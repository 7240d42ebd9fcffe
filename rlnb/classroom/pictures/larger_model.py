"""The page on a whole run, its last section: 25 million weights, trained on a GPU."""

from __future__ import annotations

import numpy as np

from rlnb.classroom.figures import BLACK, ORANGE, SKY, Picture, static_figure
from rlnb.classroom.pictures.grpo_for_real import ends
from rlnb.classroom.pictures.recorded_runs import evaluations
from rlnb.shipped import data_folder
from rlnb.training.studies import controls

__all__ = ["before_and_after", "larger"]

FILES = {"0.3M": "chain_controls.json", "25M": "chain_large.json"}
WAYS = {
    "pass@1": "sampled",
    "greedy": "greedy",
    "forced/steps/greedy": "steps forced, greedy",
    "forced/direct": "direct forced",
}
TEXT = 10.5  # points: the size of the page's own text


def before_and_after() -> dict[str, dict[str, tuple[float, list[float]]]]:
    """{"0.3M": {way: (base, [a trained model for each seed])}, "25M": ...}, a way in WAYS."""
    table = {}
    for size, name in FILES.items():
        found = controls.reports(data_folder() / "runs" / name)
        base = found.pop("base")
        if size == "0.3M":  # sampled: 32 answers a problem, as everywhere on the page
            for one, (first, last) in zip(found.values(), ends("dr_grpo"), strict=True):
                base["pass@1"], one["pass@1"] = first["pass@1"], last["pass@1"]
        table[size] = {way: (base[way], [one[way] for one in found.values()]) for way in WAYS}
    return table


def larger() -> Picture:
    """Held-out pass@1 of 25M weights under the verifier and a coin; two sizes before and after."""
    arms = {
        "verifier": (evaluations("chain_large"), BLACK, "-o", (25, 0.83), BLACK),
        "coin, 20 steps": (evaluations("chain_large_coin_flip"), ORANGE, "--s", (23, 0.42),
                           "#A66F00"),
    }  # fmt: skip
    table = before_and_after()

    def build(figure, _):
        left = figure.add_axes((0.07, 0.2, 0.36, 0.66))
        left.set(xlim=(-1, 61), ylim=(0, 1.03), xlabel="step")
        left.set_title("25M: right, 250 unseen problems", weight="bold", fontsize=TEXT)
        for name, ((at, right), color, style, where, dark) in arms.items():
            left.plot(at, right.T, color=color, lw=0.9, alpha=0.55)
            left.plot(at, right.mean(0), style, color=color, lw=2.6, ms=5)
            left.text(*where, name, fontsize=11.5, weight="bold", color=dark)
        both = figure.add_axes((0.63, 0.2, 0.34, 0.66))
        both.set(xlim=(0, 1.03), ylim=(3.6, -0.6), xlabel="right")
        both.set_title("before and after, two sizes", weight="bold", fontsize=TEXT)
        both.set_yticks(range(len(WAYS)), WAYS.values())
        for (size, rows), up, color in zip(table.items(), (-0.16, 0.16), (SKY, BLACK), strict=True):
            for y, (before, after) in enumerate(rows.values()):
                both.plot((before, np.mean(after)), (y + up,) * 2, color=color, lw=1.2)
                both.plot(before, y + up, "o", mfc="white", color=color, ms=7)
                both.plot(after, (y + up,) * len(after), "o", color=color, ms=6, clip_on=False)
            both.plot([], [], "o-", color=color, label=size)
        both.legend(loc="lower right", frameon=False, fontsize=11)
        for axes in (left, both):
            axes.tick_params(labelsize=TEXT)
            axes.xaxis.label.set_fontsize(TEXT)

    ended = {name: ", ".join(f"{x:.2f}" for x in arm[0][1][:, -1]) for name, arm in arms.items()}
    said = "; ".join(
        f"{size} {WAYS[way]} {before:.2f} to {', '.join(f'{x:.2f}' for x in after)}"
        for size, rows in table.items()
        for way, (before, after) in rows.items()
    )
    return static_figure(
        build, size=(900, 270),
        alt=f"25M weights, three seeds: from {arms['verifier'][0][1][0, 0]:.2f} to "
        f"{ended['verifier']} in 60 steps; coin, 20 steps: {ended['coin, 20 steps']}. Before and "
        f"after: {said}.",
        caption="Left: recorded on a GPU, every seed; 4 answers a problem. Right: open before, "
        "filled after training, a dot a seed; 0.3M is this page's model.",
    )  # fmt: skip
