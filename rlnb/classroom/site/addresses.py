"""Which pages the site has, where each lies in its folder, and what a link leads to.

The folder has the course's own shape: notebooks/08_grpo.ipynb becomes notebooks/08_grpo.html, so a
link between two pages needs another ending and nothing else.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import nbformat

from rlnb.classroom.paper.prose import prose

__all__ = ["Source", "anchor", "href", "linker", "plain_title", "sources"]

KINDS = ("lesson", "statements", "solutions", "extras", "teach")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Source:
    """A page of the course.

    kind     one of KINDS
    path     the notebook or markdown file
    place    where it lies in the course, "notebooks/08_grpo.ipynb"
    title    its first heading, as markdown
    """

    kind: str
    path: Path
    place: str
    title: str

    @property
    def address(self) -> str:
        """Where it lies in the site, "notebooks/08_grpo.html"."""
        return re.sub(r"\.(ipynb|md)$", ".html", self.place)

    @property
    def stem(self) -> str:
        return self.path.stem


def sources(course: Path) -> list[Source]:
    """Every page, in reading order: lessons, statements, solutions, extras, the kit to teach from.

    course: the folder that holds `notebooks`. `teach` is left out where it is not: a wheel.
    """
    found = []
    notebooks = course / "notebooks"
    for kind in KINDS[:-1]:
        folder = notebooks if kind == "lesson" else notebooks / kind
        found += [(kind, path) for path in sorted(folder.glob("*.ipynb"))]
    told = sorted((course / "teach").glob("*.md"), key=lambda path: (path.stem != "README", path))
    found += [("teach", path) for path in told]
    return [
        Source(kind, path, path.relative_to(course).as_posix(), _title(path))
        for kind, path in found
    ]


def _title(path: Path) -> str:
    if path.suffix == ".md":
        text = path.read_text(encoding="utf-8")
    else:
        text = nbformat.read(path, as_version=4).cells[0].source
    return text.splitlines()[0].lstrip("# ")


def plain_title(title: str) -> str:
    """A title without marks, for a browser's tab.

    >>> plain_title("05 · **KL**: what does `β` do to $\\\\pi$?")
    '05 · KL: what does β do to π?'
    """
    return re.sub(r"<[^>]*>", "", prose(title)).strip()


def anchor(heading: str, markdown_file: bool) -> str:
    """What follows `#` in a link to a heading: as JupyterLab says it in a notebook, as GitHub does
    in a markdown file.

    >>> anchor("G09 · the `one` failure", markdown_file=False)
    'G09-·-the-one-failure'
    >>> anchor("What can go wrong?", markdown_file=True)
    'what-can-go-wrong'
    """
    plain = re.sub(r"[`*$]", "", heading)
    if markdown_file:
        return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-").lower()
    return plain.replace(" ", "-")


def headings(text: str) -> Iterator[str]:
    """The headings of a markdown text, in order; a comment in a fence is none."""
    yield from HEADING.findall(FENCE.sub("", text))


def href(page: str, target: str, heading: str = "") -> str:
    """The relative address of `target` as a link on `page`; both are addresses of the site.

    >>> href("notebooks/08_grpo.html", "notebooks/statements/08_grpo.html", "a b")
    'statements/08_grpo.html#a%20b'
    """
    way = posixpath.relpath(target, posixpath.dirname(page) or ".")
    return quote(way) + (f"#{quote(heading)}" if heading else "")


def linker(source: Source, pages: dict[str, Source]) -> Callable[[str], str | None]:
    """A function that turns a link of this page into one of the site.

    pages: by place. A link to a file that is no page of the site becomes its words (None).
    """

    def link(target: str) -> str | None:
        path, _, heading = unquote(target).partition("#")
        if not path:
            return f"#{quote(heading)}"
        place = posixpath.normpath(posixpath.join(posixpath.dirname(source.place), path))
        if place not in pages:
            return None
        return href(source.address, pages[place].address, heading)

    return link
