"""A committed notebook as a list of blocks: what a reader without a kernel sees, cell by cell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from rlnb.classroom.paper.prose import code, prose

__all__ = ["Block", "blocks", "find_lesson", "folds", "lessons", "paragraphs", "title_of"]

FOLD = re.compile(r"<details><summary>(.*?)</summary>(.*?)</details>", re.DOTALL)
BOUNDARY = re.compile(r"\n\s*\n")
KEPT_WHOLE = re.compile(r"<details>.*?</details>|\$\$.*?\$\$|```.*?```", re.DOTALL)
SOURCES = ("code", "exercise", "picture", "setup")  # kinds whose text is Python
PLACEHOLDER = re.compile(r"^\[.*\]$", re.DOTALL)  # what stands for a widget in a stored output


@dataclass(frozen=True)
class Block:
    """A piece of a page.

    kind     heading, prose, fold, guess, answer, picture, task, code, output, card, exercise, setup
    text     its markdown, or its source
    pictures pairs (png in base64, alt text)
    caption  markdown under the picture
    printed  what the cell printed
    """

    kind: str
    text: str = ""
    pictures: tuple[tuple[str, str], ...] = ()
    caption: str = ""
    printed: str = ""

    @property
    def html(self) -> str:
        """The text as HTML: code coloured, prose rendered."""
        return code(self.text) if self.kind in SOURCES else prose(self.text)


def lessons(notebooks: Path) -> list[Path]:
    """The lessons, in order."""
    return sorted(notebooks.glob("[0-9][0-9]_*.ipynb"))


def find_lesson(notebooks: Path, name: str) -> Path:
    """The lesson meant by a number, "08", or a stem, "08_grpo" or "grpo".

    Raises ValueError when there is none, or more than one.
    """
    word = name.strip().zfill(2) if name.strip().isdigit() else name.strip()
    found = [p for p in lessons(notebooks) if word in (p.stem, p.stem[:2], p.stem[3:])]
    if len(found) != 1:
        numbers = ", ".join(p.stem for p in lessons(notebooks))
        raise ValueError(f"NB={name!r} names {len(found)} lessons, one was expected of: {numbers}")
    return found[0]


def title_of(page: Path) -> str:
    """The first heading: "08 · GRPO: what if the group is the baseline?"."""
    return nbformat.read(page, as_version=4).cells[0].source.splitlines()[0].lstrip("# ")


def paragraphs(text: str) -> list[str]:
    """A markdown text at its blank lines; folds, formulas and fences stay whole.

    >>> paragraphs("a\\n\\n$$x\\n\\ny$$\\nb")
    ['a', '$$x\\n\\ny$$\\nb']
    """
    kept: list[str] = []

    def put_by(piece: re.Match) -> str:
        kept.append(piece[0])
        return f"\u27e6{len(kept) - 1}\u27e7"

    parts = BOUNDARY.split(KEPT_WHOLE.sub(put_by, text))
    back = [re.sub("\u27e6(\\d+)\u27e7", lambda m: kept[int(m[1])], part) for part in parts]
    return [part.strip("\n") for part in back if part.strip()]


def folds(text: str) -> list[tuple[str, str]]:
    """Pairs (summary, what it hides) of a markdown text."""
    return [(summary.strip(), hidden.strip()) for summary, hidden in FOLD.findall(text)]


def blocks(page: Path) -> list[Block]:
    """The page's blocks in order; of an answer the fold is taken off."""
    found: list[Block] = []
    for cell in nbformat.read(page, as_version=4).cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "markdown":
            if "card" in tags:
                found.append(Block("card", cell.source))
            else:
                found += map(_prose_block, paragraphs(cell.source))
        else:
            found.append(_code_block(cell, tags))
    return found


def _prose_block(part: str) -> Block:
    if part.startswith("#"):
        return Block("heading", part)
    return Block("fold" if part.startswith("<details>") else "prose", part)


def _code_block(cell, tags: list[str]) -> Block:
    pictures, said, printed = [], [], []
    for output in cell.outputs:
        data = output.get("data", {})
        if "image/png" in data:
            alt = output.metadata.get("image/png", {}).get("alt", data.get("text/plain", ""))
            pictures.append((data["image/png"].replace("\n", ""), alt))
        elif "text/markdown" in data:
            said.append(data["text/markdown"])
        elif output.output_type == "stream":
            printed.append(output.text)
        elif not PLACEHOLDER.match(text := data.get("text/plain", "")):
            printed.append(text)
    shown, out = "\n\n".join(said), "\n".join(printed).rstrip()
    if "predict(" in cell.source:
        return Block("guess", shown)
    if "reveal(" in cell.source:
        answer, *captions = said or [""]
        answer = re.sub(r"</?details>|<summary>.*?</summary>", "", answer).strip()
        return Block("answer", answer, tuple(pictures), "\n\n".join(captions), out)
    if "answer" in tags:  # computed for the answer that follows
        return Block("setup", cell.source)
    if re.search(r"^task\(", cell.source, re.MULTILINE):
        goals, *captions = said or [""]
        return Block("task", goals, tuple(pictures), "\n\n".join(captions))
    if "setup" in tags:
        return Block("setup", cell.source)
    kind = "exercise" if "exercise" in tags else "picture" if pictures else "code"
    return Block(kind, cell.source, tuple(pictures), shown, out)
