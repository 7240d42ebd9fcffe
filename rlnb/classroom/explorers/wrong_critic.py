"""A critic that has two plans the wrong way round for a while, and what lambda makes of it."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing
from rlnb.classroom.figures import BLACK, GREEN, GREY, NEGATIVE, PALE, POSITIVE, signed

P_GOOD = 0.4
TRUE = {"good": 0.9, "bad": 0.2}  # chance to be right after either plan
CLAIMED = {"good": 0.5, "bad": 0.7}
START = P_GOOD * TRUE["good"] + (1 - P_GOOD) * TRUE["bad"]
PLAN, END = 60, 140  # the plan token, and the token that settles right or wrong
BATCH = 8
TRUE_GRADIENT = P_GOOD * (1 - P_GOOD) * (TRUE["good"] - TRUE["bad"])
LAMBDAS = np.linspace(0, 1, 101)
CAPTION = (
    "Left, what the critic says after either plan, and the truth. Right, the gradient on the plan; "
    "above 0 the good plan becomes likelier. Line: mean over all answers; grey: one std of a batch "
    "of 8. Off² = bias² + noise²: bias is the line's distance from the truth, noise that std, on "
    "the plan token alone."
)


def mean_gradient(lam: float | np.ndarray, lasts: int) -> Any:
    """p(1-p) ((1 - lambda^lasts) (V_good - V_bad) + lambda^lasts (Q_good - Q_bad))."""
    waited = lam**lasts
    believed = CLAIMED["good"] - CLAIMED["bad"]
    return P_GOOD * (1 - P_GOOD) * ((1 - waited) * believed + waited * (TRUE["good"] - TRUE["bad"]))


def outcomes(lasts: int, lambdas: np.ndarray = LAMBDAS) -> tuple[np.ndarray, np.ndarray]:
    """Four outcomes of an answer: chances (4,), and the plan's gradient under GAE (4, lambdas)."""
    chances, gradients = [], []
    for plan, right in product(("good", "bad"), (1, 0)):
        p = P_GOOD if plan == "good" else 1 - P_GOOD
        chances.append(p * (TRUE[plan] if right else 1 - TRUE[plan]))
        surprises = (CLAIMED[plan] - START, TRUE[plan] - CLAIMED[plan], right - TRUE[plan])
        waits = (0, lasts, END - PLAN)
        advantage = sum(d * lambdas**k for d, k in zip(surprises, waits, strict=True))
        gradients.append(((plan == "good") - P_GOOD) * advantage)
    return np.array(chances), np.array(gradients)


@cache
def noise(lasts: int) -> np.ndarray:
    """Std of the mean gradient of BATCH answers, exact, over LAMBDAS (101,)."""
    p, g = outcomes(lasts)
    return np.sqrt(np.maximum(p @ g**2 - (p @ g) ** 2, 0) / BATCH)


@echoing
@checked(lam=between(0, 1), lasts=between(1, 80, "tokens"))
def compute(lam: float = 0.0, lasts: int = 1) -> dict[str, Any]:
    """The mean gradient on the good plan under GAE, gamma 1; the critic errs for `lasts` tokens.

    Returns gradient, curve and std (101,) over LAMBDAS, right_sign, bias, noise of a batch of 8,
    off: sqrt(bias^2 + noise^2), least: the smallest such, and the arguments. The critic is wrong
    before the `lasts` tokens that follow the plan and right everywhere else.

    >>> [round(compute(lam)["gradient"], 4) for lam in (0, 0.5, 0.95, 1)]
    [-0.048, 0.06, 0.1572, 0.168]
    """
    gradient = float(mean_gradient(lam, lasts))
    curve, std = mean_gradient(LAMBDAS, lasts), noise(int(lasts))
    off = np.hypot(curve - TRUE_GRADIENT, std)
    return {
        "gradient": gradient,
        "curve": curve,
        "std": std,
        "right_sign": gradient > 0,
        "bias": gradient - TRUE_GRADIENT,
        "noise": float(std[round(100 * lam)]),
        "off": float(off[round(100 * lam)]),
        "least": float(off.min()),
    }


def staircase(plan: str, lasts: int) -> tuple[np.ndarray, np.ndarray]:
    """The critic's value before each token from a little before the plan to the end."""
    x = np.arange(PLAN - 12, END + 1)
    values = np.where(x <= PLAN, START, TRUE[plan])
    wrong = (x > PLAN) & (x <= PLAN + lasts)
    return x, np.where(wrong, CLAIMED[plan], values)


