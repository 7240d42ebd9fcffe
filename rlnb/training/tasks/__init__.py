"""Tasks: a problem, a noisy demonstration of it, and an exact verifier.

A task is four methods. `problem` draws from the train or the held-out split, `demo` writes what the
base model imitates, `verify` reads an answer, `openings` forces a style of answer (the control that
tells a new skill from one the base model already had). `corpus` is problems with demonstrations.

Rooms: task (what all have in common), chain, pick, types, countdown and sort (32 symbols, for the
small model), text (English prompts and tagged answers, for any language model), worked
(questions of one's own, in GSM8K's format), expression (reads arithmetic, executes nothing), weak
(verifiers that can be gamed, on purpose).
"""

from __future__ import annotations

from rlnb.training.tasks.chain import Chain
from rlnb.training.tasks.countdown import Countdown
from rlnb.training.tasks.pick import Pick
from rlnb.training.tasks.sort import Sort
from rlnb.training.tasks.task import SPLITS, Problem, Task, corpus, held_out, is_held_out
from rlnb.training.tasks.text import ArithmeticText, CountdownText
from rlnb.training.tasks.types import Types
from rlnb.training.tasks.weak import WEAK, WeakVerifier, weak_verifier
from rlnb.training.tasks.worked import Questions

TASKS: dict[str, Task] = {
    task.name: task
    for task in (Chain(), Pick(), Types(), Countdown(), Sort(), ArithmeticText(), CountdownText())
}

__all__ = [
    "SPLITS",
    "TASKS",
    "WEAK",
    "ArithmeticText",
    "Chain",
    "Countdown",
    "CountdownText",
    "Pick",
    "Problem",
    "Questions",
    "Sort",
    "Task",
    "Types",
    "WeakVerifier",
    "corpus",
    "held_out",
    "is_held_out",
    "weak_verifier",
]
