"""Two arms of the race at learning rates of your choice, and what the race's rule says of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice, choice_slider
from rlnb.classroom.explorers.arguments import checked, one_of
from rlnb.classroom.figures import BLACK, GREY, ORANGE
from rlnb.training.studies.race.verdicts import questions, recorded, verdict

ARMS = {"clip": (BLACK, "o"), "no clip": (ORANGE, "s")}
UPDATES = (2, 8, 32)
SCALE = (-0.3, 0.7)  # of the small picture of the interval
S = questions()["clip"]["smallest_effect"]
T_99 = 4.604  # of Student's t with four degrees of freedom, two-sided
CAPTION = (
    "Each point one recorded run: 2,560 answers, five seeds a rate. Rings: the rates you chose. "
    "Right: the difference, its interval, and ±s as a grey band."
)


def in_words(said: str) -> str:
    """A verdict of the rule as the page says it.

    >>> in_words("inconclusive"), in_words("no difference larger than 0.03"), in_words("worse")
    ('cannot tell', 'no difference that matters', 'worse')
    """
    if said.startswith("no difference"):
        return "no difference that matters"
    return "cannot tell" if said == "inconclusive" else said


@cache
def rates() -> tuple[float, ...]:
    """The learning rates that were tried, ascending."""
    tried = recorded("clip")["tuning"]["clip, 8 updates"]
    return tuple(sorted(map(float, tried)))


def _tried(arm: str, updates: int) -> np.ndarray:
    """(rates, seeds) pass@1."""
    found = recorded("clip")["tuning"][f"{arm}, {updates} updates"]
    return np.array([found[key] for key in sorted(found, key=float)])


def _interval_of(a: np.ndarray, b: np.ndarray) -> tuple[float, float, float]:
    """Mean of a - b and its 99 % interval by t: a bootstrap of five differences is too short."""
    gap = a - b
    half = T_99 * gap.std(ddof=1) / np.sqrt(len(gap))
    return float(gap.mean()), float(gap.mean() - half), float(gap.mean() + half)


@checked(updates=one_of(UPDATES))
def compute(updates: int = 2, clip_rate: float = 0.001, no_clip_rate: float = 0.001):
    """pass@1 of both arms at every rate (rates, seeds); at the two chosen rates the means, and
    `found`, clip minus no clip with its interval (difference, low, high), and the rule's `verdict`.

    Raises ValueError for a rate that was not tried.

    >>> d = compute(8, 0.003, 0.003)
    >>> d["clip"].shape, d["means"]["clip"] > d["means"]["no clip"]
    ((8, 5), True)
    >>> compute(32, 0.003, 0.003)["verdict"], compute(32, 0.001, 0.001)["verdict"]
    ('better', 'cannot tell')
    """
    for name, rate in (("clip_rate", clip_rate), ("no_clip_rate", no_clip_rate)):
        if rate not in rates():
            raise ValueError(f"{name} must be one of {', '.join(map(str, rates()))}, got {rate}.")
    chosen = {"clip": rates().index(clip_rate), "no clip": rates().index(no_clip_rate)}
    tried: dict[str, Any] = {arm: _tried(arm, updates) for arm in ARMS}
    found = _interval_of(*(tried[arm][k] for arm, k in chosen.items()))
    return {
        "updates": updates,
        "clip_rate": clip_rate,
        "no_clip_rate": no_clip_rate,
        "chosen": chosen,
        "means": {arm: float(tried[arm][k].mean()) for arm, k in chosen.items()},
        "best": {arm: int(tried[arm].mean(1).argmax()) for arm in ARMS},
        "found": found,
        "verdict": in_words(verdict(found[1], found[2], S)),
        **tried,
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
        artists[arm, "text"] = figure.text(0.77, 0.88 - 0.17 * k, "", fontsize=11, va="center",
                                           color=BLACK)  # fmt: skip
    small = figure.add_axes((0.77, 0.27, 0.21, 0.13))
    small.set(xlim=SCALE, ylim=(-1, 1), yticks=[], xticks=[0, 0.2, 0.4])
    small.tick_params(labelsize=10.5)
    small.axvspan(-S, S, color=GREY, alpha=0.35, lw=0)
    small.axvline(0, color=BLACK, lw=0.8)
    artists["interval"] = small.plot([], [], color=BLACK, lw=3)[0]
    artists["middle"] = small.plot([], [], "o", color=BLACK, ms=7)[0]
    artists["verdict"] = figure.text(0.77, 0.08, "", fontsize=11, va="center", weight="bold")
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
    gap, low, high = data["found"]
    artists["gap", "text"].set_text(f"clip minus no clip\n{_interval(data)}")
    artists["interval"].set_data([low, high], [0, 0])
    low_end, high_end = SCALE
    off = "<" if gap < low_end else ">" if gap > high_end else "o"  # an arrow: off the scale
    artists["middle"].set_data([min(max(gap, low_end + 0.02), high_end - 0.02)], [0])
    artists["middle"].set_marker(off)
    artists["verdict"].set_text("the clip: " + data["verdict"].replace(" that", "\nthat"))


def _interval(data) -> str:
    gap, low, high = (0.0 + round(x, 3) for x in data["found"])  # 0.0 +: no negative zero
    return f"{gap:+.3f} [{low:+.3f}, {high:+.3f}]".replace("-", "−")


def readout(data) -> str:
    return (
        f"{data['updates']} updates per batch: clip minus no clip {_interval(data)}, s = {S:g}: "
        f"{data['verdict']}."
    )


def alt(data) -> str:
    rows = "; ".join(
        f"{arm}: "
        + ", ".join(f"{r:g} {m:.2f}" for r, m in zip(rates(), data[arm].mean(1), strict=True))
        for arm in ARMS
    )
    return f"pass@1 against the learning rate. {readout(data)} Means: {rows}."


def largest_shared_lead(data) -> bool:
    """32 updates, one learning rate for both: the one at which the clip leads by most."""
    leads = data["clip"].mean(1) - data["no clip"].mean(1)
    both = data["chosen"]["clip"] == data["chosen"]["no clip"] == int(leads.argmax())
    return data["updates"] == 32 and both


def race_rates_explorer() -> Explorer:
    """Updates per batch, and a learning rate for each of two arms."""
    options = [(f"{r:g}", r) for r in rates()]
    return Explorer(
        compute,
        build,
        update,
        {
            "updates": choice(2, [(str(u), u) for u in UPDATES], "updates", "steps per batch"),
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
