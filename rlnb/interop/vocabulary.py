"""Reading another library's configuration, word by word, and answering in its words."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rlnb.objective.composition import Objective

__all__ = [
    "Inexpressible",
    "Reader",
    "Reading",
    "Words",
    "answer",
    "as_words",
    "known_words",
    "refuse",
    "refuse_all",
]


@cache
def known_words(library: str) -> frozenset[str]:
    """The configuration words of "trl_grpo", "trl_rloo" or "verl", at the pinned version."""
    text = (Path(__file__).parent / "known_words.json").read_text(encoding="utf-8")
    return frozenset(json.loads(text)[library])


class Inexpressible(ValueError):
    """A setting that works in one place and has no word in the other; str() is the sentence."""


@dataclass(frozen=True)
class Reading:
    """What a library's configuration says, read.

    objective: the composition that the library computes. ignored: the given words that do not
    touch the loss, in the order in which they were given.
    """

    objective: Objective
    ignored: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lines = [repr(self.objective)]
        if self.ignored:
            lines.append(f"without effect on the loss: {', '.join(self.ignored)}")
        return "\n".join(lines)


class Reader:
    """Given words over defaults; remembers which of them were asked for.

    Raises ValueError, with the nearest known word, for a word the library does not have.
    """

    def __init__(
        self,
        library: str,
        given: Mapping[str, Any],
        defaults: Mapping[str, Any],
        known: Iterable[str],
    ) -> None:
        known = {*known, *defaults}
        for word in given:
            if word not in known:
                near = difflib.get_close_matches(str(word), sorted(known), 1, 0.6)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"{library} has no keyword {word!r}.{hint}")
        self.library, self.given, self.defaults = library, dict(given), dict(defaults)
        self.used: set[str] = set()

    def __getitem__(self, word: str) -> Any:
        self.used.add(word)
        return self.given.get(word, self.defaults[word])

    def choice(self, word: str, allowed: Iterable[str]) -> str:
        """The word's value, which must be one of `allowed`."""
        value, allowed = self[word], tuple(allowed)
        if value not in allowed:
            near = difflib.get_close_matches(str(value), allowed, 1, 0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"{word} must be one of {', '.join(allowed)} in {self.library}; "
                f"got {value!r}.{hint}"
            )
        return value

    def number(self, word: str) -> float:
        """The word's value as a float."""
        return self._as_number(word, self[word], "a number")

    def optional_number(self, word: str) -> float | None:
        """The word's value as a float, or None."""
        value = self[word]
        return None if value is None else self._as_number(word, value, "a number or None")

    @staticmethod
    def _as_number(word: str, value: Any, expected: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{word} must be {expected}; got {value!r}.")
        return float(value)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Given words that nothing asked for: they do not touch the loss."""
        return tuple(word for word in self.given if word not in self.used)

    def reading(self, objective: Objective) -> Reading:
        """The objective just built from these words, with the words that nothing asked for."""
        return Reading(objective, self.ignored)


def as_words(config: Any, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping, or the fields of a configuration object that are not default, and keywords."""
    if config is None:
        words: dict[str, Any] = {}
    elif isinstance(config, Mapping):
        words = dict(config)
    elif is_dataclass(config) and not isinstance(config, type):
        words = {
            f.name: value
            for f in fields(config)
            if f.init and (value := getattr(config, f.name)) != f.default
        }
    else:
        raise TypeError(
            "the configuration must be a mapping, a configuration object or keywords; "
            f"got {type(config).__name__}."
        )
    return {**words, **keywords}


class Words(dict[str, Any]):
    """Keywords for a library. `differences`: a sentence for each thing they do not carry over."""

    def __init__(self, words: Mapping[str, Any], differences: Iterable[str] = ()) -> None:
        super().__init__(words)
        self.differences = tuple(differences)


def answer(
    library: str,
    words: Mapping[str, Any],
    differences: list[str],
    objective: Objective,
    back: Objective,
    strict: bool,
) -> Words:
    """The end of every `to_...`: `back` is what the library makes of `words`. Where it differs in
    conventions only, that is one more difference; with `strict` any difference is refused."""
    if back != objective and back.canonical() == objective.canonical():
        differences.append(f"conventions: {back!r} is what {library.split()[0]} computes.")
    if strict and differences:
        raise refuse(library, "this exactly", " ".join(differences))
    return Words(words, differences)


def refuse(library: str, what: str, instead: str = "") -> Inexpressible:
    """The error for a method part that a library has no word for."""
    return Inexpressible(f"{library} has no word for {what}." + (f" {instead}" if instead else ""))


def refuse_all(library: str, missing: Iterable[tuple[str, str]]) -> None:
    """Raise one error for all (part, why) that a library has no word for; nothing for none."""
    parts, reasons = [], []
    for part, why in missing:
        parts.append(part)
        reasons += [why] if why not in reasons else []
    if parts:
        listed = " or ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
        raise refuse(library, listed, " ".join(reasons))
