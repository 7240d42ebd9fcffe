"""What the names of a Python file hold, as far as its text says: read, never run.

A name counts where it is bound once. A function's parameter, an argparse flag, a dataclass field
and an environment variable count by the default that stands in the file, with a note that says so.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rlnb.interop.literals import NotRead, literal

__all__ = ["Values", "called", "shown"]

CASTS = {"float": float, "int": int, "str": str, "bool": bool}
BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match, ast.IfExp)
DEEP = 12  # names that stand for names


def called(call: ast.Call) -> str:
    """The last name of what is called: `trl.GRPOConfig(...)` is GRPOConfig."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def shown(node: ast.AST) -> str:
    """A syntax tree as one line of at most 50 characters."""
    try:
        text = " ".join(ast.unparse(node).split())
    except RecursionError:
        text = "a deeply nested expression"
    return text if len(text) <= 50 else text[:47] + "..."


class Values:
    """The bindings of one file. notes: what was assumed in the last `read`, a sentence each."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes = list(ast.walk(tree))
        self.parents = {c: n for n in self.nodes for c in ast.iter_child_nodes(n)}
        self.bound: dict[str, ast.AST] = {}
        self.parameters: dict[str, ast.expr] = {}
        self.annotated: dict[str, str] = {}
        self.classes = {n.name: n for n in self.nodes if isinstance(n, ast.ClassDef)}
        self.flags = dict(self._flags())
        self.notes: list[str] = []
        stores: Counter[str] = Counter()
        for node in self.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                if not isinstance(self._above(node), ast.ClassDef):
                    stores[node.id] += 1
            elif isinstance(node, ast.arg):
                stores[node.arg] += 1
                if isinstance(node.annotation, ast.Name):
                    self.annotated[node.arg] = node.annotation.id
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._parameters(node.args)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        self.bound[target.id] = node.value
        self.twice = {name for name, times in stores.items() if times > 1}

    def _above(self, node: ast.AST) -> ast.AST | None:
        statement = self.parents.get(node)
        return self.parents.get(statement) if statement is not None else None

    def _parameters(self, given: ast.arguments) -> None:
        positional = [*given.posonlyargs, *given.args]
        with_default = positional[len(positional) - len(given.defaults) :]
        for arg, default in zip(with_default, given.defaults, strict=True):
            self.parameters[arg.arg] = default
        for arg, maybe in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            if maybe is not None:
                self.parameters[arg.arg] = maybe

    def _flags(self) -> Iterator[tuple[str, ast.expr]]:
        """dest -> default of every add_argument of the file."""
        for node in self.nodes:
            if not (isinstance(node, ast.Call) and called(node) == "add_argument"):
                continue
            keywords = {k.arg: k.value for k in node.keywords}
            names = [a.value for a in node.args if isinstance(a, ast.Constant)]
            long = next((n for n in names if isinstance(n, str) and n.startswith("--")), None)
            if long is None:
                continue
            dest = keywords.get("dest")
            name = str(dest.value) if isinstance(dest, ast.Constant) else long[2:].replace("-", "_")
            action = keywords.get("action")
            stores_true = isinstance(action, ast.Constant) and action.value == "store_true"
            missing = ast.Constant(False if stores_true else None)
            if "required" not in keywords:
                yield name, keywords.get("default", missing)

    def branched(self, node: ast.AST) -> bool:
        """Whether a node stands in a branch of its function, so that it may not run."""
        above = self.parents.get(node)
        while above is not None and not isinstance(above, (ast.FunctionDef, ast.Module)):
            if isinstance(above, BRANCHES) and not self._always(above):
                return True
            above = self.parents.get(above)
        return False

    @staticmethod
    def _always(node: ast.AST) -> bool:
        """`if __name__ == "__main__":`, `with` and `try:` bodies run."""
        match node:
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))) | ast.With() | ast.Try():
                return True
        return False

    def read(self, node: ast.AST, deep: int = 0) -> Any:
        """The value of an expression; NotRead says what stands there instead."""
        if deep > DEEP:
            raise NotRead("names that stand for names")
        return literal(node, {}, 0, lambda other: self._resolve(other, deep + 1))

    def _resolve(self, node: ast.AST, deep: int) -> Any:
        match node:
            case ast.Name(id=name):
                return self._name(name, deep)
            case ast.Attribute(value=owner, attr=word):
                return self._attribute(owner, word, deep)
            case ast.Call(func=ast.Name(id=cast), args=[inner], keywords=[]) if cast in CASTS:
                return self._cast(cast, self.read(inner, deep))
            case ast.Call(args=[ast.Constant(value=str(name)), default]) if self._environment(
                node.func
            ):
                value = self.read(default, deep)
                self.notes.append(f"the variable {name} read as {value!r}, its default")
                return value
            case ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=key)):
                words, unread, rest = self.mapping(ast.Name(id=owner, ctx=ast.Load()), deep)
                if str(key) in words and not rest and str(key) not in dict(unread):
                    return words[str(key)]
        raise NotRead("not a literal")

    def _name(self, name: str, deep: int) -> Any:
        if name in self.twice:
            raise NotRead(f"{name}, bound more than once")
        if name in self.bound:
            try:
                return self.read(self.bound[name], deep)
            except NotRead:
                raise NotRead(f"{name}, not bound to a literal") from None
        if name in self.parameters:
            value = self.read(self.parameters[name], deep)
            self.notes.append(f"the parameter {name} read as {value!r}, its default")
            return value
        raise NotRead(f"{name}, not bound to a literal")

    def _attribute(self, owner: ast.expr, word: str, deep: int) -> Any:
        name = owner.id if isinstance(owner, ast.Name) else ""
        made = self.bound.get(name) if name not in self.twice else None
        if isinstance(made, ast.Tuple):
            made = None
        parses = isinstance(made, ast.Call) and called(made) in ("parse_args", "parse_known_args")
        if word in self.flags and (parses or (made is None and name)):
            value = self.read(self.flags[word], deep)
            self.notes.append(f"--{word} read as {value!r}, its default")
            return value
        kind = name if name in self.classes else self.annotated.get(name, "")
        if isinstance(made, ast.Call) and called(made) in self.classes:
            kind = called(made)
            for keyword in made.keywords:
                if keyword.arg == word:
                    return self.read(keyword.value, deep)
            if any(keyword.arg is None for keyword in made.keywords) or made.args:
                raise NotRead("not a literal")
        fields = self.fields(kind)
        if word in fields:
            value = self.read(fields[word], deep)
            if name != kind and not isinstance(made, ast.Call):
                self.notes.append(f"{kind}.{word} read as {value!r}, its default")
            return value
        raise NotRead("not a literal")

    def fields(self, kind: str) -> dict[str, ast.expr]:
        """name -> default of the fields of a class of this file; field(default=x) is x."""
        found: dict[str, ast.expr] = {}
        for node in self.classes[kind].body if kind in self.classes else ():
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    found[name] = value
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    found[name] = value
        for name, value in found.items():
            if isinstance(value, ast.Call) and called(value) in ("field", "Field"):
                default = next((k.value for k in value.keywords if k.arg == "default"), None)
                found[name] = default if default is not None else value
        return found

    def _cast(self, cast: str, value: Any) -> Any:
        try:
            return CASTS[cast](value)
        except (TypeError, ValueError):
            raise NotRead("not a literal") from None

    @staticmethod
    def _environment(func: ast.expr) -> bool:
        match func:
            case ast.Attribute(value=ast.Attribute(attr="environ"), attr="get"):
                return True
            case ast.Attribute(attr="getenv") | ast.Name(id="getenv"):
                return True
        return False

    def mapping(
        self, node: ast.AST, deep: int = 0
    ) -> tuple[dict[str, Any], list[tuple[str, str]], list[str]]:
        """(words read, (word, what stands there) not read, parts that may hold any word) of a
        dictionary: a literal, dict(...), a | b, a name bound to one, and what is stored in it."""
        words: dict[str, Any] = {}
        unread: list[tuple[str, str]] = []
        if deep > DEEP:
            return words, unread, [shown(node)]
        match node:
            case ast.Dict(keys=keys, values=values):
                pairs = [
                    (self._key(k) if k is not None else None, v)
                    for k, v in zip(keys, values, strict=True)
                ]
                return self._merged(pairs, deep)
            case ast.Call(func=ast.Name(id="dict"), args=parts, keywords=keywords):
                pairs = [(None, part) for part in parts] + [(k.arg, k.value) for k in keywords]
                return self._merged(pairs, deep)
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                return self._merged([(None, left), (None, right)], deep)
            case ast.Call(func=ast.Attribute(value=inner, attr="copy"), args=[]):
                return self.mapping(inner, deep + 1)
            case ast.Name(id=name) if name in self.bound and name not in self.twice:
                words, unread, rest = self.mapping(self.bound[name], deep + 1)
                for word, value, sure in self._stored(name):
                    if word is None:
                        more, gaps, loose = self.mapping(value, deep + 1)
                        if sure:
                            words, unread = {**words, **more}, unread + gaps
                        else:
                            unread += [(w, f"{v!r}, in a branch") for w, v in more.items()] + gaps
                        rest = rest + loose
                    else:
                        self._one(word, value, words, unread, sure)
                lost = {w for w, _ in unread}
                return {w: v for w, v in words.items() if w not in lost}, unread, rest
        return words, unread, [shown(node)]

    def _merged(self, pairs: Any, deep: int) -> tuple[dict[str, Any], list[tuple[str, str]], list]:
        words: dict[str, Any] = {}
        unread: list[tuple[str, str]] = []
        rest: list[str] = []
        for key, value in pairs:
            if key is None:
                more, gaps, loose = self.mapping(value, deep + 1)
                words.update(more)
                unread = [u for u in unread if u[0] not in more] + gaps
                rest += loose
            else:
                self._one(key, value, words, unread, True)
        return words, unread, rest

    def _one(
        self, word: str, node: ast.AST, words: dict[str, Any], unread: list, sure: bool
    ) -> None:
        unread[:] = [u for u in unread if u[0] != word]
        try:
            value = self.read(node)
            if sure:
                words[word] = value
                return
            why = f"{value!r}, in a branch"
        except NotRead as error:
            why = self.why(node, error)
        words.pop(word, None)
        unread.append((word, why))

    def why(self, node: ast.AST, error: NotRead) -> str:
        """What to print for a value that was not read."""
        return str(error) if isinstance(node, ast.Name) else shown(node)

    def _key(self, node: ast.AST) -> str:
        return str(node.value) if isinstance(node, ast.Constant) else shown(node)

    def _stored(self, name: str) -> Iterator[tuple[str | None, ast.expr, bool]]:
        """d["word"] = value and d.update(...), in order; whether they surely run."""
        found: list[tuple[int, str | None, ast.expr, ast.AST]] = []
        for node in self.nodes:
            match node:
                case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=owner), slice=key)]) if (
                    owner == name
                ):
                    found.append((node.lineno, self._key(key), node.value, node))
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=owner), attr="update"), args=args
                ) if owner == name:
                    found += [(node.lineno, None, arg, node) for arg in args]
                    found += [(node.lineno, k.arg, k.value, node) for k in node.keywords]
        for _, word, value, node in sorted(found, key=lambda f: f[0]):
            yield word, value, not self.branched(node)
