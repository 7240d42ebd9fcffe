"""Files that hold files: a notebook's cells, the code blocks of a Markdown page."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass

from rlnb.interop.python_source import has_python_config, without_magics

__all__ = ["Part", "fenced_parts", "notebook_parts"]

CELL = re.compile(r"\A\s*%%(bash|sh|shell|writefile|file)\b[ \t]*(\S*)[^\n]*\n", re.MULTILINE)
COMMAND = re.compile(r"^\s*[!%](?:sh )?\s*(?=\S)", re.MULTILINE)
ENDINGS = {
    ".py": "python",
    ".sh": "shell",
    ".yaml": "data",
    ".yml": "data",
    ".json": "data",
    ".toml": "toml",
}
FENCE = re.compile(r"^```[ \t]*(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
FENCES = {
    "python": "python",
    "py": "python",
    "bash": "shell",
    "sh": "shell",
    "shell": "shell",
    "yaml": "data",
    "yml": "data",
    "toml": "toml",
    "json": "data",
}


@dataclass(frozen=True)
class Part:
    """A piece of a file that is a file of its own. kind: "python", "shell", "data" or "toml";
    where: what to add to the place in the report."""

    kind: str
    text: str
    where: str


def notebook_parts(text: str) -> list[Part] | None:
    """The code of a notebook's cells as one Python file, and each cell or `!` line of shell; None
    for anything else. Saved outputs are not looked at."""
    if not (text.lstrip()[:1] == "{" and '"cell_type"' in text):
        return None
    try:
        cells = [
            "".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"
        ]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    code: list[str] = []
    parts: list[Part] = []
    for number, cell in enumerate(cells, 1):
        if found := CELL.match(cell):
            kind = "shell" if found[1] in ("bash", "sh", "shell") else ""
            kind = kind or next((k for e, k in ENDINGS.items() if found[2].endswith(e)), "")
            if kind:
                parts.append(Part(kind, cell[found.end() :], f", code cell {number}"))
            continue
        lines = re.sub(r"\A\s*%%[^\n]*\n", "", cell)
        if commands := _commands(lines):
            parts.append(Part("shell", commands, f", code cell {number}"))
        try:
            ast.parse(without_magics(lines))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            if not has_python_config(lines):
                continue  # a cell that is no Python takes nothing else with it
        code.append(lines)
    python = Part("python", "\n".join(code), "")
    return [python, *parts] if python.text.strip() else parts or [python]


def _commands(cell: str) -> str:
    """The `!command` lines of a cell, with their continuation lines."""
    lines, inside = [], False
    for line in cell.splitlines():
        begins = COMMAND.match(line)
        if inside or begins:
            lines.append(line[begins.end() :] if begins and not inside else line)
            inside = line.rstrip().endswith("\\")
    return "\n".join(lines) if any(" --" in line or "=" in line for line in lines) else ""


def fenced_parts(text: str) -> list[Part]:
    """The code blocks of a Markdown page that a configuration can stand in; none for other text."""
    if "```" not in text:
        return []
    return [
        Part(FENCES[language.lower()], body, "")
        for language, body in FENCE.findall(text)
        if language.lower() in FENCES
    ]
