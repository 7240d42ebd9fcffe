"""How a figure looks, and static figures for the pages.

One colour per method, on every page. A page never imports pyplot: it calls `static_figure` with a
small `build`, or one of the three ready plots below, and gets a picture with its sentence.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from rlnb.classroom.notebook_display import display

__all__ = [
    "BLACK",
    "BLUE",
    "GREEN",
    "GREY",
    "METHOD_COLORS",
    "METHOD_LINES",
    "NEGATIVE",
    "ORANGE",
    "PALE",
    "POSITIVE",
    "PURPLE",
    "SCALE",
    "SKY",
    "STYLE",
    "VERMILLION",
    "WINE",
    "Bundle",
    "Picture",
    "bar_figure",
    "caption_bundle",
    "css_size",
    "encode_png",
    "learning_curves",
    "line_figure",
    "new_figure",
    "picture_bundle",
    "quick_png",
    "series_style",
    "signed",
    "spread_curves",
    "static_figure",
]

# Okabe and Ito, "Color Universal Design", 2008.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
# Two more for ten methods, after Paul Tol; and grey for whatever is only there to compare with.
WINE, INDIGO, GREY, PALE = "#882255", "#332288", "#6E6E6E", "#ECECEC"

# There are more methods than colours that can be told apart: relatives share one, and no two
# methods share both the colour and the dashes.
METHOD_COLORS: Mapping[str, str] = {
    "reinforce": ORANGE,
    "reinforce_batch_mean": INDIGO,
    "rloo": PURPLE,
    "remax": PURPLE,
    "reinforce_plus_plus": ORANGE,
    "ppo": BLACK,
    "grpo": BLUE,
    "dr_grpo": VERMILLION,
    "dapo": GREEN,
    "gspo": SKY,
    "gmpo": INDIGO,
    "cispo": WINE,
    "sapo": "#B8A000",  # a yellow dark enough for a line on white
    "gspo_token": SKY,
    "dppo": GREEN,
    "dppo_kl": GREEN,
    "dppo_topk": GREEN,
    "scalerl": WINE,
    "maxrl": ORANGE,
    "mgpo": BLUE,
}
# Colour never stands alone: the dash pattern says the method too.
METHOD_LINES: Mapping[str, Any] = {
    "reinforce": ":",
    "reinforce_batch_mean": (0, (1, 3)),
    "rloo": "--",
    "remax": ":",
    "reinforce_plus_plus": "--",
    "ppo": "-",
    "grpo": "-",
    "dr_grpo": "--",
    "dapo": "-.",
    "gspo": (0, (6, 2)),
    "gmpo": (0, (5, 1, 1, 1)),
    "cispo": (0, (4, 1, 1, 1, 1, 1)),
    "sapo": (0, (2, 1)),
    "gspo_token": (0, (2, 2)),
    "dppo": (0, (8, 1, 1, 1)),
    "dppo_kl": (0, (3, 1)),
    "dppo_topk": (0, (1, 1)),
    "scalerl": (0, (8, 2)),
    "maxrl": "-.",
    "mgpo": (0, (3, 1, 1, 1)),
}
POSITIVE, NEGATIVE = BLUE, VERMILLION  # the sign of the advantage, everywhere
HATCHES = ("", "//", "..", "xx", "\\\\", "--")
OTHER_COLORS = (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY, BLACK)
OTHER_LINES = ("-", "--", "-.", ":", (0, (6, 2)), (0, (4, 1, 1, 1)))

CSS_DPI = 96  # a CSS pixel is 1/96 inch, so a point in the figure is a point on the screen
SCALE = 1.5  # device pixels per CSS pixel: sharp on a dense screen, cheap to encode
STYLE = {
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same picture on every machine
    "font.size": 9.5,
    "axes.labelsize": 10,
    "axes.titlesize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "hatch.linewidth": 0.8,
    "lines.linewidth": 2.0,
    "figure.facecolor": "white",
    "axes.unicode_minus": True,
}


def new_figure(width: int = 900, height: int = 360) -> Figure:
    """An empty figure, `width` x `height` CSS pixels. Call it inside `rc_context(STYLE)`."""
    figure = Figure(figsize=(width / CSS_DPI, height / CSS_DPI), dpi=CSS_DPI * SCALE)
    FigureCanvasAgg(figure)
    return figure


def css_size(figure: Figure) -> tuple[int, int]:
    """Width and height at which the figure is shown, in CSS pixels."""
    width, height = figure.canvas.get_width_height()
    return round(width / SCALE), round(height / SCALE)


def encode_png(figure: Figure, colors: int | None = None) -> bytes:
    """The canvas as it stands, as PNG. Draws nothing.

    `colors`: a palette of that many (up to 256), for a third of the bytes.
    """
    size = figure.canvas.get_width_height()
    buffer = figure.canvas.buffer_rgba()
    image = Image.frombuffer("RGBA", size, buffer, "raw", "RGBA", 0, 1).convert("RGB")
    if colors is not None:
        image = image.quantize(colors, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=6)
    return out.getvalue()


def quick_png(figure: Figure) -> bytes:
    """The canvas as it stands, as PNG, in half the time: unfiltered rows, light compression.

    A picture library tries five filters on every row, which text and flat colours do not repay.
    """
    pixels = np.asarray(figure.canvas.buffer_rgba())
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # the first byte of a row: no filter
    for channel in range(3):
        rows[:, 1 + channel :: 3] = pixels[..., channel]
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits, RGB
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def signed(value: float, digits: int = 4) -> str:
    """A number with its sign and a true minus; zero has neither.

    >>> signed(0.5, 2), signed(-0.048, 3), signed(-0.00001, 2)
    ('+0.50', '−0.048', '0.00')
    """
    text = f"{value:+.{digits}f}"
    if float(text) == 0:
        return f"{0:.{digits}f}"
    return text.replace("-", "−")


class Bundle:
    """A mime bundle that `display` shows as it is."""

    def __init__(self, data: dict, metadata: dict | None = None):
        self.data, self.metadata = data, metadata or {}

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.data, self.metadata


def picture_bundle(png: bytes, alt: str, size: tuple[int, int]) -> Bundle:
    """PNG plus its sentence: as text/plain (nbval compares it) and as alt text."""
    width, height = size
    metadata = {"image/png": {"width": width, "height": height, "alt": alt}}
    return Bundle({"image/png": png, "text/plain": alt}, metadata)


def caption_bundle(caption: str) -> Bundle:
    """A visible sentence under a picture: JupyterLab drops alt texts, so it has to be text."""
    return Bundle({"text/markdown": f"*{caption}*", "text/plain": caption})


class Picture:
    """A finished figure. As the last expression of a cell it shows itself and its caption."""

    def __init__(self, png: bytes, alt: str, caption: str | None, size: tuple[int, int]):
        self.png, self.alt, self.caption, self.size = png, alt, caption, size

    def __repr__(self) -> str:
        return f"Picture({self.alt!r})"

    def bundles(self) -> list[Bundle]:
        """What it shows: the picture, and its caption where it has one."""
        shown = [picture_bundle(self.png, self.alt, self.size)]
        return [*shown, caption_bundle(self.caption)] if self.caption else shown

    def _ipython_display_(self) -> None:
        for bundle in self.bundles():
            display(bundle)


def static_figure(
    build: Callable[[Figure, Any], Any],
    data: Any = None,
    *,
    alt: str | Callable[[Any], str],
    caption: str | None = None,
    size: tuple[int, int] = (900, 340),
    colors: int | None = 128,
) -> Picture:
    """A figure that does not move.

    `build(figure, data)` draws on an empty `matplotlib.figure.Figure`, which has the course's
    style. `alt` says in one or two sentences what is to be seen, numbers included (or is a function
    of `data` that does); `caption` is the one message, shown in italics below. `size` is in CSS
    pixels; `colors` is the size of the palette, for a third of the bytes (None: every colour).
    """
    sentence = alt(data) if callable(alt) else alt
    if not sentence.strip():
        raise ValueError("static_figure: alt is empty. Say in a sentence what the figure shows.")
    with matplotlib.rc_context(STYLE):
        figure = new_figure(*size)
        build(figure, data)
        figure.canvas.draw()
    return Picture(encode_png(figure, colors), sentence, caption, css_size(figure))


def series_style(name: str, index: int) -> tuple[str, Any]:
    """Colour and dashes of a series: the method's own, or the index-th of the rest."""
    key = name.lower().replace("-", "_").replace(" ", "_").replace("dr._", "dr_")
    if key in METHOD_COLORS:
        return METHOD_COLORS[key], METHOD_LINES[key]
    return OTHER_COLORS[index % len(OTHER_COLORS)], OTHER_LINES[index % len(OTHER_LINES)]


