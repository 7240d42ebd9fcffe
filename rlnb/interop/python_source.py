"""Python source that builds a TRL configuration, read as a syntax tree and never run."""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter
from typing import Any

from rlnb.interop.literals import NotRead, literal

__all__ = ["CONFIGS", "has_python_config", "read_python"]

CONFIGS = ("GRPOConfig", "RLOOConfig", "GMPOConfig")
CALL = re.compile(r"\b(?:GRPO|RLOO|GMPO)Config\s*\(")
NESTED = 60  # open brackets at once; a real script stays below 15

Words = dict[str, Any]
Pairs = list[tuple[str, str]]


def has_python_config(text: str) -> bool:
    """Whether a call of one of TRL's configuration classes stands in the text."""
    return CALL.search(text) is not None


def read_python(text: str) -> tuple[str, Words, Pairs, str]:
    """(class, words, not read, where) of the first configuration call in Python source.

    `beta=BETA` is read when BETA is bound once, to a literal. Keywords of a literal dictionary
    (`**common`) and assignments after the call (`args.beta = 0.1`) are read too. Without a call,
    assignments at module level are taken as the words. Raises ValueError in one sentence.
    """
    tree = _parse(text)
    nodes = list(ast.walk(tree))
    names, twice = _bound(nodes)
    calls = sorted(
        (n for n in nodes if isinstance(n, ast.Call) and _called(n) in CONFIGS),
        key=lambda n: n.lineno,
    )
    if not calls:
        return "GRPOConfig", *_assigned(tree, names), "assignments at module level"
    first, *more = calls
    words: Words = {}
    skipped: Pairs = []
    for argument in first.args:
        skipped.append(("a positional argument", _shown(argument)))
    for keyword in first.keywords:
        _take(keyword.arg, keyword.value, names, twice, words, skipped)
    for target, value in _attributes_after(nodes, first):
        _take(target, value, names, twice, words, skipped)
    skipped += [(f"{_called(c)} on line {c.lineno}", "only the first call is read") for c in more]
    return _called(first), words, skipped, f"the {_called(first)}(...) call on line {first.lineno}"


def _parse(text: str) -> ast.Module:
    # Notebook cells carry shell escapes and magics, which are not Python.
    lines = [
        "" if re.match(r"\s*[!%]", line) else line for line in textwrap.dedent(text).splitlines()
    ]
    source, open_now = "\n".join(lines), 0
    for character in source:
        open_now += (character in "([{") - (character in ")]}")
        if open_now > NESTED:
            raise ValueError(
                f"the Python source has more than {NESTED} brackets open at once, "
                "which no configuration has; pass the configuration call alone."
            )
    # a manual's "..." between keywords is no argument: the second try leaves it out
    second = re.sub(r"^[ \t]*\.\.\.,?[ \t]*$", "", source, flags=re.MULTILINE)
    problem = ""
    for attempt in (source, second):
        try:
            return ast.parse(attempt)
        except SyntaxError as error:
            problem = problem or f"line {error.lineno}: {error.msg}"
        except (ValueError, RecursionError, MemoryError):
            raise ValueError(
                "the Python source does not parse: it is nested too deeply or holds "
                "characters that Python refuses."
            ) from None
    raise ValueError(
        f"the Python source does not parse: {problem}. Pass the whole file, "
        "or the configuration call alone."
    )


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _bound(nodes: list[ast.AST]) -> tuple[Words, set[str]]:
    """Names bound once, to a literal; and the names bound more than once."""
    stores = [
        n.id if isinstance(n, ast.Name) else n.arg
        for n in nodes
        if isinstance(n, ast.arg) or (isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    ]
    twice = {name for name, times in Counter(stores).items() if times > 1}
    names: Words = {}
    plain = [n for n in nodes if isinstance(n, (ast.Assign, ast.AnnAssign))]
    for node in sorted(plain, key=lambda n: n.lineno):
        if node.value is None:  # `beta: float` alone
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and target.id not in twice:
                try:
                    names[target.id] = literal(node.value, names)
                except NotRead:
                    pass
    return names, twice


def _take(
    name: str | None, node: ast.AST, names: Words, twice: set[str], words: Words, skipped: Pairs
) -> None:
    try:
        value = literal(node, names)
    except NotRead:
        why = _shown(node)
        if isinstance(node, ast.Name):
            why += ", bound more than once" if node.id in twice else ", not bound to a literal"
        if name is not None:
            words.pop(name, None)
        skipped.append((name or "**", why))
        return
    if name is None and isinstance(value, dict):
        words.update(value)
    elif name is not None:
        words[name] = value


def _attributes_after(nodes: list[ast.AST], call: ast.Call) -> list[tuple[str, ast.AST]]:
    """`args.beta = 0.1` below `args = GRPOConfig(...)`."""
    owner = next(
        (
            n.targets[0].id
            for n in nodes
            if isinstance(n, ast.Assign) and n.value is call and isinstance(n.targets[0], ast.Name)
        ),
        None,
    )
    found = []
    for node in nodes:
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id=name), attr=word)], value=value
            ) if name == owner and node.lineno > call.lineno:
                found.append((node.lineno, word, value))
    return [(word, value) for _, word, value in sorted(found, key=lambda f: f[0])]


def _assigned(tree: ast.Module, names: Words) -> tuple[Words, Pairs]:
    words: Words = {}
    skipped: Pairs = []
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)], value=value):
                _take(name, value, names, set(), words, skipped)
    return words, skipped


def _shown(node: ast.AST) -> str:
    try:
        text = " ".join(ast.unparse(node).split())
    except RecursionError:
        text = "a deeply nested expression"
    return text if len(text) <= 50 else text[:47] + "..."
