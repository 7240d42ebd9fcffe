"""The composer: one part from every menu, and what that is: its name, its neighbours, its pushes.

from rlnb.interop import from_trl, from_verl, to_trl, to_verl
from rlnb.classroom.explorers.composer import compute, report
print(report(compute("grpo", kl=())))                  # GRPO without its KL term
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from rlnb.classroom.explorer import Explorer, choice_slider
from rlnb.classroom.explorers import composer_row
from rlnb.classroom.explorers.arguments import checked, one_of
from rlnb.classroom.explorers.composer_menus import MENUS, REWARDS, choices_of, compose
from rlnb.classroom.explorers.composer_picture import (
    SIZE,
    alt,
    build,
    changes,
    moved,
    report,
    update,
)
from rlnb.classroom.notebook_display import ipywidgets
from rlnb.interop import from_trl, from_verl, to_trl, to_verl
from rlnb.objective import (
    ANNEX,
    ZOO,
    Explanation,
    Objective,
    difference,
    engine_ratio,
    method,
    name_of,
    neighbours,
)
from rlnb.toys import running_batch

__all__ = ["TAUGHT", "Said", "composer_explorer", "compute", "few_pushes", "report"]

NAMED = ZOO | ANNEX
USUAL = next(iter(REWARDS))
# the methods that the lessons before page 14 have derived
TAUGHT = ("reinforce", "rloo", "ppo", "grpo", "dapo", "dr_grpo", "gspo", "cispo", "sapo", "dppo")
LIBRARIES = {"TRL": (to_trl, from_trl), "verl": (to_verl, from_verl)}
# a gate that no method taught so far has: OLMo 3's
EXTRA = {"gates": engine_ratio("token", "truncate", high=2.0)}
SAPO_TURN = 0.784  # cosine of Dr. GRPO's pushes with and without SAPO's edge, on this batch
TWIN = 1e-5  # relative; eps of a z-score moves a push by 2e-6
CAPTION = (
    "A cell is the push on a token, times 1000. Bold frame: other than in the method you started "
    "from. A cross: no policy gradient, what is left is KL."
)
TAUGHT_CAPTION = (
    "A cell is the push on a token, in units of an average token's share (times 30); a std is the "
    "population's. Filled box: exchanged. Bold frame: another push. A cross: no policy gradient."
)


@dataclass(frozen=True)
class Said:
    """A composition in a library's words, a sentence per difference, or why there are none.

    Exactly one of `words` and `refused` is None.
    """

    words: dict[str, Any] | None
    differences: tuple[str, ...] = ()
    refused: str | None = None

    def __str__(self) -> str:
        if self.words is None:
            return self.refused
        words = (
            f"{key}={f'{v:g}' if isinstance(v, float) else v}"
            for key, v in self.words.items()
            if v is not None
        )
        return " ".join((", ".join(words) + ".", *self.differences))


@checked(rewards=one_of(REWARDS))
def compute(
    start: str = "grpo",
    advantage: Any = None,
    credit: Any = None,
    ratio: Any = None,
    surrogate: Any = None,
    gates: Any = None,
    weights: Any = None,
    kl: Any = None,
    rewards: str = USUAL,
) -> dict[str, Any]:
    """What one choice per menu is, and what it does to the tokens of the running batch.

    `start` is a method of the zoo or the annex; a menu that is None keeps that method's part, and
    () takes the part away. `rewards` is a key of REWARDS. Returns plain data:

        objective  the composition; code its spelling; name or None; changed since `start`
        nearest    ((name, Difference), ...): three named methods, without the composition itself
        twins      ((name, factor), ...): named methods with factor x the same push here
        said       {"TRL": Said, "verl": Said}
        push       (8, 7) -dL/dlog pi: above 0 makes the token likelier; gate, advantages, ratio
                   likewise; mask where there are tokens
        change     push minus that of `start`; minus 0 when not start_runs, on these rewards
        answers    (8,) sum of |dL/dlog pi| over each answer
        problem    None, or the sentence why this cannot run on these rewards (then no arrays)

    Raises ValueError for an unknown method or rewards.

    >>> d = compute("grpo", kl=())
    >>> d["name"], d["nearest"][0]
    (None, ('grpo', terms: k3(0.04) -> none))
    """
    picked = {
        "advantage": advantage,
        "credit": credit,
        "ratio": ratio,
        "surrogate": surrogate,
        "gates": gates,
        "weights": weights,
        "kl": kl,
    }
    picked = {menu: part for menu, part in picked.items() if part is not None}
    objective = compose(**choices_of(start) | picked)
    near = [(name, gap) for name, gap in neighbours(objective, 4) if len(gap)]
    data = {
        "start": start,
        "rewards": rewards,
        "objective": objective,
        "code": repr(objective),
        "name": name_of(objective),
        "changed": difference(method(start), objective),
        "nearest": tuple(near[:3]),
        "said": {library: _said(objective, *ways) for library, ways in LIBRARIES.items()},
        "twins": (),
        "problem": None,
    }
    try:
        seen = _explain(objective, rewards)
    except ValueError as error:
        return data | {"problem": str(error)}
    push = 0.0 - seen.gradient.numpy()  # 0.0 - 0, not the negative zero
    known = _named_pushes(rewards)
    return data | {
        "mask": seen.mask.numpy(),
        "advantages": seen.advantages.numpy(),
        "ratio": seen.ratio.numpy(),
        "gate": 0.0 + seen.gate.numpy(),
        "push": push,
        "answers": np.abs(push).sum(1),
        "change": push - known.get(start, 0.0),
        "start_runs": start in known,
        "twins": _twins(push, data["name"], rewards),
    }


def _explain(objective: Objective, rewards: str) -> Explanation:
    batch = running_batch(complete=True)
    given = torch.tensor(REWARDS[rewards], dtype=batch.rewards.dtype)
    return objective.explain(
        batch.replace(rewards=given, generator=torch.Generator().manual_seed(0))
    )  # Clip-Cov draws


@cache
def _named_pushes(rewards: str) -> dict[str, np.ndarray]:
    """The push of every named method that can use these rewards."""
    found = {}
    for name, objective in NAMED.items():
        try:
            found[name] = 0.0 - _explain(objective, rewards).gradient.numpy()
        except ValueError:
            continue  # MaxRL on graded rewards
    return found


def _twins(push: np.ndarray, own: str | None, rewards: str) -> tuple[tuple[str, float], ...]:
    found = []
    for name, other in _named_pushes(rewards).items():
        size = np.square(other).sum()
        if name == own or not push.any() or not size:
            continue
        factor = (push * other).sum() / size
        if factor > 0 and np.abs(push - factor * other).max() < TWIN * np.abs(push).max():
            found.append((name, float(factor)))
    return tuple(found)


def _said(objective: Objective, there: Callable, back: Callable) -> Said:
    try:
        words = there(objective)
    except ValueError as error:
        return Said(None, refused=str(error))
    # the library's convention as a changelog: the sentence spells the whole composition again
    differences = [d for d in words.differences if not d.startswith("conventions: ")]
    theirs = back(**words).objective
    if len(differences) < len(words.differences):
        differences.append(f"Its convention: {changes(difference(objective, theirs))}.")
    return Said(dict(words), tuple(differences))


# ---- with controls

MENU_LABELS = {
    "advantage": "advantage A",
    "credit": "then (credit)",
    "ratio": "ratio ρ",
    "surrogate": "surrogate f",
    "gates": "gate g",
    "weights": "weights c",
    "kl": "terms: KL",
}
MENU_TIPS = {
    "advantage": "rewards become advantages: the baseline",
    "credit": "what happens to A afterwards",
    "ratio": "how far the policy moved",
    "surrogate": "what a token is worth",
    "gates": "a factor on the policy term, never differentiated",
    "weights": "how tokens are averaged",
    "kl": "the pull towards the reference",
}


class Composer(Explorer):
    """An explorer whose first menu sets the others."""

    def set(self, **params: Any) -> Composer:
        """`start` first sets every part; the parts named beside it then replace theirs."""
        parts = choices_of(params["start"]) if "start" in params else {}
        parts = {menu: part for menu, part in parts.items() if menu in self.controls}
        return super().set(**parts | params)

    def _on_change(self, change) -> None:
        if change["owner"] is self.controls["start"]:
            with self._unobserved():
                for menu, part in choices_of(change["new"]).items():
                    if menu in self.controls:
                        self.controls[menu].value = part
        super()._on_change(change)


def _menu(options, description, tooltip):
    control = ipywidgets.Dropdown(options=list(options), description=description, tooltip=tooltip)
    control.style.description_width = "7em"
    control.layout.width = "97%"
    return control


def _brief(methods: Sequence[str], **picked: Any) -> dict[str, Any]:
    """`compute` with the twins among these methods, without neighbours and libraries' words."""
    data = compute(**picked)
    twins = tuple(pair for pair in data["twins"] if pair[0] in methods)
    return data | {"nearest": (), "twins": twins, "said": {}}


