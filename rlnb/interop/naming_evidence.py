"""The name of what a configuration computes, or what is missing to name it.

A name is given where the words that decide it were read. A library's own habits, verl's dual clip
and its padded length, and a correction for the rollout engine do not change a name; they are said
beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlnb.interop.configuration import TRL_LOSS, Configuration
from rlnb.interop.openrlhf import OPENRLHF_DEFAULTS
from rlnb.interop.prime_rl import PRIME_RL_DEFAULTS
from rlnb.interop.slime import SLIME_DEFAULTS
from rlnb.interop.verl import VERL_DEFAULTS
from rlnb.interop.versions import betrayed
from rlnb.objective.composition import Objective
from rlnb.objective.gates import engine_ratio
from rlnb.objective.naming import NAMED, Difference, closest, difference, distance, name_of
from rlnb.objective.surrogates import clip
from rlnb.objective.weights import constant_length, padded_length

__all__ = ["Named", "missing", "named"]

LOSS = {
    "trl": frozenset(TRL_LOSS),
    "verl": frozenset(VERL_DEFAULTS),
    "openrlhf": frozenset(OPENRLHF_DEFAULTS),
    "slime": frozenset(SLIME_DEFAULTS),
    "prime_rl": frozenset(PRIME_RL_DEFAULTS),
}
# a library's word -> the method it is called after
CALLED = {
    "geo_mean": "gmpo",
    "gspo": "gspo_token",
    "dppo_tv": "dppo",
    "gae": "ppo",
    "group_norm": "grpo",
    "reinforce_baseline": "reinforce_plus_plus",
    "rloo_vectorized": "rloo",
}
OLD_RLOO = {"rloo_k", "kl_coef", "num_ppo_epochs", "cliprange", "total_episodes"}
SLACK = 3  # the method that the library names may be this much further away than the nearest


@dataclass(frozen=True)
class Named:
    """name, nearest, difference, conventions, beside, doubts and called of a report."""

    name: str | None = None
    nearest: str | None = None
    difference: Difference = Difference(())
    conventions: Difference = Difference(())
    beside: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    called: str = ""


def named(read: Configuration, objective: Objective, version: tuple[int, int] | None) -> Named:
    """The method of a configuration whose objective has been built."""
    corrections = [g for g in objective.gates if isinstance(g, engine_ratio)]
    bare = objective.replace(gates=tuple(g for g in objective.gates if g not in corrections))
    beside = tuple(f"{g!r}: a correction for the rollout engine" for g in corrections)
    stated = _without_habits(read.library, bare)
    conventions = difference(stated.canonical(), bare)
    doubts = tuple(dict.fromkeys((*read.doubts, *missing(read, version))))
    if doubts:
        return Named(conventions=conventions, beside=beside, doubts=doubts, called=_word(read))
    name = name_of(stated)
    if name is not None:
        return Named(name, name, Difference(()), conventions, beside)
    nearest, changes = closest(stated)
    own = _called(read, stated)
    if own in NAMED and distance(own, stated) <= distance(nearest, stated) + SLACK:
        nearest, changes = own, difference(NAMED[own].canonical(), stated.canonical())
    return Named(None, nearest, changes, conventions, beside, called=_word(read))


def _without_habits(library: str, objective: Objective) -> Objective:
    """Without what verl does to every method: the dual clip, and the padded width for Dr. GRPO's
    constant."""
    surrogate, weights = objective.surrogate, objective.weights
    if library in ("verl", "slime", "openrlhf") and isinstance(surrogate, clip):
        if surrogate.dual is not None:
            objective = objective.replace(surrogate=clip(surrogate.epsilon, surrogate.high))
    if library == "verl" and isinstance(weights, padded_length):
        objective = objective.replace(weights=constant_length())
    return objective


def missing(read: Configuration, version: tuple[int, int] | None) -> list[str]:
    """The words that decide the method and were not read."""
    if read.complete:
        return []
    if read.kind in ("RLOOConfig", "GMPOConfig"):
        old = sorted(OLD_RLOO & set(read.words))
        of_old = [f"{w}: a word of TRL's RLOO before 0.22, another trainer" for w in old[:1]]
        gaps = [(w, text) for w, text in read.not_read if w in LOSS["trl"]]
        return of_old + [f"{w} = {text} was not read" for w, text in gaps]
    loss = LOSS[read.library]
    unread = [(w, text) for w, text in read.not_read if w in loss]
    missing = [f"{word} = {text} was not read" for word, text in unread]
    if not missing and not loss & set(read.words):
        return ["no word that decides the loss was read"]
    if read.kind == "GRPOConfig" and "loss_type" not in {*read.words, *(w for w, _ in unread)}:
        sure = version is not None
        found = betrayed([*read.words, *(w for w, _ in read.not_read)], read.words)
        if not sure and not found.default("loss_type")[0]:
            missing.append(
                "loss_type is not set, and TRL's default has been 'grpo' (up to 0.15), 'bnpo' (up "
                "to 0.21) and 'dapo': --trl and a version settle it"
            )
    return missing


def _word(read: Configuration) -> str:
    """The word by which the library's users call it, where the words have one."""
    for word in ("loss_mode", "policy_loss_type", "loss_type", "adv_estimator"):
        if word in read.words and read.words[word] not in ("vanilla", "ppo", "policy_loss"):
            return f"{word}={read.words[word]}"
    estimator = read.words.get("advantage_estimator")
    return f"advantage_estimator={estimator}" if estimator else ""


def _called(read: Configuration, objective: Objective) -> str:
    """The method that the library's own word names."""
    words = read.words
    if read.library == "trl":
        if read.kind != "GRPOConfig":
            return read.kind.removesuffix("Config").lower()
        sequence = words.get("importance_sampling_level") == "sequence"
        own = words.get("loss_type")
        return "gspo" if sequence and own in (None, "grpo", "bnpo", "dapo", "dr_grpo") else str(own)
    if read.library == "verl":
        mode, adv = words.get("loss_mode", "vanilla"), words.get("adv_estimator", "gae")
        own = str(mode if mode != "vanilla" else adv)
        if own == "grpo" and isinstance(objective.weights, constant_length):
            return "dr_grpo"
        return CALLED.get(own, own)
    own = str(words.get("advantage_estimator", "gae" if read.library == "openrlhf" else "grpo"))
    if words.get("policy_loss_type") == "gspo":
        return "gspo"
    return own if own == "gspo" else CALLED.get(own, own)
