"""A lesson to print: questions where they stand, all answers unfolded at the end.

The order is the lesson's. What is folded there (recall, hints, the interview's answers), what a
guess reveals, and the solutions of the exercises stand under numbers in "Answers"; the code that
the lesson folds away stands behind them.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

from rlnb.classroom.paper.lesson import Block, blocks, folds
from rlnb.classroom.paper.prose import CODE_STYLE, STYLE, prose

__all__ = ["handout"]


def handout(page: Path) -> str:
    """One HTML page, made to be printed on A4."""
    body: list[str] = []
    answers: list[str] = []
    folded: list[str] = []

    def put_off(shown: str, hidden: str) -> str:
        answers.append(hidden)
        return f'{shown} <span class="see">answer {len(answers)}</span>'

    for block in blocks(page):
        if block.kind == "setup":
            folded.append(block.html)
        elif block.kind == "guess":
            body.append(f'<div class="guess">{block.html}<p class="line">Mine:</p></div>')
        elif block.kind == "answer":
            told = block.html + _pictures(block)
            body.append(f'<p class="see-line">{put_off("What came out:", told)}</p>')
        elif block.kind == "fold" or "<details>" in block.text:
            for summary, hidden in folds(block.text):
                line = prose(f"**{re.sub('</?b>', '', summary)}**").strip()
                line = line.removeprefix("<p>").removesuffix("</p>")
                body.append(f'<p class="asked">{put_off(line, prose(hidden))}</p>')
        elif block.kind == "exercise":
            body.append(f"{block.html}<div class='space'></div>")
        elif block.kind == "card":
            body.append(f'<div class="card">{block.html}</div>')
        elif block.kind == "code" and "score(" in block.text and not block.printed:
            continue
        else:
            body.append(block.html + _printed(block.printed) + _pictures(block))
    first = body.pop(0)
    solved = _solutions(page)
    parts = [
        first,
        *body,
        '<h1 class="break">Answers</h1>',
        *(f'<div class="answer"><b class="no">{i}</b>{a}</div>' for i, a in enumerate(answers, 1)),
    ]
    if solved:
        parts += ["<h1>The exercises, solved</h1>", *solved]
    if folded:
        parts += ["<h1>Code that the lesson folds away</h1>", *folded]
    title = html.escape(re.sub(r"<[^>]*>", "", first))
    return PAGE.format(title=title, style=STYLE + CODE_STYLE + LOOK, body="\n".join(parts))


def _pictures(block: Block) -> str:
    shown = "".join(
        f'<img src="data:image/png;base64,{data}" alt="{html.escape(alt)}">'
        for data, alt in block.pictures
    )
    return (
        f"<figure>{shown}<figcaption>{prose(block.caption)}</figcaption></figure>" if shown else ""
    )


def _printed(text: str) -> str:
    return f'<pre class="printed">{html.escape(text)}</pre>' if text else ""


def _solutions(page: Path) -> list[str]:
    """The page of solutions, behind its first cell and its set-up."""
    beside = page.parent / "solutions" / page.name
    if not beside.exists():
        return []
    told = []
    for block in blocks(beside)[1:]:
        if block.kind == "setup":
            continue
        told.append(block.html.replace("<details>", "<details open>") + _printed(block.printed))
        told.append(_pictures(block))
    return told


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>{style}</style></head><body>
{body}
</body></html>
"""
LOOK = """
@page { size: A4; margin: 17mm 16mm 18mm;
  @bottom-right { content: counter(page); font: 9pt sans-serif; color: #666; } }
body { font: 10.5pt/1.42 "Source Sans 3", "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif;
  color: #111; max-width: 178mm; margin: 0 auto; }
h1 { font-size: 17pt; line-height: 1.2; } h2 { font-size: 13pt; margin: 1.3em 0 0.4em; }
h1, h2, h3 { break-after: avoid; } .break { break-before: page; }
p { margin: 0.5em 0; orphans: 2; widows: 2; }
pre { white-space: pre-wrap; font-size: 8.4pt; line-height: 1.3; padding: 2mm; margin: 0.5em 0;
  background: #f5f5f5; break-inside: avoid; } pre.printed { background: none;
  border-left: 2px solid #999; }
figure { margin: 0.6em 0; break-inside: avoid; } figure img { max-width: 100%; max-height: 80mm; }
figcaption { font-size: 9pt; color: #333; }
.guess { border-left: 4px solid #0072b2; padding-left: 3mm; break-inside: avoid; }
.line { border-bottom: 1px solid #777; width: 60mm; color: #555; }
.see, .see-line { color: #555; font-size: 9pt; } .see::before { content: "→ "; }
.answer { position: relative; padding-left: 9mm; border-top: 1px solid #ddd; }
.answer .no { position: absolute; left: 0; top: 0.5em; } .space { height: 14mm; }
.card { border: 1.5px solid #111; padding: 2mm; break-inside: avoid; }
math[display=block] { font-size: 0.94em; } table { font-size: 9.5pt; }
"""
