"""Every popular statement is met exactly once, on its own page, by a cell that decides it.

`data/claims.yaml` says where; the pages' text twins carry the tags `claim:ID`, `cited:ID` and
`see:ID`. The rules are the functions below (each returns a list of sentences, empty when all is
well), so that the second half of this file can show each of them failing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = ROOT / "data" / "claims.yaml"
TEXT = ROOT / "notebooks" / "text"

COURSE = (
    "00_start_here 01_one_scalar_loss 02_reinforce 03_baselines 04_importance_sampling 05_ppo "
    "06_grpo 07_grpo_biases 08_dr_grpo 09_dapo 10_soft_trust_regions 11_gspo 12_the_zoo "
    "13_preferences 14_rewards 15_evaluation 16_agents 17_systems 18_interview 19_grpo_for_real"
).split()
SECTIONS = {
    "A": 25,
    "B": 19,
    "G": 33,
    "L": 14,
    "K": 13,
    "D": 16,
    "Z": 25,
    "C": 9,
    "S": 20,
    "E": 13,
    "H": 18,
    "M": 16,
}
VERDICTS = {"true", "conditional", "sloppy", "wrong", "paper"}
REQUIRED = {"id", "statement", "verdict", "fair", "page", "meets"}
OPTIONAL = {"fails_when", "holds_when", "number", "citation"}
LONGEST_STATEMENT = 240
MET_WITH_NUMBERS = {"02_reinforce", "05_ppo", "06_grpo"}  # written first: their entries say which


@dataclass(frozen=True)
class Cell:
    page: str
    line: int
    code: bool
    tags: tuple[str, ...]
    source: str

    def __str__(self):
        return f"{self.page}.py line {self.line}"


HEADER = re.compile(r"^# %%(?P<rest>.*)$")
TAGS = re.compile(r"tags\s*=\s*(\[[^\]]*\])")
ASSERT = re.compile(r"^\s*(assert\b|torch\.testing\.assert_|np\.testing\.assert_)", re.MULTILINE)
ARXIV = re.compile(r"\d{4}\.\d{4,5}")


def cells_of(page, text):
    """The cells of one py:percent text, in order; what stands before the first header is none."""
    cells, start, rest, body = [], 0, None, []
    for number, line in enumerate([*text.splitlines(), "# %%"], 1):
        header = HEADER.match(line)
        if not header:
            body.append(line)
            continue
        if rest is not None:
            found = TAGS.search(rest)
            code = not re.match(r"[^\[]*\[(markdown|md|raw)\]", rest)
            tags = tuple(json.loads(found[1])) if found else ()
            cells.append(Cell(page, start, code, tags, "\n".join(body)))
        start, rest, body = number, header["rest"], []
    return cells


def entry_problems(claims):
    """What is wrong with the list itself."""
    out = []
    expected = [f"{s}{i:02d}" for s, n in SECTIONS.items() for i in range(1, n + 1)]
    seen = Counter(c.get("id") for c in claims)
    out += [f"{i}: missing" for i in expected if not seen[i]]
    out += [f"{i}: not one of the numbered statements" for i in seen if i not in set(expected)]
    out += [f"{i}: stands {n} times" for i, n in seen.items() if n > 1]
    for c in claims:
        name = c.get("id")
        out += [f"{name}: field {k} is missing" for k in sorted(REQUIRED - set(c))]
        out += [f"{name}: unknown field {k}" for k in sorted(set(c) - REQUIRED - OPTIONAL)]
        out += [
            f"{name}: {k} is {v!r}, expected a sentence (quote it?)"
            for k, v in c.items()
            if not isinstance(v, str) or not v.strip()
        ]
        if len(str(c.get("statement", ""))) > LONGEST_STATEMENT:
            out.append(f"{name}: statement is longer than {LONGEST_STATEMENT} characters")
        if c.get("verdict") not in VERDICTS:
            out.append(f"{name}: verdict is {c.get('verdict')!r}, expected one of {VERDICTS}")
        if c.get("page") not in COURSE:
            out.append(f"{name}: page is {c.get('page')!r}, which is not in the course")
        if c.get("meets") not in {"claim", "cited"}:
            out.append(f"{name}: meets is {c.get('meets')!r}, expected claim or cited")
        if c.get("verdict") in {"conditional", "sloppy", "wrong"} and "fails_when" not in c:
            out.append(f"{name}: a {c['verdict']} statement must say when it fails")
        if "holds_when" not in c:
            out.append(f"{name}: must say under which reading it holds")
        if c.get("meets") == "cited" and "citation" not in c:
            out.append(f"{name}: met with a citation, so it must name one")
        if c.get("meets") == "claim" and c.get("verdict") == "paper":
            out.append(f"{name}: a report cannot be decided by a cell, so meets must be cited")
        if (c.get("page") in MET_WITH_NUMBERS and c.get("meets") == "claim") and "number" not in c:
            out.append(f"{name}: needs the number that {c['page']} reproduces")
    return out


def tag_problems(claims, cells, pages):
    """What is wrong between the list and the tags of the written pages."""
    out, by_id = [], {c["id"]: c for c in claims}
    where = {}
    for cell in cells:
        for tag in cell.tags:
            kind, _, name = tag.partition(":")
            if kind not in {"claim", "cited", "see"}:
                continue
            if name not in by_id:
                out.append(f"{cell}: tag {tag} names no entry of claims.yaml")
            elif kind != "see":
                where.setdefault(name, []).append((kind, cell))
    for name, claim in by_id.items():
        met = where.get(name, [])
        if claim["page"] not in pages:
            out += [
                f"{cell}: {name} belongs to {claim['page']}, which is not written; use see:"
                for _, cell in met
            ]
            continue
        want = f"{claim['meets']}:{name}"
        if len(met) != 1:
            found = ", ".join(str(cell) for _, cell in met) or "none"
            out.append(f"{claim['page']}: expected exactly one cell tagged {want}, found {found}")
        for kind, cell in met:
            if kind != claim["meets"]:
                out.append(f"{cell}: tag {kind}:{name} should be {want}")
            if cell.page != claim["page"]:
                out.append(f"{cell}: {name} belongs to {claim['page']}; use see:{name} here")
            if kind == "claim" and not (cell.code and ASSERT.search(cell.source)):
                out.append(f"{cell}: claim:{name} must be a code cell with an assert")
            ids = ARXIV.findall(claim.get("citation", ""))
            if kind == "cited" and ids and not any(i in cell.source for i in ids):
                out.append(f"{cell}: cited:{name} gives none of {', '.join(ids)}")
    return out


@cache
def load_claims():
    return yaml.safe_load(CLAIMS.read_text(encoding="utf-8"))


@cache
def load_cells():
    texts = {p.stem: p.read_text(encoding="utf-8") for p in sorted(TEXT.glob("[0-9][0-9]_*.py"))}
    return {page: cells_of(page, text) for page, text in texts.items()}


def report(problems):
    return f"{len(problems)} problems\n  " + "\n  ".join(problems)


def test_every_statement_is_listed_once_with_verdict_page_and_fair_sentence():
    problems = entry_problems(load_claims())
    assert not problems, report(problems)


@pytest.mark.parametrize("page", COURSE)
def test_page_meets_its_statements_exactly_once(page):
    cells = load_cells()
    if page not in cells:
        pytest.skip(f"{page} is not written yet")
    mine = [c for c in load_claims() if c["page"] == page]
    everywhere = [cell for each in cells.values() for cell in each]
    problems = [p for p in tag_problems(mine, everywhere, set(cells)) if "no entry" not in p]
    assert not problems, report(problems)


def test_no_tag_is_unknown_and_no_page_meets_the_statement_of_an_unwritten_one():
    cells = load_cells()
    claims = load_claims()
    everywhere = [cell for each in cells.values() for cell in each]
    problems = [
        p
        for p in tag_problems(claims, everywhere, set(cells))
        if "no entry" in p or "not written" in p
    ]
    assert not problems, report(problems)


# The rules can fail: a small course of two pages, one of them unwritten.

ENTRY = {
    "id": "A02",
    "statement": "s",
    "verdict": "true",
    "holds_when": "h",
    "fair": "f",
    "number": "2",
    "page": "05_ppo",
    "meets": "claim",
}
CITED = ENTRY | {"id": "A24", "meets": "cited", "citation": "PPO, arXiv 1707.06347"}
LATER = ENTRY | {"id": "A25", "page": "10_soft_trust_regions"}
GOOD = """\
# ---
# jupyter: {}
# ---

