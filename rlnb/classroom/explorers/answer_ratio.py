"""How far the ratio of an answer strays, by its length and its flips, under one band."""

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
    "ACROSS",
    "BANDS",
    "FLOOR",
    "ROOF",
    "allowed",
    "alt",
    "answer_ratio_explorer",
    "build",
    "compute",
    "inside",
    "long_answers_bounded",
    "most_inside",
    "pool",
    "readout",
    "samples",
    "update",
]

ANSWERS, UPDATE = 64, 1e-3
POOL = (64, 512)  # answers and tokens that the policy really wrote
LENGTHS = (32, 128, 512, 2048, 8192, 32768)
LONGEST = LENGTHS[-1]
GSPO = "3e-4, 4e-4"  # the key of the paper's band
BANDS = {  # half-widths below and above 1
    "1e-4": (1e-4, 1e-4),
    "3e-4, 4e-4": (3e-4, 4e-4),
    "2e-3, 2.5e-3": (2e-3, 2.5e-3),
    "0.01": (0.01, 0.01),
    "0.03, 0.04": (0.03, 0.04),
    "0.2": (0.2, 0.2),
}
TEXT = 10.5  # points: the size of the page's own text
WIDE = 0.2  # the half-width of a band on tokens
FLOOR, ROOF = -5.0, 4.0  # of the picture, in upper half-widths of the band
SHARE, TIE = 0.35, 1.0  # task 1: % of flips; points below the largest share inside that count
ALIVE, LIMIT = 85.0, 1000  # task 2: % of the answers inside, times as likely at most
ACROSS = 0.66 * (0.618 * np.arange(ANSWERS) % 1) - 0.33  # spreads the dots, says nothing
CAPTION = (
    "Dots: 64 answers of the T of the slider; a dot at the upper or lower end lies beyond it. "
    "Above them: the share inside, counted on the same 2.1 million tokens at every length (64 "
    "answers at 32,768 tokens, 65,536 at 32). Green: the band, drawn at one size whatever its "
    "width. Dashed: −KL per token."
)


@cache
def pool() -> tuple[np.ndarray, np.ndarray]:
    """Two (64, 512) arrays, from one seed: log-ratios of tokens that the old policy drew.

    calm      the new policy has weights that moved by 0.001 x a normal number each, and works
              along the old routes
    flipped   the same, but in one layer, drawn anew for each token, the second-best expert works
    """
    gen = torch.Generator().manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the same last digit on every machine
    try:
        with torch.no_grad():
            old = RouterPolicy(seed=0)
            tokens = old.sample(*POOL, gen)
            before, routes = old.logprobs(tokens)
            new = old.copy()
            for weight in new.parameters():
                weight += UPDATE * torch.randn(weight.shape, generator=gen, dtype=torch.float64)
            calm = new.logprobs(tokens, routes=routes)[0] - before
            second = new.ranking(tokens, routes)[..., 1]
            layer = torch.randint(old.layers, (*tokens.shape, 1), generator=gen)
            bent = routes[..., 0].scatter(2, layer, second.gather(2, layer))[..., None]
            flipped = new.logprobs(tokens, routes=bent)[0] - before
    finally:
        torch.set_num_threads(threads)
    return calm.numpy(), flipped.numpy()


