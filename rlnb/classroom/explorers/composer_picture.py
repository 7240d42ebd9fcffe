"""What the composer shows: its findings in words, and the push on every token in a picture."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from rlnb.classroom.cached_text import LARGE, Letters, columns
from rlnb.classroom.explorers.composer_menus import REWARDS
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, PALE, POSITIVE, VERMILLION, signed
from rlnb.objective import Difference, topk_mix
from rlnb.toys import running_batch

__all__ = [
    "SIZE",
    "alt",
    "block",
    "build",
    "changes",
    "findings",
    "moved",
    "paint",
    "report",
    "update",
]

SAME = 1e-5  # a factor that near to 1 is 1

# data units are CSS pixels, y downwards
SIZE = (900, 418)
MARGIN, LEFT, TOP = 8, 176, 88
CELL, BAND, ROW, GAP = 76, 21, 23, 5
BARS, LONGEST = 720, 100
TITLE, CODE_TOP, TEXT_TOP, LINE = 16, 39, 300, 17
COLUMNS, LINES, CODE_LINES = columns(SIZE[0] - 2 * MARGIN, LARGE), 7, 2
NOTE = 10.5  # points


# ---- in words


def report(data: dict[str, Any], width: int = 76) -> str:
    """Name, spelling, neighbours, twins and both libraries' words as text, `width` columns."""
    lines = [("name", data["name"] or "none"), ("made of", data["code"])]
    lines += findings(data, whole=True)
    return "\n".join(block(lines, width))


def findings(data: dict[str, Any], whole: bool = False) -> list[tuple[str, str]]:
    """(word, sentence) pairs: what there is to say about a composition beside its name.

    whole: every neighbour's differences in full, not only the nearest one's.
    """
    nearest = "nearest" if data["name"] is None else "beside it"
    lines = [
        (nearest if i == 0 else "", f"{name} {_apart(gap, whole or i == 0)}")
        for i, (name, gap) in enumerate(data["nearest"])
    ]
    if data["twins"]:
        some = ", ".join(_twin(*twin) for twin in data["twins"][:4])
        more = len(data["twins"]) - 4
        lines.append(("same push", some + (f" and {more} more" if more > 0 else "")))
    split = data["objective"].ratio
    if isinstance(split, topk_mix):
        lines.append(
            (
                "not shown",
                f"{split.alpha:.0%} of a right answer's fork token goes to its "
                "likeliest candidates",
            )
        )
    if data["problem"]:
        lines.append(("cannot run", data["problem"]))
    return lines + [(library, str(said)) for library, said in data["said"].items()]


def changes(gap: Difference) -> str:
    """A changelog on one line."""
    return "; ".join(str(change) for change in gap)


def _apart(gap: Difference, whole: bool) -> str:
    if whole or len(gap) <= 2:
        return f"with {changes(gap)}"
    return f"with other {', '.join(change.part for change in gap)}"


def _twin(name: str, factor: float) -> str:
    return name if abs(factor - 1) < SAME else f"{factor:.4g} x {name}"


def block(lines: list[tuple[str, str]], width: int) -> list[str]:
    """Pairs as lines of at most `width` characters, the sentences indented by 11."""
    return [
        line
        for key, text in lines
        for line in textwrap.wrap(
            text,
            width,
            initial_indent=f"{key:<11}",
            subsequent_indent=" " * 11,
            break_on_hyphens=False,
        )
    ]


def alt(data: dict[str, Any]) -> str:
    """Name, nearest, sum of |gradient| per answer, words: what a reader without eyes needs."""
    near = "; ".join(f"{name} with {changes(gap)}" for name, gap in data["nearest"])
    head = f"The composer: {data['name'] or 'no name'}. {data['code']}. Nearest: {near}."
    if data["problem"]:
        return f"{head} It cannot run: {data['problem']}"
    sums = ", ".join(f"{s:.4f}" for s in data["answers"])
    largest = np.abs(data["push"]).max()
    other = int(moved(data).sum())
    said = " ".join(f"{library}: {said}" for library, said in data["said"].items())
    return (
        f"{head} Cells: the push on each token, at most {largest:.4f} in size, {other} other than "
        f"with {_against(data)}. Sum of |gradient| per answer, rewards {data['rewards']}: {sums}. "
        f"{said}"
    )


