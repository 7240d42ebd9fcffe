"""One step on one prompt: what the covariance says of the entropy, and what it does.

Five answers, one right. The wrong ones share the rest unevenly, each a third as likely as the one
before. The step moves every logit by eta times its advantage, reward minus mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, POSITIVE, signed
from rlnb.toys.entropy import entropy, linear_change

__all__ = [
    "alt", "build", "compute", "entropy_step_explorer", "more_of_both",
    "promised_and_lost", "readout", "update",
]  # fmt: skip

ANSWERS = 5
CAPTION = (
    "Pale: before the step. Full: after it. Blue is the right answer: it has reward 1, the others "
    "0, and an advantage is reward minus mean reward. "
    "Right panel: what the covariance says of the entropy, and what became of it."
)


def _policy(p: float) -> torch.Tensor:
    """(5,) the right answer first."""
    wrong = 3.0 ** -torch.arange(1, ANSWERS, dtype=torch.float64)
    return torch.cat([torch.tensor([p], dtype=torch.float64), (1 - p) * wrong / wrong.sum()])


@echoing
@checked(p=between(0.01, 0.99), eta=between(0.0, 8.0))
def compute(p: float = 0.5, eta: float = 0.5) -> dict[str, Any]:
    """before, after (5,): chances. start, end: entropies in nats; said: -eta Cov(log pi, A).

    >>> round(compute(0.5, 0.1)["said"], 4), round(compute(0.5, 0.1)["done"], 4)
    (-0.0222, -0.0234)
    """
    pi = _policy(p)
    advantage = torch.zeros(ANSWERS, dtype=torch.float64)
    advantage[0] = 1.0
    advantage -= pi @ advantage
    z = pi.log()
    after = z + eta * advantage
    start, end = entropy(z).item(), entropy(after).item()
    return {
        "p": p, "eta": eta, "before": pi.numpy(), "after": after.softmax(-1).numpy(),
        "start": start, "end": end, "done": end - start,
        "said": linear_change(z, eta * advantage).item(),
    }  # fmt: skip


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    axes = figure.add_axes((0.065, 0.14, 0.55, 0.78))
    axes.set(xlim=(-0.6, ANSWERS - 0.4), ylim=(0, 1.02), yticks=np.arange(0, 1.1, 0.25))
    axes.set_xticks(range(ANSWERS), ["right", *(f"wrong {i}" for i in range(1, ANSWERS))])
    axes.tick_params(labelsize=10.5)
    axes.set_ylabel("chance", fontsize=10.5)
    colors = [POSITIVE, *[NEGATIVE] * (ANSWERS - 1)]
    place = np.arange(ANSWERS)
    right = figure.add_axes((0.72, 0.14, 0.26, 0.78))
    right.set(xlim=(-0.5, 1.5), ylim=(-1.5, 1.5), yticks=(-1, 0, 1))
    right.set_xticks([0, 1], ["−η Cov", "in truth"])
    right.tick_params(labelsize=10.5)
    right.set_title("change of entropy, nats", fontsize=10.5, loc="left")
    right.axhline(0, color=BLACK, lw=0.8)
    return {
        "before": axes.bar(place - 0.2, place * 0.0, 0.38, color=colors, alpha=0.3),
        "after": axes.bar(place + 0.2, place * 0.0, 0.38, color=colors),
        "change": right.bar([0, 1], [0, 0], 0.55, color=[GREY, BLACK]),
        "texts": [right.text(i, 0, "", ha="center", fontsize=11, weight="bold") for i in (0, 1)],
    }


def update(artists, data):
    """The figure moved to new data."""
    for name in ("before", "after"):
        for bar, height in zip(artists[name], data[name], strict=True):
            bar.set_height(height)
    for bar, text, value in zip(
        artists["change"], artists["texts"], (data["said"], data["done"]), strict=True
    ):
        shown = float(np.clip(value, -1.2, 1.2))
        bar.set_height(shown)
        text.set_text(signed(value, 2))
        text.set_y(shown + (0.06 if value >= 0 else -0.22))


def readout(data) -> str:
    """The numbers that change, as a sentence."""
    return (
        f"right: {data['before'][0]:.2f} becomes {data['after'][0]:.2f}. Entropy "
        f"{data['start']:.2f} becomes {data['end']:.2f}: {signed(data['done'], 2)}, "
        f"the covariance says {signed(data['said'], 2)}."
    )


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    return (
        f"Chances of five answers before and after a step of η = {data['eta']:.1f}; {readout(data)}"
    )


def more_of_both(data) -> bool:
    """The right answer at least doubles, and the entropy rises by 0.1 or more."""
    return data["after"][0] >= 2 * data["before"][0] and data["done"] >= 0.1


def promised_and_lost(data) -> bool:
    """The covariance says that entropy rises by 0.05 or more, and it falls by as much."""
    return data["said"] >= 0.05 and data["done"] <= -0.05


def entropy_step_explorer() -> Explorer:
    """How likely the right answer is, and how far the step goes."""
    return Explorer(
        compute,
        build,
        update,
        {
            "p": slider(0.5, 0.01, 0.99, 0.01, "chance of the right one", "before the step"),
            "eta": slider(0.5, 0.0, 8.0, 0.1, "step η", "a logit moves by η times its advantage"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 300),
    )
