"""The token grid under PPO's clip: which of sixteen tokens still feel a push."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import between, checked
from rlnb.classroom.figures import signed
from rlnb.classroom.pictures.token_grid import LEFT, answer_labels, empty_grid, paint
from rlnb.objective import clip
from rlnb.toys import running_group

CAPTION = (
    "Every cell is a token of the running group: its ratio and its push, hatched where the push is "
    "0. A bold frame stands outside the band."
)


@checked(epsilon=between(0, 1))
def compute(epsilon: float = 0.2, dual: float | None = None) -> dict[str, Any]:
    """The push on each token of the running group under clip and min, by autograd.

    epsilon in [0, 1): the band is [1 - epsilon, 1 + epsilon]. dual is c > 1; None or infinity is
    off. Returns mask, ratio, push (4, 6), `silent` and `outside`: sets of (answer, token), and the
    arguments. The advantage is reward minus the group's mean, so plus or minus one half.

    >>> sorted(compute()["silent"])
    [(0, 1), (1, 1), (1, 3), (3, 0)]
    """
    if dual == math.inf:
        dual = None
    batch = running_group()
    log_ratio = (batch.logprobs - batch.old_logprobs).detach().requires_grad_()
    advantages = (batch.rewards - batch.rewards.mean())[:, None].expand_as(log_ratio)
    value = clip(epsilon, dual=dual)(None, advantages, log_ratio)
    (push,) = torch.autograd.grad(value[batch.mask].sum(), log_ratio)
    mask, ratio = batch.mask.numpy(), log_ratio.detach().exp().numpy()
    # a ratio on the edge is inside: 1.4 is written as 1.4000000000000001
    outside = mask & (np.abs(ratio - 1) > epsilon + 1e-9)
    return {
        "mask": mask,
        "ratio": ratio,
        "push": push.numpy(),
        "silent": _places(mask & (push.numpy() == 0)),
        "outside": _places(outside),
        "rewards": batch.rewards.tolist(),
        "epsilon": epsilon,
        "dual": dual,
    }


def _places(where: np.ndarray) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in zip(*np.nonzero(where), strict=True)}


def build(figure, data):
    axes = figure.add_axes((LEFT, 0.11, 1 - LEFT - 0.005, 0.87))
    boxes, texts = empty_grid(axes, data["mask"])
    answer_labels(axes, data["rewards"])
    line = figure.text(LEFT, 0.03, "", fontsize=11)
    return {"boxes": list(boxes.values()), "texts": list(texts.values()), "line": line}


def update(artists, data):
    places = zip(*np.nonzero(data["mask"]), strict=True)
    for at, box, text in zip(places, artists["boxes"], artists["texts"], strict=True):
        push = float(data["push"][at])
        paint(box, text, push, (int(at[0]), int(at[1])) in data["outside"])
        text.set_text(f"ratio {data['ratio'][at]:.2f}\npush {signed(push, 2)}")
    artists["line"].set_text(readout(data))


def readout(data) -> str:
    dual = "off" if data["dual"] is None else f"{data['dual']:.2f}"
    return (
        f"Band {1 - data['epsilon']:.2f} to {1 + data['epsilon']:.2f}, c {dual}: "
        f"{len(data['outside'])} of 16 tokens outside, {len(data['silent'])} silent."
    )


def alt(data) -> str:
    silent = ", ".join(f"answer {i} token {j}" for i, j in sorted(data["silent"])) or "none"
    return f"Token grid under clip and min. {readout(data)} Silent: {silent}."


def four_and_no_other(data) -> bool:
    """Silent are the good tokens at 6.00 and 1.40 and the bad ones at 0.70 and 3.50."""
    return data["silent"] == {(1, 1), (1, 3), (3, 0), (2, 0)}


def closes_the_door(data) -> bool:
    """The bad token at 3.50 is silent, the bad one at 2.00 is not."""
    return (2, 0) in data["silent"] and (3, 4) not in data["silent"]


def token_gates_explorer() -> Explorer:
    """Epsilon and the dual clip's c, on the sixteen tokens of the running group."""
    caps = [(f"{c:.2f}", c) for c in np.arange(1.5, 6.01, 0.25).tolist()]
    return Explorer(
        compute,
        build,
        update,
        {
            # not PPO's 0.2: the grid above on the page has that
            "epsilon": slider(0.15, 0.0, 0.9, 0.01, "ε", "the band goes from 1 − ε to 1 + ε"),
            "dual": choice_slider(
                math.inf,
                [*caps, ("off", math.inf)],
                "c (bad tokens)",
                "bad tokens with a ratio above c are silent too",
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 295),
    )