# %% [markdown]
# # PPO

# %% tags=["claim:A02", "nbval-ignore-output"]
ratio = 0.2 / 0.1
assert ratio == 2

# %% [markdown] tags=["cited:A24", "see:A25"]
# Cheap (arXiv 1707.06347).
"""


def problems_of(text, claims=(ENTRY, CITED, LATER)):
    return tag_problems(list(claims), cells_of("05_ppo", text), {"05_ppo"})


def test_the_parser_reads_headers_tags_and_kinds():
    cells = cells_of("05_ppo", GOOD)
    assert [c.code for c in cells] == [False, True, False]
    assert [c.tags for c in cells] == [
        (),
        ("claim:A02", "nbval-ignore-output"),
        ("cited:A24", "see:A25"),
    ]
    assert cells[1].line == 8 and "assert ratio" in cells[1].source
    assert problems_of(GOOD) == []


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("assert ratio == 2", "print(ratio)", "with an assert"),
        ("assert ratio == 2", "# assert ratio == 2", "with an assert"),
        ('# %% tags=["claim:A02', '# %% [markdown] tags=["claim:A02', "with an assert"),
        ("claim:A02", "see:A02", "found none"),
        ("see:A25", "claim:A02", "exactly one"),
        ("see:A25", "see:Q99", "names no entry"),
        ("see:A25", "claim:A25", "not written"),
        ("cited:A24", "claim:A24", "should be cited:A24"),
        ("1707.06347", "somewhere", "gives none of"),
    ],
)
def test_a_broken_tag_is_caught(old, new, said):
    assert any(said in p for p in problems_of(GOOD.replace(old, new, 1)))


def test_a_statement_met_on_the_wrong_page_is_caught():
    cells = cells_of("05_ppo", GOOD)
    moved = [ENTRY | {"page": "06_grpo"}, CITED, LATER]
    assert any("belongs to 06_grpo" in p for p in tag_problems(moved, cells, {"05_ppo", "06_grpo"}))


@pytest.mark.parametrize(
    "change, said",
    [
        ({"verdict": True}, "quote it"),
        ({"verdict": "false"}, "expected one of"),
        ({"fair": " "}, "expected a sentence"),
        ({"page": "05_pppo"}, "not in the course"),
        ({"statement": "s" * 241}, "longer than"),
        ({"verdict": "wrong"}, "must say when it fails"),
        ({"meets": "cited"}, "must name one"),
        ({"verdict": "paper"}, "meets must be cited"),
        ({"id": "A26"}, "not one of the numbered"),
        ({"colour": "red"}, "unknown field"),
    ],
)
def test_a_broken_entry_is_caught(change, said):
    assert any(said in p for p in entry_problems([ENTRY | change]))


def test_a_repeated_or_missing_entry_is_caught():
    problems = entry_problems([ENTRY, ENTRY])
    assert "A02: stands 2 times" in problems and "A01: missing" in problems