def _panel(figure: Figure, xlabel: str, ylabel: str):
    axes = figure.add_axes((0.085, 0.16, 0.66, 0.79))
    axes.set(xlabel=xlabel, ylabel=ylabel)
    return axes


def _legend(axes) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.02), borderaxespad=0, handlelength=3)


def spread_curves(
    panels: Mapping[str, Mapping[str, Sequence[Sequence[float]]]],
    *,
    xlabel: str,
    ylabel: str,
    ylim: tuple[float, float],
    alt: str,
    control: str | None = None,
    caption: str | None = None,
    size: tuple[int, int] = (900, 420),
) -> Picture:
    """Panels side by side on log-log axes: mean and spread of the seeds, labelled at the end.

    `panels[title][name]` has shape (seeds, steps), all above 0; x is 1, 2, 3, ... A line is the
    mean, its band goes from the lowest to the highest seed, and its label gives the last mean.
    The first word of a name picks the colour; a second series of that colour is dashed.
    """

    def draw(axes, name, runs, index, again):
        color, dashes = (GREY, ":") if name == control else series_style(name.split()[0], index)
        x, dashes = np.arange(1, runs.shape[1] + 1), (0, (4, 1.5)) if again else dashes
        axes.fill_between(x, runs.min(0), runs.max(0), color=color, alpha=0.2, linewidth=0)
        axes.plot(x, runs.mean(0), color=color, linestyle=dashes, linewidth=2)
        return color

    def build(figure, _):
        low, high = np.log10(ylim)
        for place, (title, curves) in enumerate(panels.items()):
            axes = figure.add_axes((0.075 + 0.485 * place, 0.13, 0.285, 0.79))
            axes.set(
                xscale="log",
                yscale="log",
                ylim=ylim,
                xlabel=xlabel,
                title=title,
                ylabel=ylabel if place == 0 else "",
            )
            ends, used = [], set()
            for index, (name, runs) in enumerate(curves.items()):
                runs = np.asarray(runs, dtype=float)
                color = draw(axes, name, runs, index, name.split()[0] in used)
                used.add(name.split()[0])
                ends.append((runs[:, -1].mean(), name, color))
            axes.set_xlim(1, runs.shape[1])
            floor = 0.0
            for value, name, color in sorted(ends):  # upwards, one line height apart
                floor = max((np.log10(value) - low) / (high - low), floor + 0.05)
                axes.text(
                    1.03,
                    floor,
                    f"{name}: {value:.3f}",
                    color=color,
                    va="center",
                    transform=axes.transAxes,
                )

    return static_figure(build, alt=alt, caption=caption, size=size)


