"""Python source that builds a TRL configuration, read as a syntax tree and never run."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlnb.interop.literals import NotRead
from rlnb.interop.python_values import Values, called, shown

__all__ = ["CONFIGS", "Call", "PythonSource", "has_python_config", "read_python"]

CONFIGS = ("GRPOConfig", "RLOOConfig", "GMPOConfig")
CALL = re.compile(r"\b(?:GRPO|RLOO|GMPO)Config\s*\(")
PARSERS = ("TrlParser", "HfArgumentParser", "H4ArgumentParser", "ArgumentParser")
TRAINER = re.compile(r"(?:GRPO|RLOO|GMPO|PPO|GSPO|DAPO|RL)\w*Trainer$")
# the methods of TRL's trainer that compute the loss or the advantages
LOSSES = {"compute_loss", "_compute_loss", "_generate_and_score_completions", "_prepare_inputs"}
NESTED = 60  # open brackets at once; a real script stays below 15

Words = dict[str, Any]
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Call:
    """One configuration call. kind: TRL's class; words and unread (word, what stands there);
    notes: what was assumed; doubts: why the words do not settle what runs."""

    kind: str
    where: str
    words: Words
    unread: Pairs
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class PythonSource:
    """What a Python file says. calls: the configuration calls, in order; modules: what it imports,
    first parts; parsed: the classes that a command-line parser of the file fills; own: a class
    called GRPOConfig that is not TRL's, or ""; home: the module that it comes from; texts: the
    docstrings; assigned: the words at module level."""

    calls: tuple[Call, ...]
    modules: frozenset[str]
    parsed: tuple[str, ...]
    own: str
    home: str
    texts: tuple[str, ...]
    assigned: tuple[Words, Pairs]


def has_python_config(text: str) -> bool:
    """Whether a call of one of TRL's configuration classes stands in the text."""
    return CALL.search(text) is not None


def read_python(text: str) -> PythonSource:
    """Every configuration call of a Python file, and what else tells which library it is for.

    `beta=BETA` is read when BETA is bound once, to a literal, a default of the file's own parser
    or a parameter's default; keywords of a dictionary (`**common`) by every key that can be read,
    and assignments after the call (`args.beta = 0.1`) too. Raises ValueError in one sentence.
    """
    tree = _parse(text)
    values = Values(tree)
    modules, homes = _imports(values.nodes)
    kinds, own, home = _classes(values, homes)
    calls = [
        node
        for node in values.nodes
        if isinstance(node, ast.Call) and called(node) in kinds and not _of_class(node, values)
    ]
    calls.sort(key=lambda node: (node.lineno, node.col_offset))
    unsloth = "unsloth" in modules
    read = tuple(_read_call(node, kinds[called(node)], values, homes, unsloth) for node in calls)
    doubts = _trainers(values, homes)
    read = tuple(replace(call, doubts=[*call.doubts, *doubts]) for call in read)
    parsed = tuple(
        arg.id
        for node in values.nodes
        if isinstance(node, ast.Call) and called(node) in PARSERS
        for inner in node.args
        for arg in ast.walk(inner)
        if isinstance(arg, ast.Name)
    )
    return PythonSource(
        read, modules, parsed, own, home, _docstrings(values.nodes), _assigned(tree, values)
    )


def _parse(text: str) -> ast.Module:
    # Notebook cells carry shell escapes and magics, which are not Python.
    source = without_magics(textwrap.dedent(text))
    open_now = 0
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


def without_magics(text: str) -> str:
    """Python source with notebook magics (`!pip`, `%time`) replaced by `pass`, line by line; a
    continued magic takes its continuation lines with it.

    >>> without_magics("if new:\\n    !pip install \\\\\\n      trl\\nx = 1")
    'if new:\\n    pass\\n\\nx = 1'
    """
    lines, inside = [], False
    for line in text.splitlines():
        begins = re.match(r"(\s*)(?:[!%]|\w+\s*=\s*!)", line)
        if inside or begins:
            # `pass` keeps an `if` whose only line is a magic
            lines.append(f"{begins[1]}pass" if begins and not inside else "")
            inside = line.rstrip().endswith("\\")
        else:
            lines.append(line)
    return "\n".join(lines)


def _imports(nodes: list[ast.AST]) -> tuple[frozenset[str], dict[str, str]]:
    """(first parts of what is imported, name here -> module.name it comes from)."""
    homes: dict[str, str] = {}
    modules: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
            homes |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            modules.add(module)
            homes |= {a.asname or a.name: f"{module}.{a.name}" for a in node.names}
    return frozenset(modules | {m.split(".")[0] for m in modules}), homes


def _classes(values: Values, homes: dict[str, str]) -> tuple[dict[str, str], str, str]:
    """(name here -> TRL's class, a class of that name that is not TRL's, its module)."""
    kinds = {name: name for name in CONFIGS}
    own, home = "", ""
    for name, origin in homes.items():
        last = origin.rpartition(".")[2]
        if last in CONFIGS:
            kinds[name] = last
            if not origin.startswith(("trl.", "unsloth")):
                own, home = name, origin.rpartition(".")[0]
    for _ in range(3):  # a class of a class
        for name, node in values.classes.items():
            bases = [
                b.id if isinstance(b, ast.Name) else getattr(b, "attr", "") for b in node.bases
            ]
            base = next((kinds[b] for b in bases if b in kinds and b != name), None)
            if base is not None:
                kinds[name] = base
            elif name in CONFIGS and not any(b in CONFIGS for b in bases):
                kinds.pop(name, None)
                own, home = name, "this file"
    return kinds, own, home


