"""Slides, handouts and the cheat-sheet say what the notebooks say, and need no other file."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from functools import cache

import nbformat
import pytest

from rlnb.classroom.pages import NOTEBOOKS, committed_notebooks, page_name
from rlnb.classroom.paper import cheat_sheet, chromium, handout, lesson, slides
from rlnb.classroom.paper.__main__ import main
from rlnb.classroom.paper.mathml import UnknownTeX, mathml
from rlnb.classroom.paper.prose import formulas, prose

LESSONS = lesson.lessons(NOTEBOOKS)
each_lesson = pytest.mark.parametrize("page", LESSONS, ids=page_name)


@cache
def deck(page):
    return slides.deck(page)


def written(page):
    """Every markdown text of a page: its cells' and its outputs'."""
    for cell in nbformat.read(page, as_version=4).cells:
        if cell.cell_type == "markdown":
            yield cell.source
        for output in cell.get("outputs", ()):
            yield output.get("data", {}).get("text/markdown", "")


@pytest.mark.parametrize("page", committed_notebooks(), ids=page_name)
def test_every_formula_of_a_page_becomes_well_formed_mathml(page):
    for text in written(page):
        for tex, display in formulas(text):
            root = ElementTree.fromstring(mathml(tex, display=display))
            shown = "".join(root.itertext())
            assert "\\" not in shown


@pytest.mark.parametrize(
    ("tex", "shown"),
    [
        (r"\frac12", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        (r"a_i^2", "<msubsup><mi>a</mi><mi>i</mi><mn>2</mn></msubsup>"),
        (r"\min_x", "<munder><mi>min</mi><mi>x</mi></munder>"),
        (r"\text{if } x", "<mtext>if\u00a0</mtext><mi>x</mi>"),
        (r"x<1", "<mi>x</mi><mo>&lt;</mo><mn>1</mn>"),
        (r"\sqrt{p}", "<msqrt><mrow><mi>p</mi></mrow></msqrt>"),
        (
            r"\begin{aligned}a&=b\\c&=d\end{aligned}",
            '<mtable class="aligned" displaystyle="true">'
            "<mtr><mtd><mrow><mi>a</mi></mrow></mtd>"
            "<mtd><mrow><mo>=</mo><mi>b</mi></mrow></mtd></mtr>"
            "<mtr><mtd><mrow><mi>c</mi></mrow></mtd>"
            "<mtd><mrow><mo>=</mo><mi>d</mi></mrow></mtd></mtr></mtable>",
        ),
    ],
)
def test_formulas_by_hand(tex, shown):
    assert mathml(tex) == f"<math>{shown}</math>"


@pytest.mark.parametrize("tex", [r"\unheard", r"\frac{1}", "{a", "a}", "a & b", r"\mathbb{Q}"])
def test_a_formula_that_cannot_be_shown_whole_raises(tex):
    with pytest.raises(UnknownTeX, match="formula"):
        mathml(tex)


def test_dollars_in_code_and_prices_are_no_formulas():
    assert formulas("`$a$`, 3 $ and 5 $, $x$ and $$y$$") == [("x", False), ("y", True)]
    assert "<math>" not in prose("it costs $5 or $6")


@each_lesson
def test_a_deck_shows_every_guess_and_then_its_answer(page):
    kinds = [slide.kind for slide in slides.slides(page) if slide.kind in ("guess", "answer")]
    found = [block.kind for block in lesson.blocks(page)]
    asked = found[: found.index("card") if "card" in found else None].count("guess")
    assert kinds.count("guess") == kinds.count("answer") == asked
    seen = 0
    for kind in kinds:
        seen += 1 if kind == "guess" else -1
        assert seen >= 0, "an answer before its guess"


@each_lesson
def test_a_deck_begins_with_the_title_and_ends_with_the_card(page):
    made = slides.slides(page)
    has_card = any(block.kind == "card" for block in lesson.blocks(page))
    assert made[0].kind == "title" and (made[-1].kind == "card") == has_card
    assert 15 <= len(made) <= 60


@each_lesson
def test_a_slide_has_one_idea(page):
    """One guess, or one cell's output, or one portion of prose: never two of the first two."""
    for slide in slides.slides(page):
        text = "".join(slide.shown)
        assert text.count("Your guess.") <= 1 and text.count('class="caption"') <= 1
        assert text.count('<pre class="code">') <= 1
        assert slide.kind == "answer" or "Had you said" not in text
        assert "Had you said" not in text, "replies to wrong guesses are notes"


