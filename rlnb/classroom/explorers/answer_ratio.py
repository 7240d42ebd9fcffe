"""Token ratios and answer ratios of a mixture of experts, on one axis, under one band."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing, one_of
from rlnb.classroom.figures import BLUE, GREY, ORANGE, PALE, VERMILLION, signed
from rlnb.toys.router import RouterPolicy

__all__ = [
    "BANDS",
    "HEIGHT",
    "alt",
    "answer_ratio_explorer",
    "build",
    "compute",
    "place",
    "samples",
    "update",
]

ANSWERS, LONGEST, UPDATE = 64, 512, 1e-3
LENGTHS = (8, 16, 32, 64, 128, 256, 512)
BANDS = {  # half-widths below and above 1
    "3e-4, 4e-4": (3e-4, 4e-4),
    "2e-3, 2.5e-3": (2e-3, 2.5e-3),
    "0.01": (0.01, 0.01),
    "0.03, 0.04": (0.03, 0.04),
    "0.2": (0.2, 0.2),
}
WIDE = 0.2  # the half-width of a band on tokens
FLAT = 1e-4  # the axis is linear below this, logarithmic above
EDGES = np.linspace(-4.1, 4.7, 89)
CAPTION = (
    "64 answers of the router toy. A mean shrinks what differs in sign from token to token, in "
    "proportion to 1/√T; flips also leave a drop that no length removes, and a push on every token "
    "passes through whole. Bars are equally wide on the stretched axis: the dip at 1 is the axis, "
    "not the tokens. The height of a mark means nothing."
)


@cache
def samples() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three (64, 512) arrays, from one seed: log-ratios of tokens that the old policy drew.

    calm      the new policy has weights that moved by 0.001 x a normal number each, and works
              along the old routes
    flipped   the same, but in one layer, drawn anew for each token, the second-best expert works
    draw      uniform numbers: at a share f, the tokens with draw < f are flipped
    """
    gen = torch.Generator().manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the same last digit on every machine
    try:
        with torch.no_grad():
            old = RouterPolicy(seed=0)
            tokens = old.sample(ANSWERS, LONGEST, gen)
            before, routes = old.logprobs(tokens)
            new = old.copy()
            for weight in new.parameters():
                weight += UPDATE * torch.randn(weight.shape, generator=gen, dtype=torch.float64)
            calm = new.logprobs(tokens, routes=routes)[0] - before
            second = new.ranking(tokens, routes)[..., 1]
            layer = torch.randint(old.layers, (*tokens.shape, 1), generator=gen)
            bent = routes[..., 0].scatter(2, layer, second.gather(2, layer))[..., None]
            flipped = new.logprobs(tokens, routes=bent)[0] - before
            draw = torch.rand(tokens.shape, generator=gen, dtype=torch.float64)
    finally:
        torch.set_num_threads(threads)
    return calm.numpy(), flipped.numpy(), draw.numpy()


@echoing
@checked(
    flips=between(0, 100, "per cent"), length=between(1, LONGEST, "tokens"), band=one_of(BANDS)
)
def compute(
    flips: float = 6.0, length: int = 256, band: str = "3e-4, 4e-4", push: float = 0.0
) -> dict[str, Any]:
    """Ratios of the tokens and of the answers at one setting.

    `flips` in per cent of the tokens, 0 to 100; `length` T in tokens, up to 512; `band` a key of
    BANDS; `push` a log-ratio given to every token. Returns the arguments, `edges`, and

        tokens (ANSWERS * T,), answers (ANSWERS,)   ratios, s = exp(mean of the T log-ratios)
        wide, tiny                shares of the tokens outside 1 +- 0.2 and outside the band
        outside, cut_up, cut_down shares of the answers outside the band, above it (the gradient is
                                  gone if A > 0), below it (gone if A < 0)
        mean                      of log s over the answers

    >>> d = compute(flips=0.0, length=512, push=0.1)
    >>> round(d["mean"], 3), d["cut_up"], d["cut_down"]
    (0.1, 1.0, 0.0)
    """
    calm, flipped, draw = (x[:, :length] for x in samples())
    log_ratio = np.where(draw < flips / 100, flipped, calm) + push
    log_s = log_ratio.mean(1)
    tokens, answers = np.exp(log_ratio).ravel(), np.exp(log_s)
    low, high = 1 - BANDS[band][0], 1 + BANDS[band][1]
    up, down = float((answers > high).mean()), float((answers < low).mean())
    return {
        "tokens": tokens,
        "answers": answers,
        "edges": (low, high),
        "wide": float((np.abs(tokens - 1) > WIDE).mean()),
        "tiny": float(((tokens < low) | (tokens > high)).mean()),
        "outside": up + down,
        "cut_up": up,
        "cut_down": down,
        "mean": float(log_s.mean()),
    }


def place(ratio):
    """Where a ratio stands on the axis: 0 at 1, +-1.04 at 1 +- 0.001, +-3 at 1 +- 0.1."""
    gap = np.asarray(ratio) - 1
    return np.sign(gap) * np.log10(1 + np.abs(gap) / FLAT)


