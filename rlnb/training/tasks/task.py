"""What every task has in common: problems, the split, the corpus, and the draw from a split."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from rlnb.training.errors import BadInput

__all__ = ["SPLITS", "Problem", "Task", "check_knobs", "corpus", "draw", "held_out", "is_held_out"]

SPLITS = ("train", "test")
_DRAWS = 20_000  # prompts tried before a split counts as empty
_REPEATS = 5_000  # problems seen before, in a row, until a split counts as exhausted


@dataclass(frozen=True)
class Problem:
    """A prompt as the model sees it, and the answer that only the verifier sees."""

    prompt: str
    answer: str


class Task(Protocol):
    """The seam every task fills. Texts are plain strings; the tokenizer is the model's."""

    name: str
    symbols: tuple[str, ...]  # every symbol a prompt or a demonstration may contain

    def problem(self, rng: random.Random, split: str) -> Problem:
        """A problem of the "train" or the "test" split."""

    def demo(self, rng: random.Random, problem: Problem) -> str:
        """A demonstration, which may be wrong."""

    def verify(self, problem: Problem, text: str) -> float:
        """1.0 for a right answer, 0.0 for any other text."""

    def openings(self, problem: Problem) -> dict[str, str]:
        """{style: how an answer in that style begins}."""


def is_held_out(prompt: str) -> bool:
    """True for about one prompt in ten: SHA-256 of the prompt, first 8 bytes, modulo 10 is 0.

    The split depends on the text alone, so it is the same on every machine, in every process, and
    for every seed.

    >>> is_held_out("4+3-8+6*0=?"), is_held_out("9*4+2*1*7-1=?")
    (False, True)
    """
    digest = hashlib.sha256(prompt.encode()).digest()
    return int.from_bytes(digest[:8], "big") % 10 == 0


def draw(split: str, candidate: Callable[[], str | None]) -> str:
    """Calls `candidate` until it returns a prompt of the named split; None is tried again.

    Raises BadInput for an unknown split, and when 20,000 candidates had none: knobs can leave so
    few prompts that none of them is held out.
    """
    if split not in SPLITS:
        raise BadInput(f"split: got {split!r}, expected 'train' or 'test'")
    for _ in range(_DRAWS):
        prompt = candidate()
        if prompt is not None and is_held_out(prompt) == (split == "test"):
            return prompt
    raise BadInput(
        f"task: none of {_DRAWS} draws is a {split} prompt; its knobs leave too few problems"
    )


def held_out(task: Task, n: int) -> list[Problem]:
    """The first `n` distinct problems of the held-out split: the same ones for every run.

    Raises BadInput where 5,000 draws in a row bring no new one: the split has fewer than n.
    """
    rng, problems, stale = random.Random(777), {}, 0
    while len(problems) < n:
        problem, before = task.problem(rng, "test"), len(problems)
        problems.setdefault(problem.prompt, problem)
        stale = 0 if len(problems) > before else stale + 1
        if stale == _REPEATS:
            raise BadInput(
                f"held_out: asked for {n} problems of {task.name!r}, but its held-out split seems "
                f"to have only {len(problems)}; ask for fewer or widen the task's knobs"
            )
    return list(problems.values())


def corpus(task: Task, rng: random.Random, n: int) -> Iterator[tuple[Problem, str]]:
    """n training problems, each with a demonstration: what a base model is trained on.

    The same generator state brings the same corpus, and no held-out prompt is in it.

    >>> from rlnb.training.tasks import TASKS
    >>> [(p.prompt, text) for p, text in corpus(TASKS["chain"], random.Random(0), 1)]
    [('6+4*7-4-5*3*2=?', 'so6')]
    """
    for _ in range(n):
        problem = task.problem(rng, "train")
        yield problem, task.demo(rng, problem)


def check_knobs(task: Task, *rules: tuple[str, bool, str]) -> None:
    """Raises BadInput for the first (knob, is it legal, what was expected) that is not legal."""
    for name, legal, expected in rules:
        if not legal:
            raise BadInput(f"{name}: got {getattr(task, name)}, expected {expected}")
