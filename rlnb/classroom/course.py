"""What the course consists of, page by page, and how far a learner has come.

    course_map()                      on page 00: the table of pages, with this learner's counts
    python -m rlnb progress           the same as text
    python -m rlnb progress export ada.json --name Ada      a file for a teacher

What can be done on a page (guesses, goals of tasks, checked exercises, statements) is read off the
pages themselves when they are built and kept in data/course.json. What has been done stands in the
learner's own file (`rlnb.classroom.progress`). An export is written where it was asked for;
nothing is sent.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rlnb.classroom import progress
from rlnb.shipped import data_folder

__all__ = [
    "Page",
    "Tally",
    "minutes_said",
    "course",
    "course_map",
    "export",
    "read_course",
    "tallies",
]

EXPORT = "rlnb-progress-1"
KINDS = ("guesses", "tasks", "exercises", "statements")
MINUTES = re.compile(r"\b(\d+) minutes\b(?:, then (\d+) in a second sitting)?")
SITTINGS = re.compile(r"\bsittings of ((?:\d+, )+\d+ and \d+) minutes")


@dataclass(frozen=True)
class Page:
    """A lesson with its statements page: what there is to do, by key."""

    stem: str
    title: str
    question: str
    minutes: int  # of the first sitting
    guesses: tuple[str, ...]
    tasks: tuple[str, ...]  # a goal each: "ppo.t/1"
    exercises: tuple[str, ...]
    statements: tuple[str, ...]
    later: tuple[int, ...] = ()  # minutes of further sittings

    @property
    def number(self) -> str:
        return self.stem[:2]

    @property
    def sittings(self) -> str:
        """Text: "34", or "34 + 11" with a second sitting."""
        return " + ".join(map(str, (self.minutes, *self.later)))


@dataclass(frozen=True)
class Tally:
    """One kind of thing on one page: how many done, of them right, and how many there are.

    right is None where "done" and "right" are the same: tasks and exercises.
    """

    done: int
    right: int | None
    there: int

    def __str__(self) -> str:
        if not self.there:
            return ""
        right = "" if not self.done or self.right is None else f", {self.right} right"
        return f"{self.done} of {self.there}{right}"


def course() -> tuple[Page, ...]:
    """The pages in order, from data/course.json."""
    text = (data_folder() / "course.json").read_text(encoding="utf-8")
    return tuple(
        Page(**{k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()})
        for entry in json.loads(text)
    )


def tallies(page: Page, kept: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Tally]:
    """Kind -> Tally for one page. kept: the learner's file as a mapping; None reads it."""
    kept = progress.everything() if kept is None else kept

    def facts(kind: str, key: str) -> Mapping[str, Any]:
        return kept.get(kind, {}).get(key, {})

    guesses = [f for key in page.guesses if (f := facts("guess", key)).get("guess") is not None]
    tasks = [key for key in page.tasks if facts("task", key[: key.index("/")]).get(key[-1])]
    checks = [name for name in page.exercises if facts("check", name).get("passed")]
    settled = [f for key in page.statements if (f := facts("statement", key)).get("settled")]
    return {
        "guesses": Tally(
            len(guesses), sum(bool(f.get("right")) for f in guesses), len(page.guesses)
        ),
        "tasks": Tally(len(tasks), None, len(page.tasks)),
        "exercises": Tally(len(checks), None, len(page.exercises)),
        "statements": Tally(
            len(settled), sum(bool(f.get("right")) for f in settled), len(page.statements)
        ),
    }


def course_map() -> None:
    """Show the pages as a table: the question of each, its minutes, and what has been done."""
    from rlnb.classroom.figures import Bundle
    from rlnb.classroom.notebook_display import display

    kept, rows = progress.everything(), []
    for page in course():
        count = tallies(page, kept)
        link = f"[{page.title}]({page.stem}.ipynb)"
        stated = str(count["statements"])
        if stated:
            stated = f"[{stated}](statements/{page.stem}.ipynb)"
        counted = [str(count[kind]) for kind in ("guesses", "tasks", "exercises")]
        cells = [page.number, link, page.question, page.sittings, *counted, stated]
        rows.append("| " + " | ".join(cells) + " |")
    for stem, title, question, count in beside(kept):
        rows.append(f"| | [{title}]({stem}.ipynb) | {question} | | | | {count} | |")
    head = "| # | page | its question | minutes | guesses | tasks | exercises | statements |"
    markdown = "\n".join((head, "|---|---|---|---|---|---|---|---|", *rows))
    display(Bundle({"text/markdown": markdown, "text/plain": as_text(kept)}))


def as_text(kept: Mapping[str, Mapping[str, Any]] | None = None) -> str:
    """The map in plain text, a line a page."""
    kept = progress.everything() if kept is None else kept
    lines = []
    for page in course():
        count = tallies(page, kept)
        said = [f"{kind} {tally}" for kind, tally in count.items() if str(tally)]
        lines.append(f"{page.number} {page.title}: {'; '.join(said) or 'to read'}")
    lines += [f"{title}: {count or 'to look things up'}" for _, title, _, count in beside(kept)]
    return "\n".join(lines)