@each_lesson
def test_deck_and_handout_need_nothing_but_the_file(page):
    for text in (deck(page), handout.handout(page)):
        assert not re.search(r"<(?:link|iframe|script)[^>]+(?:href|src)=|url\(|@import", text)
        assert all(src.startswith("data:") for src in re.findall(r'src="([^"]{0,9})', text))
        assert all(to.startswith("https:") for to in re.findall(r'<a href="([^"]*)"', text))
        for alt in re.findall(r"<img [^>]*>", text):
            assert re.search(r'alt="[^"]+"', alt), "a picture without a sentence"


@each_lesson
def test_a_handout_keeps_every_answer_to_the_end(page):
    body, _, end = handout.handout(page).partition('<h1 class="break">Answers</h1>')
    assert end and "<details" not in body and "Had you said" not in body
    for block in lesson.blocks(page):
        if block.kind == "answer":
            told = prose(block.text).strip()
            assert told not in body and told in end
        for _, hidden in lesson.folds(block.text) if block.kind in ("fold", "prose") else ():
            assert prose(hidden).strip() in end
    numbers = re.findall(r"→|class=\"see\">answer (\d+)", body)
    assert [int(n) for n in numbers if n] == list(range(1, len([n for n in numbers if n]) + 1))


@each_lesson
def test_a_handout_has_the_solutions_of_its_exercises(page):
    end = handout.handout(page).rpartition("The exercises, solved")[2]
    solved = NOTEBOOKS / "solutions" / page.name
    for block in lesson.blocks(solved)[1:] if solved.exists() else ():
        if block.kind == "code":
            assert block.html in end


def test_the_cheat_sheet_has_every_card_with_its_sentence():
    found, text = cheat_sheet.cards(NOTEBOOKS), cheat_sheet.cheat_sheet(NOTEBOOKS)
    assert len(found) == len([page for page in LESSONS if not page.stem.startswith("00")])
    for stem, rows in found.items():
        assert f"<i>{stem[:2]}</i>" in text
        (sentence,) = [cell for label, cell in rows if label == "sentence"]
        assert prose(sentence).strip()[3:-4] in text


def test_a_card_without_a_sentence_is_refused(tmp_path):
    card = nbformat.v4.new_markdown_cell("| X | |\n|---|---|\n| formula | 1 |")
    card.metadata["tags"] = ["card"]
    nbformat.write(nbformat.v4.new_notebook(cells=[card]), tmp_path / "01_x.ipynb")
    with pytest.raises(ValueError, match="no row 'sentence'"):
        cheat_sheet.cards(tmp_path)


def test_what_is_made_twice_is_the_same():
    page = lesson.find_lesson(NOTEBOOKS, "08")
    assert slides.deck(page) == deck(page) and handout.handout(page) == handout.handout(page)


@pytest.mark.parametrize("name", ["8", "08", "grpo", "08_grpo"])
def test_a_lesson_is_found_by_number_or_name(name):
    assert lesson.find_lesson(NOTEBOOKS, name).stem == "08_grpo"


def test_the_command_says_what_is_missing(tmp_path, capsys, monkeypatch):
    assert main(["handout", "--to", str(tmp_path)]) == 2
    assert "NB=08" in capsys.readouterr().err
    assert main(["slides", "99", "--to", str(tmp_path)]) == 2
    assert "names 0 lessons" in capsys.readouterr().err
    monkeypatch.setattr(chromium, "BROWSERS", ("no-such-browser",))
    assert main(["handout", "08", "--to", str(tmp_path)]) == 2
    assert "apt install chromium" in capsys.readouterr().err
    assert main(["slides", "08", "--to", str(tmp_path)]) == 0
    assert (tmp_path / "slides" / "08_grpo.html").read_text() == deck(LESSONS[8])