def build(figure, data):
    left = figure.add_axes((0.07, 0.2, 0.42, 0.68))
    right = figure.add_axes((0.6, 0.2, 0.38, 0.68))
    left.set(xlim=(PLAN - 12, END), ylim=(0, 1.02), yticks=(0, 0.5, 1))
    left.set_xlabel("token of the answer", fontsize=10.5)
    left.set_ylabel("value before the token", fontsize=10.5)
    right.set(xlim=(0, 1), ylim=(-0.12, 0.28), yticks=(0, 0.1, 0.2))
    right.set_xlabel("λ", fontsize=11)
    right.set_ylabel("mean gradient, plan", fontsize=10.5)
    right.axhspan(-0.12, 0, color=PALE)
    right.axhline(0, color=BLACK, lw=0.8)
    right.axhline(TRUE_GRADIENT, color=GREEN, lw=1.6, ls="-.")
    right.text(0.02, TRUE_GRADIENT + 0.006, f"the truth, {signed(TRUE_GRADIENT, 3)}", color=GREEN,
               fontsize=10.5)  # fmt: skip
    right.text(0.98, -0.118, "wrong sign", ha="right", va="bottom", fontsize=10.5)
    artists = {"left": left}
    for plan, color, line in (("good", POSITIVE, "-"), ("bad", NEGATIVE, "--")):
        x, truth = staircase(plan, 0)
        left.step(x, truth, where="post", color=color, lw=1.2, ls=":")
        artists[plan] = left.step(x, truth, where="post", color=color, lw=3, ls=line)[0]
        left.plot([], [], color=color, lw=3, ls=line, label=f"critic, {plan} plan")
    left.plot([], [], color=GREY, lw=1.2, ls=":", label="the truth")
    left.legend(loc="lower left", bbox_to_anchor=(-0.02, 0.99), ncols=3, fontsize=10.5,
                columnspacing=1.0, handlelength=1.6, borderaxespad=0)  # fmt: skip
    for axes in (left, right):
        axes.tick_params(labelsize=10.5)
    artists["right"] = right
    artists["band"] = right.fill_between(LAMBDAS, 0, 0, color=GREY, alpha=0.35, lw=0)
    artists["curve"] = right.plot(LAMBDAS, data["curve"], color=BLACK, lw=2.4)[0]
    artists["here"] = right.plot([0], [0], "o", ms=12, color=BLACK, mec="white", clip_on=False)[0]
    artists["text"] = figure.text(0.6, 0.925, "", fontsize=12, weight="bold")
    return artists


def update(artists, data):
    for plan in ("good", "bad"):
        artists[plan].set_data(*staircase(plan, data["lasts"]))
    # a short error would be a line of one pixel: look closer
    artists["left"].set_xlim(PLAN - 4, PLAN + 20 if data["lasts"] <= 12 else END)
    artists["curve"].set_ydata(data["curve"])
    low, high = data["curve"] - data["std"], data["curve"] + data["std"]
    artists["band"].set_verts(
        [np.column_stack([np.r_[LAMBDAS, LAMBDAS[::-1]], np.r_[low, high[::-1]]])]
    )
    artists["here"].set_data([data["lam"]], [data["gradient"]])
    artists["text"].set_text(f"λ = {data['lam']:.2f}: gradient {signed(data['gradient'], 3)}")


def readout(data) -> str:
    tokens = "token" if data["lasts"] == 1 else "tokens"
    sign = "right sign" if data["right_sign"] else "wrong sign"
    return (
        f"λ = {data['lam']:.2f}, wrong for {data['lasts']} {tokens}: gradient "
        f"{signed(data['gradient'], 3)}, {sign}. Off by {data['off']:.3f}: "
        f"bias {signed(data['bias'], 3)}, noise {data['noise']:.3f}."
    )


def alt(data) -> str:
    return (
        "Value along an answer after a good and after a bad plan, the critic's and the true one; "
        f"and the mean gradient on the good plan against lambda. {readout(data)}"
    )


def turned_at_95(data) -> bool:
    """At lambda 0.95 the error lasts just long enough to turn the sign."""
    return abs(data["lam"] - 0.95) < 1e-9 and data["lasts"] == 30


def least_off(data) -> bool:
    """Wrong for ten tokens, and a lambda at which a batch is off by least, to three digits."""
    return data["lasts"] == 10 and round(data["off"], 3) <= round(data["least"], 3)


def wrong_critic_explorer() -> Explorer:
    """Lambda, and for how many tokens the critic is wrong."""
    return Explorer(
        compute,
        build,
        update,
        {
            "lam": slider(
                0.95, 0.0, 1.0, 0.01, "λ", "0 believes the critic, 1 waits for the reward"
            ),
            "lasts": slider(
                10, 1, 80, 1, "wrong for (tokens)", "how many tokens after the plan the critic errs"
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 255),
    )
