"""Questions as text: folded answers for a page, flashcards for Anki.

`folded("06_ppo")` shows a page's questions, each answer below a fold, and needs no kernel to be
read. `write_anki("cards.txt")` writes them all as the text file that Anki imports.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from rlnb.classroom.course import course
from rlnb.classroom.figures import Bundle
from rlnb.classroom.lesson.statements import ledger
from rlnb.classroom.notebook_display import display
from rlnb.classroom.questions import LEVELS, Question, first_sentence, pick
from rlnb.shipped import shipped_folder

__all__ = [
    "anki", "answer", "answer_cells", "folded", "markdown", "name_of", "sample", "typeset",
    "where", "write_anki",
]  # fmt: skip

_CODE = re.compile(r"(`[^`]+`)")
_POWER = re.compile(r"\^(\([^()]*\)|[−-]?\w+)")


def _raised(text: str) -> str:
    """p^G and e^(−0.8) with their exponents up."""
    return _POWER.sub(lambda found: f"<sup>{found[1].strip('()')}</sup>", text)


def markdown(text: str) -> str:
    """A sentence of the bank as Markdown: no star, dollar or angle bracket is taken for markup."""
    parts = _CODE.split(text)
    return "".join(p if p[:1] == "`" else _raised(re.sub(r"([*$<>])", r"\\\1", p)) for p in parts)


def typeset(text: str) -> str:
    """A sentence of the bank as HTML.

    >>> typeset("All wrong: 0.9^8, by `comb`.")
    'All wrong: 0.9<sup>8</sup>, by <code>comb</code>.'
    """
    parts = _CODE.split(html.escape(text, quote=False))
    return "".join(f"<code>{p[1:-1]}</code>" if p[:1] == "`" else _raised(p) for p in parts)


def name_of(topic: str) -> str:
    """A page as a reader calls it: "10 Dr. GRPO"."""
    titles = {page.stem: page.title for page in course()}
    return f"{topic[:2]} {titles.get(topic, topic[3:].replace('_', ' '))}"


def where(question: Question) -> list[tuple[str, str]]:
    """(what, page) for each cell of an answer: ("A05", "statements/06_ppo.ipynb")."""
    out = []
    for cell in question.cells:
        kind, _, name = cell.partition(":")
        if kind in ("claim", "cited"):
            out.append((name, f"statements/{ledger()[name]['page']}.ipynb"))
        elif kind == "work":
            out.append((f"working {name}", "solutions/20_interview.ipynb"))
        else:
            out.append(("card" if kind == "card" else name, f"{question.topic}.ipynb"))
    return out


def answer_cells(question: Question) -> str:
    """Where an answer is computed, in a line: "B02 (statements/03_baselines)"."""
    return ", ".join(f"{name} ({page[:-6]})" for name, page in where(question))


def answer(question: Question) -> str:
    """All there is to say after the question, as Markdown."""
    notebooks = shipped_folder("notebooks")
    cells = []
    for name, page in where(question):
        there = (notebooks / page).exists()
        cells.append(f"[{name}]({page})" if there else f"{name} ({page[:-6]})")
    parts = [
        f"**In 60 seconds:** {markdown(question.short)}",
        f"**More:** {markdown(question.full)}",
        f"**A weak answer:** {markdown(question.weak)}",
        *(
            f"<details><summary>They ask on: {typeset(f.ask)} (answer it, then unfold)</summary>"
            f"\n\n{markdown(f.key)}\n\n</details>"
            for f in question.follow_ups
        ),
        f"Computed in: {', '.join(cells)}.",
    ]
    return "\n\n".join(parts)


def sample(topic: str) -> tuple[Question, ...]:
    """One question of each level of a page: the last one, as the first stand on the lesson."""
    found = (pick(topic, level) for level in LEVELS)
    return tuple(questions[-1] for questions in found if questions)


def folded(*names: str, level: str = "", everything: bool = False) -> None:
    """Show questions with folded answers, a fold a page: one of each level, or everything."""
    pages, plain = [], []
    for name in names:
        questions = pick(name, level) if everything or level else sample(name)
        blocks = []
        for question in questions:
            title = f"<b>{typeset(question.question)}</b> · {question.level}"
            blocks.append(
                f"<details><summary>{title}</summary>\n\n{answer(question)}\n\n</details>"
            )
            plain.append(f"{question.id}: {question.question}\n  {first_sentence(question.short)}")
        page = f"<summary>{typeset(name_of(questions[0].topic))}</summary>"
        pages.append("\n\n".join((f"<details>{page}", *blocks, "</details>")))
    display(Bundle({"text/markdown": "\n\n".join(pages), "text/plain": "\n".join(plain)}))


def anki(questions: Iterable[Question]) -> str:
    """Flashcards as the tab-separated text that Anki imports (File, Import): front, back, tags.

    The headers name the separator, allow HTML and say which column holds the tags, so that nothing
    has to be set; the first column is an id, so that a second import updates the cards.
    """
    lines = [
        "#separator:tab",
        "#html:true",
        "#guid column:1",
        "#tags column:4",
        "#deck:RL for language models",
    ]
    for q in questions:
        asked = "".join(f"<br><i>{typeset(f.ask)}</i> {typeset(f.key)}" for f in q.follow_ups)
        first = first_sentence(q.short)
        rest = typeset(q.short[len(first) :])
        back = f"<b>{typeset(first)}</b>{rest}<br><br>{typeset(q.full)}{asked}"
        lines.append("\t".join((q.id, typeset(q.question), back, f"{q.topic} {q.level}")))
    return "\n".join(lines) + "\n"


def write_anki(path: str | Path, questions: Sequence[Question] = ()) -> Path:
    """Write flashcards, all questions unless some are given. An existing file stays as it is."""
    path = Path(path).expanduser()
    if path.exists():
        raise FileExistsError(f"write_anki: {str(path)!r} exists and is kept; give another name.")
    path.write_text(anki(questions or pick()), encoding="utf-8")
    return path
