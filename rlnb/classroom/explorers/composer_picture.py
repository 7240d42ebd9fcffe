"""What the composer shows: its findings in words, and the push on every token in a picture."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from rlnb.classroom.cached_text import Letters, columns
from rlnb.classroom.explorers.composer_menus import REWARDS
from rlnb.classroom.figures import BLACK, GREY, NEGATIVE, PALE, POSITIVE, VERMILLION, signed
from rlnb.objective import Difference, topk_mix
from rlnb.toys import running_batch

__all__ = ["SIZE", "alt", "block", "build", "changes", "findings", "report", "update"]

SAME = 1e-5  # a factor that near to 1 is 1

# data units are CSS pixels, y downwards
SIZE = (900, 640)
MARGIN, LEFT, TOP = 10, 186, 94
CELL, BAND, STRIP, GAP = 72, 20, 17, 6
BARS, LONGEST = 706, 110
CODE_TOP, TEXT_TOP, LINE = 44, 448, 14.5
COLUMNS, LINES = columns(SIZE[0] - 2 * MARGIN), 13
LEGEND = {
    "push": "in a cell: −dL/dlog π × 1000; blue makes the token likelier, vermillion less likely",
    "gate": "in a cell: the gate w in −dL/dlog π = c·w·A + KL; 1 is on-policy, – where A = 0",
    "change": "in a cell: −dL/dlog π × 1000, minus that of {against}; the bars are the whole",
}


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
    lines = [
        ("nearest" if i == 0 else "", f"{name} {_apart(gap, whole or i == 0)}")
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
    cells = {
        "push": "the push on each token",
        "gate": "the gate on each token",
        "change": f"the push minus that of {_against(data)}",
    }[data["show"]]
    largest = np.nanmax(np.abs(_cells(data)), initial=0.0)
    said = " ".join(f"{library}: {said}" for library, said in data["said"].items())
    return (
        f"{head} Cells: {cells}, at most {largest:.4f} in size. Sum of |gradient| per answer, "
        f"rewards {data['rewards']}: {sums}. {said}"
    )


# ---- in a picture


def _y(row: int) -> float:
    """The upper edge of a row's cells."""
    return TOP + row * (BAND + STRIP) + GAP * (row // 4)


def build(figure, data):
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, SIZE[0]), ylim=(SIZE[1], 0))
    axes.axis("off")
    batch = running_batch()
    tokens, ratio = batch.mask.tolist(), (batch.logprobs.detach() - batch.old_logprobs).exp()
    note = {"size": 9, "color": GREY, "va": "center"}
    corners = []
    for row, column in np.ndindex(*ratio.shape):
        x, y = LEFT + column * CELL, _y(row)
        if tokens[row][column]:
            corners.append((x, y))
            axes.text(
                x + CELL / 2, y + BAND + 8, f"ρ {ratio[row, column]:.3g}", ha="center", **note
            )
        else:
            axes.add_patch(Rectangle((x + 1, y), CELL - 2, BAND, fc=PALE, ec="white", hatch="//"))
    for column in range(ratio.shape[1]):
        axes.text(LEFT + (column + 0.5) * CELL, TOP - 10, f"token {column}", ha="center", **note)
    axes.text(BARS, TOP - 10, "Σ |dL/dlog π| × 1000", **note)
    for answer in range(ratio.shape[0]):
        axes.text(MARGIN + 22, _y(answer) + BAND / 2, str(answer), ha="center", **note)
    for prompt in range(2):
        middle = (_y(4 * prompt) + _y(4 * prompt + 3) + BAND) / 2
        axes.text(MARGIN + 6, middle, f"prompt {prompt + 1}", rotation=90, ha="center", **note)
    axes.text(
        LEFT,
        TEXT_TOP - 22,
        "under it ρ = π/π_old of the token   ·   × its gate is 0, what "
        "is left is KL   ·   hatched: padding",
        **note,
    )
    shape = np.array([(1, 0), (CELL - 1, 0), (CELL - 1, BAND), (1, BAND)])
    cells = PolyCollection([shape + corner for corner in corners], edgecolors=GREY, linewidths=0.6)
    rows = range(len(tokens))
    return {
        "cells": axes.add_collection(cells),
        "bars": axes.barh(
            [_y(r) + BAND / 2 for r in rows], np.ones(len(rows)), BAND - 8, left=BARS, color=GREY
        ),
        "cut": axes.plot([], [], "x", ms=4.5, mew=1.4, color=BLACK)[0],
        "veil": axes.add_patch(
            Rectangle(
                (MARGIN, TOP - 22),
                SIZE[0] - 2 * MARGIN,
                TEXT_TOP - TOP + 10,
                fc="white",
                ec=VERMILLION,
                lw=1.5,
            )
        ),
        "title": axes.text(MARGIN + 2, 22, "", va="center", size=14, weight="bold"),
        "letters": axes.add_artist(Letters()),
    }


