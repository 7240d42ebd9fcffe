"""Monospaced lines that are drawn from letters made once: a page of text in a few milliseconds.

matplotlib renders every letter of every text at every draw, at a fifth of a millisecond each; an
explorer full of text would take longer than the 100 ms that a move may take.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist, allow_rasterization
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rlnb.classroom.figures import STYLE

MONO = "DejaVu Sans Mono"
EM = 0.602  # width of a letter of this font, in ems


def _pixels(size: float, dpi: float) -> tuple[int, int, int]:
    """Width, height, and depth below the baseline of a letter, in whole pixels."""
    em = size * dpi / 72
    return round(EM * em), round(1.3 * em), round(0.35 * em)


@lru_cache(maxsize=512)
def _letter(letter: str, size: float, dpi: float) -> np.ndarray:
    """(height, width) ink of one letter, 0 ... 255, its top line first."""
    width, height, depth = _pixels(size, dpi)
    with rc_context(STYLE):
        figure = Figure(figsize=(width / dpi, height / dpi), dpi=dpi, facecolor="white")
        canvas = FigureCanvasAgg(figure)
        figure.text(0, depth / height, letter, family=MONO, size=size)
        canvas.draw()
    return 255 - np.asarray(canvas.buffer_rgba())[:height, :width, 0]


def letter_width(figure: Figure, size: float = 9) -> float:
    """Width of a letter as a share of the figure's."""
    return _pixels(size, figure.dpi)[0] / figure.bbox.width


class TypedLine(Artist):
    """One black line of text from `x` on, with `y` the baseline, both in figure coordinates."""

    def __init__(self, x: float, y: float, size: float = 9):
        super().__init__()
        self.x, self.y, self.size, self.text = x, y, size, ""

    def set_text(self, text: str) -> None:
        """Letters of one width only: no accents on top of others, no line breaks."""
        self.text = text
        self.stale = True

    @allow_rasterization
    def draw(self, renderer) -> None:
        """Puts the letters side by side and paints them in one go."""
        if not self.get_visible() or not self.text.strip():
            return
        figure = self.get_figure()
        depth = _pixels(self.size, figure.dpi)[2]
        ink = np.concatenate([_letter(c, self.size, figure.dpi) for c in self.text], axis=1)
        image = np.zeros((*ink.shape, 4), np.uint8)
        image[..., 3] = ink
        context = renderer.new_gc()
        place = round(self.x * figure.bbox.width), round(self.y * figure.bbox.height) - depth
        renderer.draw_image(context, *place, np.ascontiguousarray(image[::-1]))
        context.restore()
