"""A cell can be run again after the whole page has: nothing it reads was overwritten further down.

Read off the code and not run: what a cell reads at its top level or in a function it calls there,
and what later cells write at theirs.
"""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pytest

from rlnb.classroom.pages import committed_notebooks, page_name


def local_names(statement: ast.stmt) -> set[str]:
    """Parameters, and what functions and comprehensions inside a statement bind for themselves."""
    found: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            given = node.args
            found |= {a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
            found |= {a.arg for a in (given.vararg, given.kwarg) if a is not None}
        if isinstance(node, ast.FunctionDef):
            found |= {name for inner in node.body for name in bound(inner)}
        if isinstance(node, ast.comprehension):
            found |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    return found


def bound(node: ast.AST) -> set[str]:
    stored = {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return stored | ({node.name} if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else set())


def reads_and_writes(source: str) -> tuple[set[str], set[str]]:
    """What a cell needs from cells above, and what it leaves for cells below."""
    reads: set[str] = set()
    writes: set[str] = set()
    for statement in ast.parse(source).body:
        local = local_names(statement)
        stores = bound(statement) - local
        loads = {
            n.id
            for n in ast.walk(statement)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
        } - local
        if isinstance(statement, ast.AugAssign):
            loads |= stores
        if isinstance(statement, (ast.For, ast.With, ast.If)):
            loads -= stores  # bound on the way
        reads |= loads - writes
        writes |= stores
    return reads, writes


def overwritten(sources: list[str]) -> list[str]:
    """A sentence for each name that a cell reads and a later cell replaces."""
    cells = [reads_and_writes(source) for source in sources]
    found = []
    for i, (reads, _) in enumerate(cells):
        made = set().union(*(writes for _, writes in cells[:i])) & reads
        for j in range(i + 1, len(cells)):
            found += [
                f"code cell {i} reads {name!r}, code cell {j} overwrites it"
                for name in sorted(made & cells[j][1])
            ]
    return found


@pytest.mark.parametrize("path", committed_notebooks(), ids=page_name)
def test_no_cell_overwrites_what_an_earlier_one_reads(path: Path):
    page = nbformat.read(path, as_version=4)
    code = [cell.source for cell in page.cells if cell.cell_type == "code"]
    found = overwritten(code)
    assert not found, "\n".join(found)


def test_an_overwritten_name_is_found_and_a_new_or_local_one_is_not():
    assert overwritten(["x = 1", "print(x)", "x = 2"]) == [
        "code cell 1 reads 'x', code cell 2 overwrites it"
    ]
    assert overwritten(["x = 1", "print(x)", "y = [x for x in (2, 3)]"]) == []
    assert overwritten(["x = 1", "def f(x):\n    return x", "x = 2"]) == []
    assert overwritten(["x = 1", "x += 1", "x = 5"]) != []
