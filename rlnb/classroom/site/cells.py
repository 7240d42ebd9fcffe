"""A notebook or a markdown file as HTML: its cells in order, answers folded, nothing executed.

What a live page holds back until a guess is made is one <details> here, its pictures included. A
fold has `data-answer`, the guess that it answers; the options of a guess become buttons that open
it (site.js). Without a script they are a list, and the fold is opened by hand.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import nbformat

from rlnb.classroom.lesson.statements import CHOICES
from rlnb.classroom.paper.prose import code, prose
from rlnb.classroom.site.addresses import Source, anchor, headings

__all__ = ["Body", "Heading", "body"]

PLACEHOLDER = re.compile(r"^\[(?P<said>.*?)\](?P<rest>.*)$", re.DOTALL)  # stands for a widget
EXPLORER = re.compile(r"\b(\w+_explorer)\(")
ASKED = re.compile(r"^predict\(\s*[\"']([^\"']+)[\"']", re.MULTILINE)
ANSWERED = re.compile(r"^reveal\(\s*[\"']([^\"']+)[\"']", re.MULTILINE)
STATED = re.compile(r"^statement\(\s*[\"']([^\"']+)[\"']\)", re.MULTILINE)
SETTLED = re.compile(r"^settle\(\s*[\"']([^\"']+)[\"']", re.MULTILINE)
COUNTED = re.compile(r"^score\(", re.MULTILINE)
CLAIM = "claim:"
ANSWER = "<details><summary>The answer</summary>"
WIDE = re.compile(r'<table>.*?</table>|<math display="block">.*?</math>', re.DOTALL)  # may scroll
HEADING = re.compile(r"<h([1-6])>(.*?)</h\1>", re.DOTALL)


@dataclass(frozen=True)
class Heading:
    """A heading with an anchor: its level, its id, its HTML."""

    level: int
    id: str
    html: str


@dataclass
class Body:
    """A page without its frame.

    html        what it says
    headings    in order
    pictures    file name -> png
    explorers   those that work without a kernel: name -> id of its element
    """

    html: str = ""
    headings: list[Heading] = field(default_factory=list)
    pictures: dict[str, bytes] = field(default_factory=dict)
    explorers: dict[str, str] = field(default_factory=dict)


def body(
    source: Source,
    link: Callable[[str], str | None],
    assets: str,
    block: Callable[[str, str, int], str | None],
) -> Body:
    """The page as HTML.

    link: what a link becomes, as `prose` takes it. assets: the way from this page to the site's
    assets. block: `rlnb.classroom.site.explorers.block`.
    """
    writer = _Writer(source, link, assets, block)
    if source.path.suffix == ".md":
        parts = [writer.prose(source.path.read_text(encoding="utf-8"))]
    else:
        notebook = nbformat.read(source.path, as_version=4)
        parts = [writer.cell(cell, index) for index, cell in enumerate(notebook.cells)]
    writer.body.html = "\n".join(part for part in parts if part)
    return writer.body


class _Writer:
    """The state of one page: headings met, pictures to keep."""

    def __init__(self, source: Source, link, assets: str, block):
        self.source, self.link, self.assets, self.block = source, link, assets, block
        self.body = Body()
        self.page = source.stem if source.kind == "lesson" else f"{source.kind}/{source.stem}"

    def cell(self, cell: Any, index: int) -> str:
        if cell.cell_type == "markdown":
            shown = self.prose(cell.source)
            card = "card" in cell.metadata.get("tags", [])
            return f'<section class="card">{shown}</section>' if card else shown
        if asked := ASKED.search(cell.source):
            return self.guess(asked[1], self.said(cell))
        if answered := ANSWERED.search(cell.source):
            shown = "\n".join(self.output(out, index) for out in cell.outputs)
            shown += _folded("The code of this answer", code(cell.source))
            return _answer(answered[1], "The answer", shown)
        if stated := STATED.findall(cell.source):
            said = zip(stated, self.said_apart(cell), strict=True)
            return "\n".join(self.statement(name, text) for name, text in said)
        if settled := SETTLED.findall(cell.source):
            said = zip(settled, self.said_apart(cell), strict=True)
            return "\n".join(
                _answer(name, f"The verdict on {name}", self.prose(text)) for name, text in said
            )
        if COUNTED.search(cell.source):
            return ""
        return self.code(cell, index)

    def code(self, cell: Any, index: int) -> str:
        """A cell that is neither a guess nor an answer: what it says, and what it shows."""
        tags = cell.metadata.get("tags", [])
        shown = "\n".join(self.outputs(cell, index))
        claims = [tag.removeprefix(CLAIM) for tag in tags if tag.startswith(CLAIM)]
        if claims and self.source.kind == "statements":
            named = ", ".join(claims)
            return _answer(
                " ".join(claims), f"The cell that decides {named}", code(cell.source) + shown
            )
        if "answer" in tags:
            return _folded("Computed for the answer that follows", code(cell.source) + shown)
        hidden = cell.metadata.get("jupyter", {}).get("source_hidden") or "setup" in tags
        if hidden:
            first = cell.source.lstrip().split("\n")[0]
            what = first.lstrip("# ").strip() if first.startswith("#") else ""
            name = f"Code: {what}" if what else "Code that sets up the page"
            return _folded(name, code(cell.source)) + shown
        kind = " exercise" if "exercise" in tags else ""
        return f'<div class="cell{kind}">{code(cell.source)}{shown}</div>'

    def outputs(self, cell: Any, index: int) -> list[str]:
        """What a cell shows; a live explorer takes the place of its picture."""
        parts: list[str] = []
        live = False
        for output in cell.outputs:
            told = output.get("data", {}).get("text/plain", "")
            if told.startswith("[controls:"):
                shown, live = self.explorer(cell, index, told)
                parts.append(shown)
            elif live and "image/png" in output.get("data", {}):
                parts.append(f"<noscript>{self.picture(output)}</noscript>")
                live = False
            elif not told.startswith("[a line per task"):
                parts.append(self.output(output, index))
        if re.search(r"^task\(", cell.source, re.MULTILINE):
            return [f'<div class="task">{parts[0]}</div>', *parts[1:]]
        return parts

    def explorer(self, cell: Any, index: int, told: str) -> tuple[str, bool]:
        found = EXPLORER.search(cell.source)
        shown = self.block(found[1], self.page, index) if found else None
        if found and shown is not None:
            self.body.explorers[found[1]] = re.search(r' id="([^"]+)"', shown)[1]
            return shown, True
        settings = told.removeprefix("[controls: ").partition(";")[0]
        return (
            f'<p class="live">Live in JupyterLab. Here it stands at {_text(settings)}.</p>',
            False,
        )

    def output(self, output: Any, index: int) -> str:
        """One output that is no explorer."""
        data = output.get("data", {})
        if output.output_type == "stream":
            return _printed(output.text)
        if output.output_type == "error":
            raise ValueError(f"{self.source.place}, cell {index}: an error is committed in it.")
        if "image/png" in data:
            return self.picture(output)
        if "text/markdown" in data:
            text = data["text/markdown"]
            if text.startswith(ANSWER):  # the fold is ours, around the pictures too
                text = text.removeprefix(ANSWER).removesuffix("</details>")
            return self.prose(text, caption=_is_caption(text))
        if "text/html" in data:
            return f'<div class="shown">{data["text/html"]}</div>'
        told = data.get("text/plain", "")
        if widget := PLACEHOLDER.match(told):
            said = re.sub(r"[;:] run the (page|notebook)[^;]*$", "", widget["said"])
            if said in ("your guess beside it", "your guess"):
                return ""
            rest = _printed(widget["rest"].strip("\n")) if widget["rest"].strip() else ""
            return f'<p class="live">Live in JupyterLab: {_text(said)}.</p>{rest}'
        return _printed(told)

    def picture(self, output: Any) -> str:
        """The png as a file of its own, under a name made of its content."""
        png = base64.b64decode(output.data["image/png"])
        name = f"{hashlib.sha256(png).hexdigest()[:16]}.png"
        self.body.pictures[name] = png
        look = output.metadata.get("image/png", {})
        alt = look.get("alt") or output.data.get("text/plain", "")
        size = "".join(f' {side}="{look[side]}"' for side in ("width", "height") if side in look)
        return f'<img class="picture" src="{self.assets}/pictures/{name}" alt="{_text(alt)}"{size}>'

    def prose(self, text: str, caption: bool = False) -> str:
        """Markdown as HTML; its headings get the ids that links to them use."""
        # mistune would take the end of a fold for the last line of a list above it
        shown = prose(re.sub(r"\n</details>", "\n\n</details>", text), self.link)
        names = list(headings(text))
        if len(names) != len(HEADING.findall(shown)):
            raise ValueError(
                f"{self.source.place}: {len(names)} headings are written and "
                f"{len(HEADING.findall(shown))} shown, near {text[:60]!r}. A heading stands alone "
                "on its line, outside of a fold and of HTML."
            )
        waiting = iter(names)
        shown = HEADING.sub(lambda found: self.heading(found, next(waiting)), shown)
        shown = WIDE.sub(r'<div class="wide">\g<0></div>', shown)
        return f'<div class="caption">{shown}</div>' if caption else shown

    def heading(self, found: re.Match, name: str) -> str:
        identity = anchor(name, self.source.path.suffix == ".md")
        taken = {heading.id for heading in self.body.headings}
        while identity in taken:
            identity += "-again"
        level, shown = int(found[1]), found[2]
        self.body.headings.append(Heading(level, identity, shown))
        here = _text(identity)
        mark = f'<a class="mark" href="#{quote(identity)}" aria-label="Link to this heading">#</a>'
        return f'<h{level} id="{here}">{shown}{mark}</h{level}>'

    def said_apart(self, cell: Any) -> list[str]:
        """The markdown texts that a cell shows."""
        shown = (output.get("data", {}).get("text/markdown") for output in cell.outputs)
        return [text for text in shown if text]

    def said(self, cell: Any) -> str:
        return "\n\n".join(self.said_apart(cell))

    def guess(self, key: str, text: str) -> str:
        """A question; its last list are the options."""
        question, mark, options = self.prose(text).rpartition("<ul>")
        number = ' data-number="1"' if "</strong> · " not in options else ""
        marked = f'{question}<ul class="options"{number}>{options}' if mark else question + options
        return f'<div class="guess" data-guess="{_text(key)}">{marked}</div>'

    def statement(self, identity: str, text: str) -> str:
        choices = "".join(f"<li>{word}</li>" for word in CHOICES)
        shown = self.prose(text)
        return (
            f'<div class="guess statement" data-guess="{identity}">{shown}'
            f'<ul class="options">{choices}</ul></div>'
        )


def _answer(keys: str, summary: str, shown: str) -> str:
    return (
        f'<details class="answer" data-answer="{_text(keys)}"><summary>{_text(summary)}</summary>'
        f"{shown}</details>"
    )


def _folded(summary: str, shown: str) -> str:
    return f'<details class="source"><summary>{_text(summary)}</summary>{shown}</details>'


def _printed(text: str) -> str:
    text = text.rstrip("\n")
    return f'<pre class="printed" tabindex="0">{_text(text)}</pre>' if text else ""


def _is_caption(text: str) -> bool:
    """A text in italics from end to end: what stands under a picture."""
    return bool(re.fullmatch(r"\*[^*].*[^*]\*", text.strip(), re.DOTALL))


def _text(words: str) -> str:
    return html.escape(words, quote=True)
