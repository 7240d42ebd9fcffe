"""The token grid: a row an answer, a column a token, colour the push on its log-probability.

Every method page draws the same four answers, so that a method is a picture before it is a formula.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from torch import Tensor

from rlnb.classroom.figures import (
    BLACK,
    GREY,
    NEGATIVE,
    PALE,
    POSITIVE,
    Picture,
    signed,
    static_figure,
)
from rlnb.objective import Batch

__all__ = ["answer_labels", "empty_grid", "paint", "probability_grid", "token_grid"]

FULL = 1.2  # a push of this size has the full colour
TEXT = 10.5  # points: 14 pixels, the size of the page's own text
LEFT = 0.15  # room for the names of the answers, as a share of the width


def token_grid(
    batch: Batch,
    pushes: Mapping[str, Tensor],
    *,
    caption: str,
    outside: Tensor | None = None,
    count: str = "silent",
    height: int = 290,
) -> Picture:
    """A panel per method: `pushes[name]` (B, T) is the push on each token's log-probability.

    Blue pushes up, orange down, hatched is exactly 0. `outside` (B, T, bool) gives the cells a bold
    frame; `count` is the word for hatched cells in a panel's title, "" for no count.
    """
    mask = batch.mask.numpy() > 0
    data = {name: push.detach().numpy() for name, push in pushes.items()}
    bold = np.zeros_like(mask) if outside is None else outside.detach().numpy()
    dead = {name: int((push[mask] == 0).sum()) for name, push in data.items()}

    def build(figure, _):
        width = (1 - LEFT) / len(data)
        for k, (name, push) in enumerate(data.items()):
            axes = figure.add_axes((LEFT + width * k, 0.12, width - 0.012, 0.76))
            boxes, texts = empty_grid(axes, mask, size=TEXT if len(data) < 3 else 9)
            if k == 0:
                answer_labels(axes, batch.rewards.tolist())
            for at, box in boxes.items():
                paint(box, texts[at], push[at], bool(bold[at]))
            title = f"{name}: {dead[name]} {count}" if count else name
            axes.set_title(title, fontsize=TEXT, weight="bold")
        key = "blue: pushed up      orange: pushed down"
        key += "      hatched: no push" if any(dead.values()) else ""
        key += "      bold frame: outside the band" if bold.any() else ""
        figure.text(LEFT + (1 - LEFT) / 2, 0.03, key, ha="center", fontsize=TEXT)

    counts = "; ".join(
        f"{name}: {n} of {mask.sum()} {count or 'silent'}" for name, n in dead.items()
    )
    alt = f"Token grid, push on the log-probability of each token. {counts}."
    return static_figure(build, size=(900, height), alt=alt, caption=caption)


def probability_grid(batch: Batch, *, caption: str, outside: Tensor | None = None) -> Picture:
    """The group half-way through its batch: probability before and now, and their ratio."""
    mask = batch.mask.numpy() > 0
    old, new = batch.old_logprobs.exp().numpy(), batch.logprobs.detach().exp().numpy()
    bold = np.zeros_like(mask) if outside is None else outside.detach().numpy()

    def build(figure, _):
        axes = figure.add_axes((LEFT, 0.02, 1 - LEFT, 0.87))
        boxes, texts = empty_grid(axes, mask)
        answer_labels(axes, batch.rewards.tolist())
        for (i, j), box in boxes.items():
            frame(box, bool(bold[i, j]))
            ratio = new[i, j] / old[i, j]
            texts[i, j].set_text(f"{old[i, j]:.4g} → {new[i, j]:.4g}\nratio {ratio:.2f}")
            if len(texts[i, j].get_text()) > 25:  # 0.0001 → 0.0002 would touch its frame
                texts[i, j].set_fontsize(9)
        for j in range(mask.shape[1]):
            axes.text(j + 0.5, -0.1, f"token {j}", ha="center", fontsize=TEXT, color=GREY)

    rows = "; ".join(
        f"answer {i}: " + ", ".join(f"{new[i, j] / old[i, j]:.2f}" for j in np.nonzero(mask[i])[0])
        for i in range(len(mask))
    )
    alt = f"Probability of each token before and now. Ratios: {rows}."
    return static_figure(build, size=(900, 290), alt=alt, caption=caption)


def empty_grid(axes, mask: np.ndarray, *, size: float = TEXT):
    """A box and an empty text per token, row 0 on top; both keyed by (row, column)."""
    axes.set(xlim=(-0.03, mask.shape[1]), ylim=(mask.shape[0], -0.03))
    axes.axis("off")
    boxes, texts = {}, {}
    for i, j in zip(*(index.tolist() for index in np.nonzero(mask)), strict=True):
        box = Rectangle((j + 0.04, i + 0.07), 0.92, 0.86, lw=1.2, ec=GREY, fc="white")
        boxes[i, j] = axes.add_patch(box)
        texts[i, j] = axes.text(j + 0.5, i + 0.5, "", ha="center", va="center", fontsize=size)
    return boxes, texts


def answer_labels(axes, rewards: Sequence[float]) -> None:
    """Left of each row: right or wrong."""
    for i, reward in enumerate(rewards):
        name, color = ("right", POSITIVE) if reward > 0 else ("wrong", NEGATIVE)
        axes.text(
            -0.15,
            i + 0.5,
            f"answer {i}\n{name}",
            ha="right",
            va="center",
            fontsize=TEXT,
            color=color,
        )


def frame(box, bold: bool) -> None:
    """A heavy black frame, or a thin grey one."""
    box.set_edgecolor(BLACK if bold else "#B5B5B5")
    box.set_linewidth(2.4 if bold else 1.0)


def paint(box, text, push: float, bold: bool) -> None:
    """Colour one cell by its push, and write it; exactly 0 is hatched."""
    frame(box, bold)
    if push == 0:
        box.set_facecolor(PALE)
        box.set_hatch("////")
        # matplotlib draws a hatch in the colour of the edge: black lines under a bold frame
        text.set_text("0")
        text.set_color(BLACK)
        text.set_bbox({"fc": PALE, "ec": "none", "pad": 1.5})
        return
    share = min(abs(push) / FULL, 1) ** 0.8
    color = to_rgb(POSITIVE if push > 0 else NEGATIVE)
    box.set_hatch("")
    box.set_facecolor(tuple(1 - share * (1 - c) for c in color))
    text.set_text(signed(push, 2))
    text.set_color("white" if share > 0.66 else BLACK)
    text.set_bbox(None)
