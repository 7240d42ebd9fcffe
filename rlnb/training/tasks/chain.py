"""The task `chain`: arithmetic from left to right, modulo 10."""

from __future__ import annotations

import random
from dataclasses import dataclass

from rlnb.training.errors import BadInput
from rlnb.training.tasks.task import Problem, check_knobs, draw

__all__ = ["Chain", "modulo_ten"]


def modulo_ten(a: int, operator: str, b: int) -> int:
    """One step, modulo 10: the last digit of a + b, a - b or a * b."""
    match operator:
        case "+":
            return (a + b) % 10
        case "-":
            return (a - b) % 10
        case "*":
            return (a * b) % 10
    raise BadInput(f"operator: got {operator!r}, expected one of + - *")


@dataclass(frozen=True)
class Chain:
    """Arithmetic from left to right, modulo 10: `4+3-8+6*0=?` is ((4+3-8+6)*0) mod 10 = 0.

    There is no precedence. An answer ends in `so` and one digit. Demonstrations mix styles on
    purpose: `direct` of them are `so0` at once, always correct; the rest write every step. A step
    is wrong with probability `error`, and a wrong step is repaired after `wait` with probability
    `repair` (otherwise the error is carried on). A model that imitates this mixture prefers the
    style it is bad at, which leaves room for reinforcement learning to show.

    min_operators, max_operators: the length of a problem, 1 or more. direct, error, repair:
    probabilities.

    >>> chain = Chain()
    >>> problem = chain.parse("4+3-8=?")
    >>> problem.answer, chain.verify(problem, "4+3=7,7-8=9so9"), chain.verify(problem, "so8")
    ('9', 1.0, 0.0)
    """

    min_operators: int = 3
    max_operators: int = 8
    direct: float = 0.6
    error: float = 0.1
    repair: float = 0.5
    name: str = "chain"
    symbols: tuple[str, ...] = (*"0123456789+-*=?,", "wait", "so")

    def __post_init__(self):
        low = self.min_operators
        check_knobs(
            self,
            ("min_operators", low >= 1, "1 or more"),
            ("max_operators", self.max_operators >= low, f"{low} or more"),
            ("direct", 0.0 <= self.direct <= 1.0, "a probability"),
            ("error", 0.0 <= self.error <= 1.0, "a probability"),
            ("repair", 0.0 <= self.repair <= 1.0, "a probability"),
        )

    def problem(self, rng: random.Random, split: str = "train") -> Problem:
        """One problem of `min_operators`..`max_operators` operators from the named split."""

        def candidate() -> str:
            text = str(rng.randint(0, 9))
            for _ in range(rng.randint(self.min_operators, self.max_operators)):
                text += rng.choice("+-*") + str(rng.randint(0, 9))
            return text + "=?"

        return self.parse(draw(split, candidate))

    def parse(self, prompt: str) -> Problem:
        """The problem of a prompt such as `4+3-8=?`. Raises BadInput on anything else."""
        body = prompt.removesuffix("=?")
        digits, operators = body[::2], body[1::2]
        well_formed = (
            prompt.endswith("=?")
            and len(digits) == len(operators) + 1
            and all(d in "0123456789" for d in digits)
            and all(o in "+-*" for o in operators)
        )
        if not well_formed:
            raise BadInput(f"prompt: got {prompt!r}, expected digits and + - * such as '4+3-8=?'")
        value = int(digits[0])
        for operator, digit in zip(operators, digits[1:], strict=True):
            value = modulo_ten(value, operator, int(digit))
        return Problem(prompt, str(value))

    def demo(self, rng: random.Random, problem: Problem) -> str:
        """A demonstration in the mixture's style; not always correct, by design."""
        if rng.random() < self.direct:
            return f"so{problem.answer}"
        body = problem.prompt.removesuffix("=?")
        value, steps = int(body[0]), []
        for operator, digit in zip(body[1::2], body[2::2], strict=True):
            step, right = f"{value}{operator}{digit}=", modulo_ten(value, operator, int(digit))
            value = right
            if rng.random() < self.error:
                value = (right + rng.randint(1, 9)) % 10
                if rng.random() < self.repair:
                    step, value = f"{step}{value}wait{step}", right
            steps.append(f"{step}{value}")
        return ",".join(steps) + f"so{value}"

    def verify(self, problem: Problem, text: str) -> float:
        """1.0 if what follows the last `so` is the answer and nothing else, 0.0 otherwise.

        The text is compared, never evaluated. The steps before `so` are not graded.
        """
        _, marker, answer = text.rpartition("so")
        return float(bool(marker) and answer == problem.answer)

    def openings(self, problem: Problem) -> dict[str, str]:
        """Text put behind the prompt to force a style: the first step's first number, or `so`."""
        return {"steps": problem.prompt[0], "direct": "so"}
