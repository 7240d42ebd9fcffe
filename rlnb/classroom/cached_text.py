"""Fixed-width text that is quick to repaint: each letter is drawn once, then copied.

Matplotlib sets every line of text anew, which takes a millisecond a line; a picture that is half
text could not follow a key press. Here a line is an array of finished letters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from matplotlib.artist import Artist
from matplotlib.colors import to_rgb

from rlnb.classroom.figures import SCALE, new_figure

__all__ = [
    "CHARACTERS",
    "LARGE",
    "MONO",
    "SMALL",
    "Face",
    "Letters",
    "columns",
    "letter_width",
    "middle",
]


@dataclass(frozen=True)
class Face:
    """A size of letters, in device pixels: whole numbers, so that letters repeat.

    DejaVu Sans Mono advances 0.602 em, so `points` make letters `width` pixels wide; the baseline
    is above the lower edge of `height`.
    """

    width: int
    height: int
    baseline: int
    points: float


SMALL, LARGE = Face(11, 20, 5, 9.135), Face(13, 23, 6, 10.796)
MONO = "DejaVu Sans Mono"
CHARACTERS = "".join(map(chr, range(32, 127))) + "−–…·×½ΣπρλεβκγτΔ→"
SHIFT = {"left": 0.0, "center": 0.5, "right": 1.0}


@cache
def _atlas(face: Face) -> tuple[dict[str, int], np.ndarray]:
    """The place of each character; coverage in 128ths, (characters, height, width x RGBA).

    int16 and flat rows, because that is what numpy blends fastest; alpha is not covered.
    """
    count, pitch = (
        len(CHARACTERS),
        2 * face.width,
    )  # with room between, so that none leans on the next
    figure = new_figure((count * pitch + 0.5) / SCALE, (face.height + 0.5) / SCALE)
    for place, letter in enumerate(CHARACTERS):
        figure.text(
            place / count,
            face.baseline / face.height,
            letter,
            va="baseline",
            family=MONO,
            size=face.points,
        )
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[: face.height, : count * pitch, 0]
    black = 1 - pixels / 255.0
    tiles = black.reshape(face.height, count, pitch)[:, :, : face.width].transpose(1, 0, 2)
    cover = np.rint(128 * tiles[..., None] * (1, 1, 1, 0)).astype(np.int16)
    return {letter: place for place, letter in enumerate(CHARACTERS)}, cover.reshape(
        count, face.height, 4 * face.width
    )


class Letters(Artist):
    """Lines of text at places in CSS pixels from the figure's upper left corner. Agg only.

    lines: tuples (x, y, text, colour, align); y is the middle of the line, `align` says what x is:
    its "left", "center" or "right". A character outside CHARACTERS shows as "?".
    """

    def __init__(self, face: Face = SMALL) -> None:
        super().__init__()
        self.face = face
        self.lines: list[tuple[float, float, str, str, str]] = []

    def boxes(self) -> list[tuple[str, int, int, int, int]]:
        """(text, left, top, right, bottom) of each line, in device pixels."""
        found = []
        width, height = self.face.width, self.face.height
        for x, y, text, _, align in self.lines:
            left = round(x * SCALE - SHIFT[align] * len(text) * width)
            top = round(y * SCALE) - height // 2
            found.append((text, left, top, left + len(text) * width, top + height))
        return found

    def draw(self, renderer) -> None:
        if not self.get_visible():
            return
        places, tiles = _atlas(self.face)
        canvas = np.asarray(renderer.buffer_rgba())
        canvas = canvas.reshape(len(canvas), -1)
        for (text, left, top, right, bottom), line in zip(self.boxes(), self.lines, strict=True):
            if not text:
                continue
            known = [places.get(letter, places["?"]) for letter in text]
            cover = tiles[known].transpose(1, 0, 2).reshape(self.face.height, -1)
            below = canvas[top:bottom, 4 * left : 4 * right]
            ink = np.rint([255 * c for c in (*to_rgb(line[3]), 0)]).astype(np.int16)
            step = cover * (
                np.tile(ink, len(text) * self.face.width) - below
            )  # at most 128 x 255: int16
            below[:] = below + ((step + 64) >> 7)
        self.stale = False


def letter_width() -> float:
    """Of one letter, in CSS pixels."""
    return SMALL.width / SCALE


def middle(baseline: float, height: float) -> float:
    """`y` of a line whose baseline is at that share of a figure `height` CSS pixels high."""
    return height * (1 - baseline) - (SMALL.height / 2 - SMALL.baseline) / SCALE


def columns(width: float, face: Face = SMALL) -> int:
    """How many letters stand in `width` CSS pixels."""
    return int(width * SCALE / face.width)
