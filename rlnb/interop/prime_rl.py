"""prime-rl 0.8: what the [trainer.loss] and algorithm tables of its TOML files compute.

Its default loss is DPPO's mask against the engine's log-probs and a square of the log-ratio to
them, kl_tau = 0.001, which is no part here: with kl_tau = 0 the composition is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlnb.interop.vocabulary import Reader, Reading, refuse
from rlnb.objective import ratios, surrogates
from rlnb.objective.advantages import group_center, max_rl
from rlnb.objective.composition import Objective
from rlnb.objective.gates import divergence_mask
from rlnb.objective.weights import token_mean

__all__ = ["PRIME_RL_DEFAULTS", "PRIME_RL_WORDS", "from_prime_rl"]

VERSION = "prime-rl 0.8"
PRIME_RL_DEFAULTS: dict[str, Any] = {
    "loss.type": "default",
    "loss.dppo_mask_low": 0.2,
    "loss.dppo_mask_high": 0.2,
    "loss.adv_tau": 1.0,
    "loss.kl_tau": 1e-3,
    "algo.type": "grpo",
    "algo.length_penalty.type": None,
}
# words of versions up to 0.5, whose losses were others
OLDER = ("ratio_type", "token_mask_high", "token_mask_low", "geo_mask_high", "sequence_clip_high")
PRIME_RL_WORDS = frozenset(PRIME_RL_DEFAULTS)


def from_prime_rl(given: Mapping[str, Any]) -> Reading:
    """The objective of prime-rl's words. Raises Inexpressible for what no composition says.

    >>> from_prime_rl({"loss.kl_tau": 0.0}).objective.gates
    (divergence_mask(0.2, anchor='sampling'),)
    """
    words = Reader(VERSION, given, PRIME_RL_DEFAULTS, PRIME_RL_WORDS)
    kind = words.choice("loss.type", ("default", "ipo", "custom"))
    if kind != "default":
        raise refuse("a composition", f"loss.type={kind!r}")
    if words["algo.length_penalty.type"]:
        raise refuse("a composition", "a length penalty that follows the group's pass rate")
    baseline = words.choice("algo.type", ("grpo", "max_rl", "opd", "opsd", "sft", "echo", "rae"))
    if baseline not in ("grpo", "max_rl"):
        raise refuse("a composition", f"algo.type={baseline!r}")
    if words.number("loss.adv_tau") != 1:
        raise refuse("a composition", "loss.adv_tau", "It multiplies every advantage.")
    tau = words.number("loss.kl_tau")
    if tau:
        raise refuse(
            "a composition",
            f"loss.kl_tau={tau:g}",
            "It adds that times the squared log-ratio to the engine; the rest is DPPO's mask of "
            "probability differences.",
        )
    low, high = words.number("loss.dppo_mask_low"), words.number("loss.dppo_mask_high")
    made = Objective(
        group_center() if baseline == "grpo" else max_rl(),
        surrogates.ratio(),
        token_mean(),
        ratio=ratios.token("sampling"),
        gates=divergence_mask(low, None if high == low else high, anchor="sampling"),
    )
    return words.reading(made)
