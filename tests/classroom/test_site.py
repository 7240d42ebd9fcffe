"""The site says what the notebooks say, loads nothing from elsewhere, and folds the answers."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

from rlnb.classroom import course
from rlnb.classroom.pages import NOTEBOOKS, ROOT, committed_notebooks
from rlnb.classroom.site import addresses, cells, search
from rlnb.classroom.site.__main__ import main
from rlnb.classroom.site.build import build

VOID = {"img", "br", "hr", "input", "meta", "link", "wbr", "col"}
LOADED = {"script": "src", "link": "href", "img": "src", "form": "action"}
# a command of TeX, or a dollar on both sides of one: a formula that was not converted
TEX = re.compile(r"\$[^$\n]*\\[a-zA-Z]+[^$\n]*\$|\\(?:frac|sum|mathbb|rho|pi|log)\b")

VERDICT = re.compile(r"False\. Say instead:|It depends\. (?:The idea is right|It needs its cond)")


class Page(HTMLParser):
    """What a test asks of a page: elements, ids, links, text outside of answers and code."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict]] = []
        self.ids: list[str] = []
        self.open: list[tuple[str, dict]] = []
        self.misplaced: list[str] = []
        self.outside, self.prose = "", ""
        self.pictures_in_answers = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        self.elements.append((tag, told))
        self.ids += [told["id"]] if told.get("id") else []
        if tag == "img" and self.within("answer"):
            self.pictures_in_answers += 1
        if tag not in VOID:
            self.open.append((tag, told))

    def handle_endtag(self, tag):
        if self.open and self.open[-1][0] == tag:
            self.open.pop()
        else:
            self.misplaced.append(f"</{tag}> in {self.open[-1:]}")

    def handle_data(self, data):
        tags = {tag for tag, _ in self.open}
        if not self.within("answer"):
            self.outside += data
        if not tags & {"pre", "code", "script", "style"}:
            self.prose += data

    def within(self, kind: str) -> bool:
        return any(kind in (told.get("class") or "").split() for _, told in self.open)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build(folder, moving=())
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {
        file.relative_to(site).as_posix(): Page(file.read_text(encoding="utf-8"))
        for file in sorted(site.rglob("*.html"))
    }


def test_every_page_of_the_course_is_on_the_site(pages):
    notebooks = {path.relative_to(ROOT).with_suffix(".html") for path in committed_notebooks()}
    teach = {path.relative_to(ROOT).with_suffix(".html") for path in (ROOT / "teach").glob("*.md")}
    expected = {path.as_posix() for path in notebooks | teach} | {"index.html", "search.html"}
    assert set(pages) == expected


def test_tags_are_closed_in_order_and_ids_stand_once(pages):
    for address, page in pages.items():
        assert not page.misplaced, f"{address}: {page.misplaced}"
        assert not page.open, f"{address}: {page.open}"
        twice = {name for name in page.ids if page.ids.count(name) > 1}
        assert not twice, f"{address}: {twice}"


def test_links_lead_to_a_page_of_the_site_and_a_heading_that_is_there(site, pages):
    ways = 0
    for address, page in pages.items():
        for tag, told in page.elements:
            target = told.get("href", "")
            if tag != "a" or target.startswith("https://"):
                continue
            path, _, heading = unquote(target).partition("#")
            there = address
            if path:
                there = (site / address).parent.joinpath(path).resolve()
                there = there.relative_to(site.resolve()).as_posix()
            assert there in pages, f"{address}: {target} leads nowhere"
            assert not heading or heading in pages[there].ids, f"{address}: no heading {target}"
            ways += 1
    assert ways > 2000  # headings of contents and the ledger's statements among them


def test_nothing_is_loaded_from_elsewhere(site, pages):
    for address, page in pages.items():
        for tag, told in page.elements:
            target = told.get(LOADED.get(tag, ""), "") or ""
            if not target or target.startswith("data:"):
                continue
            assert ":" not in target, f"{address} loads {target}"
            assert (site / address).parent.joinpath(target).is_file(), f"{address}: no {target}"
    for file in (site / "assets").glob("*.[cj]s*"):
        text = file.read_text(encoding="utf-8")
        assert file.name == "search_index.js" or not re.search(r"https?:|@import|url\(", text)


