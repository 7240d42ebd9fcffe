"""The first page, with the map of the course, and the page of the search."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from rlnb.classroom.course import Page
from rlnb.classroom.site.addresses import Source, plain_title
from rlnb.classroom.site.frame import COURSE_TITLE, framed

__all__ = ["HEADLINES", "front", "search_page"]

# the explorers that the first page names, with what each is for
HEADLINES = {
    "composer_explorer": "Compose a loss from its seams, and be told which method it is",
    "clip_explorer": "PPO's clip: which side of the band is silent, and where",
    "group_advantage_explorer": "The advantages of a group: type your own rewards",
    "token_weights_explorer": "What a token weighs under each way of averaging",
}


def front(
    course: Sequence[Page], pages: Sequence[Source], explorers: Mapping[str, Mapping[str, str]]
) -> str:
    """index.html. explorers: address of a page -> those on it that move, name -> id."""
    by_kind = {(page.kind, page.stem): page for page in pages}
    rows = []
    for entry in course:
        lesson = by_kind[("lesson", entry.stem)]
        beside = [
            f'<a href="{other.address}">{kind}</a>'
            for kind in ("statements", "solutions")
            if (other := by_kind.get((kind, entry.stem)))
        ]
        live = len(explorers.get(lesson.address, ()))
        if live:
            beside.append(f"{live} explorer{'s' * (live > 1)} to move")
        more = " · ".join((f"{entry.sittings} minutes", *beside))
        rows.append(
            f'<li><span class="number">{entry.number}</span><div>'
            f'<a class="lesson" href="{lesson.address}">{html.escape(entry.title)}</a> '
            f'<span class="question">{html.escape(entry.question)}</span>'
            f'<span class="more">{more}</span></div></li>'
        )
    extras = "".join(_item(page) for page in pages if page.kind == "extras")
    teach = "".join(_item(page) for page in pages if page.kind == "teach")
    there = [(a, name, i) for a, ids in explorers.items() for name, i in ids.items()]
    first = "".join(
        f'<li><a href="{address}#{identity}">{HEADLINES[name]}</a></li>'
        for wanted in HEADLINES
        for address, name, identity in there
        if name == wanted
    )
    shown = FRONT.format(
        course=COURSE_TITLE,
        rows="\n".join(rows),
        first=f"<h2 id='move'>Move these first</h2><ul>{first}</ul>" if first else "",
        extras=f"<h2 id='beside'>Beside the lessons</h2><ul>{extras}</ul>" if extras else "",
        teach=f"<h2 id='teach'>To teach from</h2><ul>{teach}</ul>" if teach else "",
    )
    return framed(COURSE_TITLE, shown, "index.html")


def search_page() -> str:
    """search.html: what was asked stands in its address, behind ?q=."""
    return framed("Search", SEARCH, "search.html")


def _item(page: Source) -> str:
    return f'<li><a href="{page.address}">{html.escape(plain_title(page.title))}</a></li>'


FRONT = """<h1>{course}</h1>
<p>REINFORCE, PPO, GRPO and what came after, derived on one idea: <strong>every method is a choice
of baseline and a way to tame the importance ratio.</strong> One toy group of four answers is
carried through every method. Each formula stands beside the number it gives, and popular wrong
statements are run rather than repeated.</p>
<p>Here you read, guess, and move the explorers that work without a kernel. In JupyterLab
(<code>make lab</code>) the same pages also run: every explorer, checks that tell which mistake you
made, and a record of what you know. Commit to a guess before you open its answer.</p>
{first}
<h2 id="map">The course</h2>
<ol class="map">
{rows}
</ol>
{extras}
{teach}
"""
SEARCH = """<h1>Search</h1>
<noscript><p>The search needs JavaScript.</p></noscript>
<form id="ask" role="search" action="search.html" method="get">
<label for="words">Words that stand together in a section</label>
<input id="words" type="search" name="q" autocomplete="off">
</form>
<p id="found" role="status"></p>
<ol id="hits"></ol>
<p class="live">Folded answers to guesses are not searched, so that no hit gives one away. The
pages to teach from do tell them; they come last.</p>
<script src="assets/search_index.js"></script>
<script src="assets/search.js"></script>
"""
