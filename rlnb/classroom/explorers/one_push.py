"""One drawn answer and the push it gives, beside the mean of all pushes.

The toy. A softmax over four answers of one token each, A and B right, C and D wrong. One is drawn;
every logit k moves by R (1[k drawn] - pi_k).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import between, checked, one_of
from rlnb.classroom.figures import BLACK, NEGATIVE, POSITIVE, signed

NAMES = ("A", "B", "C", "D")
PI = np.array([0.4, 0.1, 0.3, 0.2])
RIGHT = np.array([1.0, 1.0, 0.0, 0.0])
CAPTION = (
    "Left what one draw does to the four logits. Right the mean over all draws, each counted with "
    "its probability."
)


@checked(drawn=one_of(NAMES), constant=between(-2, 2))
def compute(drawn: str = "A", constant: float = 0.0) -> dict[str, Any]:
    """REINFORCE on one drawn answer; `constant` is added to all rewards.

    Returns rewards (4,), push (4,) of this draw on the logits, mean (4,) over all draws, and the
    arguments.

    >>> compute("A")["push"].round(2).tolist()
    [0.6, -0.1, -0.3, -0.2]
    >>> compute("C", 1.0)["mean"].round(2).tolist()
    [0.2, 0.05, -0.15, -0.1]
    """
    rewards, at = RIGHT + constant, NAMES.index(drawn)
    score = np.eye(len(PI)) - PI
    return {
        "drawn": drawn,
        "constant": constant,
        "rewards": rewards,
        "push": rewards[at] * score[at],
        "mean": (PI * rewards) @ score,
    }


def build(figure, data):
    artists: dict[Any, Any] = {}
    for k, (key, title, edge) in enumerate(
        (("push", "push of this draw", 2.2), ("mean", "mean push over all draws", 0.33))
    ):
        axes = figure.add_axes((0.07 + 0.5 * k, 0.2, 0.42, 0.68))
        axes.set(xlim=(-0.9, 3.6), ylim=(-edge, edge), yticks=(-edge / 1.1, 0, edge / 1.1))
        axes.set_xticks(
            range(4),
            [f"{n}, {'right' if r else 'wrong'}\nπ = {p:.1f}"
             for n, r, p in zip(NAMES, RIGHT, PI, strict=True)],
            fontsize=10.5,
        )  # fmt: skip
        axes.tick_params(axis="y", labelsize=10.5)
        axes.axhline(0, color=BLACK, lw=0.8)
        axes.set_title(title, fontsize=11, weight="bold")
        if k == 0:
            axes.set_ylabel("push on the logit", fontsize=10.5)
        artists[key] = axes.bar(range(4), np.zeros(4), 0.6, lw=0)
        artists[key, "numbers"] = [
            axes.text(i, 0, "", ha="center", va="center", fontsize=11) for i in range(4)
        ]
    return artists


def update(artists, data):
    for key, gap in (("push", 0.24), ("mean", 0.04)):
        for i, (bar, number) in enumerate(zip(artists[key], artists[key, "numbers"], strict=True)):
            value = float(data[key][i])
            bar.set_height(value)
            bar.set_facecolor(POSITIVE if value > 0 else NEGATIVE)
            here = key == "push" and NAMES[i] == data["drawn"]
            text = f"drawn: {signed(value, 2)}" if here else signed(value, 2)
            number.set(text=text, y=value + (gap if value >= 0 else -gap))
            number.set_weight("bold" if here else "normal")


def readout(data) -> str:
    rewards = ", ".join(f"{r:g}".replace("-", "−") for r in data["rewards"].round(2))
    at = NAMES.index(data["drawn"])
    reward = f"{data['rewards'][at].round(2):g}".replace("-", "−")
    return f"Rewards of A, B, C, D: {rewards}. Drawn: {data['drawn']}, reward {reward}."


def alt(data) -> str:
    push, mean = (", ".join(signed(float(v), 2) for v in data[key]) for key in ("push", "mean"))
    return f"{readout(data)} Push of this draw {push}; mean over all draws {mean}."


def wrong_draw_hits_the_right(data) -> bool:
    """A wrong answer is drawn, and both right ones go down."""
    return data["drawn"] in "CD" and bool((data["push"][:2] < -1e-9).all())


def one_push_explorer() -> Explorer:
    """Which answer is drawn, and a constant added to all rewards."""
    return Explorer(
        compute,
        build,
        update,
        {
            "drawn": choice_slider("A", [(n, n) for n in NAMES], "answer drawn",
                                   "A and B are right, C and D wrong"),
            "constant": slider(0.0, -1.5, 1.5, 0.25, "added to all rewards",
                               "1 turns rewards 1 and 0 into 2 and 1"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 290),
    )  # fmt: skip
