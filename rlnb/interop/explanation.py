"""A training configuration, explained: which objective it is, how it differs from the paper's
method, and what it does that its reader may not expect."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from rlnb.interop.configuration import TRL_LOSS, Configuration
from rlnb.interop.naming_evidence import Named, missing, named
from rlnb.interop.openrlhf import OPENRLHF_DEFAULTS, OPENRLHF_WORDS, from_openrlhf
from rlnb.interop.prime_rl import PRIME_RL_DEFAULTS, PRIME_RL_WORDS, from_prime_rl
from rlnb.interop.report_text import page
from rlnb.interop.slime import SLIME_DEFAULTS, SLIME_WORDS, from_slime
from rlnb.interop.sources import read_configuration, read_configurations
from rlnb.interop.traps import Facts, Trap, severity
from rlnb.interop.traps_others import OPENRLHF_TRAPS, SLIME_TRAPS, other_facts
from rlnb.interop.traps_trl import TRL_TRAPS, trl_facts
from rlnb.interop.traps_verl import VERL_TRAPS, verl_facts
from rlnb.interop.trl import TRL_DEFAULTS, from_trl
from rlnb.interop.verl import VERL_DEFAULTS, from_verl
from rlnb.interop.versions import betrayed, older_defaults
from rlnb.interop.vocabulary import Inexpressible, Reading, known_words
from rlnb.objective.composition import Objective
from rlnb.objective.naming import Difference

__all__ = ["VERSIONS", "ConfigReport", "explain_all", "explain_config"]

VERSIONS = {
    "trl": "TRL 1.16.0",
    "verl": "verl 0.9.1",
    "openrlhf": "OpenRLHF 0.11",
    "slime": "slime 0.3.1",
    "prime_rl": "prime-rl 0.8",
}
DEFAULTS = {
    "trl": TRL_DEFAULTS,
    "verl": VERL_DEFAULTS,
    "openrlhf": OPENRLHF_DEFAULTS,
    "slime": SLIME_DEFAULTS,
    "prime_rl": PRIME_RL_DEFAULTS,
}
OWN_WORDS = {"openrlhf": OPENRLHF_WORDS, "slime": SLIME_WORDS, "prime_rl": PRIME_RL_WORDS}
Version = tuple[int, int]


@dataclass(frozen=True)
class ConfigReport:
    """What a configuration computes. str() is a page of at most 76 columns.

    library: "trl", "verl", "openrlhf", "slime" or "prime_rl", with where it was read. version: the
    one whose defaults count. objective: the composition, with the library's defaults for what was
    not read, or None with `refused` saying why none says it. name: the method's, conventions
    ignored, or None. nearest and difference: the named method with the fewest other parts, and
    what changes; None where `doubts` says what is missing to name one. beside: corrections that
    stand outside the naming. called: the library's own word for it, or "". conventions: what the
    library fills in where the paper is silent. ignored: given words that do not touch the loss.
    unknown: words this version does not have. not_read: (word, what stands there) for the words
    that touch the loss. notes: what was assumed. traps: (name, sentence). words: all that was read.
    """

    library: str
    version: str
    where: str
    objective: Objective | None
    refused: str
    name: str | None
    nearest: str | None
    difference: Difference
    doubts: tuple[str, ...]
    beside: tuple[str, ...]
    called: str
    conventions: Difference
    ignored: tuple[str, ...]
    unknown: tuple[str, ...]
    not_read: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    traps: tuple[tuple[str, str], ...]
    words: dict[str, Any]

    @property
    def severity(self) -> str:
        """The worst of the traps: "none", "note", "warning" or "error"."""
        found = [severity(name) for name, _ in self.traps]
        return next((s for s in ("error", "warning", "note") if s in found), "none")

    def __str__(self) -> str:
        return page(self, DEFAULTS[self.library])

    __repr__ = __str__


def explain_config(config: Any = None, /, **words: Any) -> ConfigReport:
    """What a configuration of TRL, verl, OpenRLHF, slime or prime-rl computes, and its traps.

    config: the text of a file (Python source with a GRPOConfig(...), YAML, JSON, TOML, a notebook,
    a shell script), a mapping, or a config object; or the words as keywords. Of several
    configurations in a text the first is explained; `explain_all` has a report for each. Text is
    read and never run; what is not a literal is listed as not read, and where a word is missing
    that decides the method, none is named.

    Raises ValueError in one sentence for a configuration that is none, for a library that is not
    read, and for a value that the library would refuse.

    >>> report = explain_config(loss_type="dr_grpo", scale_rewards="none")
    >>> report.name, [name for name, _ in report.traps]
    ('dr_grpo', [])
    """
    if config is not None and words:
        raise ValueError(
            "explain_config takes a configuration or keywords, not both; "
            "put all words into one mapping."
        )
    return _report(read_configuration(words if config is None else config), None)


def explain_all(
    source: Any, *, name: str = "", trl: Version | None = None
) -> tuple[ConfigReport, ...]:
    """A report for every configuration of a source, in order.

    name: the file's name, which tells its kind. trl: the version of TRL whose defaults count,
    (0, 18) say; without it, the one that the text pins (`trl==0.18.2`), else 1.16.

    >>> [r.nearest for r in explain_all("GRPOConfig(loss_type='grpo')", trl=(0, 18))]
    ['grpo']
    """
    return tuple(_report(read, trl) for read in read_configurations(source, name))


def _report(read: Configuration, asked: Version | None) -> ConfigReport:
    trl = read.library == "trl"
    defaults = DEFAULTS[read.library]
    known = {*OWN_WORDS.get(read.library, known_words(_list_of(read))), *defaults}
    version = (asked or read.version) if read.kind == "GRPOConfig" else None
    older = older_defaults(version) if version else {}
    unread = {word for word, _ in read.not_read}
    given = {w: v for w, v in read.words.items() if w in known}
    told = {**{w: v for w, v in older.items() if w not in unread}, **given}
    reading, refused, beside = _build(read, told)
    objective = reading.objective if reading else None
    naming = named(read, objective, version) if objective is not None else Named()
    unknown = tuple(
        w for w in read.words if w not in known and "." not in w and w != "step_averages"
    )
    touching = {*defaults, *ASKED, *(TRL_LOSS if trl else ())}
    notes = [*read.notes, *_of_version(read, version)]
    ignored = tuple(w for w in (reading.ignored if reading else ()) if w in given)
    return ConfigReport(
        read.library,
        f"TRL {version[0]}.{version[1]}" if version else VERSIONS[read.library],
        read.where,
        objective,
        refused,
        naming.name,
        naming.nearest,
        naming.difference,
        naming.doubts if objective is not None else (*read.doubts, *missing(read, version)),
        (*beside, *naming.beside),
        naming.called,
        naming.conventions,
        tuple(w for w in ignored if trl or "." not in w),
        unknown if read.library in ("trl", "verl") else (),
        tuple((w, t) for w, t in read.not_read if w in touching or w.startswith(("*", "a pos"))),
        tuple(n for n in notes if _worth(n, touching)),
        (*_lost(read), *_misspelt(unknown, touching, known, trl), *_misplaced(read),
         *_traps(read, told)),
        dict(read.words),
    )  # fmt: skip


def _traps(read: Configuration, words: dict[str, Any]) -> list[tuple[str, str]]:
    if read.library == "prime_rl":
        return []
    if read.library in ("openrlhf", "slime"):
        facts = other_facts(read, DEFAULTS[read.library])
        rules = OPENRLHF_TRAPS if read.library == "openrlhf" else SLIME_TRAPS
    elif read.library == "trl":
        facts, rules = trl_facts(read), TRL_TRAPS
        facts.update({w: v for w, v in words.items() if w not in read.words})
    else:
        facts, rules = verl_facts(read), VERL_TRAPS
    found = [(rule.name, rule.sentence(facts)) for rule in rules if rule.test(facts)]
    return found if not read.open else _certain(rules, found, facts, read)


def _certain(
    rules: tuple[Trap, ...], found: list[tuple[str, str]], facts: Facts, read: Configuration
) -> list[tuple[str, str]]:
    """The traps that speak whatever the words are that were not seen: no default counts, and no
    word is surely absent."""
    seen = {word: value if word in read.words else None for word, value in facts.items()}
    told = {**seen, **{k: facts[k] for k in ("kind", "mode", "adv", "agg") if facts[k] is not None}}
    for name, word in (("mode", "loss_mode"), ("adv", "adv_estimator"), ("agg", "loss_agg_mode")):
        if word not in read.words:
            told[name] = None
    only = Facts(told, {*facts.given})
    every = Facts(told, {*facts.given, *facts, *known_words("trl_grpo"), *known_words("verl")})
    sure = {rule.name for rule in rules if _holds(rule, only) and _holds(rule, every)}
    return [(name, sentence) for name, sentence in found if name in sure]


def _holds(rule: Trap, facts: Facts) -> bool:
    try:
        return bool(rule.test(facts))
    except TypeError:  # a comparison with a value that is not known
        return False


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
    "n_samples_per_prompt",
    "data.train_batch_size",
    "train_batch_size",
    "temperature",
    "top_p",
    "top_k",
    "mask_truncated_completions",
    "vllm_importance_sampling_cap",
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


def _build(
    read: Configuration, given: dict[str, Any]
) -> tuple[Reading | None, str, tuple[str, ...]]:
    """What the library computes, or None and why no composition says it; corrections beside it."""
    beside: list[str] = []
    for word, values in ELSEWHERE.items():
        if given.get(word) in values:
            return None, (
                f"none here: {word}={given[word]!r} is outside the parts of this "
                "package; the rest of the page still holds."
            ), ()  # fmt: skip
    try:
        if read.library == "verl":
            for word in ("rollout_is", "rollout_rs"):
                value = given.get(word)
                if value not in (None, False) and not given.get("bypass_mode"):
                    del given[word]
                    does = "weighs by" if word == "rollout_is" else "rejects by"
                    beside.append(
                        f"{word}={value}: {does} the trainer's probability over the engine's"
                    )
            return from_verl(given), "", tuple(beside)
        if read.library == "openrlhf":
            return from_openrlhf(given), "", ()
        if read.library == "slime":
            return from_slime(given), "", ()
        if read.library == "prime_rl":
            return from_prime_rl(given), "", ()
        cap = given.get("vllm_importance_sampling_cap")
        if cap is not None and read.kind == "GRPOConfig":  # deprecated, and still in force
            given = {**given, "vllm_importance_sampling_clip_max": cap}
        return from_trl(given, trainer=read.kind.removesuffix("Config").lower()), "", ()
    except Inexpressible as error:
        # a setting that works and that the parts here do not say; its traps still hold
        return None, f"none here: {error}", tuple(beside)


def _of_version(read: Configuration, version: Version | None) -> list[str]:
    """What an older version's word in the file means for the defaults."""
    if read.kind != "GRPOConfig" or version is not None:
        return []
    found = betrayed([*read.words, *(w for w, _ in read.not_read)], read.words)
    if not found.old:
        return []
    notes = [
        f"{found.word}: a word of TRL up to {found.last[0]}.{found.last[1]}, so the file ran under "
        f"TRL {found.range()}, and the defaults here are those of 1.16; --trl 0.18, say, reads it "
        "with 0.18's"
    ]
    for word in ("beta", "loss_type"):
        sure, value = found.default(word)
        if word not in read.words and (not sure or value is not None):
            notes.append(f"{word}: not set; its default was {value if not sure else repr(value)}")
    return notes


def _worth(note: str, touching: set[str]) -> bool:
    """Whether a note is about the loss: it begins with a word that touches it, or with none."""
    first = note.split(":")[0].split()[0]
    if "." in first or "_" in first or ":" in note.split()[0]:
        return first.split(".")[-1] in touching or first in touching or "a word of TRL" in note
    return True


def _misspelt(
    unknown: tuple[str, ...], touching: set[str], known: set[str], trl: bool
) -> list[tuple[str, str]]:
    found = []
    for word in unknown:
        if near := difflib.get_close_matches(word, sorted(touching & known), 1, 0.85):
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


def _lost(read: Configuration) -> list[tuple[str, str]]:
    if not read.lost:
        return []
    shown = ", ".join(read.lost[:3]) + (f" and {len(read.lost) - 3} more" * (len(read.lost) > 3))
    return [
        (
            "lost_words",
            f"a comment or an empty line ends the command, so that bash does not pass the "
            f"{len(read.lost)} argument{'s' * (len(read.lost) > 1)} below it ({shown}). Write the "
            "comment above the command, and a backslash at the end of every line.",
        )
    ]
