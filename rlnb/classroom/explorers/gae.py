"""GAE with a wrong critic: at small lambda the first token is pushed the wrong way.

The toy. The first of five tokens decides: the good token leads to a right answer nine times in ten,
the bad one twice. The rest of the answer follows from it, and the last token settles right (reward
1) or wrong (0). The policy takes the good token with probability 0.4. The critic knows the value of
every prefix except the one after the first token, where it has the two the wrong way round.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, slider, switch
from rlnb.classroom.explorers.arguments import between, checked, echoing
from rlnb.classroom.figures import BLACK, GREEN, GREY, NEGATIVE, PALE, POSITIVE, signed
from rlnb.objective import Batch, gae

__all__ = [
    "BRANCHES",
    "P_GOOD",
    "P_RIGHT",
    "TRUE_GRADIENT",
    "alt",
    "build",
    "compute",
    "gae_explorer",
    "update",
]

TOKENS = 5
P_GOOD = 0.4
P_RIGHT = {"good": 0.9, "bad": 0.2}
WRONG = {"good": 0.5, "bad": 0.7}  # what the critic believes after the first token
START = P_GOOD * P_RIGHT["good"] + (1 - P_GOOD) * P_RIGHT["bad"]  # 0.48
BRANCHES = ("good", "bad")
LAMBDAS = np.linspace(0, 1, 21)
COLORS = {"good": POSITIVE, "bad": NEGATIVE}
STYLES = {"good": ("-", "o", ""), "bad": ("--", "s", "//")}
CAPTION = (
    "The critic prefers the wrong token. Small λ believes it and pushes the first token the wrong "
    "way; λ = 1 waits for the reward."
)


def _values(wrong_critic: bool) -> dict[str, np.ndarray]:
    """(T,) per branch: the critic's value of the prefix before each token."""
    out = {}
    for branch in BRANCHES:
        values = np.array([START] + [P_RIGHT[branch]] * (TOKENS - 1))
        if wrong_critic:
            values[1] = WRONG[branch]
        out[branch] = values
    return out


def _advantages(lam: float, gamma: float, wrong_critic: bool) -> dict[str, np.ndarray]:
    """(T,) per branch: the package's GAE, averaged over whether the last token comes out right."""
    values = _values(wrong_critic)
    rows = [(branch, reward) for branch in BRANCHES for reward in (1.0, 0.0)]
    critic = torch.tensor(np.stack([values[branch] for branch, _ in rows]))
    rewards = torch.tensor([reward for _, reward in rows], dtype=torch.float64)
    token_rewards = torch.zeros_like(critic)
    token_rewards[:, -1] = rewards
    zeros = torch.zeros_like(critic)
    batch = Batch(zeros, torch.ones_like(critic), rewards, 1, values=critic)
    table = gae(gamma=gamma, lam=lam)(batch, token_rewards).numpy()
    return {
        branch: P_RIGHT[branch] * table[2 * i] + (1 - P_RIGHT[branch]) * table[2 * i + 1]
        for i, branch in enumerate(BRANCHES)
    }


def _gradient(first: dict[str, float]) -> float:
    """Expected gradient on the good token's logit: sum over a of pi(a) (1[a = good] - p) A(a)."""
    p = P_GOOD
    return p * (1 - p) * first["good"] + (1 - p) * (0 - p) * first["bad"]


TRUE_GRADIENT = _gradient(P_RIGHT)  # 0.168: the expected reward takes the place of A


@lru_cache(maxsize=256)
def _curve(gamma: float, wrong_critic: bool) -> np.ndarray:
    tables = [_advantages(float(lam), gamma, wrong_critic) for lam in LAMBDAS]
    return np.array([_gradient({b: table[b][0] for b in BRANCHES}) for table in tables])


