"""A figure with controls that leaves its picture in the committed notebook.

Two outputs, on purpose. The first is the controls, a widget view with a line of text for readers
without a kernel. The second is an ordinary image/png with a display id, which a callback updates in
place. A viewer that knows nothing of widgets shows the second; a live one redraws it.

A move is blitted: what never changes is drawn once and kept as pixels, and only the artists that
`build` returns are painted over it. So they must all exist after `build`, numbers included: a text
that changes is an animated `Text`, not a title or a tick label.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from rlnb.classroom.figures import (
    STYLE,
    Bundle,
    caption_bundle,
    css_size,
    encode_png,
    new_figure,
    picture_bundle,
    quick_png,
)
from rlnb.classroom.notebook_display import display, ipywidgets, spoken_line, widget_view

__all__ = ["Explorer", "choice", "choice_slider", "slider", "switch", "text_field"]

# Static artists end below this z-order (a legend is at 5), so that a full draw and a blit agree.
ABOVE_STATIC = 100
DESCRIPTION_WIDTH, CONTROL_WIDTH = "13em", "40em"


class Explorer:
    """Controls above, picture below; the picture follows the controls.

    compute(**params) -> data       pure; raises ValueError with a sentence for a bad entry
    build(figure, data) -> artists  once; a mapping of everything that will ever change: artists,
                                    containers or sequences of artists, painted in this order
    update(artists, data)           sets positions, texts, visibility; never makes an artist
    controls                        name of a parameter -> ipywidgets control with a `value`
    alt(data) -> str                what is to be seen at this setting, key numbers included
    caption                         the one message, shown as text under the picture
    readout(data) -> str            the numbers that change, as a line of text under the controls
    size                            width and height in CSS pixels
    columns                         how many controls stand side by side
    colors                          of the committed picture's palette, for one that is full of text

    `build` need not draw the data: `update` is called right after it. A ValueError from `compute`
    becomes the line under the controls and the last good picture stays.
    """

    def __init__(
        self,
        compute: Callable[..., Any],
        build: Callable[[Figure, Any], Mapping[Any, Any]],
        update: Callable[[Mapping[Any, Any], Any], None],
        controls: Mapping[str, ipywidgets.Widget],
        *,
        alt: Callable[[Any], str],
        caption: str | None = None,
        size: tuple[int, int] = (900, 380),
        columns: int = 1,
        colors: int | None = None,
        readout: Callable[[Any], str] | None = None,
    ):
        self.compute, self.update, self.alt, self.caption = compute, update, alt, caption
        self.columns, self.colors, self.readout = columns, colors, readout
        self.listeners: list[Callable[[Any], None]] = []  # called with the data after a move
        self.controls = dict(controls)
        self.problem = spoken_line(said="wrong")
        self.data = compute(**self.params)
        self.line = spoken_line(readout(self.data) if readout else "")
        with matplotlib.rc_context(STYLE):
            self.figure = new_figure(*size)
            self.artists = build(self.figure, self.data)
        self.update(self.artists, self.data)
        self.moving = list(_flat(self.artists))
        for order, artist in enumerate(self.moving):
            artist.set_zorder(ABOVE_STATIC + order)
            artist.set_animated(True)
        self._background = None
        self._handle = None
        self._display_id = uuid.uuid4().hex  # transient: it is never written to the file
        for control in self.controls.values():
            control.observe(self._on_change, "value")

    @property
    def params(self) -> dict[str, Any]:
        """The settings of the controls, as `compute` takes them."""
        return {name: control.value for name, control in self.controls.items()}

    def set(self, **params: Any) -> Explorer:
        """Move several controls, redraw once. For tests: on a page, print `compute(...)` instead.

        (Moving an explorer that a page displays would change the picture of an earlier cell.)
        """
        unknown = sorted(set(params) - set(self.controls))
        if unknown:
            raise ValueError(f"No control named {unknown[0]!r}; there are {list(self.controls)}.")
        with self._unobserved():
            for name, value in params.items():
                self.controls[name].value = value
        self._refresh()
        return self

    @contextmanager
    def _unobserved(self) -> Iterator[None]:
        """Controls move in here without a redraw for each."""
        for control in self.controls.values():
            control.unobserve(self._on_change, "value")
        try:
            yield
        finally:
            for control in self.controls.values():
                control.observe(self._on_change, "value")

    def alt_text(self) -> str:
        """The sentence for the present setting."""
        return self.alt(self.data)

    def png(self, quick: bool = False) -> bytes:
        """The present picture, blitted. `quick`: larger, and without the palette."""
        self._paint()
        return quick_png(self.figure) if quick else encode_png(self.figure, self.colors)

    def pixels(self) -> np.ndarray:
        """(height, width, 4) uint8 in device pixels: the present picture, blitted."""
        self._paint()
        return np.array(self.figure.canvas.buffer_rgba())

    def pixels_from_scratch(self) -> np.ndarray:
        """The same with every artist drawn anew: slow, and equal to `pixels()`."""
        for artist in self.moving:
            artist.set_animated(False)
        try:
            with matplotlib.rc_context(STYLE):
                self.figure.canvas.draw()
            return np.array(self.figure.canvas.buffer_rgba())
        finally:
            for artist in self.moving:
                artist.set_animated(True)

    def _paint(self) -> None:
        canvas = self.figure.canvas
        if self._background is None:
            with matplotlib.rc_context(STYLE):
                canvas.draw()  # leaves the animated artists out
            self._background = canvas.copy_from_bbox(self.figure.bbox)
        canvas.restore_region(self._background)
        renderer = canvas.get_renderer()
        for artist in self.moving:
            artist.draw(renderer)

    def _refresh(self) -> bool:
        try:
            data = self.compute(**self.params)
        except ValueError as error:
            self.problem.value = str(error)
            return False
        self.problem.value = ""
        self.data = data
        self.update(self.artists, data)
        if self.readout is not None:
            self.line.value = self.readout(data)
        for listener in self.listeners:
            listener(data)
        return True

    def _on_change(self, _change) -> None:
        if self._refresh() and self._handle is not None:
            self._handle.update(self._picture(quick=True))

    def _picture(self, quick: bool = False) -> Bundle:
        return picture_bundle(self.png(quick), self.alt_text(), css_size(self.figure))

    def _controls_bundle(self) -> Bundle:
        controls = list(self.controls.values())
        if self.columns > 1:
            grid = ipywidgets.Layout(grid_template_columns=f"repeat({self.columns}, 1fr)")
            controls = [ipywidgets.GridBox(controls, layout=grid)]
        lines = [self.problem] if self.readout is None else [self.line, self.problem]
        box = ipywidgets.VBox([*controls, *lines])
        data = widget_view(box)
        settings = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        data["text/plain"] = f"[controls: {settings}; run the notebook to move them]"
        return Bundle(data)

    def _ipython_display_(self) -> None:
        display(self._controls_bundle())
        picture = self._picture()  # this one is committed; later ones are only seen
        self._handle = display(picture, display_id=self._display_id)
        if self.caption:
            display(caption_bundle(self.caption))


def _flat(value: Any) -> Iterator[Artist]:
    if isinstance(value, Artist):
        yield value
        return
    for item in value.values() if isinstance(value, Mapping) else value:
        yield from _flat(item)


def _look(description: str, tooltip: str) -> dict[str, Any]:
    return {
        "description": description,
        "tooltip": tooltip,
        "style": {"description_width": DESCRIPTION_WIDTH},
        "layout": ipywidgets.Layout(width=CONTROL_WIDTH, max_width="98%"),
    }


def slider(value: float, low: float, high: float, step: float, description: str, tooltip: str):
    """A number, whole when `value` is an int.

    Arrow keys move by one step, Page Up and Down by more; the readout can be typed into.
    """
    whole = isinstance(value, int)
    kind = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
    look = _look(description, tooltip)
    if not whole:
        look["readout_format"] = ".2f"
    return kind(value, min=low, max=high, step=step, continuous_update=True, **look)


def choice_slider(value: Any, options: list[tuple[str, Any]], description: str, tooltip: str):
    """A slider over named values."""
    look = _look(description, tooltip)
    return ipywidgets.SelectionSlider(options=options, value=value, continuous_update=True, **look)


def choice(value: Any, options: list[tuple[str, Any]], description: str, tooltip: str):
    """A few named values as buttons: Tab to reach them, Space to press."""
    look = _look(description, tooltip)
    look["layout"] = ipywidgets.Layout(width="100%")
    look["style"] = {"description_width": DESCRIPTION_WIDTH, "button_width": "auto"}
    control = ipywidgets.ToggleButtons(options=options, value=value, **look)
    control.add_class("widget-inline-hbox")  # the label beside the buttons, in line with the others
    return control


def switch(value: bool, description: str, tooltip: str):
    """Yes or no."""
    look = _look(description, tooltip)
    look["layout"] = ipywidgets.Layout(width="100%")
    return ipywidgets.Checkbox(value=value, **look)


def text_field(value: str, description: str, tooltip: str):
    """A line of text, read at every keystroke."""
    return ipywidgets.Text(value=value, continuous_update=True, **_look(description, tooltip))
