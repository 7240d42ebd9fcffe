"""The task `sort`: the given numbers in ascending order."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from rlnb.training.errors import BadInput
from rlnb.training.tasks.task import Problem, check_knobs, draw

__all__ = ["Sort", "read_numbers"]

_NUMBER = re.compile(r"0|[1-9][0-9]{0,3}")  # no leading zero, digits 0 to 9 of one script only


def read_numbers(text: str, n: int) -> list[int] | None:
    """Exactly n numbers of up to four digits between commas, None for any other text.

    >>> read_numbers("12,15,22", 3), read_numbers("12,15", 3), read_numbers("12,015,22", 3)
    ([12, 15, 22], None, None)
    """
    parts = text.split(",", n)
    if len(parts) != n or not all(map(_NUMBER.fullmatch, parts)):
        return None
    return [int(part) for part in parts]


@dataclass(frozen=True)
class Sort:
    """The same numbers in ascending order: `39,24,12,22,15?` is `12,15,22,24,39`.

    Demonstrations err in two ways. With probability `misread` one number is replaced by another
    and the list is sorted all the same: in order, and not the numbers that were asked about. With
    probability `swap` two neighbours change places: the right numbers out of order. A verifier that
    only looks at the order pays for the first kind of mistake.

    numbers: how many, 2 to 12. largest: they are 0 to this, 1 to 9999; few digits are easier.
    misread, swap: probabilities, together at most 1.

    >>> sort = Sort()
    >>> problem = sort.parse("39,24,12,22,15?")
    >>> problem.answer
    '12,15,22,24,39'
    >>> [sort.verify(problem, text) for text in ("12,15,22,24,39", "1,1,11,11,39", "12,15,22,24")]
    [1.0, 0.0, 0.0]
    """

    numbers: int = 5
    largest: int = 99
    misread: float = 0.2
    swap: float = 0.05
    name: str = "sort"
    symbols: tuple[str, ...] = tuple("0123456789,?")

    def __post_init__(self):
        check_knobs(
            self,
            ("numbers", 2 <= self.numbers <= 12, "2 to 12"),
            ("largest", 1 <= self.largest <= 9999, "1 to 9999"),
            ("misread", 0.0 <= self.misread <= 1.0, "a probability"),
            ("swap", 0.0 <= self.swap <= 1.0 - self.misread, "0 to 1 - misread"),
        )

    def problem(self, rng: random.Random, split: str = "train") -> Problem:
        """Random numbers, repetitions included, from the named split."""

        def candidate() -> str:
            drawn = (rng.randint(0, self.largest) for _ in range(self.numbers))
            return ",".join(map(str, drawn)) + "?"

        return self.parse(draw(split, candidate))

    def parse(self, prompt: str) -> Problem:
        """The problem of a prompt such as `39,24,12?`. Raises BadInput on anything else."""
        body = prompt.removesuffix("?")
        numbers = read_numbers(body, body.count(",") + 1)
        if not prompt.endswith("?") or numbers is None or not 2 <= len(numbers) <= 12:
            raise BadInput(f"prompt: got {prompt!r}, expected 2 to 12 numbers such as '39,24,12?'")
        return Problem(prompt, ",".join(map(str, sorted(numbers))))

    def demo(self, rng: random.Random, problem: Problem) -> str:
        """The sorted list, or one of the two mistakes; a mistake is always one."""
        numbers, style = [int(n) for n in problem.answer.split(",")], rng.random()
        apart = [i for i in range(len(numbers) - 1) if numbers[i] != numbers[i + 1]]
        if style < self.misread:
            place = rng.randrange(len(numbers))
            others = rng.randint(0, self.largest - 1)
            numbers[place] = others + (others >= numbers[place])  # uniform over all but its own
            numbers.sort()
        elif style < self.misread + self.swap and apart:  # equal neighbours cannot be swapped
            i = rng.choice(apart)
            numbers[i], numbers[i + 1] = numbers[i + 1], numbers[i]
        return ",".join(map(str, numbers))

    def verify(self, problem: Problem, text: str) -> float:
        """1.0 if the text is the sorted list and nothing else, 0.0 otherwise. It is compared."""
        return float(text == problem.answer)

    def openings(self, problem: Problem) -> dict[str, str]:
        """The smallest number, written for the model."""
        return {"least": problem.answer.partition(",")[0] + ","}
