"""Fixed-width text that is quick to repaint: each letter is drawn once, then copied.

Matplotlib sets every line of text anew, which takes a millisecond a line; a picture that is half
text could not follow a key press. Here a line is an array of finished letters.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from matplotlib.artist import Artist
from matplotlib.colors import to_rgb

from rlnb.classroom.figures import SCALE, new_figure

__all__ = ["CHARACTERS", "LARGE", "MONO", "Letters", "columns", "letter_width", "middle", "points"]

WIDTH, HEIGHT = 11, 20  # of a letter, in device pixels: a whole number, so that letters repeat
BASELINE = 5  # of a letter, above the lower edge of its HEIGHT
POINTS = 9.135  # DejaVu Sans Mono advances 0.602 em, so this many points are 11 pixels
LARGE = 13  # the width of larger letters, of 10.8 points; height and baseline grow with it
MONO = "DejaVu Sans Mono"
CHARACTERS = "".join(map(chr, range(32, 127))) + "−–…·×½ΣπρλεβκγτΔ→"
SHIFT = {"left": 0.0, "center": 0.5, "right": 1.0}


def points(width: int = WIDTH) -> float:
    """The font size whose letters are `width` device pixels wide."""
    return POINTS * width / WIDTH


def _height(width: int) -> int:
    """Of a line of such letters, in device pixels; even, so that a line has a middle."""
    return 2 * round(HEIGHT * width / WIDTH / 2)


@cache
def _atlas(width: int = WIDTH) -> tuple[dict[str, int], np.ndarray]:
    """The place of each character; coverage in 128ths, (characters, height, width x RGBA).

    int16 and flat rows, because that is what numpy blends fastest; alpha is not covered.
    """
    height = _height(width)
    count, pitch = len(CHARACTERS), 2 * width  # with room between, so that none leans on the next
    figure = new_figure((count * pitch + 0.5) / SCALE, (height + 0.5) / SCALE)
    for place, letter in enumerate(CHARACTERS):
        figure.text(
            place / count, BASELINE / HEIGHT, letter, va="baseline", family=MONO,
            size=points(width),
        )  # fmt: skip
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[:height, : count * pitch, 0]
    black = 1 - pixels / 255.0
    tiles = black.reshape(height, count, pitch)[:, :, :width].transpose(1, 0, 2)
    cover = np.rint(128 * tiles[..., None] * (1, 1, 1, 0)).astype(np.int16)
    return {letter: place for place, letter in enumerate(CHARACTERS)}, cover.reshape(
        count, height, 4 * width
    )


class Letters(Artist):
    """Lines of text at places in CSS pixels from the figure's upper left corner. Agg only.

    lines: tuples (x, y, text, colour, align); y is the middle of the line, `align` says what x is:
    its "left", "center" or "right". A character outside CHARACTERS shows as "?". width: of a
    letter, in device pixels; LARGE for larger ones.
    """

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.width, self.height = width, _height(width)
        self.lines: list[tuple[float, float, str, str, str]] = []

    def boxes(self) -> list[tuple[str, int, int, int, int]]:
        """(text, left, top, right, bottom) of each line, in device pixels."""
        found = []
        for x, y, text, _, align in self.lines:
            left = round(x * SCALE - SHIFT[align] * len(text) * self.width)
            top = round(y * SCALE) - self.height // 2
            found.append((text, left, top, left + len(text) * self.width, top + self.height))
        return found

    def draw(self, renderer) -> None:
        if not self.get_visible():
            return
        places, tiles = _atlas(self.width)
        canvas = np.asarray(renderer.buffer_rgba())
        canvas = canvas.reshape(len(canvas), -1)
        for (text, left, top, right, bottom), line in zip(self.boxes(), self.lines, strict=True):
            if not text:
                continue
            known = [places.get(letter, places["?"]) for letter in text]
            cover = tiles[known].transpose(1, 0, 2).reshape(self.height, -1)
            below = canvas[top:bottom, 4 * left : 4 * right]
            ink = np.rint([255 * c for c in (*to_rgb(line[3]), 0)]).astype(np.int16)
            step = cover * (
                np.tile(ink, len(text) * self.width) - below
            )  # at most 128 x 255: int16
            below[:] = below + ((step + 64) >> 7)
        self.stale = False


def letter_width(width: int = WIDTH) -> float:
    """Of one letter, in CSS pixels."""
    return width / SCALE


def middle(baseline: float, height: float) -> float:
    """`y` of a line whose baseline is at that share of a figure `height` CSS pixels high."""
    return height * (1 - baseline) - (HEIGHT / 2 - BASELINE) / SCALE


def columns(width: float, letter: int = WIDTH) -> int:
    """How many letters, each `letter` device pixels wide, stand in `width` CSS pixels."""
    return int(width * SCALE / letter)
