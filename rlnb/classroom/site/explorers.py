"""Explorers that work without a kernel, from a folder.

    prepare(workers=2)                              draws what is not kept from an earlier build
    block("clip_explorer", "statements/06_ppo", 26) an explorer's place on its page
    assets(folder)                                  what the blocks load, into folder/assets

Every setting that is offered was drawn beforehand, by the explorer's own `compute`, `build` and
`update`; a script (explorers.js) shows the one that the controls say. Two follow their controls
freely, by a `compute` in JavaScript that the tests hold against Python's: LIVE. Drawings are kept
between builds, under the hash of all that they depend on.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rlnb.classroom.explorer import Explorer
from rlnb.classroom.site.fonts import font_faces, font_licence
from rlnb.classroom.site.grids import Axis, Grid, axis, grid
from rlnb.classroom.site.parts import drawn, joined, still
from rlnb.classroom.site.placed import Placed, all_placed, made, placed, source_hash

__all__ = ["LIVE", "Made", "assets", "axes_of", "block", "kept_in", "prepare"]

HERE = Path(__file__).parent
FOLDER = "explorers"  # inside the site's assets
SLOWEST = ("composer_explorer", "token_weights_explorer", "product_weight_explorer")  # go first
# explorer -> the rows whose parts are the patterns that its script fills in: between them every
# artist that moves is to be seen in every look that it has
LIVE: dict[str, tuple[dict[str, Any], ...]] = {
    "clip_explorer": (
        {"epsilon_low": 0.2, "epsilon_high": 0.2, "dual": 3.0, "sign": "both"},
    ),
    "group_advantage_explorer": (
        {"rewards": "1, 0", "size": 16, "fill": "list", "std": "population"},
        {"rewards": "0, 1", "size": 16, "fill": "list", "std": "population"},
    ),
}  # fmt: skip
_USED: dict[str, Made] = {}


@dataclass(frozen=True)
class Made:
    """An explorer of the site. html: its place on the page, with {assets} for the way there;
    script: its data; settings: how many it has, None where it follows its controls freely;
    reached: of each goal above it, whether one of these settings reaches it."""

    html: str
    script: str
    settings: int | None
    reached: Sequence[bool] = ()


def block(name: str, page: str, cell_index: int) -> str | None:
    """The explorer as HTML, or None where it stays a picture.

    name: its function, "clip_explorer"; page: "06_ppo" or "statements/06_ppo"; cell_index: of the
    notebook's cells, from 0. An address in it begins with "../": pages lie one folder deep, those
    of statements, solutions and extras two ("../../").
    """
    place = placed(name, page, cell_index)
    found = _kept(place) or _keep(place, _make(place))
    _USED[place.id] = found
    return found.html.replace("{assets}", "../" * (1 + page.count("/")) + f"assets/{FOLDER}")


def assets(folder: Path) -> None:
    """Write what the blocks made so far need into `folder`, the site's own."""
    target = Path(folder) / "assets" / FOLDER
    target.mkdir(parents=True, exist_ok=True)
    for name, found in _USED.items():
        (target / f"{name}.js").write_text(found.script, encoding="utf-8")
    for file in (*sorted(HERE.glob("explorer*.js")), *sorted(HERE.glob("live_*.js"))):
        shutil.copy(file, target / file.name)
    look = (HERE / "explorers.css").read_text(encoding="utf-8")
    (target / "explorers.css").write_text(font_faces() + look, encoding="utf-8")
    (target / "LICENSE_DEJAVU").write_text(font_licence(), encoding="utf-8")


def prepare(workers: int | None = None, places: Iterable[Placed] | None = None) -> int:
    """Draw what the pages show and no earlier build kept; how many explorers that were.

    workers: processes, by default one per processor and at most 4. `block` does the same for a
    single explorer, in this process.
    """
    waiting = [
        place for place in (all_placed() if places is None else places) if _kept(place) is None
    ]
    waiting.sort(key=lambda place: place.name not in SLOWEST)
    if not waiting:
        return 0
    workers = min(workers or min(4, os.cpu_count() or 1), len(waiting))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_calm) as pool:
        for place, found in zip(waiting, pool.map(_make, waiting), strict=True):
            _keep(place, found)
    return len(waiting)


