"""The ledger page has every statement once, its links lead to the deciding cells, its symptoms to
what exists."""

from __future__ import annotations

import re
import shutil
from urllib.parse import unquote

import nbformat
import pytest
import yaml

from rlnb.classroom import check
from rlnb.classroom.ledger import SAID, anchor, ledger_page, places, symptoms, write_ledger
from rlnb.classroom.pages import NOTEBOOKS, ROOT
from rlnb.interop import traps_trl, traps_verl

DATA = ROOT / "data"
CLAIMS = yaml.safe_load((DATA / "claims.yaml").read_text(encoding="utf-8"))
PAGE = NOTEBOOKS / "extras" / "ledger.ipynb"
ENTRIES = symptoms()


def rows():
    """The rows of the lessons' tables: id -> the row."""
    text = "\n".join(cell.source for cell in nbformat.read(PAGE, as_version=4).cells[3:])
    found = re.findall(r"^\| \[?([A-Z]\d\d)\]?.*$", text, re.M)
    lines = [line for line in text.splitlines() if re.match(r"\| \[?[A-Z]\d\d", line)]
    assert len(found) == len(lines)
    return list(zip(found, lines, strict=True))


def test_the_page_is_up_to_date():
    twin = NOTEBOOKS / "extras" / "text" / "ledger.py"
    assert twin.read_text(encoding="utf-8") == ledger_page(NOTEBOOKS, DATA), (
        "run `python -m rlnb.classroom.pages build extras/ledger`"
    )


def test_every_statement_stands_once_with_its_verdict():
    found = rows()
    assert sorted(name for name, _ in found) == sorted(c["id"] for c in CLAIMS)
    by_id = dict(found)
    for claim in CLAIMS:
        cells = re.split(r"(?<!\\)\|", by_id[claim["id"]])[1:-1]
        assert cells[2].strip() == SAID[claim["verdict"]], claim["id"]
        assert len(cells) == 5, claim["id"]


def cells_below(page, heading):
    """The cell with a heading, as a link names it, and those up to the next heading."""
    inside, found = False, []
    for cell in nbformat.read(page, as_version=4).cells:
        if cell.cell_type == "markdown":
            names = [
                unquote(anchor(line.lstrip("# ").strip()))
                for line in cell.source.splitlines()
                if line.startswith("#")
            ]
            inside = heading in names if names else inside
        if inside:
            found.append(cell)
    return found


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["id"])
def test_the_link_of_a_statement_leads_to_its_cell(claim):
    if not (NOTEBOOKS / f"{claim['page']}.ipynb").exists():
        assert claim["id"] not in places(NOTEBOOKS), "decided on a page that is not written"
        return
    to = places(NOTEBOOKS)[claim["id"]]
    file, _, heading = unquote(to).partition("#")
    below = cells_below((PAGE.parent / file).resolve(), heading)
    tags = [tag for cell in below for tag in cell.metadata.get("tags", [])]
    assert f"{claim['meets']}:{claim['id']}" in tags, to


def test_there_are_enough_symptoms_and_none_twice():
    said = [entry["symptom"] for entry in ENTRIES]
    assert len(said) == len(set(said)) >= 15
    for needed in ("reward rises, pass@1", "the loss is 0", "entropy falls in 50 steps"):
        assert any(needed in one for one in said), needed


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["symptom"])
def test_a_symptom_leads_to_what_exists(entry):
    assert set(entry) <= {"symptom", "means", "statements", "lesson", "exercise", "trap"}
    known = {claim["id"] for claim in CLAIMS}
    assert entry["statements"] and set(entry["statements"]) <= known
    assert (NOTEBOOKS / f"{entry['lesson']}.ipynb").exists()
    assert "exercise" in entry or "trap" in entry, "nothing to do"
    if "exercise" in entry:
        assert entry["exercise"] in dir(check)
    traps = {t.name for t in (*traps_trl.TRL_TRAPS, *traps_verl.VERL_TRAPS)}
    assert entry.get("trap", "one_step") in traps
    met = places(NOTEBOOKS)
    assert any(name in met for name in entry["statements"]), "no statement that is decided yet"


def test_every_symptom_is_on_the_page_with_its_links():
    text = nbformat.read(PAGE, as_version=4).cells[2].source
    lines = text.splitlines()[4:]
    assert len(lines) == len(ENTRIES)
    for entry, line in zip(ENTRIES, lines, strict=True):
        assert f"](../{entry['lesson']}.ipynb)" in line
        for name in entry["statements"]:
            assert f"[{name}](" in line or name not in places(NOTEBOOKS)


def test_a_moved_heading_moves_the_link_and_a_stale_page_is_seen(tmp_path):
    for folder in ("text", "statements/text"):
        shutil.copytree(NOTEBOOKS / folder, tmp_path / folder)
    twin = tmp_path / "statements" / "text" / "08_grpo.py"
    text = twin.read_text(encoding="utf-8")
    twin.write_text(text.replace("# ### G09 · the one failure", "# ### G09 · renamed"))
    assert places(tmp_path)["G09"].endswith("#G09-%C2%B7-renamed")
    assert ledger_page(tmp_path, DATA) != ledger_page(NOTEBOOKS, DATA)
    written = write_ledger(tmp_path, DATA)
    assert written.read_text(encoding="utf-8") == ledger_page(tmp_path, DATA)


def test_a_symptom_with_an_unknown_check_is_refused(tmp_path):
    shutil.copy(DATA / "claims.yaml", tmp_path)
    text = (DATA / "symptoms.yaml").read_text(encoding="utf-8")
    (tmp_path / "symptoms.yaml").write_text(text.replace("exercise: pass_at_k", "exercise: passk"))
    with pytest.raises(ValueError, match="no check 'passk'"):
        ledger_page(NOTEBOOKS, tmp_path)
