"""A configuration's words, sorted to the library that reads them, before anything is concluded.

`sources` finds the configurations in a text; here their words are put where the library looks for
them, and what was not seen is kept as a doubt: with a doubt no method is named.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from rlnb.interop.libraries import library_of_words, other
from rlnb.interop.literals import scalar
from rlnb.interop.openrlhf import OPENRLHF_DEFAULTS, older_name
from rlnb.interop.prime_rl import OLDER, PRIME_RL_DEFAULTS
from rlnb.interop.python_source import CONFIGS
from rlnb.interop.trl import TRL_DEFAULTS, TRL_SILENT
from rlnb.interop.verl import VERL_DEFAULTS, VERL_SILENT
from rlnb.interop.vocabulary import known_words

__all__ = ["Configuration", "flatten", "from_mapping", "from_object"]

DEEPEST = 40  # levels of YAML or JSON
WIDEST = 20_000  # values

Pairs = Sequence[tuple[str, str]]  # (word, what stands there)
ACTOR, POLICY = "actor_rollout_ref.actor.", "actor_rollout_ref.actor.policy_loss."
ALGORITHM, KL_CTRL = "algorithm.", "algorithm.kl_ctrl."
CORRECTION = "algorithm.rollout_correction."
# Where verl 0.9.1 looks for each word; set elsewhere, it does nothing or is refused.
HOMES = {
    **dict.fromkeys(
        (
            "loss_mode",
            "clip_cov_ratio",
            "clip_cov_lb",
            "clip_cov_ub",
            "kl_cov_ratio",
            "ppo_kl_coef",
            "dro_beta",
        ),
        POLICY,
    ),
    **dict.fromkeys(
        (
            "clip_ratio",
            "clip_ratio_low",
            "clip_ratio_high",
            "clip_ratio_c",
            "loss_agg_mode",
            "loss_scale_factor",
            "entropy_coeff",
            "tau_pos",
            "tau_neg",
            "use_kl_loss",
            "kl_loss_coef",
            "kl_loss_type",
            "ppo_epochs",
            "ppo_mini_batch_size",
        ),
        ACTOR,
    ),
    **dict.fromkeys(
        (
            "adv_estimator",
            "norm_adv_by_std_in_grpo",
            "gamma",
            "lam",
            "use_kl_in_reward",
            "kl_penalty",
        ),
        ALGORITHM,
    ),
    **dict.fromkeys(("kl_coef", "horizon", "target_kl"), KL_CTRL),
    **dict.fromkeys(("rollout_is", "rollout_rs", "bypass_mode"), CORRECTION),
}
INTERPOLATION = re.compile(r"\$\{([\w.]+)\}")
BY_DEFAULT = re.compile(r"\$\{oc\.(?:env|select|decode):([\w.]+),\s*([^{}$]*)\}")
# words of TRL that decide the loss; the others are read, and say nothing of the method
TRL_LOSS = {*TRL_DEFAULTS, "normalize_advantages", "reward_clip_range"} - {
    "max_completion_length",
    "use_vllm",
}
VERL_BASES = {"ppo_trainer", "ppo_megatron_trainer", "dapo_trainer", "dapo_megatron_trainer"}


@dataclass(frozen=True)
class Configuration:
    """What a configuration says, before anything is concluded from it.

    library: "trl", "verl", "openrlhf", "slime" or "prime_rl". kind: TRL's class, or the library.
    words: the library's own words, verl's without their path. not_read: (word, what stands there).
    misplaced: (path written, path that verl looks at). notes: what was assumed, a sentence each.
    doubts: why the words do not settle what runs, a sentence each. lost: arguments that bash does
    not pass. entry: what starts it. where: what was read. version: TRL's, where the text pins it.
    complete: what is not among the words is the library's default for sure.
    """

    library: str
    kind: str
    words: Mapping[str, Any]
    where: str
    not_read: tuple[tuple[str, str], ...] = ()
    misplaced: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())
    doubts: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    entry: str = ""
    version: tuple[int, int] | None = None
    complete: bool = False

    @property
    def open(self) -> bool:
        """Whether words that were not seen may be set: then no default counts."""
        return any("may hold any" in d or "may set any" in d or "seen" in d for d in self.doubts)

    def with_doubts(self, *doubts: str) -> Configuration:
        """The same, with more doubts."""
        return replace(self, doubts=(*self.doubts, *(d for d in doubts if d)))


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
    if top & set(TRL_DEFAULTS):
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


def of_trl(
    kind: str,
    words: Mapping[str, Any],
    where: str,
    unread: Pairs = (),
    notes: Iterable[str] = (),
    doubts: Iterable[str] = (),
) -> Configuration:
    """A configuration of TRL's class `kind`."""
    return Configuration(
        "trl", kind, plain(words), where, tuple(unread), (), tuple(notes), tuple(doubts)
    )


