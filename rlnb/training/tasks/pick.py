"""The task `pick`: choosing is hard, checking is easy, and the answer's length is free."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import dataclass

from rlnb.training.errors import BadInput
from rlnb.training.tasks.task import Problem, check_knobs, draw

__all__ = ["Pick"]


@dataclass(frozen=True)
class Pick:
    """Choosing is hard, checking is easy: which three of the digits sum to the target, modulo 10?

    The prompt `44529:1?` asks for three of 4 4 5 2 9 that sum to 1. An answer adds them in two
    steps and ends in its own verdict, `:` for reached and `;` for missed: `5+2=7,7+4=1:`. Behind
    the verdict it may restate the last step any number of times: `5+2=7,7+4=1:wait7+4=1:`.

    Only the first attempt is graded, so restating never pays and never costs. Demonstrations
    choose three digits at random, compute without error, judge truthfully, and stop restating with
    probability `stop` (at most `max_tail` restatements), right or wrong. A model that imitates them
    is right one time in five, and has just read whether it was when it decides to stop. That is
    what this task is for: right and wrong answers can come to differ in length.

    digits: how many to choose from, 3 to 9; the fewer, the likelier a random choice is right.
    stop: above 0, at most 1.

    >>> pick = Pick()
    >>> problem = pick.parse("44529:1?")
    >>> [pick.verify(problem, text) for text in ("5+2=7,7+4=1:wait7+4=1:", "4+5=9,9+2=1;wait")]
    [1.0, 1.0]
    >>> [pick.verify(problem, text) for text in ("5+5=0,0+1=1:", "4+4=8,8+5=3;wait5+2=7,7+4=1:")]
    [0.0, 0.0]
    """

    digits: int = 5
    stop: float = 0.4
    max_tail: int = 8
    name: str = "pick"
    symbols: tuple[str, ...] = (*"0123456789+=,:;?", "wait")

    def __post_init__(self):
        check_knobs(
            self,
            ("digits", 3 <= self.digits <= 9, "3 to 9"),
            ("stop", 0.0 < self.stop <= 1.0, "above 0, at most 1"),
            ("max_tail", self.max_tail >= 0, "0 or more"),
        )

    def problem(self, rng: random.Random, split: str = "train") -> Problem:
        """Digits, and the sum of some three of them as the target, from the named split."""

        def candidate() -> str:
            digits = [rng.randint(0, 9) for _ in range(self.digits)]
            target = sum(rng.sample(digits, 3)) % 10
            return "".join(map(str, digits)) + f":{target}?"

        prompt = draw(split, candidate)
        return Problem(prompt, prompt[-2])

    def parse(self, prompt: str) -> Problem:
        """The problem of a prompt such as `44529:1?`; any number of digits from 3 to 9.

        Raises BadInput on anything else, and where no three of the digits sum to the target.
        """
        if not re.fullmatch(r"[0-9]{3,9}:[0-9]\?", prompt):
            raise BadInput(
                f"prompt: got {prompt!r}, expected 3 to 9 digits and a target such as '44529:1?'"
            )
        problem = Problem(prompt, prompt[-2])
        if not self._solutions(problem):
            raise BadInput(f"prompt: no three digits of {prompt!r} sum to its target modulo 10")
        return problem

    @staticmethod
    def _solutions(problem: Problem) -> list[tuple[str, ...]]:
        """Triples of the prompt's digits that reach the target, in the prompt's order."""
        triples = itertools.combinations(problem.prompt[:-3], 3)
        return [t for t in triples if sum(map(int, t)) % 10 == int(problem.answer)]

    def demo(self, rng: random.Random, problem: Problem) -> str:
        """Three random digits, a true verdict, and a tail whose length knows nothing of it."""
        a, b, c = map(int, rng.sample(problem.prompt[:-3], 3))
        two, three = (a + b) % 10, (a + b + c) % 10
        last = f"{two}+{c}={three}" + (":" if str(three) == problem.answer else ";")
        text, tail = f"{a}+{b}={two},{last}", 0
        while tail < self.max_tail and rng.random() >= self.stop:
            text, tail = f"{text}wait{last}", tail + 1
        return text

    def verify(self, problem: Problem, text: str) -> float:
        """1.0 if the first attempt, all before the first `wait`, is correct, 0.0 otherwise.

        Correct: two true sums of three different places of the prompt, the second starting from
        the first's result and ending at the target. Its verdict may be missing or untrue. The text
        is matched against one fixed pattern of at most twelve characters, never evaluated.
        """
        attempt = _ATTEMPT.fullmatch(text.partition("wait")[0])
        if attempt is None:
            return 0.0
        a, b, two, again, c, three = attempt.groups()
        left = list(problem.prompt[:-3])
        for digit in (a, b, c):
            if digit not in left:
                return 0.0
            left.remove(digit)
        sums = two == str((int(a) + int(b)) % 10) and three == str((int(two) + int(c)) % 10)
        return float(sums and again == two and three == problem.answer)

    def openings(self, problem: Problem) -> dict[str, str]:
        """The first sum of a solution, written for the model: one digit of three left to find."""
        a, b, _ = self._solutions(problem)[0]
        two = (int(a) + int(b)) % 10
        return {"half": f"{a}+{b}={two},{two}+"}


_ATTEMPT = re.compile(r"([0-9])\+([0-9])=([0-9]),([0-9])\+([0-9])=([0-9])[:;]?")
