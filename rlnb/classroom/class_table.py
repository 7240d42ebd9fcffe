"""A class's exported progress in one table, on the teacher's machine.

    rlnb class *.json                 a line per learner, a column per lesson
    rlnb class *.json --by guesses    only one kind: guesses, tasks, exercises, statements
    rlnb class *.json --csv           the same with commas, for a spreadsheet

Each file is what a learner wrote with `rlnb progress export FILE --name NAME`. Nothing is sent and
nothing is kept: the table is printed. Below it stands what most got wrong, which is where a
teacher begins the next hour.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlnb.classroom.course import EXPORT, KINDS, course

__all__ = ["Learner", "as_csv", "as_table", "hardest", "read_export", "read_exports"]

SHOWN_MISSES = 8


@dataclass(frozen=True)
class Learner:
    """What one exported file says.

    pages   stem -> kind -> {"done", "right", "there"}, as `rlnb.classroom.course.Tally`
    facts   the learner's own notes: kind -> key -> facts
    """

    name: str
    pages: Mapping[str, Mapping[str, Mapping[str, Any]]]
    facts: Mapping[str, Mapping[str, Mapping[str, Any]]]

    def counted(self, stem: str, kinds: Iterable[str] = KINDS) -> tuple[int, int]:
        """Done, and there to do, on one page."""
        tallies = [self.pages.get(stem, {}).get(kind, {}) for kind in kinds]
        return sum(t.get("done", 0) for t in tallies), sum(t.get("there", 0) for t in tallies)


def read_export(file: Path) -> Learner:
    """One learner's file. Raises ValueError, with the file's name, when it is something else."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{file}: cannot be read as JSON ({error})") from error
    if not isinstance(content, dict) or content.get("format") != EXPORT:
        said = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise ValueError(
            f"{file}: expected an export of the course (format {EXPORT!r}), got {said!r}; a "
            "learner writes one with `rlnb progress export FILE --name NAME`"
        )
    name = content.get("learner")
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"{file}: has no learner's name")
    return Learner(name.strip(), content.get("pages", {}), content.get("facts", {}))


def read_exports(files: Iterable[Path]) -> list[Learner]:
    """All learners by name. Two files of one name: both stand, numbered as they came."""
    found: list[Learner] = []
    seen: dict[str, int] = {}
    for file in files:
        learner = read_export(file)
        seen[learner.name] = seen.get(learner.name, 0) + 1
        if seen[learner.name] > 1:
            name = f"{learner.name} ({seen[learner.name]})"
            learner = Learner(name, learner.pages, learner.facts)
        found.append(learner)
    return sorted(found, key=lambda learner: learner.name.casefold())


def _rows(learners: list[Learner], kinds: Iterable[str]) -> list[list[str]]:
    """Head, a row per learner (percent done per lesson and over all), and the class's middle."""
    kinds = tuple(kinds)
    pages = [p for p in course() if any(len(getattr(p, kind)) for kind in kinds)]
    rows = [["learner", *(p.number for p in pages), "all"]]
    shares: list[list[float]] = []
    for learner in learners:
        counts = [learner.counted(p.stem, kinds) for p in pages]
        counts.append((sum(d for d, _ in counts), sum(t for _, t in counts)))
        # what the course has today counts, so that files of two versions can be compared
        there = [sum(len(getattr(p, kind)) for kind in kinds) for p in pages]
        there.append(sum(there))
        share = [min(d / t, 1.0) if t else 0.0 for (d, _), t in zip(counts, there, strict=True)]
        shares.append(share)
        rows.append([learner.name, *(f"{100 * s:.0f}" if s else "" for s in share)])
    if len(learners) > 1:
        middle = [sorted(column)[(len(column) - 1) // 2] for column in zip(*shares, strict=True)]
        rows.append(["median", *(f"{100 * s:.0f}" if s else "" for s in middle)])
    return rows


def as_table(learners: list[Learner], kinds: Iterable[str] = KINDS) -> str:
    """The table in plain text: percent done, a column per lesson; empty is not begun."""
    rows = _rows(learners, kinds)
    first = max(len(row[0]) for row in rows)
    lines = [row[0].ljust(first) + "".join(cell.rjust(5) for cell in row[1:]) for row in rows]
    return "\n".join([f"{len(learners)} learners, percent done", *lines])


def as_csv(learners: list[Learner], kinds: Iterable[str] = KINDS) -> str:
    """The same with commas. A name that a spreadsheet would take for a formula gets a quote."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for name, *cells in _rows(learners, kinds):
        writer.writerow([f"'{name}" if name[:1] in "=+-@" else name, *cells])
    return out.getvalue().rstrip("\n")


def hardest(learners: list[Learner], most: int = SHOWN_MISSES) -> list[tuple[str, int, int]]:
    """Guesses and statements that were missed most: (key, wrong, of so many), worst first."""
    told: dict[str, list[bool]] = {}
    for learner in learners:
        for kind in ("guess", "statement"):
            for key, facts in learner.facts.get(kind, {}).items():
                if isinstance(facts, dict) and isinstance(facts.get("right"), bool):
                    told.setdefault(key, []).append(facts["right"])
    missed = [(key, said.count(False), len(said)) for key, said in told.items() if False in said]
    return sorted(missed, key=lambda row: (-row[1], -row[1] / row[2], row[0]))[:most]


def main(arguments: list[str] | None = None) -> int:
    """`rlnb class FILE...` prints the table; status 2 for a file that is no export."""
    parser = argparse.ArgumentParser(
        prog="rlnb", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words = parser.add_subparsers(dest="word", required=True)
    asked = words.add_parser("class", help="the class's progress in one table")
    asked.add_argument("files", nargs="+", type=Path, metavar="FILE")
    asked.add_argument("--by", choices=KINDS, help="count only these")
    asked.add_argument("--csv", action="store_true", help="commas, for a spreadsheet")
    given = parser.parse_args(arguments)
    kinds = (given.by,) if given.by else KINDS
    try:
        learners = read_exports(given.files)
    except ValueError as error:
        print(f"rlnb class: {error}", file=sys.stderr)
        return 2
    if given.csv:
        print(as_csv(learners, kinds))
        return 0
    print(as_table(learners, kinds))
    if missed := hardest(learners):
        print("\nmissed most: " + ", ".join(f"{key} {wrong} of {of}" for key, wrong, of in missed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