HEIGHT = 0.55 + 0.42 * np.sin(2.4 * np.arange(ANSWERS))  # spreads the dots, says nothing
TICKS = {
    0.5: "0.5",
    0.9: "0.9",
    0.99: "0.99",
    0.999: "0.999",
    1: "1",
    1.001: "1.001",
    1.01: "1.01",
    1.1: "1.1",
    2: "2",
    4: "4",
}


def build(figure, data):
    top = figure.add_axes((0.085, 0.57, 0.9, 0.3))
    bottom = figure.add_axes((0.085, 0.3, 0.9, 0.24))
    artists = {}
    for axes in (top, bottom):
        axes.set(xlim=(EDGES[0], EDGES[-1]), yticks=[])
        axes.set_xticks([float(place(x)) for x in TICKS], list(TICKS.values()))
        axes.axvline(0, color=GREY, lw=0.8, zorder=0)
        for edge in (1 - WIDE, 1 + WIDE):
            axes.axvline(float(place(edge)), color=GREY, lw=1.2, ls=":", zorder=0)
    top.tick_params(labelbottom=False)
    top.set(ylim=(0, 1.1), ylabel="tokens,\nscaled")
    bottom.set(ylim=(0, 1.1), ylabel="answers,\none mark each")
    bottom.set_xlabel("ratio, on an axis that is stretched around 1", labelpad=1)
    artists["band"] = [a.axvspan(-1, 1, color=ORANGE, alpha=0.25, lw=0) for a in (top, bottom)]
    artists["tokens"] = top.stairs(np.zeros(len(EDGES) - 1), EDGES, fill=True, color=GREY)
    artists["in"] = bottom.plot([], [], "o", ms=5, mfc=BLUE, mec="white", mew=0.4)[0]
    artists["out"] = bottom.plot([], [], "x", ms=5, mec=VERMILLION, mew=1.2)[0]
    artists["words"] = [figure.text(0.02, 0.105 - 0.065 * i, "", fontsize=9.5) for i in range(2)]
    figure.legend(
        handles=[
            top.fill_between([], [], color=ORANGE, alpha=0.25, lw=0, label="the band as set"),
            top.plot([], [], ":", color=GREY, lw=1.2, label="0.8 and 1.2")[0],
            bottom.plot([], [], "o", ms=6, mfc=BLUE, mec=PALE, label="answer inside the band")[0],
            bottom.plot([], [], "x", ms=6, mec=VERMILLION, mew=1.3, label="outside")[0],
        ],
        loc="upper center",
        ncols=4,
        bbox_to_anchor=(0.53, 1.0),
        handlelength=1.8,
    )
    return artists


def update(artists, data):
    low, high = (float(place(edge)) for edge in data["edges"])
    for span in artists["band"]:
        span.set_x(low)
        span.set_width(high - low)
    count = np.histogram(place(data["tokens"]), EDGES)[0]
    artists["tokens"].set_data(count / count.max())
    where = place(data["answers"])
    inside = (where >= low) & (where <= high)
    artists["in"].set_data(where[inside], HEIGHT[inside])
    artists["out"].set_data(where[~inside], HEIGHT[~inside])
    for text, sentence in zip(artists["words"], _words(data), strict=True):
        text.set_text(sentence)


def _words(data) -> tuple[str, str]:
    s = data["answers"]
    return (
        f"tokens: {data['wide']:.1%} outside 0.8 to 1.2, {data['tiny']:.0%} outside the band",
        f"answers: s from {s.min():.4f} to {s.max():.4f}, mean of log s "
        f"{signed(data['mean'], 5)}; {data['outside']:.0%} outside the band "
        f"(cut if A > 0: {data['cut_up']:.0%}; if A < 0: {data['cut_down']:.0%})",
    )


def alt(data) -> str:
    tokens, answers = _words(data)
    return (
        f"Ratios of tokens (above) and of whole answers (below) of {data['length']} tokens, "
        f"{data['flips']:.1f} % of the tokens with a flipped expert, push "
        f"{signed(data['push'], 4)} per token, band {data['band']}. {tokens}; {answers}."
    )


def answer_ratio_explorer() -> Explorer:
    """Share of flipped tokens, length of the answers, half-widths of the band, a common push."""
    pushes = (-0.01, -0.003, -0.001, -3e-4, 0.0, 3e-4, 0.001, 0.003, 0.01)
    return Explorer(
        compute,
        build,
        update,
        {
            "flips": slider(
                6.0,
                0.0,
                20.0,
                0.5,
                "flipped tokens, %",
                "share of tokens whose second-best expert works, in one layer",
            ),
            "length": choice_slider(
                256, [(str(T), T) for T in LENGTHS], "T, tokens", "length of every answer"
            ),
            "band": choice_slider(
                "3e-4, 4e-4", [(b, b) for b in BANDS], "ε low, ε high", "half-widths of the band"
            ),
            "push": choice_slider(
                0.0,
                [(f"{p:+g}" if p else "0", p) for p in pushes],
                "push per token",
                "log-ratio given to every token alike",
            ),
        },
        alt=alt,
        caption=CAPTION,
        size=(900, 430),
    )
