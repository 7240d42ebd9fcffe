"""Reading another library's configuration, word by word, and answering in its words."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rlnb.objective.composition import Objective

__all__ = ["Reader", "Words", "answer", "known_words", "refuse", "refuse_all"]


@cache
def known_words(library: str) -> frozenset[str]:
    """The configuration words of "trl_grpo", "trl_rloo" or "verl", at the pinned version."""
    text = (Path(__file__).parent / "known_words.json").read_text(encoding="utf-8")
    return frozenset(json.loads(text)[library])


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

    def number(self, word: str, *, optional: bool = False) -> float | None:
        """The word's value as a float; None only where `optional`."""
        value = self[word]
        if value is None and optional:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(
                f"{word} must be a number{' or None' if optional else ''}; got {value!r}."
            )
        return float(value)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Given words that nothing asked for: they do not touch the loss."""
        return tuple(word for word in self.given if word not in self.used)

    def told(self, objective: Objective) -> Objective:
        """The objective just built from these words, with its `.ignored` set."""
        object.__setattr__(objective, "ignored", self.ignored)  # frozen, and not part of its value
        return objective


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


class Words(dict):
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


def refuse(library: str, what: str, instead: str = "") -> ValueError:
    """The error for a method part that a library has no word for."""
    return ValueError(f"{library} has no word for {what}." + (f" {instead}" if instead else ""))


def refuse_all(library: str, missing: Iterable[tuple[str, str]]) -> None:
    """Raise one error for all (part, why) that a library has no word for; nothing for none."""
    parts, reasons = [], []
    for part, why in missing:
        parts.append(part)
        reasons += [why] if why not in reasons else []
    if parts:
        listed = " or ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
        raise refuse(library, listed, " ".join(reasons))
