"""What stands around every page: the head, the ways to other pages, the list of its headings."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from urllib.parse import quote

from pygments.formatters import HtmlFormatter

from rlnb.classroom.paper.prose import STYLE
from rlnb.classroom.site.addresses import Source, href, plain_title
from rlnb.classroom.site.cells import Body, Heading

__all__ = ["COURSE_TITLE", "framed", "framed_page", "style_sheet"]

COURSE_TITLE = "Policy optimisation for language models"
COLOUR = re.compile(r"^pre\.code (\.\w+) \{[^}]*?(?<!-)color: (#\w+)", re.MULTILINE)
# Names of kinds in links from one page of a stem to another.
BESIDE = {"lesson": "Lesson", "statements": "Statements", "solutions": "Solutions"}


def framed(
    title: str, shown: str, page: str, *, beside: str = "", below: str = "", contents: str = ""
) -> str:
    """A whole page. title: plain; shown: the HTML of its main part; page: its address."""
    home = href(page, "index.html")
    head = html.escape(title if title == COURSE_TITLE else f"{title} · {COURSE_TITLE}")
    return PAGE.format(
        title=head,
        assets=href(page, "assets"),
        home=home,
        course=COURSE_TITLE,
        search=href(page, "search.html"),
        beside=beside,
        contents=contents,
        shown=shown,
        below=below,
    )


def framed_page(source: Source, body: Body, pages: Sequence[Source]) -> str:
    """A page of the course with its neighbours: the same number in another kind, before, after."""
    kin = [other for other in pages if other.stem == source.stem and other.kind in BESIDE]
    beside = "".join(_kin(source, other) for other in kin) if source.kind in BESIDE else ""
    row = [other for other in pages if other.kind == source.kind]
    at = row.index(source)
    below = _way(source, row[at - 1], "prev", "Before") if at else ""
    if at + 1 < len(row):
        below += _way(source, row[at + 1], "next", "Next")
    where = (
        f"<p class='source-of'>Live: <code>make lab</code>, then <code>{source.place}</code>.</p>"
    )
    return framed(
        plain_title(source.title),
        body.html,
        source.address,
        beside=beside,
        below=f'<nav class="ways" aria-label="Before and next">{below}</nav>'
        + (where if source.path.suffix == ".ipynb" else ""),
        contents=_contents(body.headings),
    )


def _kin(source: Source, other: Source) -> str:
    if other is source:
        return f'<span aria-current="page">{BESIDE[other.kind]}</span>'
    return f'<a href="{href(source.address, other.address)}">{BESIDE[other.kind]}</a>'


def _way(source: Source, other: Source, rel: str, word: str) -> str:
    title = html.escape(plain_title(other.title))
    there = href(source.address, other.address)
    return f'<a rel="{rel}" href="{there}"><span>{word}</span> {title}</a>'


def _contents(headings: Sequence[Heading]) -> str:
    rows = [heading for heading in headings if 2 <= heading.level <= 3]
    if len(rows) < 2:
        return ""
    items = "".join(
        f'<li class="level-{row.level}"><a href="#{quote(row.id)}">{_words(row.html)}</a></li>'
        for row in rows
    )
    return (
        '<nav class="contents" aria-label="On this page"><details><summary>On this page</summary>'
        f"<ol>{items}</ol></details></nav>"
    )


def _words(shown: str) -> str:
    """A heading without the links in it: it is a link itself in the contents."""
    return re.sub(r"</?a\b[^>]*>", "", shown)


def style_sheet(look: str) -> str:
    """The style of prose, the site's own (`look`, site.css), the colours of code in both themes."""
    return "\n".join((STYLE, look, _code_colours("default", "github-dark")))


def _code_colours(light: str, dark: str) -> str:
    """The colours of two Pygments styles, each for its theme."""
    both = _colours(light), _colours(dark)
    pairs = {kind: [style.get(kind, "var(--ink)") for style in both] for kind in both[0] | both[1]}
    return "\n".join(
        f"pre.code {kind} {{ color: light-dark({first}, {second}); }}"
        for kind, (first, second) in pairs.items()
    )


def _colours(style: str) -> dict[str, str]:
    return dict(COLOUR.findall(HtmlFormatter(style=style).get_style_defs("pre.code")))


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{assets}/site.css">
<script src="{assets}/site.js"></script>
</head>
<body>
<a class="skip" href="#main">To the text</a>
<header class="top">
<a class="home" href="{home}">{course}</a>
<nav class="beside" aria-label="The same topic">{beside}</nav>
<form role="search" action="{search}" method="get">
<input type="search" name="q" aria-label="Search all pages" placeholder="Search all pages">
<button>Search</button>
</form>
<button type="button" id="theme" hidden>Dark theme</button>
<button type="button" id="unfold" hidden aria-pressed="false">Unfold all</button>
</header>
<div class="page">
{contents}
<main id="main" tabindex="-1">
{shown}
{below}
</main>
</div>
</body>
</html>
"""