@cache
def samples() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three (64, LONGEST) arrays: calm and flipped log-ratios of tokens drawn from the `pool` with
    replacement, and uniform numbers; at a share f, the tokens with draw < f are flipped."""
    calm, flipped = pool()
    gen = torch.Generator().manual_seed(1)
    which = torch.randint(calm.size, (ANSWERS, LONGEST), generator=gen).numpy()
    draw = torch.rand((ANSWERS, LONGEST), generator=gen, dtype=torch.float64).numpy()
    return calm.ravel()[which], flipped.ravel()[which], draw


@echoing
@checked(
    flips=between(0, 100, "per cent"), length=between(1, LONGEST, "tokens"), band=one_of(BANDS)
)
def compute(
    flips: float = 6.0, length: int = 256, band: str = "3e-4, 4e-4", push: float = 0.0
) -> dict[str, Any]:
    """Ratios of the tokens and of the answers at one setting.

    `flips` in per cent of the tokens, 0 to 100; `length` T in tokens, up to 32,768; `band` a key of
    BANDS; `push` a log-ratio given to every token. Returns the arguments, `edges`, and

        tokens (ANSWERS * T,), answers (ANSWERS,)   ratios, s = exp(mean of the T log-ratios)
        wide, tiny                shares of the tokens outside 1 +- 0.2 and outside the band
        outside, cut_up, cut_down shares of the answers outside the band, above it (the gradient is
                                  gone if A > 0), below it (gone if A < 0)
        mean                      of log s over the answers
        columns (6, ANSWERS)      log s at each of LENGTHS
        shares (6, 3)             per cent of the answers inside, below and above at each of
                                  LENGTHS, when all ANSWERS * LONGEST tokens are cut into answers
                                  of that length: 65,536 at 32 tokens, 64 at the longest
        kl                        of a token: minus the mean of log rho, were answers endless

    >>> d = compute(flips=0.0, length=512, push=0.1)
    >>> round(d["mean"], 3), d["cut_up"], d["cut_down"]
    (0.1, 1.0, 0.0)
    """
    calm, flipped, draw = samples()
    share = flips / 100
    longest = np.where(draw < share, flipped, calm) + push
    total = longest.cumsum(1)
    log_s = total[:, length - 1] / length
    tokens, answers = np.exp(longest[:, :length]).ravel(), np.exp(log_s)
    low, high = 1 - BANDS[band][0], 1 + BANDS[band][1]
    up, down = float((answers > high).mean()), float((answers < low).mean())
    drawn = pool()
    log_edges = np.log(low), np.log(high)
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
        "columns": np.stack([total[:, T - 1] / T for T in LENGTHS]),
        "shares": np.stack([_sides(x, *log_edges) for x in _cut_up(longest)]),
        "kl": -float((1 - share) * drawn[0].mean() + share * drawn[1].mean() + push),
    }


def _cut_up(longest: np.ndarray) -> list[np.ndarray]:
    """log s of all answers that the tokens make, for each of LENGTHS."""
    sums, out = longest.ravel(), []
    for T, shorter in zip(LENGTHS, (1, *LENGTHS), strict=False):
        sums = sums.reshape(-1, T // shorter).sum(1)
        out.append(sums / T)
    return out


def _sides(log_s: np.ndarray, low: float, high: float) -> tuple[float, float, float]:
    """Per cent inside, below and above."""
    below, above = 100 * float((log_s < low).mean()), 100 * float((log_s > high).mean())
    return 100 - below - above, below, above


def _shown(log_s: np.ndarray, data) -> np.ndarray:
    """In upper half-widths of the band, and what lies beyond the picture on its edge."""
    return np.clip(log_s / np.log(data["edges"][1]), FLOOR, ROOF)


def build(figure, data):
    """The figure, drawn once; `update` moves it."""
    axes = figure.add_axes((0.1, 0.19, 0.89, 0.7))
    axes.set(xlim=(-0.5, len(LENGTHS) - 0.5), ylim=(FLOOR - 0.3, ROOF + 1.6))
    axes.set_xticks(range(len(LENGTHS)), [f"{T:,}" for T in LENGTHS])
    axes.set_yticks([])
    axes.tick_params(labelsize=TEXT)
    axes.set_xlabel("T, tokens in an answer", labelpad=1, fontsize=TEXT)
    axes.set_ylabel("log s", labelpad=52, fontsize=TEXT)
    axes.axhline(0, color=GREY, lw=0.8, zorder=0)
    artists = {
        "band": axes.axhspan(-1, 1, color=GREEN, alpha=0.3, lw=0),
        "kl": axes.axhline(0, color=BLACK, lw=1.6, ls="--"),
        "inside": axes.text(
            0, ROOF + 0.95, "", fontsize=TEXT, ha="center", va="center", weight="bold"
        ),
        "ticks": [
            axes.text(-0.53, 0, "", fontsize=TEXT, ha="right", va="center") for _ in range(3)
        ],
    }
    kinds = {
        "in": ("o", BLACK, "inside: alive"),
        "down": ("v", NEGATIVE, "below: silent if A < 0"),
        "up": ("^", POSITIVE, "above: silent if A > 0"),
    }
    for name, (marker, color, label) in kinds.items():
        artists[name] = axes.plot(
            [], [], marker, ms=6, mfc=color, mec="white", mew=0.5, label=label
        )[0]
    figure.legend(
        handles=[artists[name] for name in kinds],
        loc="upper center",
        ncols=3,
        bbox_to_anchor=(0.54, 1.01),
        fontsize=TEXT,
        handletextpad=0.3,
    )
    return artists


def update(artists, data):
    """The figure moved to new data: the answers of one length, the others are to be guessed."""
    low, high = (float(np.log(edge)) for edge in data["edges"])
    artists["band"].set_y(low / high)
    artists["band"].set_height(1 - low / high)
    below, above = BANDS[data["band"]]
    for text, y, said in zip(
        artists["ticks"], (low / high, 0, 1), (f"−{below:g}", "0", f"+{above:g}"), strict=True
    ):
        text.set_y(y)
        text.set_text(said.replace("e-0", "e-").replace("e-", "e−"))
    artists["kl"].set_ydata([max(-data["kl"] / high, FLOOR)] * 2)
    at = LENGTHS.index(data["length"]) if data["length"] in LENGTHS else 0
    artists["inside"].set_x(at)
    artists["inside"].set_text(f"{inside(data)[at]:.0f} % inside")
    s = data["answers"]
    below, above = s < data["edges"][0], s > data["edges"][1]
    shown = _shown(np.log(s), data)
    for name, chosen in (("in", ~below & ~above), ("down", below), ("up", above)):
        artists[name].set_data(at + ACROSS[chosen], shown[chosen])


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
    inside, below, above = data["shares"][LENGTHS.index(data["length"])]
    return (
        f"At this T {inside:.0f} % inside, {below:.0f} % below, {above:.0f} % above. "
        f"−KL per token {signed(-data['kl'], 5)}. s^T at the upper edge: {_times(data)}."
    )


def allowed(data) -> float:
    """log10 of how many times as likely an answer at the upper edge has become, s^T."""
    return data["length"] * float(np.log10(data["edges"][1]))


def _times(data) -> str:
    powers = allowed(data)
    return f"{10**powers:.3g}" if powers < 3 else f"10^{powers:.1f}"


def counts(data) -> tuple[int, int, int]:
    """Answers inside the band, below and above."""
    below, above = round(ANSWERS * data["cut_down"]), round(ANSWERS * data["cut_up"])
    return ANSWERS - below - above, below, above


def inside(data) -> list[float]:
    """Per cent of the answers inside the band at each of LENGTHS."""
    return [float(x) for x in data["shares"][:, 0]]


def most_inside(data) -> bool:
    """SHARE per cent of flips, GSPO's band, and a length with the most inside, up to a TIE."""
    at_share = abs(data["flips"] - SHARE) < 1e-6
    if data["length"] not in LENGTHS or data["band"] != GSPO or not at_share:
        return False
    shares = inside(data)
    return shares[LENGTHS.index(data["length"])] >= max(shares) - TIE


def long_answers_bounded(data) -> bool:
    """No flips, the longest answers: ALIVE per cent inside, s^T below LIMIT at the edge."""
    if data["flips"] != 0 or data["length"] != LONGEST:
        return False
    return inside(data)[-1] >= ALIVE and allowed(data) < np.log10(LIMIT)


def alt(data) -> str:
    """The picture in words, for a reader who does not see it."""
    tokens, answers = _words(data)
    return (
        f"log s of 64 answers of {data['length']} tokens, "
        f"{data['flips']:.2f} % of the tokens with a flipped expert, push "
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
                0.6, 0.0, 2.0, 0.05, "flipped tokens, %", "share of tokens with another expert"
            ),
            "length": choice_slider(
                32, [(f"{T:,}", T) for T in LENGTHS], "T, tokens", "length of every answer"
            ),
            "band": choice_slider(
                "3e-4, 4e-4", [(b, b) for b in BANDS], "ε below, above 1", "half-widths of the band"
            ),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 310),
    )
