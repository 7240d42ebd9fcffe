"""What an exercise is: a reference, probes, accepted conventions and known mistakes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch

__all__ = [
    "Candidate",
    "Convention",
    "Exercise",
    "Family",
    "Mistake",
    "Probe",
    "Remark",
    "habit",
    "mistake",
]


@dataclass(frozen=True, eq=False)
class Probe:
    """One set of arguments, in the order of the learner's parameters.

    label       a few words for messages: "two answers", "a row without tokens"
    arguments   name -> value. Floating tensors are written in float64 and cast as needed. A list
                becomes such a tensor, of booleans if it holds nothing else.
    catches     for an edge case only (nan under the mask, 0/0): the sentence to say when the
                function is right on the ordinary probes and not finite here. Edge probes do not
                decide which mistake was made, so that a slip on the edge hides no other one.
    warns       the edge is not what the exercise is about: the function passes, and is warned
    """

    label: str
    arguments: dict[str, Any]
    catches: str = ""
    warns: bool = False

    def __post_init__(self) -> None:
        tensors = {name: _from_list(value) for name, value in self.arguments.items()}
        object.__setattr__(self, "arguments", tensors)

    @cached_property
    def size(self) -> int:
        """Numbers in all tensors: the smallest failing probe is the one that is shown."""
        return sum(v.numel() for v in self.arguments.values() if torch.is_tensor(v))

    def cast(self, dtype: torch.dtype) -> dict[str, Any]:
        """Fresh copies of the arguments, floating tensors in `dtype`."""
        return {
            name: value.detach().clone().to(dtype if value.is_floating_point() else value.dtype)
            if torch.is_tensor(value)
            else value
            for name, value in self.arguments.items()
        }


def _from_list(value: Any) -> Any:
    """A list, nested or not, as a tensor; anything else as it is."""
    if not isinstance(value, list):
        return value
    tensor = torch.tensor(value)
    return tensor if tensor.dtype == torch.bool else torch.tensor(value, dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class Convention:
    """Another right answer: the reference under other keywords. The sentence says whose it is."""

    sentence: str
    keywords: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Family:
    """Right answers that differ by one number: the reference under a keyword, which is fitted.

    sentence    with {value} where the fitted number goes
    keyword     of the reference; its result must shrink or grow steadily with it
    low, high   between which it is looked for, both above 0
    keywords    what else is given
    """

    sentence: str
    keyword: str
    low: float
    high: float
    keywords: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Remark:
    """A warning to a right function: said when `applies(function)`. It passes all the same."""

    sentence: str
    applies: Callable[[Callable[..., Any]], bool]


@dataclass(frozen=True, eq=False)
class Mistake:
    """A wrong answer people give. `function` takes the reference's arguments.

    When it also takes the keywords of the conventions, the mistake is recognised under each of
    them: the wrong clip is named whatever std the learner divides by. It is called like its
    function, so that one mistake can be made of another. `harmless`: right here, wrong elsewhere;
    it passes, and is told.
    """

    sentence: str
    function: Callable[..., Any]
    harmless: bool = False

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.function(*arguments, **keywords)


def mistake(sentence: str) -> Callable[[Callable[..., Any]], Mistake]:
    """The sentence above the function that earns it.

    >>> @mistake("this is the sum: divide by the number of entries")
    ... def not_divided(x):
    ...     return x.sum()
    >>> not_divided.sentence
    'this is the sum: divide by the number of entries'
    """
    return partial(Mistake, sentence)


def habit(sentence: str) -> Callable[[Callable[..., Any]], Mistake]:
    """Like `mistake`, for what is right in this exercise and will hurt in a real run."""
    return partial(Mistake, sentence, harmless=True)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A function whose results the learner's are compared with, and what to say on a match."""

    kind: str
    sentence: str
    function: Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Exercise:
    """A function to write, and what is known about the ways to write it.

    name            of the function, as the learner calls it
    reference       the right answer in plain torch; conventions are its keyword-only arguments
    remarks         what to tell the writer of a right function
    families        right answers that differ by a number, which the judge fits
    probes          must tell every pair of candidates apart; tests/classroom asserts it
    differentiate   names of the arguments whose gradient is compared as well as the value
    direction       "minimised", "maximised" or "": explains a flipped sign
    hint            a sentence or two, for those who are stuck
    one_by_one      an argument of counts, a tensor of whole numbers: a function that takes one
                    number, as with math.comb, is judged too and called once for each entry
    tolerance       for fits: how far a right number may be off, absolute plus relative; 0 means
                    as exact as the dtype allows

    Compared by identity, like its parts: the outcomes of its candidates are kept with it.
    """

    name: str
    reference: Callable[..., Any]
    probes: tuple[Probe, ...]
    conventions: tuple[Convention, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    families: tuple[Family, ...] = ()
    remarks: tuple[Remark, ...] = ()
    differentiate: tuple[str, ...] = ()
    direction: str = ""
    hint: str = ""
    one_by_one: str = ""
    tolerance: float = 0.0

    @cached_property
    def known_outcomes(self) -> dict[Any, Any]:
        """Of the candidates on the probes, filled by the judge when first asked for."""
        return {}

    @cached_property
    def signature(self) -> str:
        """`k3(logprobs, ref_logprobs)`: arguments are passed by position, names are free."""
        return f"{self.name}({', '.join(self.probes[0].arguments)})"

    @cached_property
    def ordered_probes(self) -> tuple[Probe, ...]:
        """Smallest first, edge cases last."""
        return tuple(sorted(self.probes, key=lambda p: (bool(p.catches), p.size)))

    @cached_property
    def accepted(self) -> tuple[Candidate, ...]:
        """The reference, then the conventions."""
        return (
            Candidate("right", self.name, self.reference),
            *(
                Candidate("convention", c.sentence, partial(self.reference, **c.keywords))
                for c in self.conventions
            ),
        )

    @cached_property
    def wrong(self) -> tuple[Candidate, ...]:
        """The mistakes as they stand, then under every convention that they understand."""
        plain = [_candidate(m, m.function) for m in self.mistakes]
        crossed = [
            _candidate(m, partial(m.function, **c.keywords))
            for c in self.conventions
            for m in self.mistakes
            if c.keywords.keys() <= inspect.signature(m.function).parameters.keys()
        ]
        return (*plain, *crossed)


def _candidate(known: Mistake, function: Callable[..., Any]) -> Candidate:
    if known.harmless:
        return Candidate("right", f"with a warning: {known.sentence}", function)
    return Candidate("known mistake", known.sentence, function)
