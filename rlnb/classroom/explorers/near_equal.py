"""Nearly equal rewards: how much of a gap of 0.01, or of noise, reaches the advantages."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice, choice_slider, slider
from rlnb.classroom.explorers.arguments import at_least, between, checked, echoing, one_of
from rlnb.classroom.figures import BLACK, GREEN, NEGATIVE, POSITIVE, PURPLE, signed
from rlnb.objective import Batch, group_center, group_zscore

__all__ = ["GAPS", "PATTERNS", "alt", "build", "compute", "std_explorer", "update"]

MAX_SIZE, TOP = 16, 4.4
GAPS = tuple(
    float(f"1e{k}") if lead == 1 else float(f"3e{k}")
    for k in range(-8, 1)
    for lead in (1, 3)
    if not (k == 0 and lead == 3)
)
EPSILONS = (0.0, 1e-8, 1e-6, 1e-4, 1e-2)
PATTERNS = {"one": "one answer lower", "noise": "noise on all"}
FLOOR = 1e-9  # the right axis is logarithmic and starts here
DOT = {"ms": 9, "mfc": BLACK, "mec": "white", "mew": 1.4, "ls": ""}
CAPTION = (
    "Divided by the std, a difference is raised to full size unless it is as small as ε; not "
    "divided, it stays as small as it is. Nothing ever passes √(G−1)."
)


@lru_cache
def _noise(size: int) -> tuple[float, ...]:
    """Fixed normal numbers: the figure must not change when nobody moved anything."""
    return tuple(np.random.default_rng(7).normal(size=MAX_SIZE)[:size])


def _rewards(gap: np.ndarray, size: int, pattern: str) -> np.ndarray:
    """(M,) gaps -> (M, G) rewards around 1."""
    if pattern == "one":
        unit = np.zeros(size)
        unit[-1] = -1.0
    else:
        unit = np.array(_noise(size))
    return 1.0 + gap[:, None] * unit


def _advantages(rewards: np.ndarray, eps: float, divide: bool) -> np.ndarray:
    """(M, G) -> (M, G), by the package's own part: one group a row."""
    part = group_zscore(eps=eps) if divide else group_center()
    flat = torch.tensor(rewards, dtype=torch.float64).reshape(-1)
    one_token = torch.zeros(len(flat), 1, dtype=torch.float64)
    batch = Batch(one_token, torch.ones_like(one_token), flat, rewards.shape[1])
    return part(batch, flat[:, None])[:, 0].numpy().reshape(rewards.shape)


@echoing
@checked(size=between(2, MAX_SIZE), gap=at_least(0), eps=at_least(0), pattern=one_of(PATTERNS))
def compute(
    gap: float = 0.01, size: int = 8, eps: float = 1e-6, divide: bool = True, pattern: str = "one"
) -> dict[str, Any]:
    """Advantages of a group whose rewards are 1 but for a small difference, in float64.

    `pattern` "one": the last of the `size` answers (2 to 16) gets 1 - gap. "noise": every answer
    gets 1 + gap * z with fixed normal z. `gap` >= 0; `eps` >= 0 is added to the population std;
    `divide` False is the mean alone. Returns rewards (G,), advantages (G,), std, gain = 1 / (std +
    eps) (1.0 undivided; infinity when both are 0), largest |A|, rms, bound sqrt(G-1), the curves
    over `gaps` (largest |A| "divided" and "undivided"), and the arguments.

    >>> [round(compute(gap)["largest"], 4) for gap in (1.0, 0.01, 1e-6)]
    [2.6457, 2.645, 0.6575]
    """
    gaps = np.array([gap, *GAPS])
    rewards = _rewards(gaps, size, pattern)
    by_rule = {
        name: _advantages(rewards, eps, name == "divided") for name in ("divided", "undivided")
    }
    chosen = by_rule["divided" if divide else "undivided"][0]
    std = float(rewards[0].std()) if rewards[0].max() != rewards[0].min() else 0.0
    scale = std + eps if divide else 1.0
    return {
        "rewards": rewards[0],
        "advantages": chosen,
        "std": std,
        "gain": 1 / scale if scale else math.inf,
        "largest": float(np.abs(chosen).max()),
        "rms": float(np.sqrt((chosen**2).mean())),
        "bound": math.sqrt(size - 1),
        "gaps": gaps[1:],
        "curves": {name: np.abs(table[1:]).max(1) for name, table in by_rule.items()},
    }


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    left = figure.add_axes((0.065, 0.29, 0.4, 0.58))
    right = figure.add_axes((0.575, 0.29, 0.41, 0.58))
    left.set(xlim=(0, 1), ylim=(-TOP, TOP), xticks=[], yticks=range(-4, 5, 2))
    left.set_ylabel("advantage $A_i$", labelpad=2)
    left.set_xlabel("the answers of the group")
    left.axhline(0, color=BLACK, lw=0.8)
    right.set(xscale="log", yscale="log", xlim=(0.7e-8, 1.5), ylim=(FLOOR, 12))
    right.set_yticks([1e-8, 1e-6, 1e-4, 1e-2, 1])
    right.set_xticks([1e-8, 1e-6, 1e-4, 1e-2, 1])
    right.minorticks_off()
    right.set(xlabel="size of the difference in the rewards", ylabel="largest |A|")
    nothing = np.full(len(GAPS), np.nan)
    artists = {
        "eps": right.axvspan(1e-9, 2e-9, color=BLACK, alpha=0.09, lw=0),
        "bars": left.bar(np.zeros(MAX_SIZE), np.zeros(MAX_SIZE), ec="white", lw=0),
        "bounds": [left.plot([0, 1], [0, 0], ":", color=BLACK, lw=1.4)[0] for _ in range(2)],
        "bound": right.plot([1e-9, 10], [1, 1], ":", color=BLACK, lw=1.4)[0],
        "undivided": right.plot(GAPS, nothing, "--", color=PURPLE)[0],
        "divided": right.plot(GAPS, nothing, "-", color=GREEN)[0],
        "here": right.plot([], [], "o", **DOT)[0],
        "numbers": [left.text(0, 0, "", ha="center", size=9) for _ in range(MAX_SIZE)],
        "text": [figure.text(0.065, 0.115 - 0.066 * i, "", fontsize=9.5) for i in range(2)],
    }
    of_left = [
        left.fill_between([], [], color=POSITIVE, label="A > 0"),
        left.fill_between([], [], color=NEGATIVE, hatch="//", ec="white", lw=0, label="A < 0"),
        left.plot([], [], ":", color=BLACK, lw=1.4, label="√(G−1)")[0],
    ]
    of_right = [
        right.plot([], [], "-", color=GREEN, label="divided by std + ε")[0],
        right.plot([], [], "--", color=PURPLE, label="mean only")[0],
        right.fill_between([], [], color=BLACK, alpha=0.09, lw=0, label="std < ε"),
        right.plot([], [], "o", **DOT, label="here")[0],
    ]
    for handles, middle in ((of_left, 0.265), (of_right, 0.765)):
        figure.legend(
            handles=handles,
            loc="upper center",
            ncols=4,
            bbox_to_anchor=(middle, 1.005),
            handlelength=2.0,
            columnspacing=1.1,
        )
    return artists


