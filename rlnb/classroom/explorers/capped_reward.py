"""RL on a leash against a grader that glitches: the strength of the leash, and a cap."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice_slider
from rlnb.classroom.explorers.arguments import checked, echoing, one_of
from rlnb.classroom.figures import BLACK, BLUE, GREY, ORANGE
from rlnb.toys.proxy import answer_pool

BETAS = (10.0, 5.0, 4.0, 3.0, 2.0, 1.5, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1)
CAPS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, math.inf)  # inf: none
TEXT = 10.5
CAPTION = (
    "The dots are the β of the slider, 10 to 0.1 from left to right. Orange: gold with the "
    "cap; dotted: without."
)


@lru_cache(maxsize=1)
def _pool():
    gold, _, glitchy = answer_pool()
    return gold, glitchy


@cache
def _path(cap: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(kl, gold, score) of the optimum for each of BETAS, means over the prompts."""
    gold, score = _pool()
    paid = score.clamp(-cap, cap)
    found = []
    for beta in BETAS:
        w = (paid / beta).softmax(1)
        told = (w * paid).sum(1)
        # KL of softmax(r / beta) to uniform: E[r] / beta - log mean e^(r / beta)
        kl = told / beta - torch.logsumexp(paid / beta, 1) + math.log(paid.shape[1])
        found.append([x.mean().item() for x in (kl, (w * gold).sum(1), told)])
    kl, worth, told = np.array(found).T
    return kl, worth, told


@echoing
@checked(beta=one_of(BETAS), cap=one_of(CAPS))
def compute(beta: float = 10.0, cap: float = math.inf) -> dict[str, Any]:
    """The KL-regularised optimum for grader B's score, cut to [-cap, cap] before it is paid.

    kl, gold, score (12,): along BETAS; at_kl, at_gold, at_score: at `beta`; best: the highest gold
    of any beta.

    >>> d = compute(0.1, 2.0)
    >>> d["at_gold"] > 1.5 > 0.5 > compute(3.0)["best"]
    True
    """
    kl, gold, score = _path(cap)
    i = BETAS.index(beta)
    return {
        "kl": kl,
        "gold": gold,
        "score": score,
        "at_kl": float(kl[i]),
        "at_gold": float(gold[i]),
        "at_score": float(score[i]),
        "best": float(gold.max()),
    }


def build(figure, data):
    axes = figure.add_axes((0.075, 0.2, 0.55, 0.76))
    axes.set(xlim=(-0.1, 8.4), ylim=(0, 2.0))
    axes.tick_params(labelsize=TEXT)
    axes.set_xlabel("KL to the start, nats", fontsize=TEXT)
    axes.set_ylabel("gold", fontsize=TEXT)
    kl, gold, _ = _path(math.inf)
    axes.plot(kl, gold, color=GREY, ls=":", lw=1.8)
    return {
        "line": axes.plot(kl, gold, "o-", color=ORANGE, lw=2.6, ms=5)[0],
        "dot": axes.plot([0], [0], "o", color=BLACK, ms=11)[0],
        "gold": figure.text(0.66, 0.8, "", fontsize=13, weight="bold"),
        "score": figure.text(0.66, 0.62, "", fontsize=12, color=BLUE),
        "kl": figure.text(0.66, 0.44, "", fontsize=12),
    }


def update(artists, data):
    artists["line"].set_data(data["kl"], data["gold"])
    artists["dot"].set_data([data["at_kl"]], [data["at_gold"]])
    artists["gold"].set_text(f"gold {data['at_gold']:.2f}")
    artists["score"].set_text(f"the grader pays {data['at_score']:.2f}")
    artists["kl"].set_text(f"KL {data['at_kl']:.2f} nats")


def _cap_name(cap: float) -> str:
    return "none" if math.isinf(cap) else f"±{cap:g}"


def _said(cap: float) -> str:
    return "no cap" if math.isinf(cap) else f"score cut at ±{cap:g}"


def readout(data) -> str:
    return (
        f"{_said(data['cap']).capitalize()}, β = {data['beta']:g}: KL {data['at_kl']:.2f} nats, "
        f"paid {data['at_score']:.2f}, gold {data['at_gold']:.2f}."
    )


def alt(data) -> str:
    pairs = ", ".join(
        f"{b:g}: {k:.2f} and {g:.2f}"
        for b, k, g in zip(BETAS, data["kl"], data["gold"], strict=True)
    )
    return f"{readout(data)} KL and gold along β, {pairs}."


def best_cap_at_no_leash(data) -> bool:
    """The smallest beta, under the cap whose gold is the highest there."""
    golds = [_path(cap)[1][BETAS.index(min(BETAS))] for cap in CAPS]
    return data["beta"] == min(BETAS) and data["at_gold"] == max(golds)


def capped_reward_explorer() -> Explorer:
    """The leash and the cap."""
    return Explorer(
        compute,
        build,
        update,
        {
            "beta": choice_slider(10.0, [(f"{b:g}", b) for b in BETAS], "β",
                                  "weight of the KL: small is a long leash"),
            "cap": choice_slider(math.inf, [(_cap_name(c), c) for c in CAPS],
                                 "cap on the score", "scores beyond it are cut to it"),
        },
        alt=alt,
        caption=CAPTION,
        readout=readout,
        size=(900, 290),
    )  # fmt: skip
