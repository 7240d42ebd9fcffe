"""One token of an answer has leapt: what GRPO, GSPO and GMPO do to it and to all the others."""

from __future__ import annotations

from math import exp
from typing import Any

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import at_least, between, checked, echoing, one_of
from rlnb.classroom.figures import BLACK, NEGATIVE, POSITIVE, signed

__all__ = ["compute", "long_and_gspo_only", "one_outlier_explorer"]

LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
RULES = ("GRPO", "GSPO", "GMPO")
EDGE = 2.6
CAPTION = (
    "The push on the token that leapt, and on each of the others, whose own ratio is 1. Bands: "
    "0.2 for GRPO, 3e-4 and 4e-4 for GSPO, 0.4 in the log for GMPO. Longer bars are cut off."
)


@echoing
@checked(leap=between(-3, 3), length=at_least(2), A=one_of((1, -1)))
def compute(leap: float = 0.0, length: int = 64, A: int = 1) -> dict[str, Any]:
    """Pushes of an answer of `length` tokens; one has log-ratio `leap`, the others 0.

    Returns the arguments, rho, s, and per rule a pair (the token that leapt, each other token).

    >>> d = compute(leap=2.0, length=10)
    >>> d["GRPO"], d["GSPO"], round(d["GMPO"][1], 4)
    ((0.0, 1.0), (0.0, 0.0), 1.0408)
    """
    rho, s = exp(leap), exp(leap / length)
    gone = rho > 1.2 if A > 0 else rho < 0.8
    all_gone = s > 1 + 4e-4 if A > 0 else s < 1 - 3e-4
    kept = min(leap, 0.4) if A > 0 else max(leap, -0.4)
    mean = exp(kept / length)
    shared = 0.0 if all_gone else A * s
    return {
        "rho": rho,
        "s": s,
        "GRPO": (0.0 if gone else A * rho, float(A)),
        "GSPO": (shared, shared),
        "GMPO": (0.0 if kept != leap else A * mean, A * mean),
    }


def build(figure, data):
    artists: dict[Any, Any] = {}
    for k, name in enumerate(RULES):
        axes = figure.add_axes((0.07 + 0.315 * k, 0.19, 0.285, 0.69))
        axes.set(xlim=(-0.6, 1.6), ylim=(-EDGE, EDGE), yticks=range(-2, 3))
        axes.set_xticks((0, 1), ("the token\nthat leapt", "each other\ntoken"))
        axes.tick_params(labelsize=10.5)
        if k:
            axes.set_yticklabels([])
        else:
            axes.set_ylabel("push (before 1/T)", fontsize=10.5)
        axes.axhline(0, color=BLACK, lw=0.9)
        axes.set_title(name, fontsize=11.5, weight="bold")
        artists[name] = axes.bar((0, 1), (0, 0), width=0.5, lw=0)
        artists[name, "text"] = [
            axes.text(x, 0, "", fontsize=11, ha="center", va="center", weight="bold")
            for x in (0, 1)
        ]
    return artists


def update(artists, data):
    for name in RULES:
        for bar, text, push in zip(artists[name], artists[name, "text"], data[name], strict=True):
            shown = max(-EDGE, min(EDGE, push))
            bar.set_height(shown)
            bar.set_facecolor(POSITIVE if push > 0 else NEGATIVE)
            text.set_text("silent" if push == 0 else signed(push, 4))
            text.set_y(0.25 if push == 0 else -0.3 if push > 0 else 0.3)


def readout(data) -> str:
    silent = [name for name in RULES if 0.0 in data[name]]
    return (
        f"ρ of the one token {data['rho']:.3f}, s of the answer {data['s']:.5f}. "
        f"Something is silent under: {', '.join(silent) or 'none of the three'}."
    )


def alt(data) -> str:
    pairs = "; ".join(
        f"{name}: {signed(data[name][0], 4)} on the token that leapt, {signed(data[name][1], 4)} "
        "on each other"
        for name in RULES
    )
    return f"Pushes in an answer of {data['length']} tokens, A = {data['A']:+d}. {pairs}."


def long_and_gspo_only(data) -> bool:
    """GSPO silences 512 tokens, the most that it can while GRPO and GMPO silence nothing."""
    others = (*data["GRPO"], *data["GMPO"])
    return data["length"] >= 512 and data["GSPO"][1] == 0 and 0.0 not in others


def one_outlier_explorer() -> Explorer:
    """How far one token leapt, how long its answer is, and the sign of the advantage."""
    return Explorer(
        compute,
        build,
        update,
        {
            "leap": slider(0.0, -3.0, 3.0, 0.05, "log ρ of one token", "all others have log ρ = 0"),
            "length": choice_slider(
                64, [(f"{n:,}", n) for n in LENGTHS], "T, tokens", "length of the answer"
            ),
            "A": choice_slider(
                1, [("good, A = +1", 1), ("bad, A = −1", -1)], "answer", "sign of the advantage"
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 290),
    )
