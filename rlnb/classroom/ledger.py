"""The ledger page: every statement with its verdict, and an index of symptoms that leads to them.

    python -m rlnb.classroom.ledger       writes notebooks/extras/text/ledger.py

It is made from data/claims.yaml, data/symptoms.yaml and the tags of the pages; nobody edits it.
`python -m rlnb.classroom.pages build` writes it before it builds, so that a moved heading moves its
links.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rlnb.classroom.wrapping import wrapped
from rlnb.shipped import data_folder, shipped_folder

__all__ = ["anchor", "ledger_page", "places", "symptoms", "write_ledger"]

SAID = {
    "true": "true",
    "conditional": "it depends",
    "sloppy": "it depends",
    "wrong": "false",
    "paper": "a report",
}
MET = re.compile(r"\"(?:claim|cited):([A-Z]\d\d)\"")
HEADING = re.compile(r"^# (#+ .+?)\s*$")
COUNTED = """
# %% tags=["setup"]
from collections import Counter
from rlnb.classroom.ledger import SAID
from rlnb.classroom.lesson.statements import ledger

told = Counter(SAID[entry["verdict"]] for entry in ledger().values())
for word, count in told.most_common():
    print(f"{word:12} {count:4}")
"""
TOP = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---
"""


def symptoms(data: Path | None = None) -> list[dict[str, Any]]:
    """The entries of data/symptoms.yaml."""
    return _yaml((data or data_folder()) / "symptoms.yaml")


def places(notebooks: Path) -> dict[str, str]:
    """Statement -> link to the cell that decides it, as seen from `notebooks/extras`.

    The link goes to the heading that the cell begins with, or to the last one above it, which
    JupyterLab can open.
    """
    found = {}
    for folder in ("", "statements/"):
        for twin in sorted((notebooks / folder / "text").glob("[0-9][0-9]_*.py")):
            heading, page = "", f"../{folder}{twin.stem}.ipynb"
            for cell in re.split(r"(?m)^# %%", twin.read_text(encoding="utf-8"))[1:]:
                tags, *lines = cell.splitlines()
                headings = [m[1].lstrip("# ") for m in map(HEADING.match, lines) if m]
                if headings and lines[0].startswith("# #"):  # the cell begins with its own
                    heading = headings[0]
                for name in MET.findall(tags):
                    found[name] = f"{page}#{anchor(heading)}" if heading else page
                heading = headings[-1] if headings else heading
    return found


def anchor(heading: str) -> str:
    """What JupyterLab calls a heading in a link."""
    return quote(re.sub(r"[`*$]", "", heading).replace(" ", "-"))


def ledger_page(notebooks: Path, data: Path) -> str:
    """The twin of the page, py:percent: tables, and one cell that counts."""
    claims = _yaml(data / "claims.yaml")
    met = places(notebooks)
    titles = _titles(notebooks)
    cells = [
        "# The ledger: what is said, and what became of it\n\n"
        f"{len(claims)} statements that lessons, slides, question lists and threads make about "
        "policy optimisation for language models, in our words. Each is decided by one cell of the "
        "course, which computes and asserts; a report is cited instead. The number of a statement "
        "leads to its cell.\n\n"
        "With guesses before the answers they stand on the statements page of each lesson. Here "
        "they are for looking up: first by what you see in a log, then by lesson.",
        _symptom_table(symptoms(data), met, titles),
    ]
    for stem in sorted({c["page"] for c in claims}):
        mine = [c for c in claims if c["page"] == stem]
        cells.append(_lesson_table(stem, titles.get(stem), mine, met))
    cells[0] = wrapped(cells[0])
    first, *rest = ["\n# %% [markdown]\n" + _commented(cell) + "\n" for cell in cells]
    return TOP + first + COUNTED + "".join(rest)


def write_ledger(notebooks: Path, data: Path) -> Path:
    """Bring the twin up to date; the file is untouched when nothing changed."""
    twin = notebooks / "extras" / "text" / "ledger.py"
    text = ledger_page(notebooks, data)
    if not twin.exists() or twin.read_text(encoding="utf-8") != text:
        twin.parent.mkdir(parents=True, exist_ok=True)
        twin.write_text(text, encoding="utf-8")
    return twin


def _symptom_table(
    entries: list[dict[str, Any]], met: Mapping[str, str], titles: Mapping[str, str]
) -> str:
    head = "| you see | it means | statements | try it | lesson |"
    lines = ["## By symptom", "", head, "|---|---|---|---|---|"]
    for entry in entries:
        stated = ", ".join(_link(name, met.get(name)) for name in entry["statements"])
        tried = []
        if name := entry.get("exercise"):
            page = _page_of_check(name)
            tried.append(f"[`check.{name}`](../{_stem(page, titles)}.ipynb#Exercises)")
        if trap := entry.get("trap"):
            tried.append(f"`rlnb explain`, trap `{trap}`")
        stem = entry["lesson"]
        lesson = f"[{stem[:2]}](../{stem}.ipynb)"
        row = (f"**{_cell(entry['symptom'])}**", _cell(entry["means"]), stated)
        lines.append("| " + " | ".join((*row, "; ".join(tried), lesson)) + " |")
    return "\n".join(lines)


def _lesson_table(
    stem: str, title: str | None, mine: list[dict[str, Any]], met: Mapping[str, str]
) -> str:
    heading = f"## {stem[:2]} · {title}" if title else f"## {stem[:2]} · still to come"
    head = "| # | one hears | verdict | what to say | numbers |"
    lines = [heading, "", head, "|---|---|---|---|---|"]
    for claim in mine:
        said = SAID[claim["verdict"]]
        number = claim.get("number") or claim.get("citation", "")
        cells = (claim["statement"], said, claim["fair"], number)
        row = " | ".join(_cell(text) for text in cells)
        lines.append(f"| {_link(claim['id'], met.get(claim['id']))} | {row} |")
    return "\n".join(lines)


def _link(name: str, to: str | None) -> str:
    return f"[{name}]({to})" if to else name


def _cell(text: str) -> str:
    """A sentence as a cell of a table: nothing in it is markup."""
    text = " ".join(str(text).split())
    text = re.sub(r"([|*_~`$\[\]])", r"\\\1", text)
    return text.replace("<", "&lt;").replace(">", "&gt;")


def _commented(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in text.split("\n"))


def _titles(notebooks: Path) -> dict[str, str]:
    found = {}
    for twin in sorted((notebooks / "text").glob("[0-9][0-9]_*.py")):
        first = re.search(r"^# # \d\d · ([^:\n]+)", twin.read_text(encoding="utf-8"), re.M)
        if first:
            found[twin.stem] = first[1].strip()
    return found


def _page_of_check(name: str) -> str:
    from rlnb.classroom.check import PAGES

    for page, modules in PAGES.items():
        if any(name in names for names in modules.values()):
            return page
    raise ValueError(f"data/symptoms.yaml: there is no check {name!r}.")


def _stem(page: str, titles: Mapping[str, str]) -> str:
    return next(stem for stem in titles if stem[3:] == page)


@cache
def _yaml(file: Path) -> Any:
    import yaml

    return yaml.safe_load(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    print(write_ledger(shipped_folder("notebooks"), data_folder()))
    sys.exit(0)