def _eps_edge(data) -> float:
    """The gap at which the std equals eps."""
    unit = _rewards(np.array([1.0]), data["size"], data["pattern"])[0].std()
    return data["eps"] / float(unit)


def update(artists, data):
    """The figure moved to new data."""
    count = data["size"]
    place = (np.arange(count) + 0.5) / count
    width = min(0.62 / count, 0.07)
    few = count <= 8  # above that the numbers would touch
    for i in range(MAX_SIZE):
        bar, number = artists["bars"][i], artists["numbers"][i]
        bar.set_visible(i < count)
        number.set_visible(i < count and few)
        if i < count:
            a = float(data["advantages"][i])
            bar.set(x=place[i] - width / 2, width=width, height=a)
            bar.set(facecolor=POSITIVE if a > 0 else NEGATIVE, hatch="//" if a < 0 else "")
            number.set(x=place[i], y=TOP * 1.02, text=signed(a, 2))
    for side, line in zip((1, -1), artists["bounds"], strict=True):
        line.set_ydata([side * data["bound"]] * 2)
    artists["bound"].set_ydata([data["bound"]] * 2)
    for name, curve in data["curves"].items():
        artists[name].set_ydata(np.maximum(curve, FLOOR))
        artists[name].set_linewidth(2.8 if (name == "divided") == data["divide"] else 1.4)
    edge = _eps_edge(data)
    artists["eps"].set_visible(edge > 0)
    artists["eps"].set_x(1e-9)
    artists["eps"].set_width(max(edge, 2e-9) - 1e-9)
    artists["here"].set_data([data["gap"]], [max(data["largest"], FLOOR)])
    for text, line in zip(artists["text"], _lines(data), strict=True):
        text.set_text(line)


def _lines(data) -> tuple[str, str]:
    eps = "0" if not data["eps"] else f"{data['eps']:.0e}".replace("e-0", "e−")
    gap = f"{data['gap']:.0e}".replace("e-0", "e−").replace("e+00", "")
    what = {
        "one": f"one of {data['size']} lower by {gap}",
        "noise": f"noise of size {gap} on all {data['size']}",
    }[data["pattern"]]
    rule = f"divided by std + ε, ε = {eps}" if data["divide"] else "mean only"
    gain = f"gain {data['gain']:,.0f}" if data["divide"] else "gain 1"
    largest = (
        f"{data['largest']:.4f}"
        if data["largest"] >= 5e-4
        else f"{data['largest']:.1e}".replace("e-0", "e−")
    )
    return (
        f"{what}  ·  {rule}  ·  std {data['std']:.1e}  ·  {gain}".replace("e-0", "e−"),
        f"largest |A| {largest}, bound √(G−1) = {data['bound']:.4f}  ·  rms of A {data['rms']:.4f}",
    )


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    first, second = (" ".join(line.split()) for line in _lines(data))
    return (
        f"Left: advantages of {data['size']} answers, {PATTERNS[data['pattern']]}. Right: largest "
        f"|A| against the size of the difference, with and without the division. {first}. {second}."
    )


def std_explorer() -> Explorer:
    """Size of the difference, group size, eps, divide or not, one answer or noise."""
    gaps = [(f"{g:.0e}".replace("e-0", "e-").replace("e+00", ""), g) for g in GAPS]
    return Explorer(
        compute,
        build,
        update,
        {
            "gap": choice_slider(0.01, gaps, "difference", "how far the rewards are from equal"),
            "size": slider(8, 2, MAX_SIZE, 1, "group size G", "answers to the one prompt"),
            "eps": choice_slider(
                1e-6,
                [("0" if not e else f"{e:.0e}".replace("e-0", "e-"), e) for e in EPSILONS],
                "ε",
                "added to the std",
            ),
            "divide": choice(
                True,
                [("std + ε", True), ("nothing", False)],
                "divide by",
                "GRPO divides by the std of the group, Dr. GRPO by nothing",
            ),
            "pattern": choice(
                "one",
                [("one answer", "one"), ("noise on all", "noise")],
                "who differs",
                "one answer is lower, or every answer has its own small noise",
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 345),
    )