def test_every_picture_has_the_words_of_its_notebook(pages):
    shown = 0
    for address, page in pages.items():
        for tag, told in page.elements:
            if tag == "img":
                assert len(told["alt"]) > 20, f"{address}: {told}"
                assert int(told["width"]) > 100, f"{address}: {told}"
                shown += 1
    outputs = (
        output
        for path in committed_notebooks()
        for cell in nbformat.read(path, as_version=4).cells
        for output in cell.get("outputs", ())
    )
    assert shown == sum("image/png" in output.get("data", {}) for output in outputs)


def test_no_formula_is_left_as_tex(pages):
    for address, page in pages.items():
        left = TEX.findall(page.prose)
        assert not left, f"{address}: {left[:3]}"
    assert "\\" in TEX.findall(r"see $\pi_t$ there")[0]


@pytest.mark.parametrize("entry", course.course(), ids=lambda entry: entry.stem)
def test_each_guess_is_asked_once_and_answered_in_a_fold(pages, entry):
    page = pages[f"notebooks/{entry.stem}.html"]
    asked = [told["data-guess"] for _, told in page.elements if "data-guess" in told]
    answered = [told["data-answer"] for _, told in page.elements if "data-answer" in told]
    assert tuple(asked) == entry.guesses
    assert sorted(answered) == sorted(entry.guesses)
    assert "Had you said" not in page.outside


def test_statements_have_buttons_and_folded_verdicts(pages):
    settled = found = 0
    for entry in course.course():
        if not entry.statements:
            continue
        page = pages[f"notebooks/statements/{entry.stem}.html"]
        asked = [told["data-guess"] for _, told in page.elements if "data-guess" in told]
        keys = " ".join(told["data-answer"] for _, told in page.elements if "data-answer" in told)
        assert set(entry.statements) <= set(asked)
        assert set(entry.statements) <= set(keys.split())
        assert not VERDICT.search(page.outside)
        found += bool(VERDICT.search(page.prose))
        settled += len(entry.statements)
    assert settled > 150 and found > 15


def test_the_pictures_of_an_answer_are_folded_with_it(pages):
    page = pages["notebooks/06_ppo.html"]
    cells_ = nbformat.read(NOTEBOOKS / "06_ppo.ipynb", as_version=4).cells
    told = [out for cell in cells_ if "reveal(" in cell.source for out in cell.outputs]
    assert page.pictures_in_answers == sum("image/png" in out.get("data", {}) for out in told) >= 3


def test_the_first_page_has_the_map(pages):
    links = {told.get("href") for tag, told in pages["index.html"].elements if tag == "a"}
    assert {f"notebooks/{entry.stem}.html" for entry in course.course()} <= links
    assert {"notebooks/extras/ledger.html", "teach/README.html"} <= links
    for entry in course.course():
        assert entry.question in pages["index.html"].prose


def test_the_search_has_every_page_and_no_answer(site):
    text = (site / "assets" / "search_index.js").read_text(encoding="utf-8")
    rows = json.loads(text.removeprefix("window.RLNB_SEARCH=").removesuffix(";\n"))
    assert len(rows) == len(committed_notebooks()) + len(list((ROOT / "teach").glob("*.md")))
    told = {address: dict((row[0], row[2]) for row in found) for address, _, _, found in rows}
    assert "push" in told["notebooks/06_ppo.html"]["Sixteen-tokens"]
    assert "Had you said" not in text
    assert "</" not in text, "a script would end there"


def test_a_section_begins_at_a_heading_and_leaves_answers_out():
    shown = (
        '<p>Before.</p><h2 id="a">A<a class="mark">#</a></h2><p>x<math><mi>y</mi></math>z</p>'
        '<details class="answer"><summary>The answer</summary><img alt="no">4<br></details>'
        '<details><summary>More</summary>5</details><img alt="a picture">'
    )
    first, second = search.sections(shown)
    assert (first.anchor, first.text) == ("", "Before.")
    assert (second.anchor, second.heading, second.text) == ("a", "A", "xyz More 5 a picture")


