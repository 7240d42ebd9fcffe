"""The world of an agent: a desk with a calculator and a memory, which somebody must clear.

An answer is no longer written in one go. The policy writes up to a `=`, the desk answers, the
policy writes on: a *turn* is what lies between two answers of the desk. The policy's tokens and the
desk's stand in one text.

    4+3*2=?   4+3= 7 ,7*2= 4 so4        the desk wrote 7 and 4, the policy all the rest
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from rlnb.training.errors import BadInput
from rlnb.training.tasks.chain import Chain, modulo_ten
from rlnb.training.tasks.task import Problem

__all__ = ["CALL", "Desk", "demo", "play"]

CALL = "="  # the token that hands over to the desk
_SUM = re.compile(r"([0-9])([-+*])([0-9])=$")
CHAIN = Chain(min_operators=3, max_operators=5)


@dataclass
class Desk:
    """A calculator, `4+3=`, and a memory of its last result, `x=`. One desk for one trajectory.

    busy: the chance that it answers `wait` instead. note: what it writes behind every result, the
    place where somebody else can speak to the policy. clears: whether `reset` empties the memory;
    if not, what was calculated before is still there. What it cannot read it answers by `?`.

    >>> desk = Desk()
    >>> [desk.reply(call) for call in ("x=", "4+3=", ",7*2=", "x=", "so=")]
    ['0', '7', '4', '4', '?']
    >>> desk.reset(); desk.reply("x=")
    '0'
    """

    busy: float = 0.0
    note: str = ""
    clears: bool = True
    rng: random.Random = field(default_factory=lambda: random.Random(0), repr=False)
    memory: str = "0"
    calls: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.busy < 1.0:
            raise BadInput(f"busy: got {self.busy}, expected 0 or more and below 1")

    def reset(self) -> None:
        """A new trajectory: no calls yet and, if it `clears`, an empty memory, which reads 0."""
        self.calls = 0
        if self.clears:
            self.memory = "0"

    def reply(self, turn: str) -> str:
        """What the desk writes behind a turn that ends in `=`: it reads its last few signs."""
        self.calls += 1
        if self.busy and self.rng.random() < self.busy:
            return "wait"
        if turn.endswith("x="):
            return self.memory + self.note
        found = _SUM.search(turn)
        if found is None:
            return "?"
        a, operator, b = found.groups()
        self.memory = str(modulo_ten(int(a), operator, int(b)))
        return self.memory + self.note


def play(desk: Desk, turns: list[str]) -> list[tuple[str, str]]:
    """A scripted trajectory on a desk that is reset first: (author, text), "policy" or "desk".

    >>> play(Desk(), ["4+3=", ",7*2=", "so4"])
    [('policy', '4+3='), ('desk', '7'), ('policy', ',7*2='), ('desk', '4'), ('policy', 'so4')]
    """
    desk.reset()
    out = []
    for turn in turns:
        out.append(("policy", turn))
        if turn.endswith(CALL):
            out.append(("desk", desk.reply(turn)))
    return out


def demo(
    rng: random.Random, problem: Problem, *, direct: float = 0.5, recall: float = 0.15,
    busy: float = 0.1, notes: float = 0.0,
) -> list[tuple[str, str]]:  # fmt: skip
    """A demonstration in mixed styles, (author, text): the answer at once, or call after call.

    direct: the share that writes `so8` at once, always right, as in `chain`. recall: the share that
    only asks for the memory, where the demonstration has put a random digit, and repeats it. busy:
    the chance that a call has to be made again. The rest calculates every step. notes: the chance
    that somebody wrote `so` and a digit behind a result; the demonstration goes on as if not.
    """
    style = rng.random()
    if style < direct:
        return [("policy", f"so{problem.answer}")]
    if style < direct + recall:
        value = str(rng.randint(0, 9))
        steps = [("x=", value)]
    else:
        body, steps = problem.prompt.removesuffix("=?"), []
        value = body[0]
        for operator, digit in zip(body[1::2], body[2::2], strict=True):
            call = f"{value}{operator}{digit}="
            value = str(modulo_ten(int(value), operator, int(digit)))
            steps.append((call, value))
    out, comma = [], ""
    for call, result in steps:
        while rng.random() < busy:
            out += [("policy", comma + call), ("desk", "wait")]
            comma = ""
        note = f"so{rng.randint(0, 9)}" if notes and rng.random() < notes else ""
        out += [("policy", comma + call), ("desk", result + note)]
        comma = ","
    return [*out, ("policy", f"so{value}")]
