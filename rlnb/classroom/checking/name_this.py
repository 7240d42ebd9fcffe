"""Name this method: the learner reads code, a configuration or a table of gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlnb.classroom.checking.verdict import Verdict, remembered

__all__ = ["NameThis"]


def _plain(text: str) -> str:
    """Letters and digits only: "Dr. GRPO", "dr_grpo" and "DrGRPO" are one answer."""
    return "".join(c for c in text.lower().replace("+", "plus") if c.isalnum())


@dataclass(frozen=True, eq=False)
class NameThis:
    """A riddle with one right answer and the near misses worth a sentence.

    name    of the check: "name_this_dr_grpo"
    answer  the method's name; spelling, case and punctuation do not matter
    near    a wrong answer people give -> what gives it away
    story   what decided it, said with the verdict "right"
    also    other accepted spellings

    >>> riddle = NameThis("r", "dr_grpo", {"grpo": "there is no std in it"}, "No std, no 1/T.")
    >>> riddle("Dr. GRPO")
    right: No std, no 1/T.
    >>> riddle("GRPO")
    wrong: not grpo: there is no std in it
    """

    name: str
    answer: str
    near: Mapping[str, str]
    story: str
    also: tuple[str, ...] = field(default=())

    def __call__(self, answer: str) -> Verdict:
        """The verdict on a name. Never raises."""
        if answer is None or answer is Ellipsis or answer == "":
            return Verdict("not attempted", f"{self.name}: there is no name yet")
        if not isinstance(answer, str):
            return Verdict(
                "wrong",
                f'give the name as text, such as check.{self.name}("ppo"); '
                f"a {type(answer).__name__} came",
            )
        given = _plain(answer)
        if given in {_plain(known) for known in (self.answer, *self.also)}:
            return remembered(self.name, Verdict("right", self.story))
        for known, sentence in self.near.items():
            if given == _plain(known):
                return Verdict("wrong", f"not {known}: {sentence}")
        return Verdict(
            "wrong",
            f"not {answer!r}: look at the baseline, the ratio and the weights, one at a time",
        )

    def __repr__(self) -> str:
        return f"check.{self.name}: give it the method's name"
