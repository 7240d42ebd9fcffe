"""Two penalties with one beta: where reward and penalty balance for a rare paid answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice, choice_slider, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing, inside, one_of
from rlnb.classroom.figures import BLUE, GREEN, GREY, PURPLE
from rlnb.classroom.pictures.kl import TEXT

LOG_ODDS = np.linspace(-14.0, 9.0, 400)
CHANCES = 1 / (1 + np.exp(-LOG_ODDS))
TICKS = (1e-6, 1e-4, 0.01, 0.5, 0.99, 0.9999)
REWARDS = ("as it is", "÷ std of the group")
CAPTION = (
    "The reward pushes the answer up, and each line is the share of that push which a penalty "
    "takes back. Where the line reaches 1 nothing is left, and the answer rests."
)


@echoing
@checked(beta=between(0.01, 1.0), start=inside(0, 1), reward=one_of(REWARDS))
def compute(beta: float = 0.2, start: float = 1e-4, reward: str = "as it is") -> dict[str, Any]:
    """Paid or not, reward 1 or 0, with chance `start` under the reference.

    The reward pushes the answer's log-odds up by p (1 - p), or by sqrt(p (1 - p)) where it is
    divided by the std sqrt(p (1 - p)) of a large group. reverse: where the climb from `start` ends
    under beta KL(pi || ref); 1.0 where nothing stops it. k3: the same for k3 in the loss, which
    pushes back by beta (p - start). reverse_share, k3_share (400,): each penalty's push over the
    reward's, on LOG_ODDS.

    >>> d = compute(0.2)
    >>> round(d["reverse"], 4), round(d["k3"], 4)
    (0.0146, 0.8)
    >>> d = compute(0.2, reward="÷ std of the group")
    >>> round(d["reverse"], 4), round(d["k3"], 4)
    (1.0, 0.9615)
    """
    before = math.log(start / (1 - start))
    variance = CHANCES * (1 - CHANCES)
    if reward == "as it is":
        odds = start / (1 - start) * math.exp(1 / beta)
        reverse = min(odds / (1 + odds), 1 - 1e-15) if math.isfinite(odds) else 1 - 1e-15
        b = 1 - beta
        k3 = (b + math.sqrt(b * b + 4 * beta * start)) / 2
        pushed = variance
    else:
        reverse = _first_rest(beta, before)
        b = 1 + 2 * beta**2 * start
        k3 = (b + math.sqrt(b * b - 4 * (1 + beta**2) * (beta * start) ** 2)) / (2 + 2 * beta**2)
        pushed = np.sqrt(variance)
    return {
        "reverse": reverse,
        "k3": k3,
        "reverse_share": beta * (LOG_ODDS - before) * variance / pushed,
        "k3_share": beta * (CHANCES - start) / pushed,
    }


def _first_rest(beta: float, before: float) -> float:
    """The first p above the start at which beta (x - before) sqrt(p (1 - p)) is 1, or 1.0.

    In the log-odds x that share rises from 0 to one top, which lies above x = 0, and falls again.
    """

    def share(x: float) -> float:
        return beta * (x - before) / (2 * math.cosh(x / 2))

    low, high = max(before, 0.0), max(before, 0.0) + 10.0
    for _ in range(60):  # the top: 1 / (x - before) = tanh(x / 2) / 2
        middle = (low + high) / 2
        rises = (middle - before) * math.tanh(middle / 2) < 2
        low, high = (middle, high) if rises else (low, middle)
    low, high = before, low
    if share(high) < 1:
        return 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) < 1 else (low, middle)
    return 1 / (1 + math.exp(-low))


def build(figure, data):
    axes = figure.add_axes((0.075, 0.19, 0.6, 0.78))
    axes.set(xlim=(LOG_ODDS[0], LOG_ODDS[-1]), ylim=(-0.15, 1.6), yticks=(0, 0.5, 1, 1.5))
    labels = ("1e-6", "1e-4", "0.01", "0.5", "0.99", "0.9999")
    axes.set_xticks([math.log(p / (1 - p)) for p in TICKS], labels)
    axes.tick_params(labelsize=TEXT)
    axes.set_xlabel("chance p of the paid answer (log-odds scale)", fontsize=TEXT)
    axes.set_ylabel("penalty's push ÷ reward's", fontsize=TEXT)
    axes.axhline(0, color=GREY, lw=0.8)
    axes.axhline(1, color=BLUE, lw=3)
    axes.text(-13.7, 1.06, "the reward", color=BLUE, fontsize=TEXT)
    figure.text(0.7, 0.82, "KL(π‖π_ref)", color=GREEN, fontsize=12, weight="bold")
    figure.text(0.7, 0.5, "k3 in the loss", color=PURPLE, fontsize=12, weight="bold")
    return {
        "start": axes.axvline(0, color=GREY, ls=":", lw=1.4),
        "reverse": axes.plot(LOG_ODDS, LOG_ODDS, color=GREEN, lw=2.6)[0],
        "k3": axes.plot(LOG_ODDS, LOG_ODDS, color=PURPLE, lw=2.6, ls="-.")[0],
        # the green one larger, so that it shows when the two lie on each other
        "dots": [
            axes.plot([], [], "o", color=color, ms=size, mec="white")[0]
            for color, size in ((GREEN, 17), (PURPLE, 10))
        ],
        "text": [figure.text(0.7, y, "", fontsize=12) for y in (0.72, 0.4)],
    }


def update(artists, data):
    before = math.log(data["start"] / (1 - data["start"]))
    artists["start"].set_xdata([before, before])
    artists["reverse"].set_ydata(data["reverse_share"])
    artists["k3"].set_ydata(data["k3_share"])
    for dot, text, name in zip(artists["dots"], artists["text"], ("reverse", "k3"), strict=True):
        p = min(max(data[name], 1e-9), 1 - 1e-9)
        place = math.log(p / (1 - p))
        outside = place > LOG_ODDS[-1]
        dot.set_data([min(place, LOG_ODDS[-1] - 0.3)], [1.0])
        dot.set_marker(">" if outside else "o")
        text.set_text(_at(data[name]))


def _at(p: float) -> str:
    if p == 1.0:
        return "does not hold it"
    if p > 0.99995:
        return "rests above 99.99 %"
    return f"rests at {100 * p:.2f} %" if p >= 5e-5 else f"rests at {100 * p:.1g} %"


def readout(data) -> str:
    return (
        f"β {data['beta']:.2f}, start {data['start']:g}: KL(π‖π_ref) {_at(data['reverse'])}, "
        f"k3 in the loss {_at(data['k3'])}."
    )


def alt(data) -> str:
    return (
        f"Share of the reward's push, taken {data['reward']}, that two penalties take back, "
        f"against the chance. {readout(data)}"
    )


def k3_holds_lower(data) -> bool:
    """Reward as it is: k3 in the loss holds an answer of one in 10,000 lower than the KL does."""
    plain = data["reward"] == REWARDS[0]
    return plain and data["start"] == 1e-4 and data["k3"] < data["reverse"]


def kl_leash_explorer() -> Explorer:
    """The coefficient, the reference's chance of the paid answer, and the division by the std."""
    starts = [(f"{p:g}", p) for p in (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1)]
    return Explorer(
        compute,
        build,
        update,
        {
            "beta": slider(0.2, 0.01, 1.0, 0.01, "β", "the penalty's coefficient"),
            "start": choice_slider(1e-4, starts, "reference's chance",
                                   "how often the reference gives the paid answer"),
            "reward": choice(REWARDS[0], [(name, name) for name in REWARDS], "reward",
                             "the push of GRPO's advantage is the reward's over the std"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 280),
    )  # fmt: skip
