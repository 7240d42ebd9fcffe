"""The running group's loss beside its gradient: the one may be 0 without the other."""

from __future__ import annotations

from typing import Any

import torch

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import between, checked
from rlnb.classroom.figures import BLACK, BLUE, GREY, signed
from rlnb.classroom.pictures.token_grid import answer_labels, empty_grid, paint
from rlnb.objective import ZOO
from rlnb.toys import running_group

CAPTION = (
    "Left the push on each token's log-probability, times 4. Right what a log would print: the "
    "loss, and the length of the gradient."
)
SIZE = (900, 290)


@checked(right=between(0, 4), moved=between(0, 1))
def compute(right: int = 2, moved: float = 0.0) -> dict[str, Any]:
    """GRPO without KL on the running group with its first `right` answers right.

    moved: how far the policy has gone from where it wrote the answers (0) to the running group's
    current policy (1); log-probs in between are interpolated. Returns loss, norm (of the gradient
    with respect to the tokens' log-probs), push (4, 6), minus that gradient times 4, mask, and the
    arguments.

    >>> answer = compute()
    >>> round(answer["loss"], 4) + 0.0, round(answer["norm"], 4)
    (0.0, 0.2739)
    """
    group = running_group()
    old, now = group.old_logprobs.detach(), group.logprobs.detach()
    logprobs = (old + moved * (now - old)).requires_grad_(True)
    rewards = (torch.arange(4) < right).to(logprobs.dtype)
    loss = ZOO["grpo"].replace(terms=())(group.replace(logprobs=logprobs, rewards=rewards)).loss
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return {
        "right": right,
        "moved": moved,
        "loss": loss.item(),
        "norm": gradient.norm().item(),
        "push": -4 * gradient,
        "mask": group.mask,
    }


def build(figure, data):
    grid = figure.add_axes((0.13, 0.04, 0.55, 0.92))
    boxes, texts = empty_grid(grid, data["mask"].numpy())
    log = figure.add_axes((0.77, 0.16, 0.21, 0.68))
    log.set(xlim=(-0.2, 0.6), ylim=(-0.6, 1.6), xticks=(-0.2, 0, 0.2, 0.4, 0.6), yticks=(1, 0))
    log.set_yticklabels(("loss", "gradient"), fontsize=11)
    log.tick_params(labelsize=10.5)
    log.axvline(0, color=BLACK, lw=0.8)
    for side in ("top", "right", "left"):
        log.spines[side].set_visible(False)
    bars = log.barh((1, 0), (0, 0), height=0.4, color=(GREY, BLUE))
    numbers = [log.text(0.03, y + 0.33, "", ha="left", fontsize=12, weight="bold") for y in (1, 0)]
    return {"grid": grid, "boxes": boxes, "texts": texts, "bars": bars, "numbers": numbers}


def update(artists, data):
    for at, box in artists["boxes"].items():
        paint(box, artists["texts"][at], float(data["push"][at]) + 0.0, False)
    for label in [t for t in artists["grid"].texts if t.get_text().startswith("answer")]:
        label.remove()
    answer_labels(artists["grid"], [float(i < data["right"]) for i in range(4)])
    for bar, number, value in zip(
        artists["bars"], artists["numbers"], (data["loss"], data["norm"]), strict=True
    ):
        bar.set_width(value)
        number.set_text(f"{abs(value):.3f}" if abs(value) < 5e-4 else signed(value, 3))


def readout(data) -> str:
    rose = "fresh answers" if data["moved"] == 0 else f"policy moved {data['moved']:.0%}"
    return (
        f"{data['right']} of 4 right, {rose}: loss {data['loss'] + 0.0:.4f}, "
        f"length of the gradient {data['norm']:.4f}."
    ).replace("-0.0000", "0.0000")


def alt(data) -> str:
    return f"Token grid of the running group beside two bars. {readout(data)}"


def loss_moves(data) -> bool:
    """A loss other than 0, with two right answers as at the start."""
    return data["right"] == 2 and abs(data["loss"]) > 1e-3


def gradient_stops(data) -> bool:
    """No gradient at all."""
    return data["norm"] == 0.0


def loss_and_gradient_explorer() -> Explorer:
    """How many of the four answers are right, and how far the policy has moved since."""
    return Explorer(
        compute,
        build,
        update,
        {
            "right": slider(2, 0, 4, 1, "right answers", "of four"),
            "moved": slider(0.0, 0.0, 1.0, 0.1, "policy moved", "0: the answers are fresh"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=SIZE,
    )
