"""An explorer's picture in parts: what stays, and each artist that moves, as SVG.

    still(explorer, salt)                      what `build` drew and nothing changes
    drawn(explorer, rows, salt, goals)         per row of settings: one text per artist that moves

Matplotlib's own SVG writer draws both, so a browser shows what JupyterLab shows. Letters are text
in the picture's fonts (fonts.py), not outlines. Coordinates are points: 0.75 of a CSS pixel.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.spines import Spine
from matplotlib.text import Text

from rlnb.classroom.cached_text import MONO, Letters, points
from rlnb.classroom.explorer import Explorer
from rlnb.classroom.figures import CSS_DPI, STYLE

__all__ = ["Parts", "Row", "Still", "drawn", "joined", "still"]

DPI = 72  # the writer's: its units are points
POINT = DPI / CSS_DPI
DEFINED = re.compile(r"<defs>(.*?)</defs>", re.DOTALL)
# One definition inside <defs>: a marker's path, a hatch, a clip.
DEFINITION = re.compile(
    r"<path [^>]*/>|<pattern .*?</pattern>|<clipPath .*?</clipPath>|<style .*?</style>", re.DOTALL
)
TAG = re.compile(r"<[^>]*>")  # matplotlib escapes what stands in texts
LEVEL = re.compile(r' transform="rotate\(-?0 [^"]*\)"')
BLANKS, COMMAND = re.compile(r"\s+"), re.compile(r" ?([MLQCzZ]) ?")
LONG_LINE, FINE = 600, re.compile(r"(\d\.\d)\d")
USES = re.compile(r'(<use [^>]*?( style="[^"]*")/>)(?:<use [^>]*?\2/>)+')
MANY = 50
LONG_NUMBER = re.compile(r"(\d+\.\d\d)\d+")
POINTS = re.compile(r' d="([^"]*)"')
ANCHOR = {"left": "start", "center": "middle", "right": "end"}


@dataclass(frozen=True)
class Still:
    """What does not move. size: in points; svg: the drawing; defs: what it refers to."""

    size: tuple[float, float]
    svg: str
    defs: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One setting. problem: the sentence why there is no picture; then the others are empty."""

    parts: tuple[str, ...] = ()
    alt: str = ""
    line: str = ""
    reached: tuple[bool, ...] = ()
    problem: str | None = None


@dataclass
class Parts:
    """All settings together: distinct texts per artist, and per setting the place of its own."""

    strings: list[list[str]] = field(default_factory=list)
    columns: list[list[int]] = field(default_factory=list)
    alts: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    reached: list[list[int]] = field(default_factory=list)
    problems: dict[int, str] = field(default_factory=dict)


def still(explorer: Explorer, salt: str) -> Still:
    """The drawing without its moving artists; `salt` sets its names apart from other pictures'."""
    with _writing(explorer, salt) as pen:
        svg = pen.written(explorer.figure.draw)
        return Still(pen.size, svg, pen.finished())


def drawn(
    explorer: Explorer,
    rows: Sequence[Mapping[str, Any]],
    salt: str,
    goals: Sequence[Callable[[Any], bool]] = (),
    remember: bool = True,
) -> tuple[list[Row], tuple[str, ...]]:
    """One `Row` per setting, and the definitions that its parts refer to.

    remember: an artist that stands as it once stood is not written again.
    """
    found = []
    with _writing(explorer, salt) as pen:
        known: dict[tuple, str] = {}
        for params in rows:
            try:
                data = explorer.compute(**params)
            except ValueError as error:
                found.append(Row(problem=str(error)))
                continue
            explorer.update(explorer.artists, data)
            parts = []
            for place, artist in enumerate(explorer.moving):
                state = _state(artist) if remember else None
                if state is None:
                    parts.append(pen.artist(artist))
                    continue
                if (place, state) not in known:
                    known[place, state] = pen.artist(artist)
                parts.append(known[place, state])
            line = explorer.readout(data) if explorer.readout else ""
            reached = tuple(bool(goal(data)) for goal in goals)
            found.append(Row(tuple(parts), explorer.alt(data), line, reached))
        return found, pen.finished()


def joined(rows: Sequence[Row], artists: int) -> Parts:
    """The rows as columns, each distinct text kept once."""
    parts = Parts([[] for _ in range(artists)], [[] for _ in range(artists)])
    places: list[dict[str, int]] = [{} for _ in range(artists)]
    for number, row in enumerate(rows):
        parts.alts.append(row.alt)
        parts.lines.append(row.line)
        parts.reached.append([int(done) for done in row.reached])
        if row.problem is not None:
            parts.problems[number] = row.problem
        for i in range(artists):
            text = row.parts[i] if row.parts else ""
            if text not in places[i]:
                places[i][text] = len(parts.strings[i])
                parts.strings[i].append(text)
            parts.columns[i].append(places[i][text])
    return parts


class _Writer(RendererSVG):
    """Collections are written path by path: shared, each setting would define its own anew."""

    draw_path_collection = RendererBase.draw_path_collection


