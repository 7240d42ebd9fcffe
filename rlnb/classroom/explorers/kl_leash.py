"""Two penalties with one beta: where reward and penalty balance for a rare paid answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing, inside
from rlnb.classroom.figures import BLUE, GREEN, GREY, PURPLE
from rlnb.classroom.pictures.kl import TEXT

LOG_ODDS = np.linspace(-14.0, 9.0, 400)
CHANCES = 1 / (1 + np.exp(-LOG_ODDS))
TICKS = (1e-6, 1e-4, 0.01, 0.5, 0.99, 0.9999)
CAPTION = (
    "Blue pushes the answer up, the other two push it back; where a penalty meets the blue line "
    "the answer comes to rest. All are divided by p(1 − p), so that the reward's is a constant."
)


@echoing
@checked(beta=between(0.01, 1.0), start=inside(0, 1))
def compute(beta: float = 1.0, start: float = 1e-4) -> dict[str, Any]:
    """Paid or not, reward 1 or 0, with chance `start` under the reference.

    reverse: the resting point under beta KL(pi || ref), odds times e^(1 / beta). k3: that of k3 in
    the loss, where p (1 - p) = beta (p - start). reverse_pull, k3_pull (400,): each penalty's pull
    on the log-odds over LOG_ODDS, divided by p (1 - p); the reward's is 1.

    >>> d = compute(0.2)
    >>> round(d["reverse"], 4), round(d["k3"], 4)
    (0.0146, 0.8)
    """
    odds = start / (1 - start) * math.exp(1 / beta)
    b = 1 - beta
    before = math.log(start / (1 - start))
    return {
        "reverse": odds / (1 + odds) if math.isfinite(odds) else 1.0,
        "k3": (b + math.sqrt(b * b + 4 * beta * start)) / 2,
        "reverse_pull": beta * (LOG_ODDS - before),
        "k3_pull": beta * (CHANCES - start) / (CHANCES * (1 - CHANCES)),
    }


def build(figure, data):
    axes = figure.add_axes((0.075, 0.19, 0.6, 0.78))
    axes.set(xlim=(LOG_ODDS[0], LOG_ODDS[-1]), ylim=(-0.35, 2.2), yticks=(0, 1, 2))
    labels = ("1e-6", "1e-4", "0.01", "0.5", "0.99", "0.9999")
    axes.set_xticks([math.log(p / (1 - p)) for p in TICKS], labels)
    axes.tick_params(labelsize=TEXT)
    axes.set_xlabel("chance p of the paid answer (log-odds scale)", fontsize=TEXT)
    axes.set_ylabel("push / p(1 − p)", fontsize=TEXT)
    axes.axhline(0, color=GREY, lw=0.8)
    axes.axhline(1, color=BLUE, lw=3)
    figure.text(0.7, 0.88, "KL(π‖π_ref)", color=GREEN, fontsize=12, weight="bold")
    figure.text(0.7, 0.2, "the reward", color=BLUE, fontsize=12, weight="bold")
    figure.text(0.7, 0.52, "k3 in the loss", color=PURPLE, fontsize=12, weight="bold")
    return {
        "start": axes.axvline(0, color=GREY, ls=":", lw=1.4),
        "reverse": axes.plot(LOG_ODDS, LOG_ODDS, color=GREEN, lw=2.6)[0],
        "k3": axes.plot(LOG_ODDS, LOG_ODDS, color=PURPLE, lw=2.6, ls="-.")[0],
        # the green one larger, so that it shows when the two lie on each other
        "dots": [
            axes.plot([], [], "o", color=color, ms=size, mec="white")[0]
            for color, size in ((GREEN, 17), (PURPLE, 10))
        ],
        "text": [figure.text(0.7, y, "", fontsize=12) for y in (0.78, 0.42)],
    }


def update(artists, data):
    before = math.log(data["start"] / (1 - data["start"]))
    artists["start"].set_xdata([before, before])
    artists["reverse"].set_ydata(data["reverse_pull"])
    artists["k3"].set_ydata(data["k3_pull"])
    for dot, text, name in zip(artists["dots"], artists["text"], ("reverse", "k3"), strict=True):
        p = min(max(data[name], 1e-9), 1 - 1e-9)
        place = math.log(p / (1 - p))
        outside = place > LOG_ODDS[-1]
        dot.set_data([min(place, LOG_ODDS[-1] - 0.3)], [1.0])
        dot.set_marker(">" if outside else "o")
        text.set_text(f"rests {_at(data[name])}")


def _at(p: float) -> str:
    if p > 0.99995:
        return "above 99.99 %"
    return f"at {100 * p:.2f} %" if p >= 5e-5 else f"at {100 * p:.1g} %"


def readout(data) -> str:
    return (
        f"β {data['beta']:.2f}, start {data['start']:g}: KL(π‖π_ref) rests "
        f"{_at(data['reverse'])}, k3 in the loss {_at(data['k3'])}."
    )


def alt(data) -> str:
    return f"Pull of the reward and of two penalties against the chance. {readout(data)}"


def k3_holds_lower(data) -> bool:
    """A beta at which k3 in the loss holds an answer of one in 10,000 lower than the KL does."""
    return data["start"] == 1e-4 and data["k3"] < data["reverse"]


def kl_leash_explorer() -> Explorer:
    """The coefficient, and how often the reference gives the paid answer."""
    starts = [(f"{p:g}", p) for p in (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1)]
    return Explorer(
        compute,
        build,
        update,
        {
            "beta": slider(1.0, 0.01, 1.0, 0.01, "β", "the penalty's coefficient"),
            "start": choice_slider(1e-4, starts, "reference's chance",
                                   "how often the reference gives the paid answer"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 280),
    )  # fmt: skip
