"""Two pages: the 60-second cards of all lessons, from the cells tagged `card`.

Of a card the rows that help when the paper is all one has: the sentence, the formula, what is
silent, the numbers, what is derived and what is a choice. The rest stays on its page.
"""

from __future__ import annotations

import re
from pathlib import Path

from rlnb.classroom.paper.lesson import blocks, lessons
from rlnb.classroom.paper.prose import STYLE, prose

__all__ = ["cards", "cheat_sheet"]

KEPT = ("sentence", "formula", "trick", "silent", "numbers", "derived", "choice", "choices")
ROW = re.compile(r"^\|(?P<cells>.*)\|\s*$", re.MULTILINE)


def cards(notebooks: Path) -> dict[str, list[tuple[str, str]]]:
    """Stem of a lesson -> the rows of its card, (label, markdown), the card's name first.

    Raises ValueError for a card without a sentence.
    """
    found = {}
    for page in lessons(notebooks):
        for block in blocks(page):
            if block.kind != "card":
                continue
            rows = [_cells(line["cells"]) for line in ROW.finditer(block.text)]
            rows = [row for row in rows if not set(row[0]) <= set("-: ")]
            if not any(label == "sentence" for label, _ in rows):
                raise ValueError(f"{page.name}: its card has no row 'sentence'.")
            found[page.stem] = rows
    return found


def cheat_sheet(notebooks: Path) -> str:
    """The sheet as one HTML page, A4 landscape, made for both sides of one paper."""
    shown = []
    for stem, (first, *rows) in cards(notebooks).items():
        body = "".join(
            f'<p class="{label}"><b>{"" if label == "sentence" else label}</b> {_inline(text)}</p>'
            for label, text in rows
            if label in KEPT
        )
        shown.append(f"<section><h2><i>{stem[:2]}</i> {_inline(first[0])}</h2>{body}</section>")
    return PAGE.format(style=STYLE + LOOK, body="\n".join(shown))


def _cells(line: str) -> tuple[str, str]:
    label, _, text = line.strip().partition("|")
    return label.strip(), text.strip()


def _inline(text: str) -> str:
    return prose(text).strip().removeprefix("<p>").removesuffix("</p>")


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>The course on two pages</title>
<style>{style}</style></head><body>
<header><b>Policy optimisation for language models, on two pages.</b> Every method is a choice of
baseline and a way to tame the importance ratio. Made from the lessons' cards; the number is the
lesson's.</header>
<main>
{body}
</main></body></html>
"""
LOOK = """
@page { size: A4 landscape; margin: 8mm 9mm; }
body { font: 8.3pt/1.27 "Source Sans 3", "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif;
  margin: 0; color: #111; } header { margin: 0 0 2mm; }
main { columns: 3; column-gap: 5mm; }
section { break-inside: avoid; border-top: 1.5px solid #0072b2; margin-bottom: 2.2mm; }
h2 { font-size: 9.6pt; margin: 0.3mm 0; } h2 i { font-style: normal; color: #0072b2; }
p { margin: 0.4mm 0; } p b { color: #555; font-weight: 600; } .silent b { color: #d55e00; }
@media screen { body { max-width: 1200px; margin: 1em auto; } }
"""