def _trainers(values: Values, homes: dict[str, str]) -> list[str]:
    """A doubt for each trainer whose loss may not be TRL's: imported from elsewhere, or a class of
    this file that has a loss of its own."""
    doubts = []
    for name, origin in homes.items():
        if TRAINER.search(name) and origin.split(".")[0] not in ("trl", "unsloth"):
            doubts.append(f"{name} comes from {origin.rpartition('.')[0]}: its loss was not seen")
    for name, node in values.classes.items():
        bases = [b.id for b in node.bases if isinstance(b, ast.Name)]
        methods = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
        own = sorted(methods & LOSSES)
        if own and any(TRAINER.search(b) for b in bases):
            doubts.append(f"class {name} of this file has its own {own[0]}")
    return doubts


def _of_class(node: ast.Call, values: Values) -> bool:
    """`OtherLibrary.GRPOConfig(...)` of something that is not trl."""
    match node.func:
        case ast.Attribute(value=ast.Name(id=owner)):
            return owner not in ("trl",) and owner[:1].isupper()
    return False


def _read_call(
    node: ast.Call, kind: str, values: Values, homes: dict[str, str], unsloth: bool
) -> Call:
    words: Words = {}
    unread: Pairs = []
    doubts: list[str] = []
    values.notes.clear()
    notes: list[str] = []
    name = called(node)
    origin = homes.get(name, "")
    for base in _lineage(name, values):
        for word, default in values.fields(base).items():
            _take(word, default, values, words, unread, notes)
        notes.append(f"the defaults of class {base} of this file are read")
    outside = _outside(name, values, homes)
    if outside:
        doubts.append(f"{name} comes from {outside}, which may have defaults of its own")
    if unsloth:
        doubts.append(
            "Unsloth puts its own GRPOConfig and loss in TRL's place, with defaults of its own"
        )
    for argument in node.args:
        unread.append(("a positional argument", shown(argument)))
        doubts.append(f"{shown(argument)}, a positional argument, was not read")
    for keyword in node.keywords:
        if keyword.arg is not None:
            _take(keyword.arg, keyword.value, values, words, unread, notes)
            continue
        more, gaps, rest = values.mapping(keyword.value)
        notes += [f"{w}: {n}" for n in values.notes for w in more]
        values.notes.clear()
        unread = [u for u in unread if u[0] not in more] + gaps
        words.update(more)
        for word, _ in gaps:
            words.pop(word, None)
        for part in rest:
            unread.append(("**", part))
            doubts.append(f"**{part} was not read, and may hold any word")
    for word, value, sure in _attributes_after(values, node):
        if sure:
            _take(word, value, values, words, unread, notes)
        else:
            words.pop(word, None)
            unread[:] = [u for u in unread if u[0] != word]
            unread.append((word, f"{shown(value)}, in a branch"))
    where = f"the {name}(...) call on line {node.lineno}"
    if origin == "" and name in CONFIGS:
        origin = "trl"
    return Call(kind, where, words, unread, list(dict.fromkeys(notes)), doubts)


def _lineage(name: str, values: Values) -> list[str]:
    """The classes of this file behind a name, the most basic first."""
    chain: list[str] = []
    while name in values.classes and name not in chain and len(chain) < 5:
        chain.insert(0, name)
        bases = [b.id for b in values.classes[name].bases if isinstance(b, ast.Name)]
        name = next((b for b in bases if b in values.classes), "")
    return chain


def _outside(name: str, values: Values, homes: dict[str, str]) -> str:
    """The module, not TRL, that the class or its base comes from; "" for TRL."""
    chain = _lineage(name, values)
    if chain:
        bases = [b.id for b in values.classes[chain[0]].bases if isinstance(b, ast.Name)]
        name = next((b for b in bases if b in homes), "")
    home = homes.get(name, "").rpartition(".")[0]
    return "" if home.split(".")[0] in ("", "trl", "unsloth") and home != "." else home


def _take(
    name: str, node: ast.AST, values: Values, words: Words, unread: Pairs, notes: list[str]
) -> None:
    unread[:] = [u for u in unread if u[0] != name]
    values.notes.clear()
    try:
        words[name] = values.read(node)
        notes += [f"{name}: {note}" for note in values.notes]
    except NotRead as error:
        words.pop(name, None)
        unread.append((name, values.why(node, error)))
    values.notes.clear()


def _attributes_after(values: Values, call: ast.Call) -> list[tuple[str, ast.expr, bool]]:
    """`args.beta = 0.1` below `args = GRPOConfig(...)`, and whether it surely runs."""
    parent = values.parents.get(call)
    owner = next((t.id for t in getattr(parent, "targets", ()) if isinstance(t, ast.Name)), None)
    found = []
    for node in values.nodes:
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id=name), attr=word)], value=value
            ) if name == owner and node.lineno > call.lineno:
                found.append((node.lineno, word, value, not values.branched(node)))
    return [(word, value, sure) for _, word, value, sure in sorted(found, key=lambda f: f[0])]


def _docstrings(nodes: Sequence[ast.AST]) -> tuple[str, ...]:
    texts = []
    for node in nodes:
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)):
            if text := ast.get_docstring(node):
                texts.append(text)
    return tuple(texts)


def _assigned(tree: ast.Module, values: Values) -> tuple[Words, Pairs]:
    words: Words = {}
    unread: Pairs = []
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)], value=value):
                _take(name, value, values, words, unread, [])
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                _take(name, value, values, words, unread, [])
    return words, unread
