"""Text and syntax trees to values, without running anything.

A configuration is data, so only what stands there as a literal is read: numbers, text, True,
None, lists of them, sums and products of numbers, and names bound to such literals before.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["NotRead", "arithmetic", "literal", "scalar"]

DEEP = 20  # levels of a literal
LARGE = 10**12  # no hyper-parameter is larger; keeps 9**9**9 from being computed
OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
WORDS = {"true": True, "false": False, "null": None, "~": None}
# Python's float() reads 1_0, nan and unicode digits too; a configuration means none of them.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class NotRead(Exception):
    """The value is not a literal; str() says what stands there instead."""


def scalar(text: str) -> Any:
    """A word of a command line or YAML file as a value: numbers, true/false, null; else the text.

    "None" is None, as hydra and TRL's own command line write it; "none" stays text, because
    `scale_rewards="none"` means something.

    >>> scalar("3e-4"), scalar("True"), scalar("null"), scalar("none"), scalar("16")
    (0.0003, True, None, 'none', 16)
    """
    text = text.strip()
    if len(text) < 40 and NUMBER.fullmatch(text):
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    if text == "None":
        return None
    return WORDS.get(text.lower(), text)


def literal(
    node: ast.AST,
    names: Mapping[str, Any],
    deep: int = 0,
    resolve: Callable[[ast.AST], Any] | None = None,
) -> Any:
    """The value of a syntax tree of literals, with `names` for those bound before.

    resolve: asked for what is none, a name or an attribute say; raises NotRead where it knows
    nothing either. Raises NotRead for everything that would have to be run.

    >>> literal(ast.parse("4 * BASE", mode="eval").body, {"BASE": 256})
    1024
    """
    if deep > DEEP:
        raise NotRead("a literal nested too deeply")
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return node.value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            value = _number(literal(inner, names, deep + 1, resolve))
            return -value if isinstance(node.op, ast.USub) else value
        case ast.BinOp(op=op, left=left, right=right):
            one = literal(left, names, deep + 1, resolve)
            return _compute(op, one, literal(right, names, deep + 1, resolve))
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [literal(part, names, deep + 1, resolve) for part in parts]
        case ast.Dict(keys=keys, values=values):
            read = {}
            for k, v in zip(keys, values, strict=True):
                if k is None:  # {**other}
                    raise NotRead("not a literal")
                read[str(literal(k, names, deep + 1))] = literal(v, names, deep + 1, resolve)
            return read
    if resolve is not None:
        return resolve(node)
    raise NotRead("not a literal")


def arithmetic(text: str, names: Mapping[str, Any]) -> int:
    """The value of a shell's $((...)): whole numbers and names of them.

    >>> arithmetic("(prompt + 1024) * 2", {"prompt": 1024})
    4096
    """
    try:
        tree = ast.parse(text.replace("$", "").strip(), mode="eval").body
        value = literal(tree, names)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotRead("arithmetic that is not of literals") from error
    return int(_number(value))


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > LARGE:
        raise NotRead("not a number of usual size")
    return value


def _compute(op: ast.operator, left: Any, right: Any) -> int | float:
    left, right = _number(left), _number(right)
    if isinstance(op, ast.Pow) and abs(right) <= 12 and abs(left) <= 1024 and left != 0:
        return _number(left**right)
    if type(op) not in OPERATIONS or (right == 0 and isinstance(op, (ast.Div, ast.FloorDiv))):
        raise NotRead("not a literal")
    return _number(OPERATIONS[type(op)](left, right))
