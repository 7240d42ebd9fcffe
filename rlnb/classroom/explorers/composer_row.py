"""The lesson's composer: a method as its row of seven choices, and below it the pushes.

The row is that of the page's pictures: a box per choice, filled where it is not the choice of the
method one started from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from rlnb.classroom.explorers import composer_picture
from rlnb.classroom.explorers.composer_menus import choices_of
from rlnb.classroom.figures import BLACK, GREY, ORANGE, signed
from rlnb.objective import (
    cispo,
    clip,
    constant_length,
    divergence_mask,
    engine_ratio,
    gae,
    group_center,
    group_zscore,
    k3,
    leave_one_out,
    logprob,
    raw_reward,
    sapo,
    sequence,
    sequence_mean,
    sequence_sum,
    token,
    token_mean,
)

__all__ = ["SIZE", "TITLES", "WORDS", "alt", "build", "cosine", "factor", "readout", "update"]

SIZE = (900, 284)
TITLES = {
    "reinforce": "REINFORCE",
    "rloo": "RLOO",
    "ppo": "PPO",
    "grpo": "GRPO",
    "dapo": "DAPO",
    "dr_grpo": "Dr. GRPO",
    "gspo": "GSPO",
    "cispo": "CISPO",
    "sapo": "SAPO",
    "dppo": "DPPO",
}
# menu -> (its column, the words of its parts); the reward has a column and no menu
WORDS: dict[str, tuple[str, tuple[tuple[Any, str], ...]]] = {
    "advantage": (
        "advantage",
        (
            (raw_reward(), "none: the\nreward itself"),
            (leave_one_out(), "mean of\nthe others"),
            (gae(1.0, 0.95), "a critic"),
            (group_zscore(), "group's mean\nand std"),
            (group_center(), "mean only"),
        ),
    ),
    "ratio": (
        "ratio",
        (
            (token(), "per token,\nto π_old"),
            (token("sampling"), "per token,\nto the engine"),
            (sequence(), "per answer,\nto π_old"),
        ),
    ),
    "surrogate": (
        "surrogate",
        (
            (logprob(), "A log π,\nno ratio"),
            (clip(0.2), "clip,\n0.8 to 1.2"),
            (clip(0.2, high=0.28), "clip,\n0.8 to 1.28"),
            (clip(3e-4, high=4e-4), "clip, 0.9997\nto 1.0004"),
            (cispo(5.0), "weight ρ,\ncapped at 5"),
            (cispo(20.0), "weight ρ,\ncapped at 20"),
            (sapo(), "soft edge"),
        ),
    ),
    "gates": (
        "gate",
        (
            ((), "none"),
            (divergence_mask(0.15, anchor="sampling"), "drop moved\ntokens"),
            (engine_ratio("token", "truncate", high=2.0), "engine ratio,\ncapped at 2"),
        ),
    ),
    "weights": (
        "weights",
        (
            (sequence_mean(), "mean per\nanswer"),
            (token_mean(), "all tokens\nalike"),
            (constant_length(), "constant\nlength"),
            (sequence_sum(), "sum per\nanswer"),
        ),
    ),
    "kl": ("terms", (((), "none"), (k3(0.04), "k3 to π_ref,\nβ = 0.04"))),
}
LEFT, NARROW, WIDE, HIGH = 116, 64, 118, 42  # of the row of boxes
LIT, TEXT = "#FFF1CC", 10.5
SAME = 1e-5  # relative; eps of a z-score moves a push by 2e-6


def words_of(data: dict[str, Any]) -> dict[str, str]:
    """Menu -> what stands in its box."""
    parts = choices_of(data["objective"])
    return {
        menu: next(text for part, text in known if part == parts[menu])
        for menu, (_, known) in WORDS.items()
    }


def exchanged(data: dict[str, Any]) -> list[str]:
    """The menus whose part is another than in the method one started from."""
    now, before = choices_of(data["objective"]), choices_of(data["start"])
    return [menu for menu in WORDS if now[menu] != before[menu]]


def cosine(data: dict[str, Any]) -> float | None:
    """Between these pushes and those of the method one started from; None where one is all 0."""
    now = data["push"][data["mask"]]
    before = now - data["change"][data["mask"]]
    size = np.linalg.norm(now) * np.linalg.norm(before)
    return float(now @ before / size) if size else None


def factor(data: dict[str, Any]) -> float | None:
    """The number that turns the start's pushes into these, if one number does."""
    now = data["push"][data["mask"]]
    before = now - data["change"][data["mask"]]
    if not before.any() or not now.any():
        return None
    times = float(now @ before / (before @ before))
    same = np.abs(now - times * before).max() < SAME * np.abs(now).max()
    return times if same and times > 0 else None