@echoing
@checked(lam=between(0, 1), gamma=between(0, 1))
def compute(lam: float = 0.0, gamma: float = 1.0, wrong_critic: bool = True) -> dict[str, Any]:
    """GAE on both branches of the toy, exact: every expectation is a sum.

    `lam` and `gamma` in [0, 1]. Returns values and true_values {"good": (5,), "bad": (5,)}, the
    critic's and the right value before each token; advantages likewise (mean over the last token's
    outcome); gradient, the expected policy gradient on the good first token's logit,
    p(1-p)(A_good - A_bad) with p = 0.4; true_gradient, that of the expected reward, 0.168;
    right_sign; curve (21,), the gradient at `lambdas`; and the arguments.

    >>> [round(compute(lam)["gradient"], 4) for lam in (0, 0.5, 0.9, 0.95, 1)]
    [-0.048, 0.06, 0.1464, 0.1572, 0.168]
    """
    advantages = _advantages(lam, gamma, wrong_critic)
    gradient = _gradient({branch: float(advantages[branch][0]) for branch in BRANCHES})
    return {
        "values": _values(wrong_critic),
        "true_values": _values(False),
        "advantages": advantages,
        "gradient": gradient,
        "true_gradient": TRUE_GRADIENT,
        "right_sign": gradient > 0,
        "lambdas": LAMBDAS,
        "curve": _curve(gamma, wrong_critic),
    }


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    top = figure.add_axes((0.075, 0.58, 0.475, 0.31))
    below = figure.add_axes((0.075, 0.125, 0.475, 0.36))
    side = figure.add_axes((0.65, 0.125, 0.335, 0.765))
    place = np.arange(1, TOKENS + 1)
    for axes in (top, below):
        axes.set(xlim=(0.5, TOKENS + 0.5), xticks=place)
    top.set(ylim=(0, 1.02), yticks=(0, 0.5, 1), ylabel="value before t")
    top.tick_params(labelbottom=False)
    below.set(ylim=(-0.72, 0.72), yticks=(-0.5, 0, 0.5), ylabel=r"advantage $A_t$")
    below.set_xlabel("token t of the answer", labelpad=1)
    below.axhline(0, color=BLACK, linewidth=0.8)
    side.set(xlim=(0, 1), ylim=(-0.1, 0.22), yticks=(-0.1, -0.05, 0, 0.05, 0.1, 0.15, 0.2))
    side.set_xlabel(r"$\lambda$", labelpad=1)
    side.set_ylabel("gradient on the good token's logit")
    side.axhspan(-0.1, 0, color=PALE)
    side.axhline(0, color=BLACK, linewidth=0.8)
    side.axhline(TRUE_GRADIENT, color=GREEN, linewidth=1.6, linestyle="-.")
    side.text(0.02, TRUE_GRADIENT + 0.005, f"true gradient {signed(TRUE_GRADIENT, 3)}", color=GREEN)
    side.text(0.98, -0.094, "wrong sign", ha="right", va="bottom")
    artists = {"values": {}, "bars": {}, "numbers": {}}
    handles = []
    for branch, shift in zip(BRANCHES, (-0.19, 0.19), strict=True):
        color, (dashes, marker, hatch) = COLORS[branch], STYLES[branch]
        true = data["true_values"][branch]
        top.plot(place, true, color=color, linestyle=dashes, linewidth=1, alpha=0.55)
        artists["values"][branch] = top.plot(
            place, true, marker, ms=7, color=color, mec="white", clip_on=False
        )[0]
        artists["bars"][branch] = below.bar(
            place + shift, np.zeros(TOKENS), 0.36, color=color, hatch=hatch, ec="white", lw=0
        )
        artists["numbers"][branch] = below.text(
            1 + shift / 12, 0, "", ha="right" if shift < 0 else "left", va="center", fontsize=9
        )
        handles.append(
            top.plot(
                [],
                [],
                color=color,
                linestyle=dashes,
                marker=marker,
                ms=7,
                mec="white",
                lw=1,
                label=f"first token {branch}",
            )[0]
        )
    handles += [
        top.plot([], [], "o", color=GREY, ms=7, mec="white", label="critic")[0],
        top.plot([], [], color=GREY, lw=1, label="true value")[0],
    ]
    figure.legend(
        handles=handles,
        loc="upper left",
        ncols=4,
        bbox_to_anchor=(0.065, 1.0),
        columnspacing=1.6,
        handletextpad=0.5,
    )
    artists["curve"] = side.plot(LAMBDAS, data["curve"], color=BLACK)[0]
    artists["here"] = side.plot([0], [0], "o", ms=10, color=BLACK, mec="white", clip_on=False)[0]
    artists["text"] = figure.text(0.65, 0.935, "", fontsize=9.5)
    return artists


def update(artists, data):
    """The figure moved to new data."""
    for branch in BRANCHES:
        artists["values"][branch].set_ydata(data["values"][branch])
        for bar, a in zip(artists["bars"][branch], data["advantages"][branch], strict=True):
            bar.set_height(a)
        first = float(data["advantages"][branch][0])
        number = artists["numbers"][branch]
        number.set_text(signed(first, 2))
        number.set_y(first + (0.1 if first >= 0 else -0.1))
    artists["curve"].set_ydata(data["curve"])
    artists["here"].set_data([data["lam"]], [data["gradient"]])
    artists["text"].set_text(
        f"λ = {data['lam']:.2f}, γ = {data['gamma']:.2f}:  {signed(data['gradient'])}, "
        f"{_verdict(data)}"
    )


def _verdict(data) -> str:
    return "right sign" if data["right_sign"] else "wrong sign"


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    critic = "wrong after the first token" if data["wrong_critic"] else "right everywhere"
    good, bad = (signed(float(data["advantages"][branch][0])) for branch in BRANCHES)
    return (
        f"GAE on a five-token answer, lambda {data['lam']:.2f}, gamma {data['gamma']:.2f}, critic "
        f"{critic}. Advantage of the first token: good {good}, bad {bad}. Gradient on the good "
        f"token's logit {signed(data['gradient'])}, true {signed(data['true_gradient'])}: "
        f"{_verdict(data)}. The curve runs from {signed(data['curve'][0])} at lambda 0 to "
        f"{signed(data['curve'][-1])} at lambda 1."
    )


def gae_explorer() -> Explorer:
    """Lambda, gamma, and whether the critic is wrong."""
    return Explorer(
        compute,
        build,
        update,
        {
            "lam": slider(0.0, 0.0, 1.0, 0.01, "λ", "0 trusts the critic, 1 waits for the reward"),
            "gamma": slider(1.0, 0.8, 1.0, 0.01, "γ", "discount per token"),
            "wrong_critic": switch(
                True, "critic wrong after the first token", "off: the critic is right everywhere"
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 392),
    )
