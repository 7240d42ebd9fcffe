"""A curve that grows while a run trains, in one output that is updated in place."""

from __future__ import annotations

from typing import Any

import matplotlib

from rlnb.classroom.figures import (
    BLACK,
    GREEN,
    GREY,
    PURPLE,
    STYLE,
    css_size,
    encode_png,
    new_figure,
    picture_bundle,
)
from rlnb.classroom.notebook_display import display, in_notebook

__all__ = ["LivePlot"]


class LivePlot:
    """Give it to `train` as `watch`; it is called with each record.

    Training reward of every step, held-out pass@1 of every evaluation. `label` stands in large
    letters over the plot and says whether this is a run or a recording; a live run is green, a
    `replayed` one purple. `every`: steps between two pictures. Outside a notebook it prints a line
    at each evaluation instead.
    """

    def __init__(self, steps: int, label: str, every: int = 2, replayed: bool = False):
        self.steps, self.label, self.every = steps, label, every
        self.color = PURPLE if replayed else GREEN
        self.reward: dict[int, float] = {}
        self.pass_at_1: dict[int, float] = {}
        self._handle, self._figure = None, None
        self._notebook = in_notebook()

    def __call__(self, record: dict[str, Any]) -> None:
        kind = record["record"]
        if kind == "step":
            self.reward[record["step"]] = record["reward"]
        elif kind == "eval":
            self.pass_at_1[record["step"]] = record["pass@1"]
        else:
            return
        last = record["step"] == self.steps
        if not self._notebook:
            if kind == "eval":
                print(f"{self.label}: {self.sentence()}")
        elif kind == "eval" or last or record["step"] % self.every == 0:
            self._draw()

    def sentence(self) -> str:
        """Where the run stands."""
        step = max([*self.reward, *self.pass_at_1], default=0)
        text = f"step {step} of {self.steps}"
        if self.reward:
            text += f", reward {self.reward[max(self.reward)]:.3f}"
        if self.pass_at_1:
            newest = max(self.pass_at_1)
            text += f", held-out pass@1 {self.pass_at_1[newest]:.2f} after step {newest}"
        return text

    def alt(self) -> str:
        return f"{self.label}: {self.sentence()}."

    def _draw(self) -> None:
        if self._figure is None:
            self._start()
        self._lines["reward"].set_data(list(self.reward), list(self.reward.values()))
        self._lines["pass@1"].set_data(list(self.pass_at_1), list(self.pass_at_1.values()))
        self._text.set_text(self.sentence())
        with matplotlib.rc_context(STYLE):
            self._figure.canvas.draw()
        picture = picture_bundle(encode_png(self._figure), self.alt(), css_size(self._figure))
        if self._handle is None:
            self._handle = display(picture, display_id=True)
        else:
            self._handle.update(picture)

    def _start(self) -> None:
        with matplotlib.rc_context(STYLE):
            figure = new_figure(900, 300)
            axes = figure.add_axes((0.07, 0.16, 0.91, 0.62))
            axes.set(
                xlim=(-0.5, self.steps + 0.5),
                ylim=(0, 1),
                xlabel="optimizer step",
                ylabel="share of answers right",
            )
            reward = {"color": self.color, "label": "reward of the step's answers"}
            dots = {
                "color": BLACK,
                "marker": "D",
                "mfc": "white",
                "mew": 1.6,
                "ls": "none",
                "clip_on": False,
                "zorder": 5,
            }
            self._lines = {
                "reward": axes.plot([], [], **reward)[0],
                "pass@1": axes.plot([], [], **dots, label="pass@1, held-out problems")[0],
            }
            axes.legend(loc="lower right")
            figure.text(0.07, 0.9, self.label, fontsize=15, fontweight="bold")
            self._text = figure.text(0.5, 0.905, "", fontsize=9.5, color=GREY)
        self._figure = figure