def _offered(menu: str, methods: Sequence[str]) -> list[tuple[str, Any]]:
    """What a menu offers: the parts of these methods, in the menu's order, and EXTRA."""
    used = [choices_of(name)[menu] for name in methods] + [EXTRA.get(menu)]
    return [(label, part) for label, part in MENUS[menu] if part in used]


def composer_explorer(methods: Sequence[str] = (), start: str = "grpo") -> Composer:
    """Start from a method, change its parts one by one.

    methods: names among TAUGHT to offer, with their parts, as a row of seven choices; () for all
    of the zoo and the annex, with the words of TRL and verl. start: where it begins.
    """
    home = choices_of(start)
    look: dict[str, Any]
    if methods:
        names, brief = methods, partial(_brief, tuple(methods))
        offered = {menu: _offered(menu, methods) for menu in MENU_LABELS}
        offered = {menu: parts for menu, parts in offered.items() if len(parts) > 1}
        look = {
            "alt": composer_row.alt,
            "caption": TAUGHT_CAPTION,
            "readout": composer_row.readout,
            "size": composer_row.SIZE,
        }
        draw, move = composer_row.build, composer_row.update
    else:
        names, brief, offered, draw, move = NAMED, compute, MENUS, build, update
        look = {"alt": alt, "caption": CAPTION, "size": SIZE}
    begin = choice_slider(
        start,
        [(name, name) for name in names],
        "start from",
        "sets every menu to this method's part",
    )
    begin.style.description_width = "7em"
    begin.layout.width = "97%"
    menus = {
        menu: _menu(offered[menu], MENU_LABELS[menu], MENU_TIPS[menu])
        for menu in MENU_LABELS
        if menu in offered
    }
    for menu in menus:
        menus[menu].value = home[menu]
    return Composer(brief, draw, move, {"start": begin, **menus}, columns=4, colors=256, **look)


# ---- what a task asks for


def few_pushes(data: dict[str, Any]) -> bool:
    """One part of Dr. GRPO exchanged: at most six pushes changed, turned further than by SAPO."""
    near = composer_row.cosine(data) if data["problem"] is None else None
    return (
        data["start"] == "dr_grpo"
        and len(data["changed"]) == 1
        and near is not None
        and 0 < moved(data).sum() <= 6
        and near < SAPO_TURN
    )
