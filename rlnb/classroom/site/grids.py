"""Which settings of an explorer the site has: all where they are few, fewer of a fine slider.

Everything that is offered was drawn, so a fine slider offers fewer places here than in JupyterLab,
and its page says so. The value an explorer starts with is always among them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets

from rlnb.classroom.explorer import Explorer
from rlnb.classroom.explorers.composer_menus import choices_of

__all__ = ["COARSE", "MOST", "ONE_AT_A_TIME", "Axis", "Grid", "axis", "grid"]

MOST = 2000  # settings of one explorer
SAME = 1e-9


def _steps(low: float, high: float, step: float, *more: float) -> tuple[float, ...]:
    count = round((high - low) / step) + 1
    values = {round(low + i * step, 6) for i in range(count)} | set(more)
    return tuple(sorted(values))


_FIFTHS = _steps(0.05, 0.95, 0.05, 0.01, 0.99)

# explorer -> control -> the values that are drawn, of those that it has
COARSE: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "answer_ratio_explorer": {"flips": _steps(0, 0.6, 0.05, 0.8, 1.0, 1.5, 2.0)},
    "difficulty_explorer": {"rate": _FIFTHS},
    "entropy_step_explorer": {"p": _FIFTHS, "eta": _steps(0, 8, 0.5)},
    "gae_explorer": {"lam": _steps(0, 1, 0.05), "gamma": (0.8, 0.9, 0.95, 0.99, 1.0)},
    "gate_zoo_explorer": {
        "epsilon": (0.1, 0.2, 0.4),
        "tau": (0.5, 1.0, 4.0),
        "old": (0.01, 0.3, 0.9),
        "ratio": (0.5, 0.9, 1.0, 1.1, 1.5, 3.0),
    },
    "kl_explorer": {
        "mean": (*range(-6, 7), 2.8),
        "deviation": (0.7, 1.0, 1.4, 2.0, 2.6, 3.2, 4.0, 6.0),
        "distance": (0.0, 1.0, 2.0, 2.5, 2.8, 3.0, 4.0, 5.0),
    },
    "many_updates_explorer": {"updates": (1, 2, 4, 8, 12, 16, 20, 25, 30)},
    "one_group_explorer": {
        "size": (2, 3, 4, 6, 8, 9, 10, 11, 12, 16, 20),
        "mine": (0.0, 0.1, 0.5, 0.9, 1.0),
    },
    "one_pair_explorer": {
        "shared": _steps(0.75, 1.1, 0.05, 0, 0.25, 0.5, 1.25, 1.5, 1.75, 2),
        "beta": (0.1, 0.5, 1.0, 2.0, 2.5),
        "margin": _steps(0, 0.6, 0.1, 1, 2, 3, 4, 5, 6, 7, 8),
    },
    "product_weight_explorer": {
        "length": (1, 2, 5, *range(10, 201, 10), 500, 1000),
        "spread": _steps(0.02, 0.2, 0.02, 0.005, 0.01, 0.025, 0.05),
    },
    "rare_token_explorer": {"step": (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)},
    "scaling_fit_explorer": {"noise": (0.002, 0.01, 0.03), "seed": range(4)},
    "sharpen_or_learn_explorer": {"power": _steps(1, 4, 0.2)},
    "std_explorer": {
        "gap": (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0),
        "size": (2, 4, 8, 16),
        "eps": (0.0, 1e-6, 1e-4),
    },
    "three_pushes_explorer": {"baseline": (-1.0, -0.4, 0.0, 0.2, 0.4, 0.6, 0.8, 1.2, 1.8)},
    "token_gates_explorer": {"epsilon": _steps(0, 0.9, 0.05)},
    "token_weights_explorer": {
        "first": (1, 4, 12, 24, 40),
        "second": (1, 4, 12, 24, 40),
        "other": (1, 3, 12, 40),
        "limit": (40, 64, 200),
    },
    "turn_credit_explorer": {"turns": (*range(2, 17), 20, 24, 32, 48, 64)},
    "wrong_critic_explorer": {
        "lam": _steps(0, 0.3, 0.01, *_steps(0.35, 1, 0.05), 0.99),
        "lasts": (*range(1, 13), 16, 20, *range(25, 36), 40, 60, 80),
    },
}
# explorer -> controls that move freely; of the others one at a time differs from where it began
ONE_AT_A_TIME: Mapping[str, tuple[str, ...]] = {
    "composer_explorer": ("start",),
    "gpu_budget_explorer": ("model", "card"),
}


@dataclass(frozen=True)
class Axis:
    """A control. values and labels: what is offered, in order; of: how many JupyterLab offers.

    at: the place of the value it begins with. kind: "range", "radio", "select", "tick", "text".
    """

    name: str
    kind: str
    label: str
    tip: str
    values: tuple[Any, ...]
    labels: tuple[str, ...]
    at: int
    of: int


@dataclass(frozen=True)
class Grid:
    """The settings that are drawn.

    rows: places on the axes, one tuple per setting. home: None, or where the axes that do not move
    freely go when another one of them moves: per value of the first axis where there are several.
    free: how many axes, from the first, move freely.
    """

    axes: tuple[Axis, ...]
    rows: tuple[tuple[int, ...], ...]
    home: tuple[tuple[int, ...], ...] | None = None
    free: int = 0

    def params(self, row: Sequence[int]) -> dict[str, Any]:
        """A row as `compute` takes it."""
        return {a.name: a.values[i] for a, i in zip(self.axes, row, strict=True)}


def axis(name: str, control: Any, kept: Iterable[Any] | None = None) -> Axis:
    """A control of an explorer; `kept`: those of its values that are drawn, None for all."""
    if isinstance(control, ipywidgets.Text):
        return Axis(
            name, "text", control.description, control.tooltip or "", (control.value,),
            (control.value,), 0, 1,
        )  # fmt: skip
    values, labels = _offered(control)
    of = len(values)
    if kept is not None:
        wanted = list(kept)
        some = [i for i, v in enumerate(values) if v == control.value or _among(v, wanted)]
        missing = [w for w in wanted if not any(_among(values[i], [w]) for i in some)]
        if missing:
            raise ValueError(f"grids: the control {name!r} does not offer {missing[0]!r}.")
        values, labels = [values[i] for i in some], [labels[i] for i in some]
    at = next(i for i, v in enumerate(values) if v is control.value or v == control.value)
    return Axis(
        name, _kind(control), control.description, control.tooltip or "", tuple(values),
        tuple(labels), at, of,
    )  # fmt: skip


def grid(name: str, explorer: Explorer) -> Grid:
    """The settings of an explorer that are drawn. Raises ValueError for more than MOST."""
    coarse = COARSE.get(name, {})
    axes = tuple(axis(key, c, coarse.get(key)) for key, c in explorer.controls.items())
    if name in ONE_AT_A_TIME:
        return _one_at_a_time(name, axes)
    count = math.prod(len(a.values) for a in axes)
    if count > MOST:
        raise ValueError(
            f"grids: {name} would be drawn {count} times, {MOST} at most: keep fewer values in "
            "COARSE."
        )
    return Grid(axes, tuple(itertools.product(*(range(len(a.values)) for a in axes))))


def _one_at_a_time(name: str, axes: tuple[Axis, ...]) -> Grid:
    free = len(ONE_AT_A_TIME[name])
    if tuple(a.name for a in axes[:free]) != ONE_AT_A_TIME[name]:
        raise ValueError(f"grids: the first controls of {name} are not {ONE_AT_A_TIME[name]}.")
    rows: dict[tuple[int, ...], None] = {}
    homes = []
    for first in itertools.product(*(range(len(a.values)) for a in axes[:free])):
        home = tuple(a.at for a in axes[free:])
        if name == "composer_explorer":
            parts = choices_of(axes[0].values[first[0]])
            home = tuple(a.values.index(parts[a.name]) for a in axes[free:])
        homes.append(home)
        rows.setdefault((*first, *home))
        for place, other in enumerate(axes[free:]):
            for value in range(len(other.values)):
                rows.setdefault((*first, *home[:place], value, *home[place + 1 :]))
    return Grid(axes, tuple(rows), tuple(homes) if len(set(homes)) > 1 else (homes[0],), free)


def _offered(control: Any) -> tuple[list[Any], list[str]]:
    if isinstance(control, ipywidgets.Checkbox):
        return [False, True], ["no", "yes"]
    if hasattr(control, "options"):
        pairs = [o if isinstance(o, tuple) else (str(o), o) for o in control.options]
        return [value for _, value in pairs], [str(label) for label, _ in pairs]
    count = round((control.max - control.min) / control.step) + 1
    whole = isinstance(control, ipywidgets.IntSlider)
    values = [control.min + i * control.step for i in range(count)]
    values = [int(v) if whole else round(v, 9) for v in values]
    return values, [format(v, control.readout_format) for v in values]


def _kind(control: Any) -> str:
    if isinstance(control, ipywidgets.Checkbox):
        return "tick"
    if isinstance(control, ipywidgets.ToggleButtons):
        return "radio"
    return "select" if isinstance(control, ipywidgets.Dropdown) else "range"


def _among(value: Any, wanted: Iterable[Any]) -> bool:
    def same(one: Any) -> bool:
        if isinstance(one, (int, float)) and isinstance(value, (int, float)):
            return one == value or abs(one - value) <= SAME * max(abs(one), abs(value))
        return one == value

    return any(map(same, wanted))
