"""Questions with one number as the answer, in GSM8K's format; `question_files` reads them.

A row has a `question` and an `answer`: a worked solution that ends in `#### 72`. A model is asked
to end the same way, and its number is parsed and compared, never evaluated. GSM8K: Cobbe et al.
2021, arXiv 2110.14168.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from fractions import Fraction

from rlnb.training.errors import BadInput
from rlnb.training.tasks.task import SPLITS, Problem

__all__ = ["ASKED", "MARK", "Questions", "marked", "number"]

MARK = "####"
ASKED = f"Work step by step. Then write, on a line of its own, {MARK} and the result as one number."
SYSTEM = "You solve problems step by step and then give the answer in the form that is asked for."
# [0-9] and not \d, which takes the digits of every script.
_NUMBER = re.compile(r"(-?)[$]?([0-9]{1,28}|[0-9]{1,3}(?:,[0-9]{3}){1,8})([.][0-9]{1,12})?")
_NOTES = re.compile(r"<<[^<>]*>>")  # GSM8K's calculator annotations, which no model should write


def number(text: str) -> Fraction | None:
    """The one number that a text is, exactly; None for anything else.

    A sign, a dollar sign, commas between groups of three digits and a decimal part may be there,
    and blanks around it and a full stop behind it.

    >>> [str(number(text)) for text in ("72", " -1,000.50 ", "$18.", "1,00", "7 2", "2+2", "1e3")]
    ['72', '-2001/2', '18', 'None', 'None', 'None', 'None']
    """
    text = text.strip(" \t\r").removesuffix(".")
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    return Fraction(f"{found[1]}{found[2].replace(',', '')}{found[3] or ''}")


def marked(text: str) -> Fraction | None:
    """The number on the rest of the line behind the last ####; None without one."""
    _, mark, rest = text.rpartition(MARK)
    return number(rest.partition("\n")[0]) if mark else None


@dataclass(frozen=True)
class Questions:
    """A task made of rows: {prompt: worked solution} of each split. `question_files` reads them.

    >>> task = Questions("sums", {"What is 40 + 2?": "40 + 2 = 42\\n#### 42"}, {})
    >>> problem = task.problem(random.Random(0), "train")
    >>> problem.answer, [task.verify(problem, t) for t in ("#### 42.0", "#### 4\\n#### 2", "42")]
    ('42', [1.0, 0.0, 0.0])
    """

    name: str
    train: dict[str, str] = field(repr=False)
    test: dict[str, str] = field(repr=False)
    symbols: tuple[str, ...] = (*"0123456789#-., ", "a", "E")
    system: str = SYSTEM

    def problem(self, rng: random.Random, split: str = "train") -> Problem:
        """One row of the split, any with equal odds. BadInput for another, or an empty split."""
        if split not in SPLITS:
            raise BadInput(f"split: got {split!r}, expected 'train' or 'test'")
        rows = self.train if split == "train" else self.test
        if not rows:
            raise BadInput(f"task: {self.name!r} has no {split} question; give it more rows")
        return self._problem(rng.choice(list(rows)), rows)

    @staticmethod
    def _problem(question: str, rows: dict[str, str]) -> Problem:
        return Problem(f"{question}\n{ASKED}", str(marked(rows[question])))

    def parse(self, prompt: str) -> Problem:
        """The problem of a question, or of a whole prompt. BadInput if it is not in the file."""
        question = prompt.removesuffix(f"\n{ASKED}")
        for rows in (self.train, self.test):
            if question in rows:
                return self._problem(question, rows)
        raise BadInput(f"prompt: {prompt!r} is no question of {self.name!r}")

    def demo(self, rng: random.Random, problem: Problem) -> str:
        """The worked solution of the file, without its calculator annotations."""
        question = problem.prompt.removesuffix(f"\n{ASKED}")
        return _NOTES.sub("", self.train.get(question) or self.test[question])

    def verify(self, problem: Problem, text: str) -> float:
        """1.0 if the line behind the last #### is a number equal to the answer, 0.0 otherwise."""
        found = marked(text)
        return float(found is not None and found == Fraction(problem.answer))

    def openings(self, problem: Problem) -> dict[str, str]:
        """The mark at once: an answer without a written calculation."""
        return {"direct": MARK}
