"""For whoever teaches: the right answer to every guess, and what the tasks show, lesson by lesson.

`teach/answers.md` is this text; a test compares them.
"""

from __future__ import annotations

import re
from pathlib import Path

from rlnb.classroom.paper.lesson import blocks, folds, lessons, title_of

__all__ = ["answers"]

TOP = """\
# Answers for whoever teaches

Made from the lessons (`python -m rlnb.classroom.paper answers`): the right answer to each guess in
the order of the page, and what the tasks show. Why, and what to say to a wrong guess, is in the
speaker's notes of the slides and at the end of the handout; solved exercises are in
`notebooks/solutions`.
"""


def answers(notebooks: Path) -> str:
    """The answers of all lessons as markdown."""
    parts = [TOP]
    for page in lessons(notebooks):
        rows, tasks = [], []
        asked = ""
        for block in blocks(page):
            if block.kind == "guess":
                asked = block.text.split("\n")[0].removeprefix("**Your guess.** ").strip()
            elif block.kind == "answer":
                right = re.match(r"\*\*(.+?)\*\*", block.text, re.DOTALL)
                rows.append((asked, right[1].rstrip(".") if right else ""))
            elif block.kind == "fold":
                tasks += [hidden for summary, hidden in folds(block.text) if "task" in summary]
        if not rows:
            continue
        parts.append(f"## {title_of(page)}\n")
        parts.append("| the guess | right |\n|---|---|")
        parts += [f"| {_cell(question)} | {_cell(right)} |" for question, right in rows]
        parts += [f"\nThe tasks:\n\n{told}" for told in tasks]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))
