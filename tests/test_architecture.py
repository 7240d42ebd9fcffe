"""The house: which room may know which, and what every public name owes its reader.

The imports are read from the source, those inside functions and under TYPE_CHECKING included, so
that an arrow up cannot hide. A name fetched by `importlib` or `runpy` is no import.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# room -> the rooms it may import; `rlnb.shipped` says where data and pages lie and imports nothing
ORDER = {
    "shipped": (),
    "objective": (),
    "interop": ("objective",),
    "toys": ("objective",),
    "training": ("objective", "shipped"),
    "classroom": ("objective", "interop", "toys", "training", "shipped"),
    "__main__": ("objective", "interop", "toys", "training", "classroom", "shipped"),
    "": (),  # rlnb/__init__.py fetches what it names on first use
}
# what a bare GPU machine does not have
SCREEN = {
    "IPython",
    "ipykernel",
    "ipywidgets",
    "jupyter_client",
    "jupytext",
    "matplotlib",
    "nbformat",
}


def named(path: Path, root: Path) -> str:
    """rlnb/objective/batch.py -> rlnb.objective.batch; a package by its folder."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(source: str, modules: set[str]) -> Iterator[str]:
    """Dotted names that the source imports: our own as modules, others by their first part."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules else str(node.module) for name in inside]
        else:
            continue
        for name in names:
            yield name if name in modules else name.split(".")[0]


def graph_of(sources: dict[str, str]) -> dict[str, set[str]]:
    """Module -> what it imports."""
    return {name: set(imported(text, set(sources))) - {name} for name, text in sources.items()}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in graph[module] & set(graph):
            if other not in index:
                visit(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == index[module]:
            members = [stack.pop()]
            while members[-1] != module:
                members.append(stack.pop())
            if len(members) > 1:
                found.append(sorted(members))

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return found


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def arrows_up(graph: dict[str, set[str]]) -> list[str]:
    """Imports that the order does not allow, as "module -> module"."""
    return [
        f"{module} -> {other}"
        for module in sorted(graph)
        for other in sorted(graph[module] & set(graph))
        if room(other) != room(module) and room(other) not in ORDER[room(module)]
    ]


@cache
def course() -> dict[str, set[str]]:
    paths = sorted((ROOT / "rlnb").rglob("*.py"))
    return graph_of({named(path, ROOT): path.read_text(encoding="utf-8") for path in paths})


def test_no_modules_import_one_another_in_a_circle():
    assert circles(course()) == []


def test_no_arrow_points_up():
    rooms = {room(module) for module in course()}
    assert rooms <= set(ORDER), f"a new room needs its place in ORDER: {sorted(rooms - set(ORDER))}"
    assert arrows_up(course()) == []


@pytest.mark.parametrize("below", ["objective", "interop", "toys", "training"])
def test_the_rooms_below_need_no_screen(below):
    needing = {
        m: found for m, names in course().items() if room(m) == below if (found := names & SCREEN)
    }
    assert needing == {}


def test_the_reader_of_imports_sees_circles_arrows_and_hidden_imports():
    hidden = "def late():\n    from rlnb.toys import running\n"
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import rlnb.objective.b\n"
    graph = graph_of(
        {
            "rlnb.objective": "",
            "rlnb.objective.a": typed,
            "rlnb.objective.b": "from rlnb.objective.a import x\n" + hidden,
            "rlnb.toys": "",
            "rlnb.toys.running": "import matplotlib.pyplot\n",
        }
    )
    assert circles(graph) == [["rlnb.objective.a", "rlnb.objective.b"]]
    assert arrows_up(graph) == ["rlnb.objective.b -> rlnb.toys.running"]
    assert graph["rlnb.toys.running"] == {"matplotlib"}


# ---- public names


def public_modules() -> list[str]:
    """Every module of ours that says what is public."""
    paths = sorted((ROOT / "rlnb").rglob("*.py"))
    return [named(p, ROOT) for p in paths if "\n__all__ = [" in p.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", public_modules())
def test_every_public_name_is_reachable_and_documented(name):
    module = importlib.import_module(name)
    names = list(module.__all__)
    assert len(set(names)) == len(names), "a name is listed twice"
    for public in names:
        value = getattr(module, public)
        if name.startswith("rlnb.classroom.exercises."):
            continue  # the pages print these functions as they stand: their words are the page's
        if inspect.isfunction(value) or inspect.isclass(value):
            said = inspect.getdoc(value) if inspect.isfunction(value) else value.__doc__
            assert said and not said.startswith(f"{value.__name__}("), f"{public} has no docstring"


def test_every_public_part_is_reachable_from_objective():
    """What a room of `objective` makes public is public in `objective`, or marked here as inner."""
    inner = {
        "canonical", "spell",  # of parts, for the rooms above
        "Metrics", "covariance", "fork_tokens",  # made or used by what is public
        "Advantage", "Credit", "Gate", "Ratio", "Seam", "Shape", "Surrogate", "Term", "Weights",
    }  # fmt: skip
    package = importlib.import_module("rlnb.objective")
    for module in public_modules():
        if module.startswith("rlnb.objective."):
            names = set(importlib.import_module(module).__all__)
            assert names - inner <= set(package.__all__), module


def test_the_front_door_names_only_what_is_there():
    rlnb = importlib.import_module("rlnb")
    for name in rlnb.__all__:
        assert getattr(rlnb, name) is not None
    with pytest.raises(AttributeError, match="rlnb has no attribute 'from_tlr'"):
        _ = rlnb.from_tlr