class _Pen:
    """Matplotlib's SVG writer on one figure, read piece by piece."""

    def __init__(self, explorer: Explorer):
        width, height = explorer.figure.get_size_inches() * DPI
        self.size = (round(float(width), 2), round(float(height), 2))
        self.paper = io.StringIO()
        self.renderer = _Writer(width, height, self.paper, image_dpi=DPI)
        self.defs: dict[str, None] = {}

    def written(self, draw: Callable[[Any], None]) -> str:
        """What `draw(renderer)` wrote, tidied up; its definitions are put aside."""
        begin = self.paper.tell()
        draw(self.renderer)
        self.renderer.writer.flush()
        self.paper.seek(begin)
        text = self.paper.read()
        return self._tidy(text)

    def artist(self, artist: Any) -> str:
        if not artist.get_visible():
            return ""
        return _letters(artist) if isinstance(artist, Letters) else self.written(artist.draw)

    def finished(self) -> tuple[str, ...]:
        """Every definition so far: clips and hatches are written at the end."""
        begin = self.paper.tell()
        self.renderer.finalize()
        self.paper.seek(begin)
        self._tidy(self.paper.read())
        return tuple(self.defs)

    def _tidy(self, text: str) -> str:
        for block in DEFINED.findall(text):
            for one in DEFINITION.findall(block):
                if not one.startswith("<style"):
                    self.defs.setdefault(_short(one))
        return _short(DEFINED.sub("", text))


def _short(text: str) -> str:
    """The same drawing in fewer letters; what it says as text stays letter by letter."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r">\s+<", "><", text.strip())
    text = text.replace("xlink:href", "href")
    text = re.sub(r'<g id="[^"]*"', "<g", text).replace("<g/>", "")
    text = TAG.sub(lambda found: LONG_NUMBER.sub(r"\1", LEVEL.sub("", found[0])), text)
    text = POINTS.sub(lambda found: f' d="{_path(found[1])}"', text)
    text = USES.sub(_shared_look, text)
    while (less := text.replace("<g></g>", "")) != text:
        text = less
    return re.sub(r"<g>((?:(?!</?g).)*)</g>", r"\1", text)


def _shared_look(found: re.Match) -> str:
    """Markers side by side say their look once; for many, a tenth of a point is enough."""
    marks = found[0].replace(found[2], "")
    if marks.count("<use") > MANY:
        marks = FINE.sub(r"\1", marks)
    return f"<g{found[2]}>{marks}</g>"


def _path(told: str) -> str:
    """A tenth of a point is enough for a line of many points."""
    if len(told) > LONG_LINE:
        told = FINE.sub(r"\1", told)
    return COMMAND.sub(r"\1", BLANKS.sub(" ", told.strip()))


def _letters(artist: Letters) -> str:
    """Fixed-width lines, in the size whose letters are as wide as on the canvas."""
    looks: dict[tuple[str, str], list[str]] = {}
    for x, y, text, colour, align in artist.lines:
        if text:
            told = html.escape(text, quote=False)
            line = f'<text x="{x * POINT:.1f}" y="{y * POINT:.1f}">{told}</text>'
            looks.setdefault((colour, ANCHOR[align]), []).append(line)
    groups = "".join(
        f'<g fill="{colour}" text-anchor="{anchor}">{"".join(lines)}</g>'
        for (colour, anchor), lines in looks.items()
    )
    font = f"font: {points(artist.width):.3f}px '{MONO}'; dominant-baseline: central"
    return f'<g style="{font}">{groups}</g>'


def _state(artist: Any) -> tuple | None:
    """All that moving ever changes of the common artists; None for others: draw them anew."""
    if not artist.get_visible():
        return ("hidden",)
    frame = () if artist.axes is None else tuple(artist.axes.viewLim.bounds)
    if type(artist) is Text:
        where = (*artist.get_position(), artist.get_rotation(), artist.get_ha(), artist.get_va())
        look = (artist.get_color(), artist.get_fontsize(), artist.get_fontweight())
        return (artist.get_text(), *where, *look, artist.get_alpha(), frame)
    if type(artist) is Line2D:
        ends = (_bytes(artist.get_xdata()), _bytes(artist.get_ydata()))
        look = (str(artist.get_color()), artist.get_linestyle(), artist.get_linewidth())
        mark = (str(artist.get_marker()), artist.get_markersize())
        paint = (str(artist.get_markerfacecolor()), str(artist.get_markeredgecolor()))
        return (*ends, *look, *mark, *paint, artist.get_alpha(), frame)
    if type(artist) is Rectangle:
        box = (*artist.get_xy(), artist.get_width(), artist.get_height(), artist.get_angle())
        look = (artist.get_facecolor(), artist.get_edgecolor(), artist.get_hatch())
        return (*box, *look, artist.get_linewidth(), artist.get_alpha(), frame)
    if isinstance(artist, Axis):
        look = (artist.get_scale(), artist.get_label_text(), artist.get_visible())
        return (*artist.get_view_interval(), _bytes(artist.get_majorticklocs()), *look)
    if isinstance(artist, Axes):
        drawn_here = [child for child in artist.get_children() if not child.get_animated()]
        inside = tuple(("spine",) if isinstance(c, Spine) else _state(c) for c in drawn_here)
        return None if None in inside else (artist.get_position().bounds, *inside)
    return None


def _bytes(values: Any) -> bytes:
    return np.asarray(values, dtype=float).tobytes()


@contextmanager
def _writing(explorer: Explorer, salt: str) -> Iterator[_Pen]:
    """The figure in the writer's units; afterwards as it was."""
    figure, before = explorer.figure, explorer.figure.dpi
    with matplotlib.rc_context(STYLE | {"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.canvas.draw()  # places what is placed on drawing
        figure.set_dpi(DPI)
        try:
            yield _Pen(explorer)
        finally:
            figure.set_dpi(before)
            explorer._background = None