def update(artists, data):
    name = data["name"] or f"no name   (nearest: {data['nearest'][0][0]})"
    artists["title"].set_text(name)
    runs = data["problem"] is None
    artists["veil"].set_visible(not runs)
    for artist in (artists["cells"], artists["cut"], *artists["bars"]):
        artist.set_visible(runs)
    lines = _findings_lines(data)
    if runs:
        lines += _fill(artists, data)
    else:
        sentence = [
            "This composition cannot run on these rewards.",
            "",
            *textwrap.wrap(data["problem"], 80),
        ]
        lines += [
            (SIZE[0] / 2, TOP + 120 + LINE * i, text, BLACK, "center")
            for i, text in enumerate(sentence)
        ]
    artists["letters"].lines = lines


def _findings_lines(data) -> list[tuple]:
    code = textwrap.wrap(data["code"], COLUMNS, break_on_hyphens=False)
    lines = [(MARGIN, CODE_TOP + LINE * i, text, BLACK, "left") for i, text in enumerate(code)]
    said = [(key, text) for key, text in findings(data) if key != "cannot run"]
    for most in (6, 5, 4, 3):
        text = [line for pair in said for line in _short(*pair, most)]
        if len(text) <= LINES:
            break
    return lines + [
        (MARGIN, TEXT_TOP + LINE * i, line, BLACK, "left") for i, line in enumerate(text)
    ]


def _short(key: str, text: str, most: int) -> list[str]:
    """One finding on at most `most` lines: whole sentences, and "…" for those left out."""
    sentences = re.split(r"(?<=\.) (?=[A-Z]|verl)", text)
    for count in range(len(sentences), 0, -1):
        left_out = " …" if count < len(sentences) else ""
        lines = block([(key, " ".join(sentences[:count]) + left_out)], COLUMNS)
        if len(lines) <= most:
            break
    return lines


def _fill(artists, data) -> list[tuple]:
    """Colours, bars and marks; returns the numbers to write on them."""
    mask, values = data["mask"], _cells(data)
    colours = _colours(values)
    artists["cells"].set_facecolor(colours)
    places = np.argwhere(mask)
    lines = [
        (
            LEFT + (column + 0.5) * CELL,
            _y(row) + BAND / 2,
            _number(value, data["show"]),
            _ink(colour),
            "center",
        )
        for (row, column), value, colour in zip(places, values, colours, strict=True)
    ]
    gone = [(row, column) for row, column in places if data["gate"][row, column] == 0]
    artists["cut"].set_data(
        [LEFT + column * CELL + 6 for _, column in gone], [_y(row) + BAND + 8 for row, _ in gone]
    )
    longest = max(data["answers"].max(), 1e-12)
    for row, total in enumerate(data["answers"]):
        width, middle = LONGEST * total / longest, _y(row) + BAND / 2
        artists["bars"][row].set_width(width)
        own = data["advantages"][row][mask[row]]
        reward = REWARDS[data["rewards"]][row]
        lines += [
            (BARS + width + 6, middle, _thousandths(total).lstrip("+"), BLACK, "left"),
            (LEFT - 8, middle, f"r {reward:g}  A {_range(own)}", BLACK, "right"),
        ]
    legend = LEGEND[data["show"]].format(against=_against(data))
    return [*lines, (LEFT, TEXT_TOP - 37, legend, GREY, "left")]


def _against(data) -> str:
    return data["start"] if data["start_runs"] else f"nothing: {data['start']} cannot run here"


def _cells(data) -> np.ndarray:
    """What is shown, token by token; nan where a gate cannot be seen."""
    return data[data["show"]][data["mask"]]


def _colours(values: np.ndarray) -> np.ndarray:
    """(n, 3): white at 0, the colour of the sign at the largest, in between on a straight line."""
    share = np.nan_to_num(values) / max(np.nanmax(np.abs(values), initial=0.0), 1e-12)
    ends = np.where(share[:, None] > 0, to_rgb(POSITIVE), to_rgb(NEGATIVE))
    return 1 - np.abs(share)[:, None] * (1 - ends)


def _ink(colour: np.ndarray) -> str:
    """Black or white, whichever stands out more (relative luminance, WCAG 2)."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return BLACK if linear @ (0.2126, 0.7152, 0.0722) > 0.179 else "white"


def _number(value: float, show: str) -> str:
    if show == "gate":
        return "–" if np.isnan(value) else f"{value:.3g}"
    return _thousandths(value)


def _thousandths(value: float) -> str:
    return signed(1000 * value, 1 if abs(value) < 1 else 0)


def _range(values: np.ndarray) -> str:
    low, high = signed(values.min(), 2), signed(values.max(), 2)
    return low if low == high else f"{low}…{high}"
