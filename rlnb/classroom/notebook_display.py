"""Where pictures and controls go. Without Jupyter they go nowhere, and a page still runs.

On a bare GPU box a page runs as a script: `display` prints the text of what it is given, and a
control is its value.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

HAS_JUPYTER = True  # False: nobody can answer a question, so answers are not held back
try:
    import ipywidgets
    from IPython import get_ipython
    from IPython.display import display
except ImportError:
    HAS_JUPYTER = False

    def get_ipython() -> None:
        """There is no notebook."""

    def display(*shown: Any, **_: Any) -> None:
        """Prints the text/plain of each; a task or an explorer shows its parts in turn."""
        for item in shown:
            if hasattr(item, "_ipython_display_"):
                item._ipython_display_()
            else:
                print(item._repr_mimebundle_()[0]["text/plain"])

    class _Control:
        """A value that nobody can move."""

        def __init__(self, value: Any = None, *, description: str = "", **_: Any):
            self.value, self.description = value, description
            self.style, self.layout = SimpleNamespace(), SimpleNamespace()

        def observe(self, *_: Any) -> None:
            """Nothing changes it."""

        unobserve = add_class = remove_class = on_click = observe

        def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
            return {}

    _NAMES = ("Button", "Checkbox", "DatePicker", "Dropdown", "FloatSlider", "GridBox",
              "HBox", "HTML", "IntProgress", "IntSlider", "IntText", "Label", "Layout", "Play",
              "SelectionSlider", "Text", "ToggleButtons", "VBox", "Widget")  # fmt: skip
    ipywidgets = SimpleNamespace(**dict.fromkeys(_NAMES, _Control), jslink=lambda *_: None)

# Tones of a changing line. The colours hold on a light page; on a dark one the course's JupyterLab
# extension lightens them, by class (lab_config/share).
TONES = {"done": "#007A58", "wrong": "#B34E00", "quiet": "#595959"}

__all__ = [
    "HAS_JUPYTER",
    "TONES",
    "display",
    "get_ipython",
    "in_notebook",
    "ipywidgets",
    "spoken_line",
    "tone",
    "widget_view",
]


def in_notebook() -> bool:
    """True where `display` reaches a screen: in Jupyter, not in a script."""
    return get_ipython() is not None


def spoken_line(text: str = "", said: str | None = None):
    """A line that changes while a page is used, and that screen readers then announce.

    said: one of TONES. The class is what the extension looks for.
    """
    line = ipywidgets.Label(text)
    line.add_class("rlnb-said")
    if said is not None:
        tone(line, said)
    return line


def widget_view(widget) -> dict[str, Any]:
    """The output that shows a widget, by type; for `text/plain` it has to be given words.

    ipywidgets 7, which Colab has, displays a widget instead of saying how.
    """
    if hasattr(widget, "_repr_mimebundle_"):
        return dict(widget._repr_mimebundle_())
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    return {"application/vnd.jupyter.widget-view+json": view}


def tone(line, said: str) -> None:
    """Colour a line as one of TONES."""
    line.style = {"text_color": TONES[said], "font_weight": "bold"}
    for name in TONES:
        (line.add_class if name == said else line.remove_class)(f"rlnb-{name}")