def line_figure(
    x: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    xlabel: str,
    ylabel: str,
    alt: str,
    caption: str | None = None,
    ylim: tuple[float, float] | None = None,
    size: tuple[int, int] = (900, 340),
) -> Picture:
    """One line per series over a common `x`. Series named like a method get its colour."""

    def build(figure, _):
        axes = _panel(figure, xlabel, ylabel)
        for index, (name, values) in enumerate(series.items()):
            color, dashes = series_style(name, index)
            axes.plot(np.asarray(x), np.asarray(values), color=color, linestyle=dashes, label=name)
        axes.axhline(0, color=GREY, linewidth=0.8, zorder=0)
        if ylim is not None:
            axes.set_ylim(*ylim)
        _legend(axes)

    return static_figure(build, alt=alt, caption=caption, size=size)


def bar_figure(
    labels: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    xlabel: str = "",
    ylabel: str,
    alt: str,
    caption: str | None = None,
    ylim: tuple[float, float] | None = None,
    size: tuple[int, int] = (900, 340),
) -> Picture:
    """Bars side by side, one group per label. Colour and hatch both name the series."""

    def build(figure, _):
        axes = _panel(figure, xlabel, ylabel)
        width = 0.8 / len(series)
        place = np.arange(len(labels))
        for index, (name, values) in enumerate(series.items()):
            left = place - 0.4 + width * (index + 0.5)
            color, _dashes = series_style(name, index)
            hatch = HATCHES[index % len(HATCHES)]
            axes.bar(left, values, width, color=color, hatch=hatch, edgecolor="white", label=name)
        axes.set_xticks(place, labels)
        axes.axhline(0, color=BLACK, linewidth=0.8)
        if ylim is not None:
            axes.set_ylim(*ylim)
        _legend(axes)

    return static_figure(build, alt=alt, caption=caption, size=size)


