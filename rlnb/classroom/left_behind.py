"""Which correction leaves policies behind? Recorded, because 48 trainings take minutes.

    python -m rlnb.classroom.left_behind data/runs/left_behind.json
    python -m rlnb.classroom.left_behind data/runs/left_behind_halves.json --halves
    python -m rlnb.classroom.left_behind data/runs/left_behind_long.json --long

`DRAWS` policies of `two_engines` learn for `STEPS` steps of `ANSWERS` answers drawn from the
engine, by every rule, engine and way the flips last. Kept of each: how many are below a mean reward
of 0.8 after each of `SEEN` steps. With --halves only the
two sides of a cap, each alone, with the harsh engine and lasting flips: how many end behind. With
--long, the same engine for 2,000 steps.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

from rlnb.shipped import data_folder
from rlnb.toys.two_engines import HALVES, JUMP, train

__all__ = [
    "ENGINES", "HALVES", "LASTS", "LATE", "LONG", "RULES", "half", "halves", "long", "longest",
    "main", "measure", "recorded",
]  # fmt: skip

DRAWS, SEEN, ANSWERS, LOW = 300, (60, 240), 16, 0.8
STEPS = SEEN[-1]
RULES = {  # what the page says -> what the toy says
    "no correction": "nothing",
    "exact weight": "weight of the answer",
    "token weight": "weight of the token",
    "TIS, cap 2": "truncated at 2",
    "IcePop [1/2, 5]": "IcePop [1/2, 5]",
    "IcePop [1/2, 2]": "IcePop [1/2, 2]",
    "answer capped at 2": "answer truncated at 2",
    "answer masked [1/2, 2]": "answer masked [1/2, 2]",
}
ENGINES = {  # share of the prefixes that are flipped, std of a jump in logits
    "mild: 20 % flipped": (0.2, JUMP),
    "all flipped": (1.0, JUMP),
    "harsh: all flipped, far": (1.0, 2.5),
}
LASTS = {"one step": 1, "the whole run": None}
LONG, LATE = ("no correction", "TIS, cap 2", "answer capped at 2", "IcePop [1/2, 5]"), (240, 2000)


def measure(rule: str, engine: str, lasts: str, draws: int = DRAWS) -> dict[str, list[int]]:
    """One training of `draws` policies: {"lost": [below 0.8 after each of `SEEN` steps]}."""
    flips, jump = ENGINES[engine]
    run = train(RULES[rule], flips, STEPS, draws=draws, lasts=LASTS[lasts], answers=ANSWERS,
                jump=jump)  # fmt: skip
    return {"lost": [int((run.reward[:, step] < LOW).sum()) for step in SEEN]}


def half(rule: str, draws: int = DRAWS) -> int:
    """How many of `draws` policies one of HALVES leaves behind, harsh engine, lasting flips."""
    flips, jump = ENGINES["harsh: all flipped, far"]
    run = train(rule, flips, STEPS, draws=draws, answers=ANSWERS, jump=jump)
    return int((run.reward[:, -1] < LOW).sum())


def long(rule: str, draws: int = DRAWS, at: tuple[int, ...] = LATE) -> list[int]:
    """How many of `draws` policies are behind after each number of steps `at`, as in `half`."""
    flips, jump = ENGINES["harsh: all flipped, far"]
    run = train(RULES[rule], flips, at[-1], draws=draws, answers=ANSWERS, jump=jump)
    return [int((run.reward[:, step] < LOW).sum()) for step in at]


def _shipped(name: str) -> Any:
    return json.loads((data_folder() / "runs" / name).read_text(encoding="utf-8"))


def halves() -> dict[str, int]:
    """The shipped record of `half`, by rule of HALVES."""
    found: dict[str, int] = _shipped("left_behind_halves.json")
    return found


def longest() -> dict[str, list[int]]:
    """The shipped record of `long`, by rule of LONG: behind after each of LATE steps."""
    found: dict[str, list[int]] = _shipped("left_behind_long.json")
    return found


@cache
def recorded() -> dict[str, dict[str, dict[str, dict[str, list[int]]]]]:
    """The shipped record: engine -> lasts -> rule -> what `measure` returns."""
    found: dict[str, Any] = _shipped("left_behind.json")
    return found


def main(arguments: list[str] | None = None) -> int:
    """The command line of this module: writes what the file lacks; exit status 0."""
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.classroom.left_behind", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("file", type=Path, help="the JSON file to complete")
    parser.add_argument("--halves", action="store_true", help="the two sides of a cap")
    parser.add_argument("--long", action="store_true", help="2,000 steps")
    args = parser.parse_args(arguments)
    file = args.file
    found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    if args.halves or args.long:
        for rule in [name for name in (LONG if args.long else HALVES) if name not in found]:
            found[rule] = long(rule) if args.long else half(rule)
            file.write_text(json.dumps(found) + "\n", encoding="utf-8")
        return 0
    for engine in ENGINES:
        for lasts in LASTS:
            rows = found.setdefault(engine, {}).setdefault(lasts, {})
            for rule in [name for name in RULES if name not in rows]:
                rows[rule] = measure(rule, engine, lasts)
                file.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
