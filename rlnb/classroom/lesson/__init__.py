"""What a lesson needs besides its story: guesses, tasks, statements, and a memory of them.

    from rlnb.classroom.lesson import predict, reveal, score      # guesses
    from rlnb.classroom.lesson import task                        # an explorer with goals
    from rlnb.classroom.lesson import statement, settle           # true, false, or it depends?

Each leaves text that is the same for everybody, so that a page can be compared and be read without
a kernel, and beside it a widget that knows this learner.
"""

from __future__ import annotations

from rlnb.classroom.lesson.goals import task
from rlnb.classroom.lesson.guesses import predict, reveal, score
from rlnb.classroom.lesson.statements import settle, statement

__all__ = ["predict", "reveal", "score", "settle", "statement", "task"]