def kept_in() -> Path:
    """Where drawings are kept between builds: RLNB_SITE_CACHE, or the user's cache folder."""
    if named := os.environ.get("RLNB_SITE_CACHE"):
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("rlnb", appauthor=False) / "site"


# ---- drawn, in one process or several


def _calm() -> None:
    """In a worker: one thread each, and no word."""
    import torch

    torch.set_num_threads(1)


def _make(place: Placed) -> Made:
    """Every setting drawn."""
    explorer, goals = made(place)
    live = place.name in LIVE
    if live:
        settings = Grid(axes_of(explorer), ())
        rows: Sequence[Any] = LIVE[place.name]
    else:
        settings = grid(place.name, explorer)
        rows = [settings.params(row) for row in settings.rows]
    picture = still(explorer, place.id)
    found, defs = drawn(explorer, rows, place.id, goals)
    parts = joined(found, len(explorer.moving))
    reached = [any(row.reached[i] for row in found if row.reached) for i in range(len(goals))]
    data = {
        "size": picture.size,
        "still": f"<defs>{''.join(dict.fromkeys(picture.defs + defs))}</defs>{picture.svg}",
        **asdict(parts),
        "lengths": [len(a.values) for a in settings.axes],
        "labels": [a.labels for a in settings.axes],
    }
    if settings.home is not None:
        data |= {
            "home": settings.home,
            "free": settings.free,
            "rows": {",".join(map(str, row)): i for i, row in enumerate(settings.rows)},
        }
    if live:
        data |= {
            "live": place.name,
            "names": [a.name for a in settings.axes],
            "values": [list(map(_plain, a.values)) for a in settings.axes],
            "frames": [_frame(axes, picture.size) for axes in explorer.figure.axes],
        }
    packed = gzip.compress(json.dumps(data, ensure_ascii=False).encode(), mtime=0)
    script = f'rlnbExplorer("{place.id}","{base64.b64encode(packed).decode()}");\n'
    page = _html(place, settings, picture.size, reached, live)
    return Made(page, script, None if live else len(rows), tuple(reached))


def axes_of(explorer: Explorer) -> tuple[Axis, ...]:
    """Every control, with every value that it has."""
    return tuple(axis(name, control) for name, control in explorer.controls.items())


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isinf(value) else value


def _frame(axes: Any, size: tuple[float, float]) -> list[float]:
    """x0, width, y0, height of an axes in points, from the upper left, and its limits."""
    box, (width, height) = axes.get_position(), size
    return [
        box.x0 * width, box.width * width, height * (1 - box.y0), -box.height * height,
        *map(float, axes.get_xlim()), *map(float, axes.get_ylim()),
    ]  # fmt: skip


# ---- kept between builds


def _file(place: Placed) -> Path:
    return kept_in() / f"{place.id}-{source_hash(place)[:20]}.json"


