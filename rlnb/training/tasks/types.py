"""The task `types`: one skill and seven pass rates."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from rlnb.training.errors import BadInput
from rlnb.training.tasks.chain import modulo_ten
from rlnb.training.tasks.task import Problem, check_knobs, draw

__all__ = ["Types"]


@dataclass(frozen=True)
class Types:
    """Seven prompt types of known difficulty: `2:4+5*3=?` is two steps, left to right, modulo 10.

    The number in front is the type k. In the demonstrations of type k the last digit is right with
    probability `rates[k]`, otherwise a random wrong one; the first step is always right. A model
    that imitates them has one skill and seven pass rates. rates: 1 to 10 probabilities.

    >>> types = Types()
    >>> problem = types.parse("2:4+5*3=?")
    >>> types.verify(problem, "4+5=9,9*3=7"), types.verify(problem, "7"), types.difficulty(problem)
    (1.0, 0.0, 0.3)
    """

    rates: tuple[float, ...] = (0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95)
    name: str = "types"
    symbols: tuple[str, ...] = tuple("0123456789+-*=?,:")

    def __post_init__(self):
        few = 1 <= len(self.rates) <= 10 and all(0.0 <= rate <= 1.0 for rate in self.rates)
        check_knobs(self, ("rates", few, "1 to 10 probabilities"))

    def problem(self, rng: random.Random, split: str = "train") -> Problem:
        """One problem of a random type from the named split."""

        def candidate() -> str:
            kind, (a, b, c) = rng.randrange(len(self.rates)), (rng.randint(0, 9) for _ in range(3))
            return f"{kind}:{a}{rng.choice('+-*')}{b}{rng.choice('+-*')}{c}=?"

        return self.parse(draw(split, candidate))

    def parse(self, prompt: str) -> Problem:
        """The problem of a prompt such as `2:4+5*3=?`. Raises BadInput on anything else."""
        found = re.fullmatch(r"([0-9]):([0-9])([-+*])([0-9])([-+*])([0-9])=\?", prompt)
        if found is None or int(found[1]) >= len(self.rates):
            raise BadInput(
                f"prompt: got {prompt!r}, expected a type from 0 to {len(self.rates) - 1} and two "
                "operators such as '2:4+5*3=?'"
            )
        _, a, first, b, second, c = found.groups()
        return Problem(prompt, str(modulo_ten(modulo_ten(int(a), first, int(b)), second, int(c))))

    def _first(self, problem: Problem) -> str:
        """The first step, correct: `4+5=9`."""
        step = problem.prompt[2:5]
        return f"{step}={modulo_ten(int(step[0]), step[1], int(step[2]))}"

    def demo(self, rng: random.Random, problem: Problem) -> str:
        """Two steps; the last digit is right as often as the type says."""
        first, last = self._first(problem), int(problem.answer)
        if rng.random() >= self.rates[int(problem.prompt[0])]:
            last = (last + rng.randint(1, 9)) % 10
        return f"{first},{first[-1]}{problem.prompt[5:7]}={last}"

    def verify(self, problem: Problem, text: str) -> float:
        """1.0 if what follows the last `=` is the answer and nothing else, 0.0 otherwise."""
        _, marker, answer = text.rpartition("=")
        return float(bool(marker) and answer == problem.answer)

    def openings(self, problem: Problem) -> dict[str, str]:
        """The correct first step, written for the model."""
        return {"steps": self._first(problem) + ","}

    def difficulty(self, problem: Problem) -> float:
        """The share of right demonstrations of the problem's type; 1 is the easiest."""
        return self.rates[int(problem.prompt[0])]
