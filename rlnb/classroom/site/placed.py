"""The explorers of the committed pages: where each stands, and the goals above it."""

from __future__ import annotations

import ast
import hashlib
import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbformat

from rlnb.classroom.explorer import Explorer
from rlnb.shipped import course_folder, shipped_folder

__all__ = ["Placed", "all_placed", "made", "placed", "source_hash"]

CALL = re.compile(r"\b(\w+_explorer)\(")
SHOWN = "[controls:"  # begins the text of the output that stands for an explorer's controls
PACKAGE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Placed:
    """An explorer on a page. page: "06_ppo" or "statements/06_ppo"; cell: its index, from 0."""

    name: str
    page: str
    cell: int

    @property
    def id(self) -> str:
        """Unique in the site, good as an id and as a file's name."""
        page = self.page.replace("/", "-")
        return f"{self.name.removesuffix('_explorer').replace('_', '-')}-{page}-{self.cell}"


def placed(name: str, page: str, cell: int) -> Placed:
    """Raises ValueError where that cell calls no such explorer."""
    found = Placed(name, page, cell)
    if name not in CALL.findall(_cells(page)[cell].source):
        raise ValueError(f"explorers: cell {cell} of {page!r} does not call {name}.")
    return found


def all_placed() -> list[Placed]:
    """Every explorer that a committed page shows, in the order of the pages."""
    notebooks = shipped_folder("notebooks")
    files = [*sorted(notebooks.glob("*.ipynb")), *sorted(notebooks.glob("*/*.ipynb"))]
    pages = [file.relative_to(notebooks).with_suffix("").as_posix() for file in files]
    return [
        Placed(found[1], page, index)
        for page in pages
        for index, cell in enumerate(_cells(page))
        if cell.cell_type == "code" and _shows(cell) and (found := CALL.search(cell.source))
    ]


def made(place: Placed) -> tuple[Explorer, tuple[Callable[[Any], bool], ...]]:
    """The explorer as its cell makes it, and the predicates of the goals above it.

    Of the page only the imports are run, and the call itself.
    """
    cells = _cells(place.page)
    names: dict[str, Any] = {}
    for cell in cells[: place.cell + 1]:
        if cell.cell_type == "code":
            _import_names(cell.source, names)
    names["task"] = lambda key, explorer, *goals: (explorer, goals)
    call = next(
        node
        for node in ast.walk(ast.parse(cells[place.cell].source))
        if isinstance(node, ast.Expr) and place.name in ast.unparse(node)
    )
    found = eval(compile(ast.Expression(call.value), place.page, "eval"), names)
    explorer, goals = found if isinstance(found, tuple) else (found, ())
    return explorer, tuple(reached for _, reached in goals)


def source_hash(place: Placed) -> str:
    """Changes with everything that the drawing depends on: code, cell, recorded data, libraries."""
    told = hashlib.sha256()
    for file in sorted(_behind(place)):
        told.update(file.relative_to(PACKAGE).as_posix().encode() + file.read_bytes())
    for file in sorted(shipped_folder("data").rglob("*")):
        if file.is_file() and file.suffix in (".json", ".jsonl", ".yaml"):
            told.update(f"{file.relative_to(course_folder())} {file.stat().st_size}".encode())
    for library in ("matplotlib", "numpy", "torch"):
        told.update(importlib.import_module(library).__version__.encode())
    told.update("\n".join(c.source for c in _cells(place.page)[: place.cell + 1]).encode())
    return told.hexdigest()


@cache
def _cells(page: str) -> list[Any]:
    return nbformat.read(shipped_folder("notebooks") / f"{page}.ipynb", as_version=4).cells


def _shows(cell: Any) -> bool:
    told = (output.get("data", {}).get("text/plain", "") for output in cell.outputs)
    return any(text.startswith(SHOWN) for text in told)


def _import_names(source: str, names: dict[str, Any]) -> None:
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell with a magic command
        return
    kept = [
        node
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom)) and "rlnb" in ast.unparse(node)
    ]
    exec(compile(ast.Module(kept, []), "imports", "exec"), names)


def _behind(place: Placed) -> set[Path]:
    """The files of our package that the explorer imports, directly or not, and this folder's."""
    found: set[Path] = set()
    home = importlib.import_module("rlnb.classroom.explorers")._HOME[place.name]
    waiting = [
        PACKAGE / "classroom" / "explorers" / f"{home}.py",
        PACKAGE / "classroom/explorer.py",
    ]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imported(file)
    own = Path(__file__).parent
    return found | {own / name for name in ("parts.py", "grids.py", "placed.py", "explorers.py")}


@cache
def _imported(file: Path) -> tuple[Path, ...]:
    """The files of our package that a file names in an import; a package by all its files."""
    found: list[Path] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for module in modules:
            if not module.startswith("rlnb."):
                continue
            path = PACKAGE.joinpath(*module.split(".")[1:])
            if path.with_suffix(".py").is_file():
                found.append(path.with_suffix(".py"))
            elif (path / "__init__.py").is_file():
                fetches = "__getattr__" in (path / "__init__.py").read_text(encoding="utf-8")
                big = path.name == "explorers"  # fetched by name: no explorer imports another
                found += path.glob("*.py") if fetches and not big else [path / "__init__.py"]
    return tuple(found)