def learning_curves(
    curves: Mapping[str, Sequence[Sequence[float]]],
    *,
    base: float,
    alt: str,
    control: str | None = None,
    steps: Sequence[float] | None = None,
    xlabel: str = "optimizer step",
    ylabel: str = "accuracy",
    ylim: tuple[float, float] | None = None,
    caption: str | None = None,
    size: tuple[int, int] = (900, 360),
) -> Picture:
    """Every seed as a thin line, their mean as a thick one, the base level, and the control.

    `curves[name]` has shape (seeds, steps). `base` is the level before training. `control` names
    the entry of `curves` that should not learn; it is drawn in grey. `steps` are the x values
    (default 0, 1, 2, ...). Raises ValueError for a ragged entry or an unknown control.
    """
    if control is not None and control not in curves:
        raise ValueError(f"control={control!r} is not among the curves {sorted(curves)}.")
    table = {}
    for name, runs in curves.items():
        if len({len(run) for run in runs}) != 1:
            raise ValueError(
                f"curves[{name!r}]: every seed needs the same number of points (at least one "
                f"seed), came {[len(run) for run in runs]}."
            )
        table[name] = np.asarray(runs, dtype=float)
        if steps is not None and len(steps) != table[name].shape[1]:
            raise ValueError(
                f"curves[{name!r}] has {table[name].shape[1]} points per seed, steps has "
                f"{len(steps)}. Give one x value per point."
            )

    def build(figure, _):
        axes = _panel(figure, xlabel, ylabel)
        for index, (name, runs) in enumerate(table.items()):
            color, dashes = (GREY, ":") if name == control else series_style(name, index)
            x = np.arange(runs.shape[1]) if steps is None else np.asarray(steps)
            axes.plot(x, runs.T, color=color, linewidth=0.8, alpha=0.55)
            note = f"{name}{' (control)' if name == control else ''}"
            seeds = f"{len(runs)} seed{'s' if len(runs) > 1 else ''}"
            label = f"{note}\nmean of {seeds}"
            axes.plot(x, runs.mean(0), color=color, linestyle=dashes, linewidth=2.4, label=label)
        axes.axhline(base, color=BLACK, linewidth=1, linestyle="--", label=f"base {base:.4g}")
        if ylim is not None:
            axes.set_ylim(*ylim)
        _legend(axes)

    return static_figure(build, alt=alt, caption=caption, size=size)
