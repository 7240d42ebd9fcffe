"""One token whose two probabilities differ: how hard each rule pushes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider, slider, switch
from rlnb.classroom.explorers.arguments import between, checked, one_of
from rlnb.classroom.figures import BLACK, BLUE, GREY, WINE
from rlnb.toys.two_engines import MORE

WEIGHTS = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0)
NAMES = {0.05: "1/20", 0.1: "1/10", 0.2: "1/5"}
RULES = {"its own w": (BLACK, "-"), "TIS": (BLUE, "-"), "IcePop": (WINE, "--"), "none": (GREY, ":")}
GRID = np.geomspace(0.04, 25, 600)
TOP, TICKS = 25.0, (0, 1, 2, 5, 10, 20)
TEXT = 10.5
WHITE = {"fc": "white", "ec": "none", "pad": 1}  # behind letters: no line goes through them
CAPTION = (
    "Left: the factor that each rule gives a token, by its w = π/μ. Right: the push on your token; "
    "the black line is what is due to it. The axes of factor and push are stretched near 0."
)


def _factors(w: np.ndarray, cap: float) -> dict[str, np.ndarray]:
    icepop = MORE["IcePop [1/2, 5]"](w, w, w)  # it asks for w alone
    return {"its own w": w, "TIS": np.minimum(w, cap), "IcePop": icepop, "none": np.ones_like(w)}


@checked(w=one_of(WEIGHTS), cap=between(1, 10))
def compute(w: float = 1.0, right: bool = True, cap: float = 2.0) -> dict[str, Any]:
    """The factors of one token with w = pi / mu, in a right (A = 1) or a wrong answer (A = -1).

    factors, by rule: its own w, TIS min(w, cap), IcePop w inside [1/2, 5] and 0 outside, none 1;
    curves, the same over GRID (600,); and the arguments.

    >>> compute(10.0, right=False)["factors"]
    {'its own w': 10.0, 'TIS': 2.0, 'IcePop': 0.0, 'none': 1.0}
    """
    found = _factors(np.array(w), cap)
    return {
        "factors": {name: float(value) for name, value in found.items()},
        "curves": _factors(GRID, cap),
        "w": w,
        "right": right,
        "cap": cap,
    }


def _stretched(axes, which: str) -> None:
    getattr(axes, f"set_{which}scale")("function", functions=(np.sqrt, np.square))
    getattr(axes, f"set_{which}lim")(0, TOP)
    getattr(axes, f"set_{which}ticks")(TICKS, [str(tick) for tick in TICKS])


def build(figure, data):
    left = figure.add_axes((0.06, 0.18, 0.4, 0.75))
    left.set(xscale="log", xlim=(GRID[0], GRID[-1]))
    left.set_xticks([0.05, 0.1, 0.5, 1, 2, 5, 20], ["1/20", "1/10", "1/2", "1", "2", "5", "20"])
    left.minorticks_off()
    _stretched(left, "y")
    left.set_xlabel("w = π/μ of the token", fontsize=TEXT)
    left.set_ylabel("its factor", fontsize=TEXT)
    right = figure.add_axes((0.58, 0.18, 0.4, 0.75))
    right.set(ylim=(3.6, -0.6))
    right.set_yticks(range(len(RULES)), list(RULES))
    _stretched(right, "x")
    right.set_xlabel("push, in pushes without a weight", fontsize=TEXT)
    for axes in (left, right):
        axes.tick_params(labelsize=TEXT)
    lines, dots = {}, {}
    for name, (color, style) in RULES.items():
        lines[name] = left.plot(GRID, np.ones_like(GRID), color=color, ls=style, lw=2.2)[0]
        dots[name] = left.plot([1], [1], "o", color=color, ms=8)[0]
    colors = [color for color, _ in RULES.values()]
    return {
        "lines": lines,
        "dots": dots,
        "here": left.axvline(1, color=GREY, lw=1, ls="--"),
        "bars": right.barh(range(len(RULES)), np.zeros(len(RULES)), color=colors, height=0.6),
        "due": right.axvline(1, color=BLACK, lw=1.4),
        "numbers": [right.text(0, k, "", va="center", fontsize=11, weight="bold", bbox=WHITE)
                    for k in range(len(RULES))],
        "way": right.text(24, 3, "", ha="right", va="center", fontsize=11, weight="bold",
                          bbox=WHITE),
    }  # fmt: skip


def update(artists, data):
    for name, value in data["factors"].items():
        artists["lines"][name].set_ydata(data["curves"][name])
        artists["dots"][name].set_data([data["w"]], [value])
    for bar, number, value in zip(
        artists["bars"], artists["numbers"], data["factors"].values(), strict=True
    ):
        bar.set_width(value)
        number.set(text=f"{value:g}", x=(value**0.5 + 0.08) ** 2)
    artists["here"].set_xdata([data["w"]] * 2)
    artists["due"].set_xdata([data["w"]] * 2)
    artists["way"].set_text("pushed up" if data["right"] else "pushed down")


def readout(data) -> str:
    pushed = ", ".join(f"{name} {value:g}" for name, value in data["factors"].items())
    return (
        f"A token of a {'right' if data['right'] else 'wrong'} answer, w = {data['w']:g}. "
        f"Pushed {'up' if data['right'] else 'down'}: {pushed}."
    )


def alt(data) -> str:
    return (
        "Factor of a token against its w for four rules, and a bar for each. TIS is capped at "
        f"{data['cap']:g}, IcePop is 0 outside 1/2 to 5. {readout(data)}"
    )


def icepop_exact(data) -> bool:
    """IcePop gives the token its own w, and TIS with a cap of 2 does not."""
    found = data["factors"]
    return data["cap"] == 2 and found["IcePop"] == data["w"] != found["TIS"]


def token_rules_explorer() -> Explorer:
    """The token's w, whether its answer is right, and the cap of TIS."""
    return Explorer(
        compute,
        build,
        update,
        {
            "w": choice_slider(1.0, [(NAMES.get(w, f"{w:g}"), w) for w in WEIGHTS], "w = π/μ",
                               "how much more often the policy writes it than the engine"),
            "cap": slider(2.0, 1.0, 10.0, 0.5, "cap of TIS", "no factor is larger"),
            "right": switch(True, "a right answer", "A = 1; otherwise A = -1"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 260),
    )  # fmt: skip
