"""Markdown with formulas, and code, as HTML: what slides, handouts and the cheat-sheet share."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import mistune
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from rlnb.classroom.paper.mathml import mathml

__all__ = ["CODE_STYLE", "STYLE", "code", "formulas", "prose"]

# code first: a dollar in it opens no formula
PIECE = re.compile(
    r"(?P<code>```.*?```|`[^`\n]+`)"
    r"|\$\$(?P<block>.+?)\$\$"
    r"|(?<![\\$\w])\$(?P<inline>(?!\s)(?:[^$]|\\\$)+?(?<![\s\\]))\$(?!\d)",
    re.DOTALL,
)
CODE_STYLE = HtmlFormatter(style="default", nowrap=False).get_style_defs("pre.code")
STYLE = """
math { font-family: "Latin Modern Math", "STIX Two Math", "Cambria Math", "DejaVu Math TeX Gyre",
  math; }
math[display=block] { margin: 0.5em 0; }
mtable.aligned mtd { text-align: left; padding: 0.25em 0.15em; }
mtable.aligned mtd:first-child { text-align: right; }
mtable.aligned mtd:nth-child(n+3) { padding-left: 1.4em; }
mtable.cases mtd { text-align: left; padding: 0.1em 0.5em; }
table { border-collapse: collapse; }
th, td { border: 1px solid #bbb; padding: 0.2em 0.5em; text-align: left; vertical-align: top; }
thead:not(:has(th:not(:empty))) { display: none; }
code, pre { font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 0.86em; }
img { max-width: 100%; }
"""
_markdown = mistune.create_markdown(escape=False, plugins=["table", "strikethrough"])


def formulas(text: str) -> list[tuple[str, bool]]:
    r"""The formulas of a markdown text, each with whether it stands on a line of its own.

    >>> formulas(r"`$x$` costs 3 $ or $\pi_t$")
    [('\\pi_t', False)]
    """
    found = []
    for piece in PIECE.finditer(text):
        if piece["block"] is not None:
            found.append((piece["block"], True))
        elif piece["inline"] is not None:
            found.append((piece["inline"], False))
    return found


def prose(text: str, link: Callable[[str], str | None] = lambda target: None) -> str:
    """Markdown as HTML, its formulas as MathML.

    A link to another page of the course becomes its words: on paper, and in a file that is handed
    on alone, it leads nowhere. Where it leads somewhere, `link` says where: it is given what the
    markdown has and returns an address, or None for words.

    >>> prose("**Two** of $G$.")
    '<p><strong>Two</strong> of <math><mi>G</mi></math>.</p>\\n'
    """
    kept: list[str] = []

    def put_by(piece: re.Match) -> str:
        if piece["code"] is not None:
            return piece[0]
        block = piece["block"] is not None
        kept.append(mathml(piece["block"] if block else piece["inline"], display=block))
        return f"\u27e6{len(kept) - 1}\u27e7"  # brackets that no page uses

    rendered = str(_markdown(PIECE.sub(put_by, text)))
    rendered = re.sub("\u27e6(\\d+)\u27e7", lambda mark: kept[int(mark[1])], rendered)
    rendered = re.sub(
        r'<a href="(?!https:)([^"]*)">(.*?)</a>',
        lambda a: _linked(a, link),
        rendered,
        flags=re.DOTALL,
    )
    return re.sub(r"<p>(<math display=\"block\">.*?</math>)</p>", r"\1", rendered, flags=re.DOTALL)


def _linked(anchor: re.Match, link: Callable[[str], str | None]) -> str:
    address = link(html.unescape(anchor[1]))
    return anchor[2] if address is None else f'<a href="{html.escape(address)}">{anchor[2]}</a>'


def code(source: str) -> str:
    """Python as coloured HTML."""
    body = highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))
    return f'<pre class="code">{body}</pre>\n'
