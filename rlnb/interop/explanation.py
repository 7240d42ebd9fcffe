"""A training configuration, explained: which objective it is, how it differs from the paper's
method, and what it does that its reader may not expect."""

from __future__ import annotations

import difflib
import textwrap
from dataclasses import dataclass
from typing import Any

from rlnb.interop.configuration import Configuration, read_configuration
from rlnb.interop.traps_trl import TRL_TRAPS, trl_facts
from rlnb.interop.traps_verl import VERL_TRAPS, verl_facts
from rlnb.interop.trl import TRL_DEFAULTS, from_trl
from rlnb.interop.verl import VERL_DEFAULTS, from_verl
from rlnb.interop.vocabulary import Inexpressible, Reading, known_words
from rlnb.objective.annex import ANNEX
from rlnb.objective.composition import Objective
from rlnb.objective.naming import Difference, closest, difference, name_of
from rlnb.objective.zoo import ZOO

__all__ = ["ConfigReport", "explain_config"]

WIDTH = 76
VERSIONS = {"trl": "TRL 1.16.0", "verl": "verl 0.9.1"}


@dataclass(frozen=True)
class ConfigReport:
    """What a configuration computes. str() is a page of at most 76 columns.

    library: "trl" or "verl", with where it was read. objective: the composition, or None with
    `refused` saying why none says it. name: the method's, conventions ignored, or None. nearest
    and difference: the named method with the fewest other parts, and what changes. conventions:
    what the library fills in where the paper is silent. ignored: given words that do not touch
    the loss. unknown: words this version does not have. not_read: (word, what stands there) for
    the words that touch the loss. notes: what was assumed. traps: (name, sentence).
    """

    library: str
    where: str
    objective: Objective | None
    refused: str
    name: str | None
    nearest: str | None
    difference: Difference
    conventions: Difference
    ignored: tuple[str, ...]
    unknown: tuple[str, ...]
    not_read: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    traps: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        lines = _row("read as", f"{VERSIONS[self.library]}: {self.where}")
        lines += _row("objective", repr(self.objective) if self.objective else self.refused)
        if self.objective is not None:
            lines += _method(self)
            lines += _row("conventions", [str(c) for c in self.conventions])
        lines += _row(
            "not read", [f"{word} = {text}: taken as not set" for word, text in self.not_read]
        )
        lines += _row("assumed", list(self.notes))
        lines += _row("no effect", _no_effect(self))
        lines += _row(
            "unknown",
            self.unknown
            and f"{_some(self.unknown)}: no words of "
            f"{VERSIONS[self.library]} (another version's, or the script's own)",
        )
        if self.traps:
            lines += ["", f"{len(self.traps)} to know before you run it:"]
        for place, (_, sentence) in enumerate(self.traps, 1):
            lines += ["", *_wrapped(sentence, f"{place:>2}. ", "    ")]
        return "\n".join(lines)

    __repr__ = __str__


def explain_config(config: Any = None, /, **words: Any) -> ConfigReport:
    """What a TRL or verl configuration computes, and its traps.

    config: the text of a file (Python source with a GRPOConfig(...), YAML, JSON, a shell script
    with verl's or TRL's arguments), a mapping, or a config object; or the words as keywords.
    Text is read and never run; what is not a literal is listed as not read.

    Raises ValueError in one sentence for a configuration that is none, and for a value that the
    library would refuse.

    >>> report = explain_config(loss_type="dr_grpo", scale_rewards="none")
    >>> report.name, [name for name, _ in report.traps]
    ('dr_grpo', [])
    """
    if config is not None and words:
        raise ValueError(
            "explain_config takes a configuration or keywords, not both; "
            "put all words into one mapping."
        )
    read = read_configuration(words if config is None else config)
    trl = read.library == "trl"
    known = {*known_words(_list_of(read)), *(TRL_DEFAULTS if trl else VERL_DEFAULTS)}
    unknown = tuple(w for w in read.words if w not in known and (trl or "." not in w))
    given = {w: v for w, v in read.words.items() if w in known}
    reading, refused = _build(read, given)
    objective = reading.objective if reading else None
    facts = trl_facts(read) if trl else verl_facts(read)
    traps = [
        (rule.name, rule.sentence(facts))
        for rule in (TRL_TRAPS if trl else VERL_TRAPS)
        if rule.test(facts)
    ]
    touching = {*(TRL_DEFAULTS if trl else VERL_DEFAULTS), *ASKED}
    name, nearest, changes = None, None, Difference(())
    conventions = Difference(())
    if objective is not None:
        name = name_of(objective)
        nearest, changes = (name, Difference(())) if name else closest(objective)
        stated = objective.canonical()
        conventions = difference(stated, objective)
    # words outside verl's actor and algorithm sections belong to other machinery: not listed
    ignored = tuple(w for w in (reading.ignored if reading else ()) if trl or "." not in w)
    return ConfigReport(
        read.library,
        read.where,
        objective,
        refused,
        name,
        nearest,
        changes,
        conventions,
        ignored,
        unknown,
        tuple((w, t) for w, t in read.not_read if w in touching),
        tuple(n for n in read.notes if n.split(":")[0].split()[0].split(".")[-1] in touching),
        (*_misspelt(unknown, sorted(touching & known)), *_misplaced(read), *traps),
    )


