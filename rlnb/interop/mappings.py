"""Mappings and configuration objects to configurations: YAML, JSON, TOML, a program's own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from rlnb.interop.configuration import (
    ACTOR,
    ALGORITHM,
    HOMES,
    POLICY,
    TRL_LOSS,
    VERL_BASES,
    Configuration,
    kind_of,
    of_prime_rl,
    of_trl,
    of_verl,
    trl_words,
)
from rlnb.interop.libraries import library_of_words, other
from rlnb.interop.literals import scalar
from rlnb.interop.python_source import CONFIGS
from rlnb.interop.trl import TRL_DEFAULTS
from rlnb.interop.verl import VERL_DEFAULTS, VERL_SILENT

__all__ = ["DEEPEST", "flatten", "from_mapping", "from_object"]

DEEPEST = 40  # levels of YAML or JSON
PREFERENCES = {"sigmoid", "hinge", "ipo", "robust", "apo_zero", "apo_down", "sppo_hard"}  # DPO's
WIDEST = 20_000  # values

Pairs = Sequence[tuple[str, str]]  # (word, what stands there)
INTERPOLATION = re.compile(r"\$\{([\w.]+)\}")
BY_DEFAULT = re.compile(r"\$\{oc\.(?:env|select|decode):([\w.]+),\s*([^{}$]*)\}")


def from_object(config: Any) -> Configuration:
    """TRL's or verl's own configuration object: what differs from its defaults."""
    names = [c.__name__ for c in type(config).__mro__]
    # GMPOConfig is a GRPOConfig, so the most specific name comes first
    kind = next((name for name in names if name in CONFIGS), None)
    words = {
        f.name: value
        for f in fields(config)
        if (value := getattr(config, f.name, f.default)) != f.default
    }
    where = f"a {type(config).__name__} object"
    if kind is not None:
        # an object has all its words: what it does not set is a default, and counts
        return replace(of_trl(kind, words, where), complete=True)
    if any(name in ("ActorConfig", "AlgoConfig") for name in names):
        inner = getattr(config, "policy_loss", None) if "policy_loss" in words else None
        policy = fields(inner) if is_dataclass(inner) and not isinstance(inner, type) else ()
        flat = {f"{POLICY}{f.name}": getattr(inner, f.name) for f in policy}
        home = ACTOR if "ActorConfig" in names else ALGORITHM
        paths = {**{home + k: v for k, v in words.items()}, **flat}
        return replace(of_verl(paths, where), complete=True)
    raise ValueError(
        f"{type(config).__name__} is not a configuration this reads; looked for "
        "TRL's GRPOConfig, RLOOConfig, GMPOConfig or verl's ActorConfig, AlgoConfig."
    )


def from_mapping(mapping: Mapping, where: str) -> Configuration | None:
    """A mapping as YAML, JSON, TOML or a program has it; None where no library's words are in it.
    Raises ValueError, with its name, for a library that is not read."""
    flat, unread = _resolved(flatten(mapping))
    top = {str(key).split(".")[0] for key in mapping}
    if {"orchestrator", "trainer"} <= top or {"orchestrator", "inference"} <= top:
        return of_prime_rl(flat, where)
    if name := library_of_words(flat):
        raise other(name)
    if top & {"actor_rollout_ref", "actor", "algorithm"} and any(
        path.startswith((ACTOR, ALGORITHM, "actor.", "actor_rollout_ref.")) for path in flat
    ):
        paths = {
            f"actor_rollout_ref.{k}" if k.startswith("actor.") else k: v for k, v in flat.items()
        }
        return of_verl(paths, where, unread).with_doubts(*_yaml_doubts(mapping, flat))
    trl, verl = len(top & trl_words()), len(top & _verl_words())
    # flat words are verl's only with one that no other library has
    if verl > trl and top & {"loss_mode", "clip_ratio_low", "clip_ratio_high"}:
        return of_verl({HOMES.get(k, "") + k: v for k, v in flat.items()}, where, unread)
    if top & set(TRL_DEFAULTS) or ("num_generations" in top and trl > 3):
        return _trl_mapping(mapping, flat, unread, where)
    return _section(mapping, where)


def _trl_mapping(
    mapping: Mapping, flat: dict[str, Any], unread: Pairs, where: str
) -> Configuration:
    words = {str(k): v for k, v in mapping.items()}
    words |= {k: v for k, v in flat.items() if k in words}  # with what ${...} stands for
    for word, _ in unread:
        words.pop(word, None)
    kind = f"{str(words.get('trainer')).upper()}Config"  # a word of to_trl
    if kind in CONFIGS:
        del words["trainer"]
    if words.get("loss_type") in PREFERENCES:
        raise ValueError(
            f"loss_type={words['loss_type']!r} is a word of TRL's DPOConfig, which learns from "
            "pairs and not from rewards; GRPOConfig, RLOOConfig and GMPOConfig are read."
        )
    doubts = []
    if "defaults" in words and isinstance(words["defaults"], (list, tuple)):
        doubts.append("its defaults: list names base files that were not seen")
    if "rl" in words and "base_model" in words:
        raise other("axolotl")
    strange = [w for w in words if w not in trl_words()]
    if "loss_type" not in words and len(strange) > len(words) / 2:
        doubts.append("most of its words are not TRL's: a script of its own reads this file")
    found = of_trl(kind if kind in CONFIGS else kind_of(words), words, where, unread)
    return found.with_doubts(*doubts)


def _section(mapping: Mapping, where: str) -> Configuration | None:
    """TRL's words one or two levels down, as a project's own file has them."""
    best: tuple[int, str, Mapping] | None = None
    queue: list[tuple[str, Any]] = [(str(k), v) for k, v in mapping.items()]
    for path, value in queue:
        if not isinstance(value, Mapping) or path.count(".") > 2:
            continue
        names = {str(k) for k in value}
        score = len(names & trl_words())
        if names & TRL_LOSS and score >= 3 and (best is None or score > best[0]):
            best = (score, path, value)
        queue += [(f"{path}.{k}", v) for k, v in value.items()]
    if best is None:
        return None
    _, path, inside = best
    flat, unread = _resolved(flatten(inside))
    return of_trl(
        kind_of(flat),
        {k: v for k, v in flat.items() if "." not in k},
        f"the section {path} of {where}",
        unread,
    ).with_doubts(
        f"what reads the section {path} was not seen: that its words reach TRL is a guess"
    )


def _yaml_doubts(mapping: Mapping, flat: Mapping[str, Any]) -> list[str]:
    doubts = []
    bases = mapping.get("defaults")
    if isinstance(bases, (list, tuple)):
        names = [b for b in bases if isinstance(b, str) and b != "_self_"]
        search = str(flat.get("hydra.searchpath", ""))
        unseen = [b for b in names if b not in VERL_BASES or "verl" not in search]
        parts = [b for b in bases if isinstance(b, Mapping)]
        if unseen or parts:
            named = ", ".join(unseen) or ", ".join(str(next(iter(p))) for p in parts[:4])
            doubts.append(f"its defaults: list names {named}, which was not seen")
    elif "algorithm.adv_estimator" not in flat:
        doubts.append("algorithm.adv_estimator does not stand in this file: another one has it")
    return doubts


def flatten(mapping: Mapping) -> dict[str, Any]:
    """Nested mappings to dotted paths. Bounded, because YAML and callers can nest anything."""
    flat: dict[str, Any] = {}
    queue: list[tuple[str, Any, int]] = [("", mapping, 0)]
    seen = 0
    while queue:
        path, value, deep = queue.pop(0)
        seen += 1
        if seen > WIDEST or deep > DEEPEST:
            raise ValueError(
                f"the mapping has more than {WIDEST:,} values or {DEEPEST} levels, "
                "which no configuration has; pass the part with the training words."
            )
        if isinstance(value, Mapping):
            queue += [(f"{path}.{k}" if path else str(k), v, deep + 1) for k, v in value.items()]
        else:
            flat[path] = value
    return flat


def _resolved(flat: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """(words, not read) with ${a.b} replaced by what stands there, once."""
    words, unread = {}, []
    for path, value in flat.items():
        if isinstance(value, str) and "${" in value:
            if (found := INTERPOLATION.fullmatch(value)) and found[1] in flat:
                value = flat[found[1]]
            elif found := BY_DEFAULT.fullmatch(value):
                value = flat.get(found[1], scalar(found[2]))
            if isinstance(value, str) and "${" in value:
                unread.append((path, value))
                continue
        words[path] = value
    return words, unread


def _verl_words() -> set[str]:
    return {*VERL_DEFAULTS, *VERL_SILENT, *HOMES}
