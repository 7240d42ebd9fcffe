"""A fixed set of training prompts, which those the model has mastered leave for good."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import Any

from rlnb.training.errors import BadInput
from rlnb.training.tasks import Problem, Task, is_held_out

__all__ = ["PromptPool"]


class PromptPool:
    """Distinct prompts that every step draws from; with `retire`, mastered ones leave permanently.

    A prompt leaves when its pass rate, passed answers / all answers, reaches `retire`: ScaleRL's
    no-positive-resampling, arXiv 2510.13786, with 0.9 there. "Historical pass rate" leaves the
    history open. Here it is the prompt's last `visits` visits, or all of them when None; TRL's
    ScaleRL trainer keeps the last visit only, visits=1. A prompt seen fewer times stays.

    With 8 answers a visit, 0.9 on one visit means 8 of 8, which a prompt of true rate 0.75 reaches
    one time in ten (0.75^8 = 0.100). Nothing brings it back, so a larger `visits` errs less often.

    A step keeps its size: once only as many prompts are left as a step draws, none leaves any more.

    `draw` and `record` change the pool in place. `getstate` and `setstate` let a run resume.

    problems: all different, none of the held-out split. retire: above 0, at most 1; None keeps all.
    Raises BadInput otherwise.

    >>> from rlnb.training.tasks import TASKS
    >>> one, two = (TASKS["chain"].parse(text) for text in ("4+3=?", "4+4=?"))
    >>> pool = PromptPool([one, two], retire=0.9)
    >>> pool.record([one], [7], 8); len(pool.remaining)       # 7/8 = 0.875
    2
    >>> pool.record([one], [8], 8); [p.prompt for p in pool.remaining]   # 15/16 = 0.9375
    ['4+4=?']
    """

    def __init__(
        self, problems: Sequence[Problem], retire: float | None = None, visits: int | None = None
    ):
        self.problems = tuple(problems)
        prompts = [problem.prompt for problem in self.problems]
        if not prompts:
            raise BadInput("pool: got no problem, expected one or more")
        if len(set(prompts)) < len(prompts):
            twice = next(prompt for prompt in prompts if prompts.count(prompt) > 1)
            raise BadInput(f"pool: {twice!r} is in it twice; give every prompt once")
        if tested := next(filter(is_held_out, prompts), None):
            raise BadInput(
                f"pool: {tested!r} is a held-out prompt, which evaluations may ask; leave it out"
            )
        if retire is not None and not 0.0 < retire <= 1.0:
            raise BadInput(f"retire: got {retire}, expected a pass rate above 0, at most 1")
        if visits is not None and visits < 1:
            raise BadInput(f"visits: got {visits}, expected 1 or more, or None for all of them")
        self.retire, self.visits = retire, visits
        self.history: dict[str, list[tuple[int, int]]] = {}  # prompt: (passed, answers) per visit
        self.retired: set[str] = set()

    @classmethod
    def drawn(
        cls,
        task: Task,
        size: int,
        seed: int = 0,
        *,
        retire: float | None = None,
        visits: int | None = None,
    ) -> PromptPool:
        """`size` distinct problems of the training split: the same ones for one task and seed."""
        if size < 1:
            raise BadInput(f"pool: got {size}, expected a size of 1 or more")
        rng, problems = random.Random(f"pool {seed}"), {}
        for _ in range(100 * size):
            problem = task.problem(rng, "train")
            problems.setdefault(problem.prompt, problem)
            if len(problems) == size:
                return cls(list(problems.values()), retire, visits)
        raise BadInput(
            f"pool: {100 * size} draws from {task.name!r} gave {len(problems)} different prompts, "
            f"not {size}; ask for fewer"
        )

    @property
    def remaining(self) -> list[Problem]:
        """The problems still in, in the order of `problems`."""
        return [problem for problem in self.problems if problem.prompt not in self.retired]

    def draw(self, rng: random.Random, count: int) -> list[Problem]:
        """`count` different problems of those still in, at random."""
        return rng.sample(self.remaining, count)

    def record(self, problems: Sequence[Problem], passed: Sequence[int], answers: int) -> None:
        """Counts one visit of each problem, `passed` of `answers` right; retires who is due."""
        due = []
        for problem, right in zip(problems, passed, strict=True):
            visits = self.history.setdefault(problem.prompt, [])
            visits.append((int(right), answers))
            counted = visits[-self.visits :] if self.visits else visits
            rate = sum(p for p, _ in counted) / sum(n for _, n in counted)
            enough = len(counted) >= (self.visits or 1)
            if self.retire is not None and enough and rate >= self.retire:
                due.append((-rate, problem.prompt))
        may_leave = len(self.problems) - len(self.retired) - len(problems)
        self.retired.update(prompt for _, prompt in sorted(due)[: max(0, may_leave)])

    def describe(self) -> dict[str, Any]:
        """What makes two pools the same at their start; a run's header holds it."""
        text = "\n".join(problem.prompt for problem in self.problems)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        size = len(self.problems)
        return {"size": size, "sha256": digest, "retire": self.retire, "visits": self.visits}

    def getstate(self) -> dict[str, Any]:
        """What has happened so far, as JSON can hold it."""
        return {"history": self.history, "retired": sorted(self.retired)}

    def setstate(self, state: dict[str, Any]) -> None:
        """Goes on from what `getstate` gave, read back from JSON."""
        self.history = {
            prompt: [(passed, answers) for passed, answers in visits]
            for prompt, visits in state["history"].items()
        }
        self.retired = set(state["retired"])
