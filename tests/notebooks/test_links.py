"""Links lead somewhere, and the course's tables name the pages that exist."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

from rlnb.classroom.pages import NOTEBOOKS, ROOT, committed_notebooks, page_name
from rlnb.classroom.workspace import COPIED

README = ROOT / "README.md"
START = NOTEBOOKS / "00_start_here.ipynb"
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|\b(?:src|href)=[\"']([^\"']+)[\"']")
COURSE = 22


def markdown(path: Path) -> str:
    """The prose of a file; of a notebook also what its cells show as markdown: 00's map."""
    if path.suffix == ".ipynb":
        cells = nbformat.read(path, as_version=4).cells
        written = [cell.source for cell in cells if cell.cell_type == "markdown"]
        outputs = [out for cell in cells for out in cell.get("outputs", ())]
        shown = [out.get("data", {}).get("text/markdown", "") for out in outputs]
        return "\n\n".join([*written, *shown])
    return path.read_text(encoding="utf-8")


def links(text: str) -> list[str]:
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"`[^`\n]*`|\$[^$\n]*\$", "", text)
    return [first or second for first, second in LINK.findall(text)]


def anchors(path: Path) -> set[str]:
    """What may follow `#`: JupyterLab replaces spaces by dashes, GitHub also lowers the case."""
    headings = re.findall(r"^#+ +(.+?)\s*$", markdown(path), re.MULTILINE)
    plain = [re.sub(r"[`*$]", "", heading) for heading in headings]
    lab = {heading.replace(" ", "-") for heading in plain}
    github = {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-").lower() for heading in plain}
    return github if path.suffix == ".md" else lab


@pytest.mark.parametrize("path", [README, *committed_notebooks()], ids=page_name)
def test_links_lead_somewhere(path):
    broken = []
    for link in links(markdown(path)):
        if link.startswith(("https://", "mailto:", "data:")):
            continue
        assert not link.startswith("http://"), f"{link}: use https"
        target, _, anchor = unquote(link).partition("#")
        file = (path.parent / target).resolve() if target else path
        if not file.exists():
            broken.append(f"{link}: no such file")
        elif anchor and file.suffix in (".ipynb", ".md") and anchor not in anchors(file):
            broken.append(f"{link}: no such heading")
    if broken:
        pytest.fail("\n".join(broken), pytrace=False)


@pytest.mark.parametrize("path", committed_notebooks(), ids=page_name)
def test_links_of_a_page_also_work_in_the_learners_copy(path):
    copied = {file.resolve() for pattern in COPIED for file in NOTEBOOKS.glob(pattern)}
    for link in links(markdown(path)):
        target = unquote(link).partition("#")[0]
        if target and ":" not in target and (path.parent / target).resolve() not in copied:
            pytest.fail(
                f"{link} is not copied into work/: link to a page, a solution or notebooks/images",
                pytrace=False,
            )


def test_readme_table_lists_all_pages_and_links_those_that_exist():
    row = r"^\| *(?:\[(\d\d)\]\(notebooks/(\w+)\.ipynb\)|(\d\d)) *\|"
    rows = re.findall(row, markdown(README), re.MULTILINE)
    assert [linked or plain for linked, _, plain in rows] == [f"{n:02d}" for n in range(COURSE)]
    linked = {stem for _, stem, _ in rows if stem}
    assert linked == {page.stem for page in NOTEBOOKS.glob("*.ipynb")}


def test_first_page_links_every_page_that_exists():
    linked = {Path(link.partition("#")[0]).stem for link in links(markdown(START))}
    missing = {page.stem for page in NOTEBOOKS.glob("*.ipynb")} - linked - {START.stem}
    assert not missing, f"00 does not link {sorted(missing)}"