def moved(data: dict[str, Any]) -> np.ndarray:
    """(8, 7) bool: tokens whose push is another than in the method one started from."""
    return np.abs(data["change"]) > SAME * max(np.abs(data["push"]).max(), 1e-12)


# ---- in a picture


def _y(row: int) -> float:
    """The upper edge of a row's cells."""
    return TOP + row * ROW + GAP * (row // 4)


def build(figure, data, height: int = SIZE[1]):
    """The figure, drawn once; `update` moves it. height: of the figure, in CSS pixels."""
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, SIZE[0]), ylim=(height, 0))
    axes.axis("off")
    mask = running_batch().mask.numpy()
    note = {"size": NOTE, "color": GREY, "va": "center"}
    corners = [(LEFT + column * CELL, _y(row)) for row, column in np.argwhere(mask)]
    for row, column in np.argwhere(~mask):
        axes.add_patch(
            Rectangle(
                (LEFT + column * CELL + 1, _y(row)), CELL - 2, BAND, fc=PALE, ec="white", hatch="//"
            )
        )
    for column in range(mask.shape[1]):
        axes.text(LEFT + (column + 0.5) * CELL, TOP - 9, f"token {column}", ha="center", **note)
    axes.text(BARS, TOP - 9, "size of all pushes", **note)
    for prompt in range(2):
        middle = (_y(4 * prompt) + _y(4 * prompt + 3) + BAND) / 2
        axes.text(MARGIN + 2, middle, f"prompt {prompt + 1}", rotation=90, ha="center", **note)
    shape = np.array([(1, 0), (CELL - 1, 0), (CELL - 1, BAND), (1, BAND)])
    cells = PolyCollection([shape + corner for corner in corners], edgecolors=GREY, linewidths=0.6)
    rows = range(len(mask))
    return {
        "cells": axes.add_collection(cells),
        "bars": axes.barh(
            [_y(r) + BAND / 2 for r in rows], np.ones(len(rows)), BAND - 8, left=BARS, color=GREY
        ),
        "cut": axes.plot([], [], "x", ms=5, mew=1.6, color=BLACK)[0],
        "veil": axes.add_patch(
            Rectangle(
                (MARGIN, TOP - 20),
                SIZE[0] - 2 * MARGIN,
                TEXT_TOP - TOP + 8,
                fc="white",
                ec=VERMILLION,
                lw=1.5,
            )
        ),
        "title": axes.text(MARGIN, TITLE, "", va="center", size=14, weight="bold"),
        "letters": axes.add_artist(Letters(LARGE)),
    }


def update(artists, data):
    """The figure moved to new data."""
    name = data["name"] or f"no name   (nearest: {data['nearest'][0][0]})"
    artists["title"].set_text(name)
    artists["letters"].lines = _findings_lines(data) + paint(artists, data)


def _thousandths(value: float) -> str:
    return signed(1000 * value, 1 if abs(value) < 1 else 0)


def paint(artists, data, number: Callable[[float], str] = _thousandths) -> list[tuple]:
    """Cells, bars and marks moved to new data, or a veil; returns the lines to write on them.

    number: how a push is written.
    """
    runs = data["problem"] is None
    artists["veil"].set_visible(not runs)
    for artist in (artists["cells"], artists["cut"], *artists["bars"]):
        artist.set_visible(runs)
    if runs:
        return _fill(artists, data, number)
    sentence = [
        "This composition cannot run on these rewards.",
        "",
        *textwrap.wrap(data["problem"], 76),
    ]
    return [
        (SIZE[0] / 2, TOP + 50 + LINE * i, text, BLACK, "center") for i, text in enumerate(sentence)
    ]


