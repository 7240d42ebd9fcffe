"""The pictures of the page on KL: read it, push with it, limit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.patches import FancyArrowPatch, Rectangle
from torch import Tensor

from rlnb.classroom.figures import (
    BLACK,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    WINE,
    Picture,
    static_figure,
)

__all__ = [
    "CORNERS",
    "estimators",
    "first_word",
    "noise",
    "roads_away",
    "runs",
    "styles",
    "triangle",
    "which_gradient",
]

TEXT = 10.5  # points: the size of the page's own text
# Green is the gradient of KL(pi || ref), the way home; purple that of KL(ref || pi).
HOME, OTHER = GREEN, PURPLE
ARMS = {
    "no penalty": (GREY, "-"),
    "k1 in the loss": (ORANGE, "--"),
    "k1 in the reward": (HOME, "-"),
}
# Three answers are the corners of a triangle: on top what pays 1, on the right ½, on the left 0.
CORNERS = np.array([[0.5, 0.866], [1.0, 0.0], [0.0, 0.0]])


def runs(arms: Mapping[str, Tensor], goal: float, caption: str) -> Picture:
    """KL to the reference against updates; a line is the mean, its band the middle 80 % of seeds.

    arms: name -> (updates + 1, seeds), the name beginning with one of ARMS. goal: the KL at which
    reward minus beta KL is largest.
    """
    tables = {name: curve.numpy() for name, curve in arms.items()}
    top = 2.4 if max(curve[-1].mean() for curve in tables.values()) > 1 else 0.66

    def build(figure, _):
        axes = figure.add_axes((0.075, 0.18, 0.56, 0.78))
        rows = sorted(tables.items(), key=lambda item: item[1][-1].mean())
        height = -1.0
        for name, curve in rows:
            color, dashes = _arm(name)
            wide = {"lw": 6, "alpha": 0.45} if name == "no penalty" else {"lw": 2.6}
            low, high = np.quantile(curve, (0.1, 0.9), axis=1)
            axes.fill_between(range(len(curve)), low, high, color=color, alpha=0.15, lw=0)
            axes.plot(curve.mean(1), color=color, ls=dashes, **wide)
            height = max(curve[-1].mean(), height + 0.085 * top)
            text = f"{name}: {curve[-1].mean():.2f}"
            end = len(curve) - 1
            axes.plot([end * 1.02, end * 1.1], [height] * 2, color=color, ls=dashes,
                      clip_on=False, **wide)  # fmt: skip
            axes.text(end * 1.12, height, text, va="center", fontsize=11)
        axes.axhline(0, color=GREY, lw=0.8)
        axes.axhline(goal, color=BLACK, ls=":", lw=1.6)
        where = len(rows[0][1]) - 1
        axes.text(where, goal + 0.0125 * top, f"wanted: {goal:.2f}", ha="right", fontsize=TEXT)
        axes.set(ylim=(-0.1 * top, top), xlim=(0, where))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("updates, 16 answers each", fontsize=TEXT)
        axes.set_ylabel("KL(π‖π_ref) in nats", fontsize=TEXT)

    ends = "; ".join(f"{name} {curve[-1].mean():.2f}" for name, curve in tables.items())
    alt = f"KL to the reference over {len(next(iter(tables.values()))) - 1} updates, 400 seeds. "
    return static_figure(build, size=(900, 300), alt=f"{alt}At the end: {ends}.", caption=caption)


def _arm(name: str):
    return next(look for arm, look in ARMS.items() if name.startswith(arm))


def estimators(ell: Tensor, chances: Tensor) -> Picture:
    """k1, k2, k3 against the log-ratio, with the toy's three answers on k1 and k3.

    ell, chances (3,): log-ratio and chance of each answer, the one that pays most first.
    """
    at, size = ell.detach().numpy(), 60 + 500 * chances.detach().numpy()
    x = np.linspace(-1.75, 2.05, 300)
    curves = {
        "k1 = ℓ": (x, ORANGE, "--"),
        "k2 = ℓ²/2": (x**2 / 2, SKY, ":"),
        "k3 = e^(−ℓ) − 1 + ℓ": (np.expm1(-x) + x, BLACK, "-"),
    }

    def build(figure, _):
        axes = figure.add_axes((0.07, 0.17, 0.62, 0.79))
        axes.axhspan(-1.9, 0, color=BLACK, alpha=0.06, lw=0)
        for name, (y, color, dashes) in curves.items():
            axes.plot(x, y, color=color, ls=dashes, lw=2.4, label=name)
        axes.scatter(at, at, s=size, marker="s", color=ORANGE, ec="white", zorder=4)
        axes.scatter(at, np.expm1(-at) + at, s=size, color=BLACK, ec="white", zorder=5)
        axes.axhline(0, color=GREY, lw=0.8)
        axes.axvline(0, color=GREY, lw=0.8)
        axes.set(xlim=(-1.75, 2.05), ylim=(-1.9, 2.3))
        axes.tick_params(labelsize=TEXT)
        axes.set_xlabel("ℓ = log π − log π_ref of an answer", fontsize=TEXT)
        axes.set_ylabel("estimate (nats)", fontsize=TEXT)
        for place, name in zip(at, ("pays 1", "pays ½", "pays 0"), strict=True):
            axes.text(place, -0.45 if place > 0 else -0.75, name, ha="center", fontsize=TEXT)
        axes.text(2.0, -1.7, "a divergence is never down here", ha="right", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.03, 1), fontsize=11)

    listed = ", ".join(f"{value:.2f}".replace("-", "−") for value in at)
    return static_figure(
        build,
        size=(900, 300),
        alt=f"k1, k2 and k3 against the log-ratio. Three answers at {listed}.",
        caption="The three answers, read with k1 (squares) and k3 (dots); the larger the mark, the "
        "more often the policy gives that answer.",
    )


def roads_away(references: int) -> dict[str, list[tuple[Tensor, Tensor]]]:
    """Three ways of leaving random softmaxes over 1,000 tokens, for the picture `noise`.

    Returns title -> a curve per reference: KL(pi || ref) (150,) in nats, and the standard deviation
    of one k3 over that of one k1, both exact, by the sum over all tokens.
    """
    far = torch.linspace(0.01, 1, 150, dtype=torch.float64)[:, None]
    ways = {
        "sharpened, temperature to 0.2": lambda z, _: z / (1 - 0.8 * far),
        "one token in three rewarded": lambda z, u: z + 12 * far * (u < 1 / 3),
        "flattened, temperature to 10": lambda z, _: z * (1 - 0.9 * far),
    }
    roads: dict[str, list[tuple[Tensor, Tensor]]] = {title: [] for title in ways}
    for seed in range(references):
        dice = torch.Generator().manual_seed(seed)
        z = 3 * torch.randn(1000, generator=dice, dtype=torch.float64)
        u = torch.rand(1000, generator=dice, dtype=torch.float64)
        for title, leave in ways.items():
            log_pi = leave(z, u).log_softmax(-1)
            ell = log_pi - z.log_softmax(-1)
            p, k3 = log_pi.exp(), torch.expm1(-ell) + ell
            roads[title].append(((p * ell).sum(-1), _spread(p, k3) / _spread(p, ell)))
    return roads


def _spread(p: Tensor, k: Tensor) -> Tensor:
    """Standard deviation of k under the chances p, along the last dimension."""
    return ((p * k**2).sum(-1) - (p * k).sum(-1) ** 2).sqrt()


def noise(roads: Mapping[str, Sequence[tuple[Tensor, Tensor]]]) -> Picture:
    """How noisy one k3 is beside one k1, against the KL: a panel per way of leaving.

    roads: title -> curves (KL, std k3 / std k1), one per reference. Dashed in every panel: two
    Gaussians of width 1, mu apart, where KL = mu^2 / 2 and the share is
    sqrt(exp(mu^2) - 1 - mu^2) / mu.
    """
    mu = np.linspace(0.1, 3.1, 100)
    gaussians = (mu**2 / 2, np.sqrt(np.expm1(mu**2) - mu**2) / mu)

    def build(figure, _):
        width = 0.93 / len(roads)
        for k, (title, curves) in enumerate(roads.items()):
            axes = figure.add_axes((0.075 + width * k, 0.2, width - 0.02, 0.68))
            axes.axhspan(1, 100, color=BLACK, alpha=0.06, lw=0)
            for kl, share in curves:
                axes.plot(kl, share, color=GREY, lw=1, alpha=0.7)
            axes.plot(*gaussians, color=BLACK, lw=2.2, ls="--")
            axes.axhline(1, color=GREY, lw=0.8)
            axes.set(xscale="log", yscale="log", xlim=(0.01, 5), ylim=(0.05, 20))
            axes.set_xticks((0.01, 0.1, 1), ("0.01", "0.1", "1"))
            axes.set_yticks((0.1, 1, 10), ("0.1", "1", "10") if k == 0 else ())
            axes.minorticks_off()
            axes.tick_params(labelsize=TEXT)
            axes.set_title(title, fontsize=TEXT, weight="bold")
            axes.set_xlabel("KL (nats per token)", fontsize=TEXT)
            if k == 0:
                axes.set_ylabel("std of k3 / std of k1", fontsize=TEXT)
                axes.text(0.012, 12, "k3 is noisier", fontsize=TEXT)
                axes.text(0.012, 0.065, "k3 is quieter", fontsize=TEXT)

    alt = "Standard deviation of k3 over that of k1 against KL. " + "; ".join(
        f"{title}: {len(curves)} references" for title, curves in roads.items()
    )
    return static_figure(
        build,
        size=(900, 310),
        alt=alt + ". The dashed line is a pair of Gaussians, which crosses 1 at 0.63 nats.",
        caption="A thin line is one reference of 1,000 tokens; dashed, two Gaussians, the "
        "textbook case. Shaded: k3 is the noisier one. In the middle ℓ has only two values; where "
        "k3 is equal on both it has no noise at all, and the curve dips out at the bottom.",
    )


def triangle(axes) -> None:
    """The frame of all policies over three answers, a corner an answer, named by what it pays."""
    names = ("pays 1", "pays ½", "pays 0")
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set(xlim=(-0.16, 1.16), ylim=(-0.13, 0.98))
    axes.plot(*np.vstack([CORNERS, CORNERS[:1]]).T, color=GREY, lw=1)
    for (x, y), name, side in zip(CORNERS, names, ("center", "left", "right"), strict=True):
        place = {"center": (x, y + 0.04), "left": (x + 0.01, y - 0.09), "right": (x, y - 0.09)}
        axes.text(*place[side], name, ha="center", fontsize=TEXT)


def which_gradient(gradients: Mapping[str, Tensor], caption: str) -> Picture:
    """Mean gradients on the logits of three answers, side by side: k3 in a loss and two KLs."""
    looks = {"KL(π‖π_ref)": (HOME, ""), "k3 in the loss": (BLACK, "//"), "KL(π_ref‖π)": (OTHER, "")}

    def build(figure, _):
        axes = figure.add_axes((0.075, 0.12, 0.6, 0.84))
        for k, (name, gradient) in enumerate(gradients.items()):
            color, hatch = looks[name]
            place = np.arange(3) + 0.26 * (k - 1)
            axes.bar(place, gradient.numpy(), 0.24, color=color, hatch=hatch, ec="white", lw=0.6,
                     label=name)  # fmt: skip
        axes.axhline(0, color=GREY, lw=0.8)
        axes.set_xticks(range(3), ("pays 1", "pays ½", "pays 0"))
        axes.tick_params(labelsize=TEXT)
        axes.set_ylabel("gradient on the logit", fontsize=TEXT)
        axes.legend(loc="upper left", bbox_to_anchor=(1.03, 1), fontsize=11)

    told = "; ".join(
        f"{name} " + ", ".join(f"{x:+.4f}".replace("-", "−") for x in (g + 0.0).tolist())
        for name, g in gradients.items()
    )
    alt = f"Gradient on the logits of the three answers. {told}."
    return static_figure(build, size=(900, 240), alt=alt, caption=caption)


def first_word(
    chances: Sequence[Sequence[float]], pushes: Mapping[str, Sequence[float]]
) -> Picture:
    """Left, the two-token world; right, each penalty's push on the first word's logits.

    chances (3, 3): of word 0, word 1 and stop under the policy, at the start, after word 0, after
    word 1; the reference gives each 1/3. pushes: name -> (3,), downhill.
    """
    names = ("word 0", "word 1", "stop")
    looks = {"KL of the answer": (HOME, ""), "k1 in the reward": (BLACK, ".."),
             "k2 per token, in the loss": (ORANGE, "//")}  # fmt: skip
    before, *after = chances

    def build(figure, _):
        axes = figure.add_axes((0.0, 0.0, 0.42, 1))
        axes.set(xlim=(0, 400), ylim=(290, 0))
        axes.axis("off")
        then = [
            "then "
            + ", ".join(f"{w}: {x:.2f}" for w, x in zip("01", row, strict=False))
            + f", stop: {row[2]:.2f}"
            for row in after
        ]
        for k, (name, chance, line) in enumerate(zip(names, before, (*then, ""), strict=True)):
            y = 55 + 75 * k
            axes.add_patch(FancyArrowPatch((42, 130), (118, y), arrowstyle="-|>",
                                           mutation_scale=13, color=GREY, lw=1.4))  # fmt: skip
            axes.text(126, y - 6, f"{name}: {chance:.2f}", fontsize=12, weight="bold", va="center")
            axes.text(126, y + 18, line, fontsize=TEXT, va="center")
        axes.text(6, 130, "start", fontsize=12, va="center", bbox={"fc": "white", "ec": "none",
                                                                  "pad": 1})  # fmt: skip
        axes.text(6, 276, "the reference: 0.33 for each, everywhere", fontsize=TEXT, va="center")
        bars = figure.add_axes((0.55, 0.1, 0.44, 0.65))
        width = 0.26
        for k, (name, push) in enumerate(pushes.items()):
            color, hatch = looks[name]
            place = np.arange(3) + width * (k - 1)
            bars.bar(place, push, width, color=color, hatch=hatch, ec="white", lw=0.6, label=name)
        bars.axhline(0, color=GREY, lw=0.8)
        bars.set_xticks(range(3), names)
        bars.tick_params(labelsize=TEXT)
        bars.set_ylabel("push on the logit", fontsize=TEXT)
        bars.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=TEXT, frameon=False)

    told = "; ".join(
        f"{name}: " + ", ".join(f"{x:+.4f}".replace("-", "−") for x in push)
        for name, push in pushes.items()
    )
    return static_figure(
        build,
        size=(900, 300),
        alt=f"Push of the penalty on the first token's logits (word 0, word 1, stop). {told}.",
        caption="The penalty token by token raises word 0; the KL of the whole answer lowers it.",
    )


def styles(words: Sequence[tuple[float, float, float]], tokens: int) -> Picture:
    """A first word that chooses how the answer goes on, as a tree.

    words: for word 0 and word 1 its chance under the policy and under the reference, and the KL in
    nats of each of the `tokens` that follow it.
    """

    def build(figure, _):
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, 900), ylim=(200, 0))
        axes.axis("off")
        axes.text(20, 100, "start", fontsize=12, va="center")
        for k, (chance, before, each) in enumerate(words):
            y = 48 + 104 * k
            axes.add_patch(FancyArrowPatch((70, 100), (150, y), arrowstyle="-|>",
                                           mutation_scale=13, color=GREY, lw=1.4))  # fmt: skip
            axes.text(160, y - 13, f"word {k}: chance {chance:.2f}", fontsize=12, weight="bold",
                      va="center")  # fmt: skip
            axes.text(160, y + 15, f"under the reference {before:.2f}", fontsize=12, va="center")
            color = WINE if each else GREY
            for place in range(14):
                axes.add_patch(Rectangle((372 + 15 * place, y - 12), 11, 24, color=color,
                                         alpha=0.75 if each else 0.25, lw=0))  # fmt: skip
            axes.text(592, y - 13, f"{tokens:,} more tokens", fontsize=12, va="center")
            far = f"{each:.2f} nats" if each else "0 nats"
            axes.text(592, y + 15, f"each at a KL of {far}: {tokens * each:.0f} in all",
                      fontsize=12, va="center")  # fmt: skip

    told = "; ".join(
        f"word {k}: chance {chance:.2f}, under the reference {before:.2f}, then {tokens:,} tokens "
        f"at {each:.2f} nats each"
        for k, (chance, before, each) in enumerate(words)
    )
    return static_figure(
        build,
        size=(900, 200),
        alt=f"Two ways for an answer to begin. {told}.",
        caption="The policy says word 0 less often than the reference does. But after word 0 it "
        "goes its own way, and after word 1 it speaks like the reference.",
    )