# words that do not touch the loss and still decide whether a rule speaks
ASKED = (
    "gradient_accumulation_steps",
    "steps_per_generation",
    "num_iterations",
    "num_generations",
    "generation_batch_size",
    "ppo_epochs",
    "ppo_mini_batch_size",
    "rollout.n",
    "n",
    "data.train_batch_size",
    "train_batch_size",
    "temperature",
    "top_p",
    "top_k",
    "mask_truncated_completions",
)


def _list_of(read: Configuration) -> str:
    return {"verl": "verl", "RLOOConfig": "trl_rloo"}.get(read.kind, "trl_grpo")


# values the libraries take and the parts here do not say
ELSEWHERE = {
    "adv_estimator": (
        "grpo_passk",
        "gdpo",
        "opo",
        "gpg",
        "optimal_token_baseline",
        "tir_optimal_token_baseline",
    ),
    "multi_objective_aggregation": ("normalize_then_sum",),
}


def _build(read: Configuration, given: dict[str, Any]) -> tuple[Reading | None, str]:
    """What the library computes, or None and why no composition says it."""
    for word, values in ELSEWHERE.items():
        if given.get(word) in values:
            return None, (
                f"none here: {word}={given[word]!r} is outside the parts of this "
                "package; the rest of the page still holds."
            )
    try:
        if read.library == "verl":
            return from_verl(given), ""
        return from_trl(given, trainer=read.kind.removesuffix("Config").lower()), ""
    except Inexpressible as error:
        # a setting that works and that the parts here do not say; its traps still hold
        return None, f"none here: {error}"


def _misspelt(unknown: tuple[str, ...], known: list[str]) -> list[tuple[str, str]]:
    found = []
    for word in unknown:
        if near := difflib.get_close_matches(word, known, 1, 0.85):
            found.append(
                (
                    "misspelt",
                    f"{word!r} is no word of the library, so its default stays; "
                    f"1 known word is close: write {near[0]}.",
                )
            )
    return found


def _misplaced(read: Configuration) -> list[tuple[str, str]]:
    return [
        (
            "misplaced",
            f"{path} is not where verl 0.9.1 looks: the loss reads the default. Write {right}.",
        )
        for path, right in read.misplaced
    ]


def _method(report: ConfigReport) -> list[str]:
    same = " (here gspo: all tokens of an answer share one advantage)"
    nearest = f"{report.nearest}{same * (report.nearest == 'gspo_token')}"
    if report.name:
        return _row("method", nearest)
    lines = _row("method", f"no name; nearest of {len(ZOO) + len(ANNEX)} is {nearest}, changed so:")
    return lines + _row("", [str(c) for c in report.difference])


def _no_effect(report: ConfigReport) -> str:
    defaults = TRL_DEFAULTS if report.library == "trl" else VERL_DEFAULTS
    expected = [word for word in report.ignored if word in defaults]
    rest = len(report.ignored) - len(expected)
    text = f"{', '.join(expected)}: not read by this loss" if expected else ""
    more = f"{rest} word{'s' * (rest != 1)} that no loss reads (batch sizes, logging and so on)"
    return "; ".join(t for t in (text, more * (rest > 0)) if t)


def _some(words: tuple[str, ...], most: int = 8) -> str:
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def _row(title: str, text: Any) -> list[str]:
    if not text:
        return []
    texts = [text] if isinstance(text, str) else text
    lines: list[str] = []
    for place, one in enumerate(texts):
        head = f"{title:<12}" if place == 0 else " " * 12
        lines += _wrapped(one, head, " " * 12)
    return lines


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
