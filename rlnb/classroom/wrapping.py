"""Prose of a text twin at a width that a review can show: paragraphs and list items are refilled.

What has a shape of its own is left alone: headings, tables, formulas, code, HTML, and any line that
ends in a hard break. Rendered, a wrapped page is the same page.
"""

from __future__ import annotations

import re
import textwrap

__all__ = ["WIDTH", "too_wide", "wrapped"]

WIDTH = 100  # columns of the twin, its leading "# " included
_BODY = WIDTH - 2
_ITEM = re.compile(r"^(?P<lead>\s*(?:[*+-]|\d+\.)\s+|>\s)?(?P<text>.*)$")
_SHAPED = re.compile(r"^\s*(?:#|\||```|\$\$|<|!\[|\\begin|\\end)")


def wrapped(markdown: str, width: int = _BODY) -> str:
    """The source of a markdown cell, its long paragraphs refilled to `width` columns."""
    out, block, fence, formula = [], [], False, False
    for line in [*markdown.split("\n"), ""]:
        if line.lstrip().startswith("```"):
            fence = not fence
        inside = fence or formula or line.lstrip().startswith("```")
        if not fence and line.count("$$") % 2:
            formula, inside = not formula, True
        alone = inside or "$$" in line or _SHAPED.match(line) or line.strip() in ("", ">")
        starts_item = not alone and _ITEM.match(line)["lead"] is not None
        if block and (alone or starts_item or line.startswith("    ")):
            out += _refilled(block, width)
            block = []
        if alone or (not block and line.startswith("    ")):
            out.append(line)
        else:
            block.append(line)
    return "\n".join(out[:-1])


def _refilled(block: list[str], width: int) -> list[str]:
    """One paragraph or list item; as it was when it fits, or has a line break of its own."""
    if all(len(line) <= width for line in block) or any(line.endswith("  ") for line in block):
        return block
    lead = _ITEM.match(block[0])["lead"] or ""
    indent = "> " if lead == "> " else " " * len(lead)
    words = " ".join(
        [block[0][len(lead) :], *(line.strip().removeprefix("> ") for line in block[1:])]
    )
    kept = _SPACE_IN_FORMULA.sub(lambda m: m[0].replace(" ", "\0"), words)
    for narrower in range(0, 40, 4):
        lines = textwrap.wrap(
            kept,
            width - narrower,
            initial_indent=lead,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        # a line must not begin like a list, a heading or a quotation
        if lead == "> " or not any(_LIKE_A_LIST.match(line) for line in lines[1:]):
            return [line.replace("\0", " ") for line in lines]
    return block


_LIKE_A_LIST = re.compile(r"\s*(?:[*+-]|\d+\.|#+|>)\s")
# formulas, code and links stay on one line
_SPACE_IN_FORMULA = re.compile(r"\$[^$]+\$|`[^`]+`|\[[^\]]*\]\([^)]*\)| ?<!--.*?-->")


def too_wide(twin: str) -> list[int]:
    """Line numbers of the prose of a twin that could be narrower."""
    found, prose, formula, fence = [], False, False, False
    for number, line in enumerate(twin.splitlines(), start=1):
        if line.startswith("# %%"):
            prose = "[markdown]" in line
        elif prose and len(line) > WIDTH and not (formula or fence or _unbreakable(line[2:])):
            found.append(number)
        formula ^= line.count("$$") % 2 == 1
        fence ^= line.startswith("# ```")
    return found


def _unbreakable(line: str) -> bool:
    """A line with a shape of its own, or one long formula, link or piece of code."""
    return _SHAPED.match(line) is not None or "$$" in line or len(wrapped(line).split("\n")) == 1
