"""The task `countdown`: an expression that uses every number once and has the target as value."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from rlnb.training.errors import BadInput
from rlnb.training.tasks.expression import evaluate
from rlnb.training.tasks.task import Problem, Task, check_knobs, draw

__all__ = [
    "Attempt",
    "Countdown",
    "Part",
    "check_game",
    "combine",
    "draw_numbers",
    "every_attempt",
    "random_attempt",
    "reaching",
    "search",
    "uses_each_once",
]

_PROMPT = re.compile(r"([1-9][0-9]{0,3}(?:,[1-9][0-9]{0,3}){1,3}):([1-9][0-9]{0,5})\?")


@dataclass(frozen=True)
class Part:
    """A value and how it was made; `loose` says that a product must put it in parentheses."""

    value: int
    text: str
    loose: bool = False


@dataclass(frozen=True)
class Attempt:
    """All numbers combined, two at a time: `8-3=5,5*7=35` makes (8-3)*7."""

    steps: tuple[str, ...]
    made: Part

    def __str__(self) -> str:
        return ",".join(self.steps)


def combine(a: Part, operator: str, b: Part) -> Part:
    """One step: the value, and the expression with the parentheses it needs."""
    match operator:
        case "+":
            return Part(a.value + b.value, f"{a.text}+{b.text}", True)
        case "-":
            right = f"({b.text})" if b.loose else b.text
            return Part(a.value - b.value, f"{a.text}-{right}", True)
        case "*":
            left, right = (f"({p.text})" if p.loose else p.text for p in (a, b))
            return Part(a.value * b.value, f"{left}*{right}")
    raise BadInput(f"operator: got {operator!r}, expected one of + - *")


def random_attempt(rng: random.Random, numbers: list[int]) -> Attempt:
    """Two random parts and a random operator, until one part is left. Values stay above 0."""
    parts, steps = [Part(n, str(n)) for n in numbers], []
    while len(parts) > 1:
        i, j = rng.sample(range(len(parts)), 2)
        a, b, operator = parts[i], parts[j], rng.choice("+-*")
        if operator == "-" and a.value == b.value:
            operator = "+"
        elif operator == "-" and a.value < b.value:
            a, b = b, a
        new = combine(a, operator, b)
        steps.append(f"{a.value}{operator}{b.value}={new.value}")
        parts = [p for k, p in enumerate(parts) if k not in (i, j)] + [new]
    return Attempt(tuple(steps), parts[0])


def every_attempt(numbers: list[int]) -> Iterator[Attempt]:
    """Every way to combine the numbers whose values stay above 0, + and * in one order only."""

    def go_on(parts: list[Part], steps: tuple[str, ...]) -> Iterator[Attempt]:
        if len(parts) == 1:
            yield Attempt(steps, parts[0])
        for i, j in combinations(range(len(parts)), 2):
            big, small = sorted((parts[i], parts[j]), key=lambda p: -p.value)
            rest = [p for k, p in enumerate(parts) if k not in (i, j)]
            for operator in "+-*":
                new = combine(big, operator, small)
                if new.value > 0:
                    step = f"{big.value}{operator}{small.value}={new.value}"
                    yield from go_on([*rest, new], (*steps, step))

    return go_on([Part(n, str(n)) for n in numbers], ())


def reaching(numbers: list[int], target: int) -> list[Attempt]:
    """The attempts that make the target, in a fixed order."""
    return [attempt for attempt in every_attempt(numbers) if attempt.made.value == target]


def check_game(game: Task, *rules: tuple[str, bool, str]) -> None:
    """`check_knobs` for those that every countdown has, and the `rules` of one kind of it."""
    check_knobs(
        game,
        ("numbers", 2 <= game.numbers <= 4, "2 to 4"),
        ("largest", 1 <= game.largest <= 99, "1 to 99"),
        ("lowest", 1 <= game.lowest <= 999_999, "1 to 999999"),
        ("highest", game.lowest <= game.highest <= 999_999, f"{game.lowest} to 999999"),
        ("insight", 0.0 <= game.insight <= 1.0, "a probability"),
        ("tries", game.tries >= 1, "1 or more"),
        *rules,
    )


def draw_numbers(rng: random.Random, game: Task) -> tuple[list[int], int] | None:
    """Numbers from 1 to `largest`, ascending, and a target they can make; None: out of range.

    They are sorted so that one problem has one prompt: otherwise `7,3,8:35?` could be trained on
    while `3,7,8:35?` is held out.
    """
    drawn = sorted(rng.randint(1, game.largest) for _ in range(game.numbers))
    target = random_attempt(rng, drawn).made.value
    return (drawn, target) if game.lowest <= target <= game.highest else None


def search(
    rng: random.Random, numbers: list[int], target: int, solutions: list[Attempt], game: Task
) -> Iterator[Attempt]:
    """A written search: attempts up to the first that makes the target, at most `game.tries`.

    Each is one of the solutions with probability `game.insight`, if there are any, else random.
    """
    for _ in range(game.tries):
        lucky = solutions and rng.random() < game.insight
        attempt = rng.choice(solutions) if lucky else random_attempt(rng, numbers)
        yield attempt
        if attempt.made.value == target:
            return


def uses_each_once(text: str, numbers: list[int], target: int, operators: str) -> bool:
    """Whether the text is an expression of exactly these numbers, each once, equal to the target.

    It is parsed (`expression`), never executed. Intermediate values may be negative or fractions.
    """
    found = evaluate(text, operators)
    return found is not None and found[0] == target and sorted(found[1]) == sorted(numbers)


@dataclass(frozen=True)
class Countdown:
    """Reach the target with every number used exactly once: `3,7,8:35?` is solved by `(8-3)*7`.

    An answer ends in `so` and the expression; whatever stands before the last `so` is not graded.
    Demonstrations mix two styles on purpose. `direct` of them are `so(8-3)*7` at once and always
    right: nobody can imitate that without finding the solution in one's head. The others search:
    attempts in single steps, `x` behind a failed one, `3+7=10,10+8=18x8-3=5,5*7=35so(8-3)*7`. Each
    attempt is a solution with probability `insight` and random otherwise; after `tries` failed ones
    the search stops without an answer. So direct answers are always right in the corpus and
    searches often give up, which is what reinforcement learning then amplifies.

    numbers: how many, 2 to 4; more need a longer search. largest: they are 1 to this, at most 99.
    lowest, highest: the range of targets, 1 to 999,999.
    direct, insight: probabilities. tries: 1 or more.

    >>> game = Countdown()
    >>> problem = game.parse("3,7,8:35?")
    >>> [game.verify(problem, text) for text in ("so(8-3)*7", "8-3=5,5*7=35so7*(8-3)")]
    [1.0, 1.0]
    >>> [game.verify(problem, text) for text in ("so35", "so7*5", "(8-3)*7", "so(8-3)*7*1")]
    [0.0, 0.0, 0.0, 0.0]
    """

    numbers: int = 3
    largest: int = 12
    lowest: int = 1
    highest: int = 60
    direct: float = 0.3
    insight: float = 0.3
    tries: int = 3
    name: str = "countdown"
    symbols: tuple[str, ...] = (*"0123456789+-*()=,:?x", "so")

    def __post_init__(self):
        check_game(self, ("direct", 0.0 <= self.direct <= 1.0, "a probability"))

    def problem(self, rng: random.Random, split: str = "train") -> Problem:
        """Numbers in ascending order and a target they can make, from the named split."""

        def candidate() -> str | None:
            found = draw_numbers(rng, self)
            return found and ",".join(map(str, found[0])) + f":{found[1]}?"

        prompt = draw(split, candidate)
        return Problem(prompt, prompt[prompt.index(":") + 1 : -1])

    def parse(self, prompt: str) -> Problem:
        """The problem of a prompt such as `3,7,8:35?`, two to four numbers in any order.

        Raises BadInput on anything else, and where no expression reaches the target.
        """
        found = _PROMPT.fullmatch(prompt)
        if found is None:
            raise BadInput(
                f"prompt: got {prompt!r}, expected 2 to 4 numbers and a target such as '3,7,8:35?'"
            )
        problem = Problem(prompt, found[2])
        if not reaching(self._numbers(problem), int(found[2])):
            raise BadInput(f"prompt: no expression of the numbers in {prompt!r} has that value")
        return problem

    @staticmethod
    def _numbers(problem: Problem) -> list[int]:
        return [int(n) for n in problem.prompt.partition(":")[0].split(",")]

    def demo(self, rng: random.Random, problem: Problem) -> str:
        """A direct answer, or a search that ends in an answer or gives up after `tries`."""
        numbers, target = self._numbers(problem), int(problem.answer)
        solutions = reaching(numbers, target)
        if rng.random() < self.direct:
            return f"so{rng.choice(solutions).made.text}"
        text = ""
        for attempt in search(rng, numbers, target, solutions, self):
            if attempt.made.value == target:
                return f"{text}{attempt}so{attempt.made.text}"
            text += f"{attempt}x"
        return text

    def verify(self, problem: Problem, text: str) -> float:
        """1.0 if what follows the last `so` uses each number exactly once and makes the target."""
        _, marker, answer = text.rpartition("so")
        numbers, target = self._numbers(problem), int(problem.answer)
        return float(bool(marker) and uses_each_once(answer, numbers, target, "+-*"))

    def openings(self, problem: Problem) -> dict[str, str]:
        """Text that forces a style: the largest number, as a search may start, or `so`."""
        return {"search": str(max(self._numbers(problem))), "direct": "so"}