def _kept(place: Placed) -> Made | None:
    if place.id in _USED:
        return _USED[place.id]
    try:
        return Made(**json.loads(_file(place).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _keep(place: Placed, found: Made) -> Made:
    file = _file(place)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for old in file.parent.glob(f"{place.id}-{'[0-9a-f]' * 20}.json"):
            old.unlink(missing_ok=True)
        part = file.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(asdict(found)), encoding="utf-8")
        part.replace(file)
    except OSError as error:  # the site is made all the same
        print(f"site: {error}; the next build draws it again.", file=sys.stderr)
    return found


# ---- as HTML


def _html(
    place: Placed, settings: Grid, size: tuple[float, float], goals: Sequence[bool], live: bool
) -> str:
    name = place.id
    controls = "".join(_control(a, f"{name}-{a.name}") for a in settings.axes)
    own = ["live_text", f"live_{place.name.removesuffix('_explorer')}"] if live else []
    scripts = ["explorers", *own, name]
    loads = "".join(f'<script defer src="{{assets}}/{script}.js"></script>' for script in scripts)
    lines = "".join(
        f'<li data-goal="{i}" role="status">Task{f" {i + 1}" if len(goals) > 1 else ""}: '
        f"{'not yet ○' if here else 'for JupyterLab, where more can be moved'}</li>"
        for i, here in enumerate(goals)
    )
    tasks = f'<ul class="goals">{lines}</ul>' if goals else ""
    width, height = (round(side / 0.75) for side in size)
    return (
        f'<link rel="stylesheet" href="{{assets}}/explorers.css">'
        f'<div class="explorer" id="{name}" role="group" aria-label="Explorer: controls and a '
        f'picture that follows them" data-explorer="{place.name}" hidden>'
        f'<form class="controls" autocomplete="off">{controls}</form>'
        '<p class="readout"></p><p class="problem" role="alert"></p>'
        f'<div class="view" tabindex="0" role="group" aria-label="Picture" '
        f'style="--wide: {width}px; --ratio: {width} / {height}"></div>'
        f'<p class="heard" aria-live="polite"></p>{tasks}{_coarse(settings)}</div>{loads}'
    )


def _control(a: Axis, identity: str) -> str:
    text, tip = html.escape(a.label), html.escape(a.tip, quote=True)
    here = html.escape(a.labels[a.at], quote=True)
    about = f'<span class="tip" id="{identity}-tip">{tip}</span>' if tip else ""
    told = f' aria-describedby="{identity}-tip" title="{tip}"' if tip else ""
    if a.kind == "radio":
        choices = "".join(
            f'<label><input type="radio" name="{identity}" value="{i}"'
            f"{' checked' if i == a.at else ''}> {html.escape(label)}</label>"
            for i, label in enumerate(a.labels)
        )
        return (
            f'<fieldset class="control" data-control="{a.name}"{told}><legend>{text}</legend>'
            f"<span>{choices}</span>{about}</fieldset>"
        )
    head = f'<div class="control" data-control="{a.name}"><label for="{identity}">{text}</label>'
    if a.kind == "select":
        options = "".join(
            f'<option value="{i}"{" selected" if i == a.at else ""}>{html.escape(label)}</option>'
            for i, label in enumerate(a.labels)
        )
        return f'{head}<select id="{identity}"{told}>{options}</select>{about}</div>'
    if a.kind == "tick":
        ticked = " checked" if a.at else ""
        return f'{head}<input type="checkbox" id="{identity}"{ticked}{told}>{about}</div>'
    if a.kind == "text":
        return (
            f'{head}<input type="text" id="{identity}" value="{here}" spellcheck="false"{told}>'
            f"{about}</div>"
        )
    return (
        f'{head}<input type="range" id="{identity}" min="0" max="{len(a.values) - 1}" step="1" '
        f'value="{a.at}" aria-valuetext="{here}"{told}><output for="{identity}">{here}</output>'
        f"{about}</div>"
    )


def _coarse(settings: Grid) -> str:
    """What JupyterLab has beyond this."""
    fewer = [
        f"{a.label}: {len(a.values)} of {a.of} values"
        for a in settings.axes
        if len(a.values) < a.of
    ]
    told = []
    if fewer:
        told.append(f"Coarser here than in JupyterLab: {'; '.join(fewer)}.")
    if settings.home is not None:
        freely = " and ".join(f"“{a.label}”" for a in settings.axes[: settings.free])
        told.append(
            f"Here {freely} move{'s' * (settings.free == 1)} freely, and of the other controls one "
            "at a time differs from where it began; in JupyterLab all move together."
        )
    return f'<p class="coarse">{html.escape(" ".join(told))}</p>' if told else ""
