"""What a command line names: objectives, tasks, rewards, pools; ours, and those of a user's module.

`module:attribute` is imported from the working directory or from what Python finds elsewhere. All
of it is checked before a model is loaded.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import inspect
import math
import random
import sys
from pathlib import Path
from typing import Any

from rlnb.objective import ANNEX, ZOO, Objective, overlong
from rlnb.training.errors import BadInput
from rlnb.training.prompt_pool import PromptPool
from rlnb.training.question_files import questions
from rlnb.training.rewards import CoinFlip, Reward, WaitBonus
from rlnb.training.tasks import TASKS, WEAK, Task, weak_verifier

__all__ = ["REWARDS", "find_objective", "find_pool", "find_reward", "find_task", "shaped"]

REWARDS = ("verify", "coin_flip", "wait_bonus")
WEAK_REWARDS = tuple(sorted({name for known in WEAK.values() for name in known}))


def nearest(kind: str, name: str, known) -> BadInput:
    """The error for an unknown name, with the name that was probably meant."""
    near = difflib.get_close_matches(name.lower().replace("-", "_"), known, 1, 0.4)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return BadInput(f"{kind}: there is no {name!r}; {guess}known: {', '.join(known)}")


def of_module(kind: str, name: str) -> Any:
    """The attribute that `module:attribute` names. Raises BadInput whatever the module does."""
    module, _, attribute = name.partition(":")
    if str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # `rlnb train` has not what `python -m` has
    try:
        return getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:  # it is somebody's code: it may raise anything
        what = " ".join(str(error).split()) or "nothing is said"
        if not isinstance(error, (ImportError, AttributeError)):
            what = f"{type(error).__name__}: {what}"
        raise BadInput(f"{kind}: cannot take {name!r}: {what}") from error


def find_objective(name: str) -> Objective:
    """A name of the ZOO or the ANNEX, or `module:attribute` of an Objective."""
    if ":" not in name:
        if name not in (named := ZOO | ANNEX):
            raise nearest("objective", name, named)
        return named[name]
    found = of_module("objective", name)
    if not isinstance(found, Objective):
        raise BadInput(f"objective: {name!r} is a {type(found).__name__}, expected an Objective")
    return found


def find_task(name: str) -> Task:
    """One of TASKS, `module:attribute` of a task, or a file or folder of questions (`questions`).

    Raises BadInput, with the near name, for another one; and for an object that is no task: it has
    to have the fields of `tasks.Task`, and its verifier to grade the answer of a problem of its
    own.
    """
    if name in TASKS:
        return TASKS[name]
    if name.endswith(".jsonl") or Path(name).is_dir():
        return questions(name)
    if ":" not in name:
        raise nearest("task", name, TASKS)
    task = of_module("task", name)
    if inspect.isclass(task):
        raise BadInput(f"task: {name!r} is a class, expected a task; name one that it makes")
    lacking = [n for n in ("name", "symbols", "problem", "demo", "verify", "openings")
               if not hasattr(task, n)]  # fmt: skip
    if lacking:
        raise BadInput(
            f"task: {name!r} is a {type(task).__name__} without {', '.join(lacking)}; a task has "
            "name, symbols, problem, demo, verify and openings, as rlnb.training.Task says"
        )
    try:
        problem = task.problem(random.Random(0), "train")
        task.openings(problem)
        grade = float(task.verify(problem, problem.answer))
    except Exception as error:
        raise BadInput(
            f"task: {name!r} cannot draw and grade a problem: {type(error).__name__}: {error}"
        ) from error
    if not 0.0 <= grade <= 1.0:
        raise BadInput(f"task: {name!r} grades an answer with {grade}, expected 0.0 or 1.0")
    return task


def find_reward(name: str, task: Task, seed: int) -> Reward | None:
    """One of REWARDS, a weak verifier of this task, or `module:attribute` of (problem, text) ->
    number; None is the task's own verifier."""
    if name in WEAK_REWARDS:
        return weak_verifier(task, name)
    if name in REWARDS:
        return {"coin_flip": CoinFlip(seed), "wait_bonus": WaitBonus(task)}.get(name)
    if ":" not in name:
        raise nearest("reward", name, (*REWARDS, *WEAK_REWARDS))
    reward = of_module("reward", name)
    try:
        if inspect.isclass(reward):
            raise TypeError("it is a class; name an object that it makes")
        inspect.signature(reward).bind("problem", "text")
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"reward: {name!r} cannot be called with (problem, text): {error}"
        ) from error
    return _Finite(name, reward)


class _Finite:
    """A user's reward, under the name it was asked for by; what is no finite number is refused."""

    def __init__(self, name: str, reward: Reward):
        self.name, self.reward = name, reward
        for state in ("getstate", "setstate"):  # a run keeps it, where there is one
            if hasattr(reward, state):
                setattr(self, state, getattr(reward, state))

    def __call__(self, problem, text: str) -> float:
        value = self.reward(problem, text)
        try:
            value = float(value)
        except (TypeError, ValueError):
            value = repr(value)
        if isinstance(value, str) or not math.isfinite(value):
            raise BadInput(
                f"reward: {self.name!r} gave {value} for the answer {text[:80]!r} to "
                f"{problem.prompt[:80]!r}, expected a finite number"
            )
        return value


def find_pool(args: argparse.Namespace, task: Task) -> PromptPool | None:
    """--pool, --retire and --visits as a PromptPool; None draws from the whole training split."""
    if args.visits is not None and args.retire is None:
        raise BadInput("visits: it says over which visits to take --retire; add --retire 0.9")
    if args.retire is not None and args.pool is None:
        raise BadInput("retire: prompts leave a pool; add --pool N, the number of prompts in it")
    if args.pool is None:
        return None
    return PromptPool.drawn(task, args.pool, args.seed, retire=args.retire, visits=args.visits)


def shaped(objective: Objective, longest: int, cache: int) -> Objective:
    """The objective with DAPO's soft penalty on the last `cache` of `longest` tokens."""
    try:
        return objective.replace(shape=(*objective.shape, overlong(longest, cache)))
    except ValueError as error:
        raise BadInput(f"overlong: {error}") from error
