"""What can be found: every page cut at its headings, as a script, for `fetch` fails from file://.

What is folded as the answer to a guess is left out, so that no hit gives one away.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser

__all__ = ["Section", "index", "sections"]

SKIPPED = {"script", "style", "svg", "button"}
LEFT_OUT = {"answer", "mark", "explorer"}  # classes: of an explorer its picture is read
VOID = {"img", "br", "hr", "input", "meta", "link", "source", "wbr", "col"}
INLINE = {"a", "b", "i", "em", "strong", "code", "span", "sub", "sup", "del", "small", "mark"}
MATHS = {"math", "mrow", "mi", "mo", "mn", "msub", "msup", "msubsup", "mtext", "mstyle", "mfrac"}


@dataclass
class Section:
    """A heading and what stands under it. anchor: "" for what stands before the first."""

    anchor: str
    heading: str = ""
    text: str = ""


@dataclass
class _Reader(HTMLParser):
    found: list[Section] = field(default_factory=lambda: [Section("")])
    depth: int = 0  # elements open inside of one that is skipped
    in_heading: bool = False

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        kind = (told.get("class") or "").split()
        if self.depth or tag in SKIPPED or LEFT_OUT.intersection(kind):
            self.depth += tag not in VOID
            return
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6") and told.get("id"):
            self.found.append(Section(told["id"]))
            self.in_heading = True
        elif tag == "img" and told.get("alt"):
            self.handle_data(f" {told['alt']} ")
        elif tag not in INLINE | MATHS:
            self.handle_data(" ")

    def handle_endtag(self, tag):
        if self.depth:
            self.depth -= tag not in VOID
        elif tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.in_heading = False
        elif tag not in INLINE | MATHS:
            self.handle_data(" ")

    def handle_data(self, data):
        if self.depth:
            return
        if self.in_heading:
            self.found[-1].heading += data
        else:
            self.found[-1].text += data


def sections(shown: str) -> list[Section]:
    """The sections of a page's HTML, without what is folded as an answer.

    >>> sections('<h2 id="a">A <b>b</b></h2><p>One.</p><details class="answer">4</details>')
    [Section(anchor='a', heading='A b', text='One.')]
    """
    reader = _Reader()
    reader.feed(shown)
    reader.close()
    for section in reader.found:
        section.heading = " ".join(section.heading.split())
        section.text = " ".join(section.text.split())
    return [section for section in reader.found if section.heading or section.text]


def index(pages: Iterable[tuple[str, str, str, list[Section]]]) -> str:
    """The script that the search page loads. pages: (address, kind, title, sections) of each."""
    rows = [
        [address, kind, title, [[s.anchor, s.heading, s.text] for s in found]]
        for address, kind, title, found in pages
    ]
    told = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return f"window.RLNB_SEARCH={told.replace('<', chr(92) + 'u003c')};\n"
