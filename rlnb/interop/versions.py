"""TRL's older versions: whose defaults a file ran under, and which of its words betrays it.

From the GRPOConfig of every release 0.14 to 1.9 and of 1.16. A default that a file does not set is
the one of the version that runs it: up to 0.18 there was a KL term with beta = 0.04, and loss_type
was 'grpo' in all but name up to 0.15, 'bnpo' up to 0.21 and is 'dapo' since.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["LATEST", "Betrayal", "betrayed", "older_defaults", "pinned", "version_of"]

Version = tuple[int, int]
OLDEST, LATEST = (0, 14), (1, 16)
# word -> (the first version without this default, the default), oldest first; later: today's
BEFORE: dict[str, tuple[tuple[Version, Any], ...]] = {
    "beta": (((0, 19), 0.04),),
    "loss_type": (((0, 16), "grpo"), ((0, 22), "bnpo")),
    "use_bias_correction_kl": (((1, 10), False),),
    "max_completion_length": (((1, 10), 256),),
    "temperature": (((0, 18), 0.9),),
    "top_k": (((0, 16), 0), ((0, 18), 50)),
    "vllm_importance_sampling_correction": (((0, 23), False),),
    "vllm_importance_sampling_mode": (((0, 26), "token_truncate"),),
    "vllm_importance_sampling_clip_max": (((0, 26), 2.0),),
}
# word -> (first, last) version that has it
GONE: dict[str, tuple[Version, Version]] = {
    "max_prompt_length": ((0, 14), (0, 27)),
    "use_liger_loss": ((0, 17), (0, 27)),
    "vllm_device": ((0, 14), (0, 17)),
    "vllm_dtype": ((0, 15), (0, 17)),
    "vllm_enable_prefix_caching": ((0, 16), (0, 17)),
    "vllm_guided_decoding_regex": ((0, 16), (0, 27)),
    "vllm_max_model_len": ((0, 15), (0, 17)),
    "wandb_log_unique_prompts": ((0, 17), (0, 26)),
}
SINCE: dict[str, Version] = {
    "epsilon": (0, 16),
    "num_iterations": (0, 16),
    "scale_rewards": (0, 16),
    "loss_type": (0, 17),
    "mask_truncated_completions": (0, 17),
    "delta": (0, 18),
    "generation_batch_size": (0, 18),
    "steps_per_generation": (0, 18),
    "vllm_mode": (0, 18),
    "generation_kwargs": (0, 19),
    "importance_sampling_level": (0, 20),
    "top_entropy_quantile": (0, 20),
    "vllm_importance_sampling_correction": (0, 23),
    "vllm_importance_sampling_cap": (0, 23),
    "vllm_importance_sampling_mode": (0, 26),
    "use_bias_correction_kl": (0, 26),
    "off_policy_mask_threshold": (0, 27),
    "multi_objective_aggregation": (0, 27),
}
PIN = re.compile(r"\btrl(?:\[[\w,-]+\])?\s*[=~]=\s*[\"']?(\d+)\.(\d+)")


@dataclass(frozen=True)
class Betrayal:
    """The versions that a file can have been written for, both ends included, and the word that
    says so; word "" where none does."""

    first: Version
    last: Version
    word: str = ""

    @property
    def old(self) -> bool:
        return self.last < LATEST

    def range(self) -> str:
        """0.16 to 0.27, as text."""
        return f"{_text(self.first)} to {_text(self.last)}"

    def default(self, word: str) -> tuple[bool, Any]:
        """(True, the default) where all versions of the range agree, else (False, a text of them).

        >>> Betrayal((0, 14), (0, 17)).default("beta"), Betrayal((0, 14), (0, 27)).default("beta")
        ((True, 0.04), (False, '0.04 up to 0.18, then another'))
        """
        spans = [s for s in BEFORE.get(word, ()) if s[0] > self.first]
        if spans and spans[0][0] > self.last:
            return True, spans[0][1]
        if not spans:
            return True, None
        told = [f"{value!r} up to {_text(_before(end))}" for end, value in spans]
        return False, f"{', '.join(told)}, then another"


def _text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def _before(version: Version) -> Version:
    return (version[0], version[1] - 1)


def version_of(text: str) -> Version:
    """ "0.18" or "0.18.2" as (0, 18). Raises ValueError for a version that is not known here.

    >>> version_of("0.18.2")
    (0, 18)
    """
    found = re.fullmatch(r"v?(\d+)\.(\d+)(?:\.\w+)?", text.strip())
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    known = OLDEST <= version <= (0, 29) or (1, 0) <= version <= (1, 9) or version == LATEST
    if not known:
        raise ValueError(
            f"--trl: the version {text!r} is not known here; give one of 0.14 to 0.29, 1.0 to 1.9 "
            "or 1.16."
        )
    return version


def older_defaults(version: Version) -> dict[str, Any]:
    """The defaults of a version that differ from those of 1.16.

    >>> older_defaults((0, 18))["beta"], older_defaults((1, 16))
    (0.04, {})
    """
    found = {}
    for word, spans in BEFORE.items():
        for end, value in spans:
            if version < end:
                found[word] = value
                break
    return found


def pinned(text: str) -> Version | None:
    """The version of `trl==0.15.2` in a text, where it is one that is known."""
    found = {(int(a), int(b)) for a, b in PIN.findall(text)}
    if len(found) != 1:
        return None
    version = found.pop()
    try:
        return version_of(_text(version))
    except ValueError:
        return None


def betrayed(words: Iterable[str], values: Mapping[str, Any]) -> Betrayal:
    """Which versions of TRL have all these words."""
    first, last, evidence = OLDEST, LATEST, ""
    for word in words:
        if word in GONE:
            first = max(first, GONE[word][0])
            if GONE[word][1] < last:
                last, evidence = GONE[word][1], word
        first = max(first, SINCE.get(word, OLDEST))
    if values.get("loss_type") == "dapo":
        first = max(first, (0, 22))
    return Betrayal(first, max(first, last), evidence)
