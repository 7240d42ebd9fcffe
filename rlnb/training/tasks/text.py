"""Tasks in plain English with tagged answers, for language models that come with a tokenizer.

The verifier takes what stands in the last pair <answer>...</answer>, and parses it; nothing is
executed, whatever a model writes there. `system` is the system line of models with a chat template.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from rlnb.training.errors import BadInput
from rlnb.training.tasks.countdown import check_game, draw_numbers, reaching, search, uses_each_once
from rlnb.training.tasks.expression import evaluate
from rlnb.training.tasks.task import Problem, check_knobs, draw

__all__ = ["CLOSE", "OPEN", "ArithmeticText", "CountdownText", "tagged"]

OPEN, CLOSE = "<answer>", "</answer>"
SYSTEM = "You solve problems step by step and then give the answer in the form that is asked for."
_WHOLE = re.compile(r"-?[0-9]{1,18}")  # [0-9]: int() and \d take the digits of every script
_SPACED = re.compile(r"[0-9]+(?: [-+*] [0-9]+){1,6}")
_NEEDED = (OPEN, CLOSE, *"0123456789+-*/()=,. ")  # a tokenizer of whole words cannot write these


def tagged(text: str) -> str | None:
    """What the last pair of tags encloses, without blanks at its ends; None without a pair.

    The last pair is the last </answer> and the nearest <answer> before it.

    >>> tagged("<answer>1</answer> no: <answer> 2\\n</answer>"), tagged("<answer>2"), tagged("2")
    ('2', None, None)
    """
    end = text.rfind(CLOSE)
    start = text.rfind(OPEN, 0, end) if end >= 0 else -1
    return text[start + len(OPEN) : end].strip(" \t\r\n") if start >= 0 else None


@dataclass(frozen=True)
class ArithmeticText:
    """`Compute 17 + 4 * 23.` with the usual precedence; the answer is one whole number in tags.

    min_operators, max_operators: 1 to 6. largest: numbers are 1 to this, at most 9999.
    times: probability that an operator is `*`; + and - share the rest.

    >>> task = ArithmeticText()
    >>> problem = task.parse("17 + 4 * 23")
    >>> problem.answer
    '109'
    >>> [task.verify(problem, f"<answer>{text}</answer>") for text in ("109", "17+92", "\u0661")]
    [1.0, 0.0, 0.0]
    """

    min_operators: int = 2
    max_operators: int = 3
    largest: int = 50
    times: float = 0.3
    name: str = "arithmetic_text"
    symbols: tuple[str, ...] = _NEEDED
    system: str = SYSTEM

    def __post_init__(self):
        low = self.min_operators
        check_knobs(
            self,
            ("min_operators", 1 <= low <= 6, "1 to 6"),
            ("max_operators", low <= self.max_operators <= 6, f"{low} to 6"),
            ("largest", 1 <= self.largest <= 9999, "1 to 9999"),
            ("times", 0.0 <= self.times <= 1.0, "a probability"),
        )

    def problem(self, rng: random.Random, split: str = "train") -> Problem:
        """One problem of `min_operators`..`max_operators` operators from the named split."""

        def candidate() -> str:
            text = str(rng.randint(1, self.largest))
            for _ in range(rng.randint(self.min_operators, self.max_operators)):
                operator = "*" if rng.random() < self.times else rng.choice("+-")
                text += f" {operator} {rng.randint(1, self.largest)}"
            return self._prompt(text)

        return self.parse(draw(split, candidate))

    @staticmethod
    def _prompt(expression: str) -> str:
        return (
            f"Compute {expression}. Work step by step. Then write the result as one whole number "
            f"between {OPEN} and {CLOSE}."
        )

    def parse(self, prompt: str) -> Problem:
        """The problem of a whole prompt, or of its expression alone. BadInput on anything else."""
        expression = prompt.removeprefix("Compute ").partition(".")[0]
        found = evaluate(expression, "+-*") if _SPACED.fullmatch(expression) else None
        if found is None or prompt not in (expression, self._prompt(expression)):
            raise BadInput(f"prompt: got {prompt!r}, expected an expression such as '17 + 4 * 23'")
        return Problem(self._prompt(expression), str(found[0]))

    def demo(self, rng: random.Random, problem: Problem) -> str:
        """One operation after the other, products first: always correct."""
        parts = problem.prompt.removeprefix("Compute ").partition(".")[0].split(" ")
        lines = [" ".join(parts)]
        while len(parts) > 1:
            i = parts.index("*") if "*" in parts else 1
            a, b = int(parts[i - 1]), int(parts[i + 1])
            value = {"+": a + b, "-": a - b, "*": a * b}[parts[i]]
            parts[i - 1 : i + 2] = [str(value)]
            lines.append(" ".join(parts))
        return f"{' = '.join(lines)}\n{OPEN}{problem.answer}{CLOSE}"

    def verify(self, problem: Problem, text: str) -> float:
        """1.0 if the last tags enclose the result as one whole number, 0.0 otherwise."""
        inside = tagged(text)
        if inside is None or not _WHOLE.fullmatch(inside):
            return 0.0
        return float(int(inside) == int(problem.answer))

    def openings(self, problem: Problem) -> dict[str, str]:
        """The opening tag at once: an answer without a written calculation."""
        return {"direct": OPEN}


_ASKED = re.compile(r"Use each of the numbers ([0-9, ]+) exactly once .* make ([0-9]+)\. .*")


@dataclass(frozen=True)
class CountdownText:
    """Countdown in words: an expression that uses each number exactly once, in tags.

    Unlike in `countdown`, `/` may be used (fractions are exact), and spaces. numbers: 2 to 4.
    largest: they are 1 to this, at most 99. lowest, highest: the range of targets.

    >>> task = CountdownText()
    >>> problem = task.ask([3, 7, 8], 35)
    >>> answers = ("(8 - 3) * 7", "7 / (1 / 5)", "(8 - 3) * 7 = 35", "35")
    >>> [task.verify(problem, f"<answer>{text}</answer>") for text in answers]
    [1.0, 0.0, 0.0, 0.0]
    """

    numbers: int = 3
    largest: int = 20
    lowest: int = 1
    highest: int = 100
    tries: int = 3
    insight: float = 0.3
    name: str = "countdown_text"
    symbols: tuple[str, ...] = _NEEDED
    system: str = SYSTEM

    def __post_init__(self):
        check_game(self)

    def problem(self, rng: random.Random, split: str = "train") -> Problem:
        """Numbers in ascending order and a target they can make, from the named split."""

        def candidate() -> str | None:
            found = draw_numbers(rng, self)
            return found and self.ask(*found).prompt

        return self.parse(draw(split, candidate))

    def ask(self, numbers: list[int], target: int) -> Problem:
        """The problem of these numbers and this target, solvable or not."""
        prompt = (
            f"Use each of the numbers {', '.join(map(str, numbers))} exactly once with + - * / and "
            f"parentheses to make {target}. Try combinations first. Then write the expression "
            f"alone, without an equals sign, between {OPEN} and {CLOSE}."
        )
        return Problem(prompt, str(target))

    def parse(self, prompt: str) -> Problem:
        """The problem of a prompt that `ask` wrote. Raises BadInput on anything else."""
        found = _ASKED.fullmatch(prompt)
        if found is not None:
            problem = self.ask([int(n) for n in found[1].split(",")], int(found[2]))
            if problem.prompt == prompt:
                return problem
        raise BadInput(f"prompt: got {prompt!r}, expected one that CountdownText.ask wrote")

    @staticmethod
    def _numbers(problem: Problem) -> list[int]:
        return [int(n) for n in _ASKED.fullmatch(problem.prompt)[1].split(",")]

    def demo(self, rng: random.Random, problem: Problem) -> str:
        """A search, one attempt a line. One that fails `tries` times ends without an answer."""
        numbers, target = self._numbers(problem), int(problem.answer)
        text = ""
        for attempt in search(rng, numbers, target, reaching(numbers, target), self):
            text += ", ".join(attempt.steps)
            if attempt.made.value == target:
                return f"{text}\n{OPEN}{attempt.made.text}{CLOSE}"
            text += f" is not {target}.\n"
        return text

    def verify(self, problem: Problem, text: str) -> float:
        """1.0 if the last tags enclose an expression of all the numbers equal to the target."""
        inside = tagged(text)
        if inside is None:
            return 0.0
        return float(uses_each_once(inside, self._numbers(problem), int(problem.answer), "+-*/"))

    def openings(self, problem: Problem) -> dict[str, str]:
        """The opening tag at once: an answer without a written search."""
        return {"direct": OPEN}
