"""One pair, three answers: where a loss of the gap leads, and what the log says of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import above, at_least, checked
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, ORANGE, POSITIVE, signed
from rlnb.classroom.pictures.preferences import TEXT, corners, where
from rlnb.toys.preferences import ANSWERS, REFERENCE, along_the_pair, tone_features

STEPS = 120
CAPTION = (
    "Left where the policy has gone, from the grey square to the dot. Right the three answers; "
    "the grey line on a bar is the start."
)


@checked(beta=above(0), margin=at_least(0), shared=at_least(0))
def compute(beta: float = 0.1, margin: float = 2.0, shared: float = 1.5) -> dict[str, Any]:
    """Train DPO on "No over Never" until the log shows this margin.

    margin = beta (h_w - h_l), as rewards/margins has it. shared: how strongly the tone, which the
    answers share, moves the logits; 0 is a table. Returns path (STEPS, 3) of probabilities, policy
    (3,), gap in nats, loss, chosen (beta times the log-ratio of No: rewards/chosen), and the
    arguments.

    >>> compute(1.0, 3.0, 0.0)["policy"].round(2).tolist()
    [0.81, 0.07, 0.12]
    """
    reference = torch.tensor(REFERENCE, dtype=torch.float64)
    gap = margin / beta
    along = gap * torch.linspace(0, 1, STEPS, dtype=torch.float64).square()  # dense at the start
    path = along_the_pair(tone_features(shared), reference, along).numpy()
    return {
        "beta": beta,
        "margin": margin,
        "shared": shared,
        "gap": gap,
        "loss": float(np.logaddexp(0, -margin)),
        "path": path,
        "policy": path[-1],
        "chosen": beta * float(np.log(path[-1, 0] / path[0, 0])),
    }


def build(figure, data):
    left = figure.add_axes((0.0, 0.0, 0.46, 1.0))
    corners(left)
    left.plot(*where(data["path"][:1])[0], "s", color=GREY, ms=9)
    right = figure.add_axes((0.53, 0.2, 0.44, 0.76))
    right.set(xlim=(-0.6, 2.6), ylim=(0, 1.12), xticks=range(3), yticks=(0, 0.2, 0.4, 0.6, 0.8, 1))
    right.set_xticklabels([f"{a}\n{role}" for a, role in zip(
        ANSWERS, ("chosen", "rejected", "in no pair"), strict=True)])  # fmt: skip
    right.tick_params(labelsize=TEXT)
    right.set_ylabel("probability", fontsize=TEXT)
    bars = right.bar(range(3), REFERENCE, 0.6, color=(POSITIVE, NEGATIVE, BLACK))
    marks = [
        right.plot([i - 0.34, i + 0.34], [p, p], color=GREY, lw=3)[0]
        for i, p in enumerate(REFERENCE)
    ]
    return {
        "path": left.plot([], [], color=ORANGE, lw=3)[0],
        "dot": left.plot([], [], "o", color=ORANGE, ms=11, mec=BLACK)[0],
        "bars": bars,
        "marks": marks,
        "numbers": [right.text(i, 0, "", ha="center", fontsize=11) for i in range(3)],
    }


def update(artists, data):
    points = where(data["path"])
    artists["path"].set_data(*points.T)
    artists["dot"].set_data(*points[-1:].T)
    for i, (bar, text) in enumerate(zip(artists["bars"], artists["numbers"], strict=True)):
        p, mark = float(data["policy"][i]), REFERENCE[i]
        bar.set_height(p)
        text.set_position((i, (mark if p < mark < p + 0.13 else p) + 0.035))
        text.set_text(f"{p:.2f}")


def readout(data) -> str:
    right = "100 %" if data["margin"] > 0 else "0 %"
    return (
        f"Log: loss {data['loss']:.3f}, margins {data['margin']:.2f}, accuracies {right}, "
        f"rewards/chosen {signed(data['chosen'], 3)}. Gap in h: {data['gap']:.1f} nats."
    )


def alt(data) -> str:
    ends = ", ".join(f"{a} {p:.2f}" for a, p in zip(ANSWERS, data["policy"], strict=True))
    return f"A path in the triangle of three answers, and bars: {ends}. {readout(data)}"


def last_that_holds(data) -> bool:
    """beta 0.1, margin 8, and the largest strength of the slider at which No ends above 0.9."""
    far = abs(data["beta"] - 0.1) < 1e-9 and abs(data["margin"] - 8) < 1e-9
    return far and abs(data["shared"] - 0.95) < 1e-9 and data["policy"][0] > 0.9


def strong_and_kept(data) -> bool:
    """Strength 1.5, loss below 0.05, and the chosen answer the likeliest of the three."""
    no, never, yes = data["policy"]
    return abs(data["shared"] - 1.5) < 1e-9 and data["loss"] < 0.05 and no > max(never, yes)


def one_pair_explorer() -> Explorer:
    """beta, the margin that the log shows, and how strongly the answers share a feature."""
    return Explorer(
        compute,
        build,
        update,
        {
            "shared": slider(1.5, 0.0, 2.0, 0.05, "shared tone k", "0: a table, nothing shared"),
            "beta": slider(0.1, 0.1, 3.0, 0.1, "β", "the loss's temperature"),
            "margin": slider(8.0, 0.0, 8.0, 0.1, "margin in the log", "grows as you train"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 290),
    )
