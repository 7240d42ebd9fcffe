"""Two arms of the race at learning rates of your choice: who wins depends on who was tuned."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice, choice_slider
from rlnb.classroom.explorers.arguments import checked, one_of
from rlnb.classroom.figures import BLACK, ORANGE
from rlnb.training.studies.race.verdicts import recorded

ARMS = {"clip": (BLACK, "o"), "no clip": (ORANGE, "s")}
UPDATES = (2, 8, 32)
CAPTION = (
    "Each point one run: 2,560 answers, five seeds a rate. Rings: the rates you chose. Recorded "
    "runs, nothing is trained here."
)


@cache
def rates() -> tuple[float, ...]:
    """The learning rates that were tried, ascending."""
    tried = recorded("clip")["tuning"]["clip, 8 updates"]
    return tuple(sorted(map(float, tried)))


def _tried(arm: str, updates: int) -> np.ndarray:
    """(rates, seeds) pass@1."""
    found = recorded("clip")["tuning"][f"{arm}, {updates} updates"]
    return np.array([found[key] for key in sorted(found, key=float)])


@checked(updates=one_of(UPDATES))
def compute(updates: int = 8, clip_rate: float = 0.001, no_clip_rate: float = 0.001):
    """pass@1 of both arms at every rate (rates, seeds), the means at the two chosen rates.

    Raises ValueError for a rate that was not tried.

    >>> d = compute(8, 0.003, 0.003)
    >>> d["clip"].shape, d["means"]["clip"] > d["means"]["no clip"]
    ((8, 5), True)
    """
    for name, rate in (("clip_rate", clip_rate), ("no_clip_rate", no_clip_rate)):
        if rate not in rates():
            raise ValueError(f"{name} must be one of {', '.join(map(str, rates()))}, got {rate}.")
    chosen = {"clip": rates().index(clip_rate), "no clip": rates().index(no_clip_rate)}
    found: dict[str, Any] = {arm: _tried(arm, updates) for arm in ARMS}
    return {
        "updates": updates,
        "clip_rate": clip_rate,
        "no_clip_rate": no_clip_rate,
        "chosen": chosen,
        "means": {arm: float(found[arm][k].mean()) for arm, k in chosen.items()},
        "best": {arm: int(found[arm].mean(1).argmax()) for arm in ARMS},
        **found,
    }


def build(figure, data):
    axes = figure.add_axes((0.08, 0.17, 0.66, 0.78))
    axes.set(xscale="log", ylim=(-0.03, 1), xlim=(rates()[0] / 1.3, rates()[-1] * 1.3))
    axes.set_xlabel("learning rate", fontsize=10.5)
    axes.set_ylabel("pass@1 at the end", fontsize=10.5)
    axes.set_xticks(rates(), [f"{r:g}" for r in rates()], fontsize=10.5)
    axes.minorticks_off()
    axes.tick_params(labelsize=10.5)
    artists: dict[str, Any] = {}
    for arm, (colour, mark) in ARMS.items():
        artists[arm, "line"] = axes.plot([], [], color=colour, lw=2.2)[0]
        artists[arm, "dots"] = axes.plot([], [], mark, color=colour, ms=4.5, alpha=0.6)[0]
        artists[arm, "ring"] = axes.plot([], [], "o", mfc="none", mec=colour, ms=17, mew=2.6)[0]
    for k, arm in enumerate((*ARMS, "gap")):
        artists[arm, "text"] = figure.text(0.77, 0.8 - 0.2 * k, "", fontsize=11.5, va="center",
                                           color=BLACK)  # fmt: skip
    return artists


def update(artists, data):
    for arm in ARMS:
        values, k = data[arm], data["chosen"][arm]
        shift = 0.97 if arm == "clip" else 1.03
        artists[arm, "line"].set_data(rates(), values.mean(1))
        artists[arm, "dots"].set_data(np.repeat(rates(), values.shape[1]) * shift, values.flatten())
        artists[arm, "ring"].set_data([rates()[k]], [values[k].mean()])
        mark = "black" if arm == "clip" else "orange"
        artists[arm, "text"].set_text(f"{arm} ({mark})\n{data['means'][arm]:.3f}")
    gap = data["means"]["clip"] - data["means"]["no clip"]
    artists["gap", "text"].set_text(f"clip minus no clip\n{gap:+.3f}".replace("-", "−"))


def readout(data) -> str:
    gap = data["means"]["clip"] - data["means"]["no clip"]
    said = "the clip wins by" if gap > 0 else "the clip loses by"
    return f"{data['updates']} updates per batch: {said} {abs(gap):.3f}."


def alt(data) -> str:
    rows = "; ".join(
        f"{arm}: "
        + ", ".join(f"{r:g} {m:.2f}" for r, m in zip(rates(), data[arm].mean(1), strict=True))
        for arm in ARMS
    )
    return f"pass@1 against the learning rate. {readout(data)} Means: {rows}."


def looks_harmful(data) -> bool:
    """32 updates, one learning rate for both, and the clip behind by 0.02 or more."""
    gap = data["means"]["clip"] - data["means"]["no clip"]
    same = data["clip_rate"] == data["no_clip_rate"]
    return data["updates"] == 32 and same and gap <= -0.02


def tuned(data) -> bool:
    """Each arm at its own best rate, at 32 updates."""
    return data["updates"] == 32 and data["chosen"] == data["best"]


def race_rates_explorer() -> Explorer:
    """Updates per batch, and a learning rate for each of two arms."""
    options = [(f"{r:g}", r) for r in rates()]
    return Explorer(
        compute,
        build,
        update,
        {
            "updates": choice(8, [(str(u), u) for u in UPDATES], "updates", "steps per batch"),
            "clip_rate": choice_slider(0.001, options, "rate, clip", "learning rate with the clip"),
            "no_clip_rate": choice_slider(
                0.001, options, "rate, no clip", "learning rate without it"
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 300),
    )
