"""Tasks: a problem, a noisy demonstration of it, and an exact verifier.

A task is four methods. `problem` draws from the train or the held-out split, `demo` writes what the
base model imitates, `verify` reads an answer, `openings` forces a style of answer (the control that
tells a new skill from one the base model already had).
"""

import hashlib
import itertools
import random
import re
from dataclasses import dataclass
from typing import Protocol

from rlnb.training.errors import BadInput

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Problem:
    """A prompt as the model sees it, and the answer that only the verifier sees."""

    prompt: str
    answer: str


class Task(Protocol):
    """The seam every task fills. Texts are plain strings; the tokenizer is the model's."""

    name: str
    symbols: tuple[str, ...]  # every symbol a prompt or a demonstration may contain

    def problem(self, rng: random.Random, split: str) -> Problem: ...

    def demo(self, rng: random.Random, problem: Problem) -> str: ...

    def verify(self, problem: Problem, text: str) -> float: ...

    def openings(self, problem: Problem) -> dict[str, str]: ...


def is_held_out(prompt: str) -> bool:
    """True for about one prompt in ten: SHA-256 of the prompt, first 8 bytes, modulo 10 is 0.

    The split depends on the text alone, so it is the same on every machine, in every process, and
    for every seed.

    >>> is_held_out("4+3-8+6*0=?"), is_held_out("9*4+2*1*7-1=?")
    (False, True)
    """
    digest = hashlib.sha256(prompt.encode()).digest()
    return int.from_bytes(digest[:8], "big") % 10 == 0


def _step(a: int, operator: str, b: int) -> int:
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

    def problem(self, rng: random.Random, split: str = "train") -> Problem:
        """One problem of `min_operators`..`max_operators` operators from the named split."""
        if split not in SPLITS:
            raise BadInput(f"split: got {split!r}, expected 'train' or 'test'")
        while True:
            text = str(rng.randint(0, 9))
            for _ in range(rng.randint(self.min_operators, self.max_operators)):
                text += rng.choice("+-*") + str(rng.randint(0, 9))
            if is_held_out(text + "=?") == (split == "test"):
                return self.parse(text + "=?")

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
            value = _step(value, operator, int(digit))
        return Problem(prompt, str(value))

    def demo(self, rng: random.Random, problem: Problem) -> str:
        """A demonstration in the mixture's style; not always correct, by design."""
        if rng.random() < self.direct:
            return f"so{problem.answer}"
        body = problem.prompt.removesuffix("=?")
        value, steps = int(body[0]), []
        for operator, digit in zip(body[1::2], body[2::2], strict=True):
            step, right = f"{value}{operator}{digit}=", _step(value, operator, int(digit))
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
        for name, legal, expected in (
            ("digits", 3 <= self.digits <= 9, "3 to 9"),
            ("stop", 0.0 < self.stop <= 1.0, "above 0, at most 1"),
            ("max_tail", self.max_tail >= 0, "0 or more"),
        ):
            if not legal:
                raise BadInput(f"{name}: got {getattr(self, name)}, expected {expected}")

    def problem(self, rng: random.Random, split: str = "train") -> Problem:
        """Digits, and the sum of some three of them as the target, from the named split."""
        if split not in SPLITS:
            raise BadInput(f"split: got {split!r}, expected 'train' or 'test'")
        while True:
            digits = [rng.randint(0, 9) for _ in range(self.digits)]
            target = sum(rng.sample(digits, 3)) % 10
            prompt = "".join(map(str, digits)) + f":{target}?"
            if is_held_out(prompt) == (split == "test"):
                return Problem(prompt, str(target))

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


@dataclass(frozen=True)
class Types:
    """Seven prompt types of known difficulty: `2:4+5*3=?` is two steps, left to right, modulo 10.

    The number in front is the type k. In the demonstrations of type k the last digit is right with
    probability `rates[k]`, otherwise a random wrong one; the first step is always right. A model
    that imitates them has one skill and seven pass rates.

    >>> types = Types()
    >>> problem = types.parse("2:4+5*3=?")
    >>> types.verify(problem, "4+5=9,9*3=7"), types.verify(problem, "7"), types.difficulty(problem)
    (1.0, 0.0, 0.3)
    """

    rates: tuple[float, ...] = (0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95)
    name: str = "types"
    symbols: tuple[str, ...] = tuple("0123456789+-*=?,:")

    def problem(self, rng: random.Random, split: str = "train") -> Problem:
        """One problem of a random type from the named split."""
        if split not in SPLITS:
            raise BadInput(f"split: got {split!r}, expected 'train' or 'test'")
        while True:
            kind, (a, b, c) = rng.randrange(len(self.rates)), (rng.randint(0, 9) for _ in range(3))
            prompt = f"{kind}:{a}{rng.choice('+-*')}{b}{rng.choice('+-*')}{c}=?"
            if is_held_out(prompt) == (split == "test"):
                return self.parse(prompt)

    def parse(self, prompt: str) -> Problem:
        """The problem of a prompt such as `2:4+5*3=?`. Raises BadInput on anything else."""
        found = re.fullmatch(r"([0-9]):([0-9])([-+*])([0-9])([-+*])([0-9])=\?", prompt)
        if found is None or int(found[1]) >= len(self.rates):
            raise BadInput(
                f"prompt: got {prompt!r}, expected a type from 0 to {len(self.rates) - 1} and two "
                "operators such as '2:4+5*3=?'"
            )
        _, a, first, b, second, c = found.groups()
        return Problem(prompt, str(_step(_step(int(a), first, int(b)), second, int(c))))

    def _first(self, problem: Problem) -> str:
        """The first step, correct: `4+5=9`."""
        step = problem.prompt[2:5]
        return f"{step}={_step(int(step[0]), step[1], int(step[2]))}"

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


TASKS: dict[str, Task] = {"chain": Chain(), "pick": Pick(), "types": Types()}


def held_out(task: Task, n: int) -> list[Problem]:
    """The first `n` distinct problems of the held-out split: the same ones for every run."""
    rng, problems = random.Random(777), {}
    while len(problems) < n:
        problem = task.problem(rng, "test")
        problems.setdefault(problem.prompt, problem)
    return list(problems.values())
