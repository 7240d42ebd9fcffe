"""Token ratios and answer ratios of a mixture of experts, on one axis, under one band."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice_slider, slider
from rlnb.classroom.explorers.arguments import between, checked, echoing, one_of
from rlnb.classroom.figures import BLACK, GREEN, GREY, NEGATIVE, POSITIVE, signed
from rlnb.toys.router import RouterPolicy

__all__ = [
    "BANDS",
    "HEIGHT",
    "alt",
    "answer_ratio_explorer",
    "best_length",
    "build",
    "compute",
    "one_sided",
    "place",
    "readout",
    "samples",
    "update",
    "wide_band_cuts",
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
TEXT = 10.5  # points: the size of the page's own text
WIDE = 0.2  # the half-width of a band on tokens
FLAT = 1e-4  # the axis is linear below this, logarithmic above
EDGES = np.linspace(-4.1, 4.7, 89)
CAPTION = (
    "64 answers of the router toy. Green: the band as set. The axis is stretched around 1, which "
    "alone makes the dip of the grey bars there. Grey bars count on a log scale, so that few "
    "flipped tokens, far out, can be seen. The height of a mark means nothing."
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
    """The figure, drawn once; `update` moves it."""
    top = figure.add_axes((0.1, 0.6, 0.885, 0.27))
    bottom = figure.add_axes((0.1, 0.17, 0.885, 0.38))
    artists = {}
    for axes in (top, bottom):
        axes.set(xlim=(EDGES[0], EDGES[-1]), ylim=(0, 1.1), yticks=[])
        axes.set_xticks([float(place(x)) for x in TICKS], list(TICKS.values()))
        axes.tick_params(labelsize=TEXT)
        axes.axvline(0, color=GREY, lw=0.8, zorder=0)
    top.tick_params(labelbottom=False)
    top.set_ylabel("tokens\n(log count)", fontsize=TEXT)
    bottom.set_ylabel("answers,\none mark each", fontsize=TEXT)
    bottom.set_xlabel("ratio (axis stretched around 1)", labelpad=1, fontsize=TEXT)
    artists["band"] = [a.axvspan(-1, 1, color=GREEN, alpha=0.3, lw=0) for a in (top, bottom)]
    artists["tokens"] = top.stairs(np.zeros(len(EDGES) - 1), EDGES, fill=True, color=GREY)
    kinds = {
        "in": ("o", BLACK, "inside: alive"),
        "down": ("v", NEGATIVE, "below: silent if A < 0"),
        "up": ("^", POSITIVE, "above: silent if A > 0"),
    }
    for name, (marker, color, _) in kinds.items():
        artists[name] = bottom.plot([], [], marker, ms=7, mfc=color, mec="white", mew=0.5)[0]
    figure.legend(
        handles=[
            bottom.plot([], [], marker, ms=8, mfc=color, mec="white", mew=0.5, label=label)[0]
            for marker, color, label in kinds.values()
        ],
        loc="upper center",
        ncols=3,
        bbox_to_anchor=(0.54, 1.0),
        fontsize=TEXT,
        handletextpad=0.3,
    )
    return artists


def update(artists, data):
    """The figure moved to new data."""
    low, high = (float(place(edge)) for edge in data["edges"])
    for span in artists["band"]:
        span.set_x(low)
        span.set_width(high - low)
    count = np.histogram(place(data["tokens"]), EDGES)[0]
    height = np.log10(1 + count)
    artists["tokens"].set_data(height / height.max())
    where = place(data["answers"])
    for name, chosen in (
        ("in", (where >= low) & (where <= high)),
        ("down", where < low),
        ("up", where > high),
    ):
        artists[name].set_data(where[chosen], HEIGHT[chosen])


def _words(data) -> tuple[str, str]:
    s = data["answers"]
    return (
        f"tokens: {data['wide']:.1%} outside 0.8 to 1.2, {data['tiny']:.0%} outside the band",
        f"answers: s from {s.min():.4f} to {s.max():.4f}, mean of log s "
        f"{signed(data['mean'], 5)}; {data['outside']:.0%} outside the band "
        f"(cut if A > 0: {data['cut_up']:.0%}; if A < 0: {data['cut_down']:.0%})",
    )


def readout(data) -> str:
    """The line under the controls."""
    s = data["answers"]
    return (
        f"s from {s.min():.4f} to {s.max():.4f}. Inside {1 - data['outside']:.0%}, below "
        f"{data['cut_down']:.0%}, above {data['cut_up']:.0%} of the answers."
    )


def wide_band_cuts(data) -> bool:
    """A band of 0.2 on s, and an answer outside."""
    return data["band"] == "0.2" and data["outside"] > 0


def best_length(data) -> bool:
    """At 1 % of flips or more, the band 2e-3, and at least 60 % of the answers inside."""
    wanted = data["flips"] >= 1 and data["band"] == "2e-3, 2.5e-3"
    return wanted and data["outside"] <= 0.4


def one_sided(data) -> bool:
    """GSPO's own band: below it more than 95 % of the answers, above less than 5 %."""
    return data["band"] == "3e-4, 4e-4" and data["cut_down"] > 0.95 and data["cut_up"] < 0.05


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    tokens, answers = _words(data)
    return (
        f"Ratios of tokens (above) and of whole answers (below) of {data['length']} tokens, "
        f"{data['flips']:.1f} % of the tokens with a flipped expert, push "
        f"{signed(data['push'], 4)} per token, band {data['band']}. {tokens}; {answers}."
    )


def answer_ratio_explorer() -> Explorer:
    """Share of flipped tokens, length of the answers, half-widths of the band."""
    return Explorer(
        compute,
        build,
        update,
        {
            "flips": slider(
                1.0, 0.0, 20.0, 0.5, "flipped tokens, %", "share of tokens with another expert"
            ),
            "length": choice_slider(
                128, [(str(T), T) for T in LENGTHS], "T, tokens", "length of every answer"
            ),
            "band": choice_slider(
                "0.01", [(b, b) for b in BANDS], "ε below, above 1", "half-widths of the band"
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 310),
    )
