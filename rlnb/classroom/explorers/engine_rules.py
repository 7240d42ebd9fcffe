"""What a correction for another engine does to the gradient: bias, noise, and their sum."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import between, checked, one_of
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, POSITIVE
from rlnb.toys.two_engines import RULES, Engines, engines, judge

ANSWERS = (64, 256, 1024, 4096, 16384)
DRAWS, POINTS = 20, 400
TOP = 2.2
CAPTION = (
    "Left: what a token's push is multiplied by; a dot is a token, blue A above 0, orange below. "
    "Right: how far the batch's gradient is from the true one, which has length 1."
)


@cache
def _engines(flips: float) -> Engines:
    return engines(flips, DRAWS)


@cache
def _dots(flips: float) -> tuple[np.ndarray, np.ndarray]:
    """Which tokens are shown: those of the first draw, evenly by their ratio."""
    both = _engines(flips)
    A = np.broadcast_to(both.advantages, both.trainer.shape)[0].ravel()
    w = both.ratio[0].ravel()
    order = np.argsort(w)
    return order[np.linspace(0, len(order) - 1, POINTS).astype(int)], A


@checked(rule=one_of(RULES), flips=between(0, 1), answers=between(1, 10**6))
def compute(rule: str = "nothing", flips: float = 0.05, answers: int = 64) -> dict[str, Any]:
    """bias, noise of the mean of `answers`, error (their root sum of squares), dropped_good and
    dropped_bad (shares of tokens with factor 0), and the dots (w, factor, sign of A).

    >>> round(compute("weight of the answer", 0.05)["bias"], 6)
    0.0
    """
    flips = round(float(flips), 4)
    both, verdict = _engines(flips), judge(_engines(flips), rule)
    A = np.broadcast_to(both.advantages, both.trainer.shape)
    gap = np.exp(both.trainer[:1]) - np.exp(both.engine[:1])
    factor = RULES[rule](both.ratio[:1], gap, A[:1])[0].ravel()
    shown, sign = _dots(flips)
    return {"rule": rule, "flips": flips, "answers": answers, "bias": verdict.bias,
            "noise": verdict.noise / answers**0.5, "error": verdict.error(answers),
            "dropped_good": verdict.dropped_good, "dropped_bad": verdict.dropped_bad,
            "w": both.ratio[0].ravel()[shown], "factor": factor[shown],
            "good": sign[shown] > 0}  # fmt: skip


def build(figure, data):
    left = figure.add_axes((0.065, 0.18, 0.42, 0.75))
    left.set(xscale="log", xlim=(0.1, 10), ylim=(-0.25, 4.2), xticks=(0.1, 0.5, 1, 2, 10))
    left.set_xticklabels(("0.1", "0.5", "1", "2", "10"))
    left.minorticks_off()
    left.set_xlabel("π of the trainer / π of the engine", fontsize=10.5)
    left.set_ylabel("factor on its push", fontsize=10.5)
    left.axhline(1, color=GREY, lw=0.8, ls=":")
    left.tick_params(labelsize=10.5)
    right = figure.add_axes((0.58, 0.18, 0.4, 0.75))
    right.set(xlim=(0, TOP), ylim=(-0.6, 2.6), yticks=(2, 1, 0))
    right.set_yticklabels(("bias", "noise", "error"), fontsize=11)
    right.set_xlabel("in lengths of the true gradient", fontsize=10.5)
    right.tick_params(axis="x", labelsize=10.5)
    return {
        "good": left.plot([], [], "o", ms=4, color=POSITIVE, ls="")[0],
        "bad": left.plot([], [], "s", ms=3.5, color=NEGATIVE, ls="", mfc="none")[0],
        "bars": right.barh((2, 1, 0), np.zeros(3), height=0.55, color=(GREY, GREY, BLACK)),
        "numbers": [right.text(0, y, "", fontsize=11, weight="bold", va="center")
                    for y in (2, 1, 0)],
    }  # fmt: skip


def update(artists, data):
    for name, which in (("good", data["good"]), ("bad", ~data["good"])):
        artists[name].set_data(data["w"][which], np.minimum(data["factor"][which], 4.1))
    for bar, text, key in zip(artists["bars"], artists["numbers"], ("bias", "noise", "error"),
                              strict=True):  # fmt: skip
        bar.set_width(min(data[key], TOP))
        text.set_text(f" {data[key]:.3f}")
        text.set_x(min(data[key], TOP - 0.34))


def readout(data) -> str:
    return (
        f"{data['rule']}, {data['answers']} answers: bias {data['bias']:.3f}, noise "
        f"{data['noise']:.3f}, error {data['error']:.3f}. Tokens dropped: "
        f"{data['dropped_good']:.1%} of the good, {data['dropped_bad']:.1%} of the bad."
    )


def alt(data) -> str:
    return (
        "Dots of factor against ratio, and three bars. Flipped prefixes: "
        f"{data['flips']:.0%}. {readout(data)}"
    )


def small_batch(data) -> bool:
    """A fifth of the prefixes flipped, 64 answers, and an error below 0.8."""
    return data["flips"] >= 0.2 and data["answers"] == 64 and data["error"] < 0.8


def large_batch(data) -> bool:
    """The same gap, 16,384 answers, and an error below 0.15."""
    return data["flips"] >= 0.2 and data["answers"] == 16384 and data["error"] < 0.15


def engine_rules_explorer() -> Explorer:
    """The rule, how many prefixes are flipped, and how many answers the gradient is a mean of."""
    return Explorer(
        compute,
        build,
        update,
        {
            "rule": choice_slider("nothing", [(name, name) for name in RULES], "correction",
                                  "the factor on a token's push"),
            "flips": slider(0.05, 0.0, 0.25, 0.05, "prefixes flipped", "share with another expert"),
            "answers": choice_slider(64, [(f"{n:,}", n) for n in ANSWERS], "answers in a batch",
                                     "the gradient is their mean"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 270),
    )  # fmt: skip
