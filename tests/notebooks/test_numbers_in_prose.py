"""Every measured number of a page's prose occurs in what the page printed, or is cited.

A measured number is a decimal in a markdown cell, outside code, formulas and links. It is covered
by a number of any output of the page that rounds to it, or, where it is a setting, by the same
number in the code. A number of somebody else's paper is cited: its sentence gives the arXiv number
or a web address, its cell carries a tag `cited:ID`, or the cell lists it in a comment that the
reader does not see, `<!-- cited: 0.28, 13.5 -->`.

The pages are rewritten one after the other. `STILL_TO_COME` lists, page by page, the numbers that
do not keep the rule yet; whoever rewrites a page prints or marks them and takes them off the list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pytest
from written_numbers import Written, code_without_comments, numbers_in, values_in

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
PAGES = sorted(path.stem for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
BESIDE = sorted(
    f"{kind}/{path.stem}"
    for kind in ("statements", "solutions")
    for path in (NOTEBOOKS / kind).glob("*.ipynb")
)
STILL_TO_COME = {}  # derived by hand in the sentence, or shown by a picture or by another page

NOT_PROSE = re.compile(
    r"```.*?```"  # a block of code
    r"|`[^`\n]+`"
    r"|\$\$.*?\$\$|\$[^$\n]+(?:\n[^$\n]+)?\$"  # formulas
    r"|!\[[^\]]*\]\([^)]*\)"  # an image
    r"|<[^>]+>"  # HTML
    r"|^(?: {4}|>     ).*?$"  # an indented block of code
    r"|\*\*\d\d\.\d+(?= )",  # the number of an exercise: **05.3 Predict** · 3 minutes
    re.DOTALL | re.MULTILINE,
)
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<to>[^)\s]*)[^)]*\)")
SOURCE = re.compile(r"\b\d{4}\.\d{4,5}\b|https?://")
PLACE = re.compile(  # exercise 09.4, section 5.3, Table 2.1, eq. 4.2, TRL 0.23, 1.2.3
    r"(?:\b(?:[Ss]ections?|[Tt]ables?|[Ff]igures?|[Ee]qs?\.?|[Ee]quations?|[Aa]ppendix|[Pp]ages?"
    r"|[Vv]ersions?|[Ee]xercises?|TRL|verl|torch|PyTorch|Python|OpenRLHF|vLLM)|§) ?v?\d+(?:\.\d+)+"
    r"|\b0\d\.\d\b|\b\d+\.\d+\.\d+\b|\b\d{4}\.\d{4,5}\b"
)
MODEL = re.compile(r"\b[A-Z][A-Za-z]+-?\d\.\d+(?:-\w+)*")  # Qwen2.5-32B
CITED_HERE = re.compile(r"<!-- cited: (?P<numbers>[^>]*?) -->")
END_OF_SENTENCE = re.compile(
    r"(?<=[.!?:;])[\"”*)_]*\s+(?=[\"“*(_]*[A-Z0-9])|\n\s*\n|\n\s*(?:[*-]|\d+\.)\s"
)


def measured(markdown: str, cited_cell: bool = False) -> list[Written]:
    """The decimals of one markdown cell that the page itself has to show."""
    if cited_cell:
        return []
    here = CITED_HERE.search(markdown)
    listed = set(re.split(r",\s+", here["numbers"])) if here else set()
    text = NOT_PROSE.sub(" x ", CITED_HERE.sub(" ", markdown))
    text = re.sub(r"^\s*>\s?", "", text, flags=re.MULTILINE)
    out = []
    for sentence in END_OF_SENTENCE.split(text):
        if SOURCE.search(sentence):
            continue
        sentence = LINK.sub(lambda link: link["text"], " ".join(sentence.split()))
        sentence = MODEL.sub(" ", PLACE.sub(" ", sentence))
        out += [n for n in numbers_in(sentence) if "." in n.text and n.text not in listed]
    return out


@dataclass(frozen=True)
class Shown:
    """What a page shows: the numbers of its outputs, and the settings in its code."""

    printed: tuple[Written, ...]
    settings: tuple[Written, ...]

    def covers(self, said: Written) -> bool:
        return any(value.covers(said) for value in self.printed) or any(
            abs(value.value) == abs(said.value) for value in self.settings
        )


def shown_by(cells) -> Shown:
    code = [cell for cell in cells if cell.cell_type == "code"]
    texts = [
        text
        for cell in code
        for output in cell.get("outputs", [])
        for text in (
            output.get("text", ""),
            *(
                output.get("data", {}).get(kind, "")
                for kind in ("text/plain", "text/markdown", "text/html")
            ),
        )
    ]
    sources = [code_without_comments(cell.source) for cell in code]
    return Shown(tuple(values_in("\n".join(texts))), tuple(values_in("\n".join(sources))))


def prose_problems(cells) -> list[tuple[str, str]]:
    """(number, where) for each number of the prose that nothing on the page shows."""
    shown = shown_by(cells)
    return [
        (number.text, f"cell {index}, {' '.join(cell.source.split())[:50]!r}")
        for index, cell in enumerate(cells)
        if cell.cell_type == "markdown"
        for number in measured(
            cell.source, any(tag.startswith("cited:") for tag in cell.metadata.get("tags", []))
        )
        if not shown.covers(number)
    ]


@cache
def cells_of(page):
    return nbformat.read(NOTEBOOKS / f"{page}.ipynb", as_version=4).cells


@pytest.mark.parametrize("page", PAGES)
def test_every_measured_number_of_the_prose_is_shown_by_the_page(page):
    problems = prose_problems(cells_of(page))
    to_come = STILL_TO_COME.get(page, [])
    unknown = [f"{number} in {where}" for number, where in problems if number not in to_come]
    assert not unknown, (
        f"{page}: no output of the page shows these; print them, correct them, or mark them with"
        " <!-- cited: ... -->\n  " + "\n  ".join(unknown)
    )
    assert [number for number, _ in problems] == to_come, "take the others off STILL_TO_COME"


# The rule can fail: a page of three cells, and the course itself.


def page_of(prose, tags=(), printed="0.7244 13.513\n", code="epsilon = 0.28"):
    code = nbformat.v4.new_code_cell(code)
    code.outputs = [nbformat.v4.new_output("stream", text=printed)]
    return [code, nbformat.v4.new_markdown_cell(prose, metadata={"tags": list(tags)})]


def missing(prose, **more):
    return [number for number, _ in prose_problems(page_of(prose, **more))]


@pytest.mark.parametrize(
    "prose, expected",
    [
        ("It fades by half every 13.5 tokens.", []),
        ("It fades by half every 18.5 tokens.", ["18.5"]),
        ("The rate is .72, at ε = 0.28.", []),
        ("The rate is 0.73, at ε = 0.3.", ["0.73", "0.3"]),
        ("A bold **0.99** and a cell | 0.98 | of a table.", ["0.99", "0.98"]),
        ("They report 0.99 (arXiv 2503.14476).", []),
        ("They report 0.99 ([DAPO](https://arxiv.org/abs/2503.14476)). We get 0.98.", ["0.98"]),
        ("As on [page 04, 0.99](04_importance_sampling.ipynb).", ["0.99"]),
        ("See section 5.3, exercise 05.1, TRL 0.23.1 and Qwen2.5-32B.", []),
        ("**05.3 Predict** · What is half of 0.99?", ["0.99"]),
        ("`clip(0.99)` and $0.99$ and\n\n$$x=0.99$$\n\n    0.99 0.98", []),
        ("Four of 2 and 1,024: whole numbers are counted, not measured.", []),
        ("A share of 72.4 %, a drop of −0.72.", ["-0.72"]),
        ("We quote 0.99. <!-- cited: 0.99, 0.5 -->", []),
        ("We quote 0.98. <!-- cited: 0.99, 0.5 -->", ["0.98"]),
    ],
)
def test_a_number_that_the_page_does_not_show_is_found(prose, expected):
    assert missing(prose) == expected


def test_a_cell_that_is_tagged_as_cited_may_give_the_numbers_of_its_paper():
    assert missing("It was 0.99.", tags=("cited:A24",)) == []
    assert missing("It was 0.99.", tags=("see:A24",)) == ["0.99"]


def test_a_setting_covers_only_itself_and_a_comment_covers_nothing():
    assert missing("At 0.3.", code="epsilon = 0.28") == ["0.3"]
    assert missing("At 0.99.", code="x = 1  # 0.99") == ["0.99"]


def test_a_false_number_in_the_prose_of_the_course_is_caught():
    cells = [cell.copy() for cell in cells_of("06_ppo")]
    (told,) = (c for c in cells if c.cell_type == "markdown" and "ends at 0.66" in c.source)
    told.source = told.source.replace("ends at 0.66", "ends at 0.16")
    assert "0.16" in [number for number, _ in prose_problems(cells)]


def test_changing_a_measured_number_of_the_course_is_caught_but_for_chance():
    """Every decimal of the prose, its last digit changed. A page prints some hundred numbers, and
    one of them often rounds to a wrong one of three digits, seldom to a wrong one of four. There
    are few such decimals left: a lesson's answers print theirs, so that they cannot be wrong."""
    for least, share in ((3, 0.75), (4, 0.95)):
        caught, slipped = 0, []
        for page in [*PAGES, *BESIDE]:
            shown = shown_by(cells_of(page))
            for cell in (c for c in cells_of(page) if c.cell_type == "markdown"):
                for number in measured(cell.source):
                    digits = re.sub(r"\D", "", number.text).lstrip("0")
                    covered = shown.covers(number) and number.text[-1].isdigit()
                    if len(digits) < least or not covered:
                        continue
                    wrong = number.text[:-1] + str((int(number.text[-1]) + 3) % 10)
                    if shown.covers(numbers_in(wrong)[0]):
                        slipped.append(f"{page}: {number.text} changed to {wrong}")
                    else:
                        caught += 1
        assert caught > 25 and caught >= share * (caught + len(slipped)), "\n".join(slipped)