def beside(kept: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, str, str]]:
    """What stands beside the lessons: stem, title, question, how far the learner has come."""
    from rlnb.classroom.breaking import lab
    from rlnb.classroom.questions import bank

    bugs = sum(len(bench.bugs) for bench in lab.benches().values())
    killed = kept.get("lab", {}).get("break_it", {}).get("killed", 0)
    graded = kept.get("question", {})
    known = sum(graded.get(q.id, {}).get("grade") == "knew" for q in bank())
    return [
        (
            "extras/break_it",
            "The break-it lab",
            "Do your tests find the bug?",
            f"{killed} of {bugs} bugs",
        ),
        (
            "20_interview",
            "The drill",
            "What can you say at once?",
            f"{known} of {len(bank())} questions",
        ),
        ("extras/ledger", "The ledger", "What does that curve mean?", ""),
    ]


def export(path: str | Path, name: str) -> Path:
    """Write what this learner has done into one JSON file, under the name they give.

    Raises ValueError without a name, FileExistsError where a file of that name lies already.
    """
    if not name.strip():
        raise ValueError("export: name is empty; a teacher needs one to tell files apart.")
    path = Path(path).expanduser()
    if path.exists():
        raise FileExistsError(f"export: {str(path)!r} exists and is kept; give another name.")
    kept = progress.everything()
    pages = {
        page.stem: {kind: asdict(tally) for kind, tally in tallies(page, kept).items()}
        for page in course()
    }
    content = {"format": EXPORT, "learner": name.strip(), "pages": pages, "facts": kept}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read_course(notebooks: Path) -> list[Page]:
    """The pages as their text twins in `notebooks` have them: what data/course.json must say."""
    return [_read_page(twin) for twin in sorted((notebooks / "text").glob("*.py"))]


def write_course(notebooks: Path, file: Path) -> None:
    """Bring data/course.json up to date; the file is untouched when nothing changed."""
    entries = ",\n".join(
        " " + json.dumps(asdict(page), ensure_ascii=False) for page in read_course(notebooks)
    )
    text = f"[\n{entries}\n]\n"
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def minutes_said(text: str) -> tuple[int, ...]:
    """The minutes that a page says of its sittings, in order; none where it says nothing.

    >>> minutes_said("34 minutes, then 11 in a second sitting")
    (34, 11)
    >>> minutes_said("Three sittings of 6, 5 and 8 minutes")
    (6, 5, 8)
    """
    if several := SITTINGS.search(text):
        return tuple(map(int, re.findall(r"\d+", several[1])))
    found = MINUTES.search(text)
    return tuple(int(m) for m in found.groups() if m) if found else ()


def _read_page(twin: Path) -> Page:
    text = twin.read_text(encoding="utf-8")
    first = re.search(r"^# # \d\d · (.+)$", text, re.MULTILINE)
    minutes = minutes_said(text.replace("\n# ", " "))
    if first is None or not minutes:
        raise ValueError(
            f"{twin.name}: a page begins '# NN · title: question?' and says 'N minutes'."
        )
    title, _, question = first[1].partition(": ")
    beside = twin.parents[1] / "statements" / "text" / twin.name
    stated = beside.read_text(encoding="utf-8") if beside.exists() else ""
    return Page(
        stem=twin.stem,
        title=title,
        question=question[:1].upper() + question[1:],
        minutes=minutes[0],
        later=minutes[1:],
        guesses=tuple(call.args[0].value for call in _calls(text, "predict")),
        tasks=tuple(
            f"{call.args[0].value}/{i}"
            for call in _calls(text, "task")
            for i in range(1, len(call.args) - 1)
        ),
        exercises=tuple(
            dict.fromkeys(re.findall(r"^(?!#).*?\bcheck\.(\w+)\(", text, re.MULTILINE))
        ),
        statements=tuple(call.args[0].value for call in _calls(stated, "settle")),
    )


def _calls(text: str, function: str) -> Iterator[ast.Call]:
    """The calls of a function in a twin's code, in order. Comments are no code, so it parses."""
    found = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == function
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ]
    yield from sorted(found, key=lambda call: call.lineno)


def main(arguments: list[str] | None = None) -> int:
    """`progress` prints the map, `progress export FILE --name NAME` writes the file."""
    parser = argparse.ArgumentParser(prog="rlnb", description=__doc__.splitlines()[0])
    words = parser.add_subparsers(dest="word", required=True)
    told = words.add_parser("progress", help="how far you have come")
    told.add_argument("what", nargs="?", choices=["show", "export"], default="show")
    told.add_argument("file", nargs="?", help="where the export goes")
    told.add_argument("--name", default="", help="the name a teacher will see")
    given = parser.parse_args(arguments)
    if given.what == "show":
        print(as_text())
        return 0
    if not given.file:
        print("rlnb progress export: name the file to write, as in ada.json", file=sys.stderr)
        return 2
    try:
        print(f"written: {export(given.file, given.name)}")
    except (ValueError, OSError) as error:
        print(f"rlnb progress {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