def of_verl(
    paths: Mapping[str, Any], where: str, unread: Pairs = (), notes: Iterable[str] = ()
) -> Configuration:
    """A configuration of verl, its words by their full paths."""
    words, misplaced, strange = {}, [], []
    known = {*known_words("verl"), *known_words("verl_older"), *VERL_DEFAULTS, *HOMES}
    sections = known_words("verl_sections")
    for path, value in paths.items():
        above, _, leaf = path.rpartition(".")
        right = HOMES.get(leaf)
        if right is None or right == above + ".":
            words[_short(path)] = value
        elif path.startswith((ACTOR, ALGORITHM)) and above + "." in (
            ACTOR,
            POLICY,
            ALGORITHM,
            KL_CTRL,
        ):
            misplaced.append((path, right + leaf))
        else:
            words[path] = value
    for path in (*paths, *(word for word, _ in unread)):
        home: str | None = next(
            (h for h in (POLICY, ACTOR, KL_CTRL, CORRECTION, ALGORITHM) if path.startswith(h)), None
        )
        if home is None:
            continue
        inside = path.removeprefix(home).split(".")
        if inside[0] not in known and inside[0] not in sections:
            strange.append(path)
    doubts = []
    if strange:
        named = ", ".join(strange[:4]) + (f" and {len(strange) - 4} more" * (len(strange) > 4))
        doubts.append(f"{named}: no word of verl 0.9.1, so a fork's or another version's loss")
    if any(path.startswith("distillation.") for path in paths):
        doubts.append("distillation.*: a teacher's loss stands beside or in place of this one")
    if KL_CTRL + "kl_coef" in paths and ALGORITHM + "use_kl_in_reward" not in paths:
        doubts.append(
            "algorithm.kl_ctrl.kl_coef stands without use_kl_in_reward: up to verl 0.3 it put a KL "
            "into the reward by itself"
        )
    gaps = tuple((_short(path), str(value)) for path, value in unread)
    return Configuration(
        "verl", "verl", plain(words), where, gaps, tuple(misplaced), tuple(notes), tuple(doubts)
    )


def of_prime_rl(flat: Mapping[str, Any], where: str) -> Configuration:
    """A configuration of prime-rl, from the paths of its TOML file."""
    words: dict[str, Any] = {}
    doubts = []
    for path, value in flat.items():
        short = path.removeprefix("trainer.").removeprefix("orchestrator.")
        if short in PRIME_RL_DEFAULTS or short.startswith(("loss.", "algo.", "advantage.")):
            words[short] = value
        if short.rpartition(".")[2] in OLDER:
            doubts.append(f"{path} is a word of prime-rl up to 0.5, whose loss was another")
        if short.startswith("advantage."):
            doubts.append(f"{path} is a word of older versions of prime-rl, or of a fork")
    return Configuration("prime_rl", "prime_rl", plain(words), where, doubts=tuple(doubts))


def of_openrlhf(
    words: Mapping[str, Any], where: str, unread: Pairs, notes: Iterable[str]
) -> Configuration:
    """A configuration of OpenRLHF, its words by their older names."""
    newer = any("." in w for w in words)
    named = {older_name(w): v for w, v in words.items()}
    if newer:
        named["step_averages"] = True
    told = list(notes)
    told.append(
        "advantage_estimator: the averages are those of OpenRLHF 0.10.4 and later, over the step"
        if newer
        else "advantage_estimator: the averages are those of OpenRLHF up to 0.10.1, over each "
        "micro-batch"
    )
    gaps = tuple((older_name(w), str(v)) for w, v in unread)
    return Configuration("openrlhf", "openrlhf", plain(named), where, gaps, (), tuple(told))


def of_slime(
    words: Mapping[str, Any], where: str, unread: Pairs, notes: Iterable[str]
) -> Configuration:
    """A configuration of slime."""
    return Configuration("slime", "slime", plain(words), where, tuple(unread), (), tuple(notes))


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


def _short(path: str) -> str:
    """verl's word without the path, where the path adds nothing."""
    home, _, leaf = path.rpartition(".")
    if HOMES.get(leaf) == home + ".":
        return leaf
    if home + "." in (ACTOR, POLICY, ALGORITHM):
        return leaf
    short = path.removeprefix("actor_rollout_ref.").removeprefix("algorithm.")
    return short if "." in short else path


def plain(words: Mapping[str, Any]) -> dict[str, Any]:
    """Words with numbers written as text made numbers; refuses nan and infinity."""
    made = {}
    for word, value in words.items():
        value = scalar(value) if isinstance(value, str) else value
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(
                f"{word} is {value}, expected a finite number; write the value the run should use."
            )
        made[str(word)] = value
    return made


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


def kind_of(words: Iterable[str]) -> str:
    """TRL's class by its words: only RLOO has two of them."""
    return (
        "RLOOConfig" if {"normalize_advantages", "reward_clip_range"} & set(words) else "GRPOConfig"
    )


def trl_words() -> set[str]:
    """Every word of TRL's GRPOConfig."""
    return {*TRL_DEFAULTS, *TRL_SILENT}


def _verl_words() -> set[str]:
    return {*VERL_DEFAULTS, *VERL_SILENT, *HOMES}


def openrlhf_words(names: Iterable[str]) -> set[str]:
    """Which of these flags touch OpenRLHF's loss, by their older names."""
    return {older_name(n) for n in names} & set(OPENRLHF_DEFAULTS)
