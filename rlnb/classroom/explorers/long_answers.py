"""How many answers of an engine still count under the exact weight: by a formula, in a batch, over
all answers that the engine may write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice_slider, switch
from rlnb.classroom.explorers.arguments import checked, one_of
from rlnb.classroom.figures import BLACK, BLUE, GREY, ORANGE
from rlnb.toys.router import RouterPolicy
from rlnb.toys.router_answers import draw_places, exact_share

LENGTHS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 150, 200, 300, 500, 700, 1000)
DRAWN, BATCHES = 3072, (64, 512, 3072)
BINS = np.linspace(-4, 3, 57)  # of log10 w
TEXT = 10.5
CAPTION = (
    "The small mixture. Left: the share of the answers that count; orange, the worst and the best "
    "of the batches (six of 512); blue, over all answers, up to the length you chose. Right: the "
    "weights of one batch, on a log axis."
)


@dataclass(frozen=True)
class _Measured:
    """std of the drawn tokens' gaps, and the largest w of one; exact (16,) shares over all answers;
    weights (16, 3072) of answers."""

    std: float
    largest: float
    exact: np.ndarray
    weights: np.ndarray


@cache
def _measured() -> dict[bool, _Measured]:
    """By `replayed`: the same drawn answers, once with flips and once with the experts replayed."""
    pi = RouterPolicy(seed=0)
    mu = pi.rounded()
    log_mu = mu.table()
    places = draw_places(log_mu, DRAWN, LENGTHS[-1], torch.Generator().manual_seed(0))
    found = {}
    for replayed in (False, True):
        log_pi = pi.table(routes_of=mu if replayed else None)
        gaps = (log_pi - log_mu).flatten()[places]
        weights = gaps.cumsum(1)[:, [n - 1 for n in LENGTHS]].exp().T
        exact = exact_share(log_pi, log_mu, LENGTHS)
        found[replayed] = _Measured(
            float(gaps.std()),
            float(gaps.max().exp()),
            np.array([exact[n] for n in LENGTHS]),
            weights.numpy(),
        )
    return found


@checked(length=one_of(LENGTHS), answers=one_of(BATCHES))
def compute(
    length: int = 10, replayed: bool = False, answers: int = 512, revealed: bool = False
) -> dict[str, Any]:
    """3,072 answers that the rounded copy of `RouterPolicy` wrote, weighted by all their tokens.

    Of every length of LENGTHS, (16,) each: formula exp(-std^2 length); every, E[w]^2 / E[w^2] over
    all answers; worst and best, (sum w)^2 / (answers sum w^2) in a batch of `answers`. Of the drawn
    tokens: std of the gap, and largest weight. weights (answers,) of one batch at `length`; at, the
    place of `length`; and the arguments (revealed: `every` is shown).

    >>> d = compute(1000)
    >>> [f"{100 * d[k][d['at']]:.2g} %" for k in ("formula", "every", "worst", "best")]
    ['9.7 %', '0.0092 %', '18 %', '31 %']
    """
    measured = _measured()[replayed]
    batches = measured.weights.reshape(len(LENGTHS), -1, answers)
    shares = batches.sum(2) ** 2 / (answers * (batches**2).sum(2))
    at = LENGTHS.index(length)
    return {
        "formula": np.exp(-(measured.std**2) * np.array(LENGTHS)),
        "every": measured.exact,
        "worst": shares.min(1),
        "best": shares.max(1),
        "std": measured.std,
        "largest": measured.largest,
        "weights": batches[at, 0],
        "at": at,
        "length": length,
        "replayed": replayed,
        "answers": answers,
        "revealed": revealed,
    }


def build(figure, data):
    left = figure.add_axes((0.065, 0.18, 0.53, 0.77))
    left.set(xscale="log", xlim=(9, 1150), ylim=(0, 1.04))
    left.set_xticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1,000"])
    left.minorticks_off()
    left.set_yticks([0, 0.5, 1], ["0", "half", "all"])
    left.axhline(0.5, color=GREY, lw=0.8)
    left.set_xlabel("tokens of an answer", fontsize=TEXT)
    left.set_ylabel("answers that count", fontsize=TEXT)
    for y, color, text in ((0.34, ORANGE, "in a batch"), (0.24, BLACK, "formula, dotted")):
        left.text(11, y, text, color=color, fontsize=11, weight="bold")
    right = figure.add_axes((0.67, 0.18, 0.31, 0.77))
    right.set(xlim=(BINS[0], BINS[-1]), ylim=(0, 0.62))
    right.set_yticks([0, 0.25, 0.5], ["0", "¼", "½"])
    right.set_xticks(range(-4, 4, 2), ["0.0001", "0.01", "1", "100"])
    right.set_xlabel("weight w of an answer", fontsize=TEXT)
    right.set_ylabel("answers of a batch", fontsize=TEXT)
    for axes in (left, right):
        axes.tick_params(labelsize=TEXT)
    flat = np.zeros(len(LENGTHS))
    return {
        "every": left.plot(LENGTHS, flat, color=BLUE, lw=6)[0],  # behind: all can be equal
        "worst": left.plot(LENGTHS, flat, color=ORANGE, lw=2)[0],
        "best": left.plot(LENGTHS, flat, color=ORANGE, lw=2)[0],
        "formula": left.plot(LENGTHS, flat, color=BLACK, lw=2, ls=":")[0],
        "counted": left.text(11, 0.14, "over all answers", color=BLUE, fontsize=11, weight="bold"),
        "here": left.axvline(10, color=GREY, lw=1.2, ls="--"),
        "dot": left.plot([10], [0], "o", color=BLUE, ms=9)[0],
        "weights": right.stairs(np.zeros(len(BINS) - 1), BINS, fill=True, color=ORANGE),
        "largest": right.text(2.85, 0.55, "", ha="right", fontsize=11, weight="bold"),
    }


def update(artists, data):
    for name in ("worst", "best", "formula"):
        artists[name].set_ydata(data[name])
    artists["here"].set_xdata([data["length"]] * 2)
    artists["dot"].set_data([data["length"]], [data["every"][data["at"]]])
    for name in ("dot", "every", "counted"):
        artists[name].set_visible(data["revealed"])
    seen = np.arange(len(LENGTHS)) <= data["at"]  # it grows as one goes on: no task done by looking
    artists["every"].set_ydata(np.where(seen, data["every"], np.nan))
    weights = data["weights"]
    counts, _ = np.histogram(np.log10(weights), BINS)
    artists["weights"].set_data(np.minimum(counts / len(weights), 0.5))
    artists["largest"].set_text(f"largest w {weights.max():.3g}")


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else "all"


def readout(data) -> str:
    at = data["at"]
    worst, best = (_percent(data[name][at]) for name in ("worst", "best"))
    batch = worst if worst == best else f"{worst} to {best}"
    counted = f"; over all answers: {_percent(data['every'][at])}" if data["revealed"] else ""
    return (
        f"{data['length']:,} tokens. Count in a batch: {batch}; by the formula: "
        f"{_percent(data['formula'][at])}{counted}."
    )


def alt(data) -> str:
    shares = zip(LENGTHS, data["every"][: data["at"] + 1], strict=False)
    listed = ", ".join(f"{n:,}: {_percent(s)}" for n, s in shares)
    counted = f" Over all answers, by tokens, {listed}." if data["revealed"] else ""
    return (
        f"Share of the answers that count against their length, "
        f"{'experts replayed' if data['replayed'] else 'with flips'}, batches of "
        f"{data['answers']:,}. {readout(data)} Largest weight in one batch "
        f"{data['weights'].max():.3g}.{counted}"
    )


def half_of_the_flipped(data) -> bool:
    """With flips, counted over all answers: the longest of LENGTHS of which half still count."""
    half = max(n for n, share in zip(LENGTHS, data["every"], strict=True) if share >= 0.5)
    return data["revealed"] and not data["replayed"] and data["length"] == half


def long_answers_explorer() -> Explorer:
    """How long the answers are, with or without flips, and how many are looked at."""
    return Explorer(
        compute,
        build,
        update,
        {
            "length": choice_slider(10, [(f"{n:,}", n) for n in LENGTHS], "tokens",
                                    "of every answer"),
            "replayed": switch(False, "replay the engine's experts", "then no token is flipped"),
            "revealed": switch(False, "count over all answers", "not only those of a batch"),
            "answers": choice_slider(512, [(f"{n:,}", n) for n in BATCHES], "batch",
                                     "answers in it"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 290),
    )  # fmt: skip