def test_a_folder_with_something_else_is_refused_and_an_old_site_is_replaced(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("RLNB_SITE_CACHE", str(tmp_path / "drawn"))
    (tmp_path / "letters.txt").write_text("mine")
    assert main(["--to", str(tmp_path), "--no-explorers"]) == 2
    assert "name another folder with --to" in capsys.readouterr().err
    assert (tmp_path / "letters.txt").read_text() == "mine"
    place = tmp_path / "site"
    assert main(["--to", str(place), "--no-explorers"]) == 0
    assert "0 explorers that move" in capsys.readouterr().out
    (place / "old.html").write_text("of an earlier build")
    build(place, moving=())
    assert not (place / "old.html").exists() and (place / "index.html").exists()
    assert not (tmp_path / "drawn").exists(), "pictures only: nothing is drawn"


def page_of(tmp_path, *made) -> cells.Body:
    """A notebook of these cells as a lesson."""
    path = tmp_path / "notebooks" / "08_mine.ipynb"
    path.parent.mkdir(exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=list(made)), path)
    source = addresses.Source("lesson", path, "notebooks/08_mine.ipynb", "08 · Mine")
    return lambda block: cells.body(source, lambda target: None, "../assets", block)


def explorer_cell():
    shown = [
        nbformat.v4.new_output("display_data", {"text/plain": "[controls: p=0.5; run it]"}),
        nbformat.v4.new_output(
            "display_data",
            {"image/png": "aGFsbG8=", "text/plain": "x"},
            metadata={"image/png": {"alt": "a curve", "width": 900, "height": 300}},
        ),
        nbformat.v4.new_output("display_data", {"text/markdown": "*It rises.*"}),
    ]
    return nbformat.v4.new_code_cell("explorers.clip_explorer()", outputs=shown)


def test_an_explorer_takes_the_place_of_its_picture_which_stays_for_readers_without_script(
    tmp_path,
):
    asked = []

    def block(*what):
        asked.append(what)
        return '<div id="mine">LIVE</div>'

    made = page_of(tmp_path, nbformat.v4.new_markdown_cell("# 08 · Mine"), explorer_cell())(block)
    assert asked == [("clip_explorer", "08_mine", 1)]
    assert made.explorers == {"clip_explorer": "mine"}
    assert re.search(r"LIVE</div>\s*<noscript><img[^>]*alt=\"a curve\"", made.html)
    assert "It rises." in made.html and "Live in JupyterLab" not in made.html


def test_an_explorer_that_does_not_move_says_where_it_does(tmp_path):
    made = page_of(tmp_path, explorer_cell())(lambda *what: None)
    assert "Live in JupyterLab. Here it stands at p=0.5." in made.html
    assert "<noscript>" not in made.html and made.explorers == {}


def test_a_heading_that_links_could_not_reach_is_refused(tmp_path):
    hidden = "<details><summary>x</summary>\n\n<h2>raw</h2>\n\n</details>"
    with pytest.raises(ValueError, match="0 headings are written and 1 shown"):
        page_of(tmp_path, nbformat.v4.new_markdown_cell(hidden))(lambda *what: None)


def test_an_error_that_was_committed_is_refused(tmp_path):
    wrong = nbformat.v4.new_output("error", ename="E", evalue="no", traceback=[])
    cell = nbformat.v4.new_code_cell("1 / 0", outputs=[wrong])
    with pytest.raises(ValueError, match="cell 0: an error is committed"):
        page_of(tmp_path, cell)(lambda *what: None)


def test_a_link_to_what_is_no_page_becomes_its_words():
    source = addresses.Source("lesson", Path("x"), "notebooks/08_grpo.ipynb", "")
    other = addresses.Source("statements", Path("y"), "notebooks/statements/08_grpo.ipynb", "")
    link = addresses.linker(source, {other.place: other})
    assert link("statements/08_grpo.ipynb#G09-%C2%B7-a") == "statements/08_grpo.html#G09-%C2%B7-a"
    assert link("#Exercises") == "#Exercises"
    assert link("../rlnb/check.py") is None
