"""Many estimates of one gradient: how many of them point uphill?

The toy of the lesson: a policy that writes 0, 1 or stop, three tokens at most, and a grader that
wants exactly one 1 and a stop. A dot is a whole step, made of N drawn answers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rlnb.classroom.explorer import Explorer, choice_slider
from rlnb.classroom.explorers.arguments import checked, one_of
from rlnb.classroom.figures import BLACK, NEGATIVE, POSITIVE

STEPS = 20_000  # behind the share
DRAWN = 400
SIZES = (1, 4, 16, 64, 256, 1024, 4096)
CONSTANTS = (-2.0, -1.0, -0.5, -0.2, 0.0, 1.0, 3.0, 10.0)
EDGE = 6.0
CAPTION = (
    "A dot is the gradient of one step, measured against the true one (arrow). Blue dots point "
    "uphill, orange crosses do not. The height of a dot is its error in one fixed direction across "
    "the gradient. Dots beyond the frame are drawn on its edge."
)


@cache
def world() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities (15,), rewards (15,), and each score (15, 2) seen along the true gradient and
    along the direction across it in which the scores spread most; the true gradient is (1, 0)."""
    import torch

    from rlnb.toys import SequencePolicy, true_gradient

    start = torch.sin(torch.arange(21, dtype=torch.float64)).view(7, 3)
    policy = SequencePolicy(2, 3, start)
    rewards = [float(y.count(1) == 1 and y[-1] == policy.stop) for y in policy.outcomes]
    score = np.stack([
        torch.autograd.grad(policy.logprobs()[y].sum(), policy.logits)[0].flatten().numpy()
        for y in range(len(policy))
    ])  # fmt: skip
    pi = policy.probabilities().detach().numpy()
    truth = true_gradient(policy, rewards).flatten().numpy()
    length = float(np.linalg.norm(truth))
    across = score - np.outer(score @ truth, truth) / length**2
    _, vectors = np.linalg.eigh(across.T @ (pi[:, None] * across))
    side = vectors[:, -1] * np.sign(vectors[np.abs(vectors[:, -1]).argmax(), -1])
    return pi, np.array(rewards), np.stack([score @ truth / length**2, score @ side / length], 1)


@checked(size=one_of(SIZES), constant=one_of(CONSTANTS))
def compute(size: int = 16, constant: float = 0.0) -> dict[str, Any]:
    """20,000 gradient estimates of `size` answers each, `constant` added to every reward.

    Returns dots (20000, 2) in units of the true gradient's length, share and down (of dots that
    point uphill and downhill; the others stand still), and the arguments. The picture draws the
    first 400.

    >>> compute(16)["share"] > 0.95 > 0.7 > compute(16, 10.0)["share"]
    True
    """
    pi, rewards, score = world()
    counts = np.random.default_rng(5).multinomial(size, pi, STEPS)
    dots = counts @ ((rewards + constant)[:, None] * score) / size
    return {
        "size": size,
        "constant": constant,
        "dots": dots,
        "share": float((dots[:, 0] > 1e-12).mean()),
        "down": float((dots[:, 0] < -1e-12).mean()),
    }


def build(figure, data):
    axes = figure.add_axes((0.08, 0.19, 0.6, 0.78))
    axes.axvspan(0, EDGE + 1, color="#EAF3FA", zorder=0)
    axes.axvline(0, color=BLACK, lw=0.8)
    axes.set(xlim=(-EDGE, EDGE), ylim=(-EDGE / 1.8, EDGE / 1.8), yticks=(-2, 0, 2))
    axes.tick_params(labelsize=10.5)
    axes.set_xlabel("along the true gradient (its length = 1)", fontsize=10.5)
    axes.set_ylabel("sideways", fontsize=10.5)
    axes.text(EDGE - 0.1, -EDGE / 1.8 + 0.2, "uphill", ha="right", fontsize=11, color=POSITIVE)
    figure.text(0.71, 0.72, "arrow: the true gradient", fontsize=11)
    return {
        "no": axes.plot([], [], "x", color=NEGATIVE, ms=6, alpha=0.8, zorder=5)[0],
        "yes": axes.plot([], [], "o", color=POSITIVE, ms=4.5, alpha=0.6, mec="none")[0],
        "arrow": axes.annotate("", (1, 0), (0, 0), arrowprops={
            "arrowstyle": "-|>", "color": BLACK, "lw": 3, "mutation_scale": 16, "shrinkA": 0,
            "shrinkB": 0}),
        "share": figure.text(0.71, 0.53, "", fontsize=15, weight="bold", color=POSITIVE),
        "down": figure.text(0.71, 0.42, "", fontsize=15, weight="bold", color=NEGATIVE),
        "what": figure.text(0.71, 0.29, "of 20,000 steps, of which\n400 are drawn", fontsize=11),
    }  # fmt: skip


def update(artists, data):
    shown = data["dots"][:DRAWN]
    dots = np.clip(shown, (-EDGE, -EDGE / 1.8), (EDGE, EDGE / 1.8))
    uphill = shown[:, 0] > 1e-12
    artists["yes"].set_data(dots[uphill].T)
    artists["no"].set_data(dots[~uphill].T)
    artists["share"].set_text(f"{100 * data['share']:.1f} % uphill")
    artists["down"].set_text(f"{100 * data['down']:.1f} % downhill")


def readout(data) -> str:
    low, high = (f"{data['constant'] + r:g}".replace("-", "−") for r in (0, 1))
    answers = "1 answer" if data["size"] == 1 else f"{data['size']:,} answers"
    return (
        f"Rewards {low} and {high}, {answers} a step: {100 * data['share']:.1f} % of the steps go "
        f"uphill, {100 * data['down']:.1f} % downhill."
    )


def alt(data) -> str:
    return f"Cloud of {DRAWN} gradient estimates around the true one. {readout(data)}"


def mostly_downhill(data) -> bool:
    """At least eleven steps of twenty go downhill, although their mean is the true gradient."""
    return data["down"] >= 0.55


def few_answers(data) -> bool:
    """Four answers a step, and nineteen steps of twenty go uphill."""
    return data["size"] == 4 and data["share"] >= 0.95


def uphill_explorer(constant: float = 0.0) -> Explorer:
    """Answers a step, and a constant added to all rewards, which starts at `constant`."""
    return Explorer(
        compute,
        build,
        update,
        {
            "size": choice_slider(16, [(f"{n:,}", n) for n in SIZES], "answers a step N",
                                  "drawn from the policy, averaged"),
            "constant": choice_slider(constant,
                                      [(f"{c:g}".replace("-", "−"), c) for c in CONSTANTS],
                                      "added to all rewards", "10 turns 1 and 0 into 11 and 10"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 310),
    )  # fmt: skip
