"""The running group's loss beside its gradient: each may be 0 without the other."""

from __future__ import annotations

from typing import Any

import torch

from rlnb.classroom.explorer import Explorer, choice, slider
from rlnb.classroom.explorers.arguments import between, checked, one_of
from rlnb.classroom.figures import BLACK, BLUE, GREY, signed
from rlnb.classroom.pictures.token_grid import answer_labels, empty_grid, paint
from rlnb.objective import ZOO, token_mean
from rlnb.toys import running_group

CAPTION = (
    "Left the push on each token, times 4; hatched: no push. A step adds a quarter of that number "
    "to the token's log-probability, which began at log 1/2. Right the loss, and the length of all "
    "sixteen pushes together."
)
SIZE = (900, 290)
MOST = 12  # steps
GRPO = ZOO["grpo"].replace(terms=())
RULES = {"each answer": GRPO, "each token": GRPO.replace(weights=token_mean)}


@checked(right=between(0, 4), steps=between(0, MOST), counts=one_of(tuple(RULES)))
def compute(right: int = 2, steps: int = 0, counts: str = "each answer") -> dict[str, Any]:
    """GRPO without KL on the running group with its first `right` answers right.

    counts: what weighs the same in the average, "each answer" or "each token".
    steps: gradient steps taken on these four answers since they were written, at rate 1. Each token
    had probability 1/2 then, and its log-prob moves on its own. Returns loss, norm (of the gradient
    with respect to the tokens' log-probs), push (4, 6), minus that gradient times 4, mask, and the
    arguments.

    >>> answer = compute()
    >>> round(answer["loss"], 4) + 0.0, round(answer["norm"], 4)
    (0.0, 0.2739)
    >>> round(compute(steps=8)["loss"], 2), compute(steps=8)["norm"]
    (-0.2, 0.0)
    """
    group = running_group()
    rewards = (torch.arange(4) < right).to(group.rewards.dtype)
    old = torch.full_like(group.old_logprobs, 0.5).log()
    logprobs = old
    for step in range(steps + 1):
        logprobs = logprobs.detach().requires_grad_(True)
        loss = RULES[counts](
            group.replace(logprobs=logprobs, old_logprobs=old, rewards=rewards)
        ).loss
        (gradient,) = torch.autograd.grad(loss, logprobs)
        if step < steps:
            logprobs = logprobs - gradient
    return {
        "right": right,
        "steps": steps,
        "counts": counts,
        "loss": loss.item(),
        "norm": gradient.norm().item(),
        "push": -4 * gradient,
        "mask": group.mask,
    }


def build(figure, data):
    grid = figure.add_axes((0.13, 0.04, 0.55, 0.92))
    boxes, texts = empty_grid(grid, data["mask"].numpy())
    log = figure.add_axes((0.77, 0.16, 0.21, 0.68))
    log.set(xlim=(-0.32, 0.48), ylim=(-0.6, 1.6), xticks=(-0.2, 0, 0.2, 0.4), yticks=(1, 0))
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
    n = data["steps"]
    since = "fresh answers" if n == 0 else f"{n} step{'s' if n > 1 else ''} on them"
    return (
        (
            f"{data['right']} of 4 right, {since}, {data['counts']} alike: "
            f"loss {data['loss'] + 0.0:.4f}, "
            f"length of the gradient {data['norm']:.4f}."
        )
        .replace("-0.0000", "0.0000")
        .replace("-", "−")
    )


def alt(data) -> str:
    return f"Token grid of the running group beside two bars. {readout(data)}"


def only_the_loss(data) -> bool:
    """A loss that is not 0, and no gradient: the clip has silenced every token."""
    return abs(data["loss"]) > 1e-6 and data["norm"] == 0.0


def one_right_and_only_the_loss(data) -> bool:
    """The same with one right answer, each answer alike."""
    return data["right"] == 1 and data["counts"] == "each answer" and only_the_loss(data)


def above_zero(data) -> bool:
    """Fresh answers whose loss is above 0."""
    return data["steps"] == 0 and data["loss"] > 1e-6


def loss_and_gradient_explorer() -> Explorer:
    """How many of the four answers are right, and how many steps were taken on them."""
    return Explorer(
        compute,
        build,
        update,
        {
            "right": slider(2, 0, 4, 1, "right answers", "of four"),
            "steps": slider(0, 0, MOST, 1, "steps taken", "0: the answers are fresh"),
            "counts": choice(
                "each answer", [(rule, rule) for rule in RULES], "counts alike", "in the average"
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=SIZE,
    )
