"""The whole site into one folder."""

from __future__ import annotations

import shutil
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlnb.classroom import course
from rlnb.classroom.site import explorers
from rlnb.classroom.site.addresses import href, linker, plain_title, sources
from rlnb.classroom.site.cells import Body, body
from rlnb.classroom.site.frame import framed_page, style_sheet
from rlnb.classroom.site.front import front, search_page
from rlnb.classroom.site.placed import all_placed
from rlnb.classroom.site.search import index, sections
from rlnb.shipped import course_folder

__all__ = ["Built", "build"]

HERE = Path(__file__).parent
MARK = ".made-by-rlnb-site"  # in a folder that may be made anew
SCRIPTS = ("site.js", "search.js")


@dataclass(frozen=True)
class Built:
    """What was written. explorers: address of a page -> those that move there, name -> its id."""

    folder: Path
    pages: int
    pictures: int
    explorers: Mapping[str, Mapping[str, str]]

    @property
    def bytes(self) -> int:
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())


def build(
    folder: Path, *, moving: Container[str] | None = None, workers: int | None = None
) -> Built:
    """Write the site into `folder`, which is emptied first if it is an earlier site.

    moving: names of the explorers that shall move, "clip_explorer"; None for all, () for none: then
    they are pictures. workers: processes that draw what no earlier build has drawn, by default one
    a processor, at most 4.
    Raises FileExistsError for a folder with something else in it.
    """
    _empty(folder)
    places = [place for place in all_placed() if moving is None or place.name in moving]
    explorers.prepare(workers, places)

    def block(name: str, page: str, cell_index: int) -> str | None:
        return explorers.block(name, page, cell_index) if moving is None or name in moving else None

    found = sources(course_folder())
    by_place = {source.place: source for source in found}
    pictures: dict[str, bytes] = {}
    bodies: dict[str, Body] = {}
    for source in found:
        assets = href(source.address, "assets")
        made = body(source, linker(source, by_place), assets, block)
        bodies[source.address] = made
        pictures |= made.pictures
        _write(folder / source.address, framed_page(source, made, found))
    live = {address: made.explorers for address, made in bodies.items() if made.explorers}
    _write(folder / "index.html", front(course.course(), found, live))
    _write(folder / "search.html", search_page())
    told = [
        (
            source.address,
            source.kind,
            plain_title(source.title),
            sections(bodies[source.address].html),
        )
        for source in found
    ]
    _write(folder / "assets" / "search_index.js", index(told))
    look = (HERE / "site.css").read_text(encoding="utf-8")
    _write(folder / "assets" / "site.css", style_sheet(look))
    for name in SCRIPTS:
        shutil.copy(HERE / name, folder / "assets" / name)
    for name, png in pictures.items():
        file = folder / "assets" / "pictures" / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(png)
    if live:
        explorers.assets(folder)
    return Built(folder, len(found) + 2, len(pictures), live)


def _empty(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise FileExistsError(
            f"site: {str(folder)!r} has files that are no site of this course, and making the site "
            "empties its folder first; name another folder with --to."
        )
    shutil.rmtree(folder, ignore_errors=True)
    _write(folder / MARK, "Made anew by every build: keep nothing here.\n")


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