def _findings_lines(data) -> list[tuple]:
    """The spelling above the cells, what there is to say below; `report` has it unabridged."""
    code = textwrap.wrap(data["code"], COLUMNS, break_on_hyphens=False)
    if len(code) > CODE_LINES:
        code = [*code[: CODE_LINES - 1], code[CODE_LINES - 1][: COLUMNS - 2] + " …"]
    lines = [(MARGIN, CODE_TOP + LINE * i, text, BLACK, "left") for i, text in enumerate(code)]
    said = [(key, text) for key, text in findings(data) if key not in ("cannot run", "")]
    name, gap = data["nearest"][0]
    brief = [
        (said[0][0], f"{name} with other {', '.join(change.part for change in gap)}"),
        *said[1:],
    ]
    for pairs, most in ((said, 3), (brief, 3), (brief, 2), (brief, 1)):
        text = [line for pair in pairs for line in _short(*pair, most)]
        if len(text) <= LINES:
            break
    return lines + [
        (MARGIN, TEXT_TOP + LINE * i, line, BLACK, "left") for i, line in enumerate(text[:LINES])
    ]


def _short(key: str, text: str, most: int) -> list[str]:
    """One finding on at most `most` lines: whole sentences, and "…" for those left out."""
    sentences = re.split(r"(?<=\.) (?=[A-Z]|verl)", text)
    for count in range(len(sentences), 0, -1):
        left_out = " …" if count < len(sentences) else ""
        lines = block([(key, " ".join(sentences[:count]) + left_out)], COLUMNS)
        if len(lines) <= most:
            return lines
    return [*lines[: most - 1], lines[most - 1][: COLUMNS - 2] + " …"]


def _fill(artists, data, number) -> list[tuple]:
    """Colours, frames, bars and marks; returns the numbers to write on them."""
    mask = data["mask"]
    values = data["push"][mask]
    colours = _colours(values)
    other = moved(data)[mask] & data["start_runs"]
    artists["cells"].set_facecolor(colours)
    artists["cells"].set_edgecolor([BLACK if bold else GREY for bold in other])
    artists["cells"].set_linewidth([2.4 if bold else 0.6 for bold in other])
    places = np.argwhere(mask)
    lines = [
        (LEFT + (column + 0.5) * CELL, _y(row) + BAND / 2, number(value), _ink(colour), "center")
        for (row, column), value, colour in zip(places, values, colours, strict=True)
    ]
    gone = [(row, column) for row, column in places if data["gate"][row, column] == 0]
    artists["cut"].set_data(
        [LEFT + column * CELL + 10 for _, column in gone], [_y(row) + BAND / 2 for row, _ in gone]
    )
    longest = max(data["answers"].max(), 1e-12)
    for row, total in enumerate(data["answers"]):
        width, middle = LONGEST * total / longest, _y(row) + BAND / 2
        artists["bars"][row].set_width(width)
        own = data["advantages"][row][mask[row]]
        reward = REWARDS[data["rewards"]][row]
        lines += [
            (BARS + width + 6, middle, number(total).lstrip("+"), BLACK, "left"),
            (LEFT - 6, middle, f"R {reward:g} A {_range(own)}", BLACK, "right"),
        ]
    return lines


def _against(data) -> str:
    return data["start"] if data["start_runs"] else f"nothing: {data['start']} cannot run here"


def _colours(values: np.ndarray) -> np.ndarray:
    """(n, 3): white at 0, the colour of the sign at the largest, in between on a straight line."""
    share = values / max(np.abs(values).max(initial=0.0), 1e-12)
    ends = np.where(share[:, None] > 0, to_rgb(POSITIVE), to_rgb(NEGATIVE))
    return 1 - np.abs(share)[:, None] * (1 - ends)


def _ink(colour: np.ndarray) -> str:
    """Black or white, whichever stands out more (relative luminance, WCAG 2)."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return BLACK if linear @ (0.2126, 0.7152, 0.0722) > 0.179 else "white"


def _range(values: np.ndarray) -> str:
    low, high = signed(values.min(), 2), signed(values.max(), 2)
    return low if low == high else f"{low}…{high}"