def readout(data: dict[str, Any]) -> str:
    """How many pushes are other than in the method one started from, and how far they turned."""
    if data["problem"]:
        return "This loss cannot run."
    count, of = int(composer_picture.moved(data).sum()), int(data["mask"].sum())
    said = f"Against {TITLES[data['start']]}: pushes changed: {count} of {of}"
    times, near = factor(data), cosine(data)
    if not count:
        return f"{said}."
    if near is None:
        return f"{said}; no push is left."
    if times is not None:
        return f"{said}; cosine 1, all times {times:.2f}."
    return f"{said}; cosine " + (f"{near:.3f}." if near < 0.9995 else "above 0.999.")


def alt(data: dict[str, Any]) -> str:
    """The row in words, the readout, the largest push: what a reader without eyes needs."""
    row = "; ".join(f"{WORDS[menu][0]} {text}" for menu, text in words_of(data).items())
    head = f"The composer: {_title(data)}. {row}.".replace("\n", " ")
    if data["problem"]:
        return f"{head} It cannot run: {data['problem']}"
    size = np.abs(data["push"]).max() * data["mask"].sum()
    sums = ", ".join(f"{s * data['mask'].sum():.2f}" for s in data["answers"])
    return (
        f"{head} {readout(data)} Cells: the push on each token, at most {size:.2f} in size. "
        f"Sum of their sizes, answer by answer: {sums}."
    )


def _title(data: dict[str, Any]) -> str:
    if data["name"]:
        return TITLES.get(data["name"], data["name"])
    return f"from {TITLES[data['start']]}"


def _place(column: int) -> tuple[float, float]:
    """Left edge and width of a column."""
    return (LEFT, NARROW) if column == 0 else (LEFT + NARROW + WIDE * (column - 1), WIDE)


def build(figure, data):
    """The pushes as in the full composer, under a row of seven boxes."""
    artists = composer_picture.build(figure, data, height=SIZE[1])
    axes = figure.axes[0]
    del artists["title"]
    for column, name in enumerate(("reward", *(head for head, _ in WORDS.values()))):
        x, width = _place(column)
        axes.text(x + width / 2, 10, name, ha="center", va="center", size=TEXT, weight="bold")
        artists["box", column] = axes.add_patch(
            Rectangle((x + 1, 20), width - 3, HIGH, fc="white", ec=GREY, lw=1)
        )
        artists["word", column] = axes.text(
            x + width / 2, 20 + HIGH / 2, "as it is", ha="center", va="center", size=TEXT,
            linespacing=0.95,
        )  # fmt: skip
    artists["name"] = axes.text(8, 41, "", va="center", size=TEXT, weight="bold")
    return artists


def update(artists, data):
    """The figure moved to new data."""
    lit = exchanged(data)
    for column, (menu, text) in enumerate(words_of(data).items(), 1):
        artists["word", column].set_text(text)
        artists["box", column].set_facecolor(LIT if menu in lit else "white")
        artists["box", column].set_edgecolor(ORANGE if menu in lit else GREY)
    artists["name"].set_text(_title(data).replace("from ", "from\n"))
    artists["name"].set_color(BLACK)
    count = running_tokens(data)
    artists["letters"].lines = composer_picture.paint(
        artists, data, lambda value: signed(count * value, 2)
    )


def running_tokens(data: dict[str, Any]) -> int:
    """Tokens of the batch: pushes are shown in units of an average token's share."""
    return int(data["mask"].sum()) if data["problem"] is None else 1
