"""A configuration's words, sorted to the library that reads them, before anything is concluded.

`sources` finds the configurations in a text; here their words are put where the library looks for
them, and what was not seen is kept as a doubt: with a doubt no method is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlnb.interop.literals import scalar
from rlnb.interop.openrlhf import older_name
from rlnb.interop.prime_rl import OLDER, PRIME_RL_DEFAULTS
from rlnb.interop.trl import TRL_DEFAULTS, TRL_SILENT
from rlnb.interop.verl import VERL_DEFAULTS
from rlnb.interop.vocabulary import known_words

__all__ = [
    "HOMES",
    "TRL_LOSS",
    "Configuration",
    "kind_of",
    "of_openrlhf",
    "of_prime_rl",
    "of_slime",
    "of_trl",
    "of_verl",
    "plain",
    "trl_words",
]

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


def kind_of(words: Iterable[str]) -> str:
    """TRL's class by its words: only RLOO has two of them."""
    return (
        "RLOOConfig" if {"normalize_advantages", "reward_clip_range"} & set(words) else "GRPOConfig"
    )


def trl_words() -> set[str]:
    """Every word of TRL's GRPOConfig."""
    return {*TRL_DEFAULTS, *TRL_SILENT}
