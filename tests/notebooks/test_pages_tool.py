"""rlnb.classroom.pages: what a build keeps, what it drops, and when it refuses."""

from __future__ import annotations

import os
import re

import nbformat
import pytest
from nbconvert.filters.markdown_mistune import markdown2html_mistune

from rlnb.classroom import pages
from rlnb.classroom.pages import committed_twins, page_name
from rlnb.classroom.wrapping import WIDTH, too_wide, wrapped

TWIN = """\
# %% [markdown]
# # 01 · A title

# %% tags=["setup"]
import ipywidgets
print("one")

# %% tags=["see:A01"] collapsed=true
ipywidgets.IntSlider()

# %% tags=["raises-exception"]
raise ValueError("on purpose")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    (folder / "text").mkdir()
    twin = folder / "text" / "01_title.py"
    twin.write_text(TWIN)
    before = dict(os.environ)
    page, cells = pages.build(twin)
    assert dict(os.environ) == before, "one thread is for the kernel, not for the caller"
    return twin, page, cells


def test_build_writes_the_notebook_beside_the_folder_of_twins(built):
    twin, page, cells = built
    assert page == twin.parent.parent / "01_title.ipynb"
    assert cells == 4


def test_build_keeps_printed_text_and_drops_what_another_run_would_change(built):
    notebook = nbformat.read(built[1], as_version=4)
    _, first, slider, error = notebook.cells
    assert first.outputs[0].text == "one\n"
    assert list(slider.outputs[0].data) == ["text/plain"]
    assert slider.metadata == {"tags": ["see:A01"]}
    assert error.outputs[0].traceback == ["ValueError: on purpose"]
    assert "widgets" not in notebook.metadata
    assert [cell.execution_count for cell in notebook.cells[1:]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "text", "dropped"),
    [
        ("stderr", "dr_grpo: 100%|████| 40/40 [00:17<00:00,  2.27it/s]\n", True),
        ("stderr", "run: 100%|████| 2/2\nUserWarning: read me\n", False),
        ("stdout", "100%| of them right\n", False),
    ],
)
def test_a_finished_progress_bar_is_dropped_and_a_warning_is_not(name, text, dropped):
    cell = nbformat.v4.new_code_cell(
        "run()", outputs=[nbformat.v4.new_output("stream", name=name, text=text)]
    )
    pages.tidy(nbformat.v4.new_notebook(cells=[cell]))
    assert (cell.outputs == []) is dropped


def test_rebuild_is_the_same_file_to_the_byte(built):
    twin, page, _ = built
    first = page.read_bytes()
    pages.build(twin)
    assert page.read_bytes() == first


def test_differences_show_the_edited_line_and_ignore_outputs(built, tmp_path):
    twin, page, _ = built
    assert pages.differences(page, twin) == []
    edited = tmp_path / "01_title.py"
    edited.write_text(TWIN.replace('"one"', '"two"'))
    assert '-print("one")' in pages.differences(page, edited)
    assert '+print("two")' in pages.differences(page, edited)
    edited.write_text(TWIN.replace("see:A01", "see:A02"))
    assert pages.differences(page, edited), "a tag is part of a page"


def test_pull_writes_the_twin_that_builds_the_same_page(built):
    twin, page, _ = built
    pages.pull(page)
    assert pages.differences(page, twin) == []


def test_page_that_raises_is_not_written_and_the_message_names_the_cell(tmp_path):
    (tmp_path / "text").mkdir()
    twin = tmp_path / "text" / "02_bad.py"
    twin.write_text("# %%\nx = 1\n\n# %%\nx / 0\n")
    with pytest.raises(pages.PageError, match=r"cell 1 \('x / 0'\)"):
        pages.build(twin)
    assert list(tmp_path.glob("*.ipynb*")) == []


def test_ids_follow_the_content_not_the_position():
    cells = [("code", "a"), ("markdown", "a"), ("code", "b"), ("code", "a")]
    ids = pages.cell_ids(cells)
    assert len(set(ids)) == 4
    assert pages.cell_ids(cells[2:]) == [ids[2], ids[0]]


def test_unknown_page_is_a_sentence_with_the_known_ones():
    with pytest.raises(pages.PageError, match=r"no text twin for '99_none'.*Twins: "):
        pages.find_twin("99_none")


def test_cells_that_do_not_fit_are_named():
    def sentences(source):
        return pages.oversized(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)]))

    assert sentences("\n".join("x" * 76 for _ in range(25))) == []
    assert sentences("x" * 77) == [f"code cell 1 ({'x' * 50!r}): 77 columns, at most 76"]
    assert sentences("x\n" * 26) == ["code cell 1 ('x'): 26 lines, at most 25"]


LONG = "a word and another one " * 9


@pytest.mark.parametrize(
    "markdown",
    [
        "# " + LONG,
        "| " + LONG + "|",
        "```\n" + LONG + "\n```",
        "$$\n" + LONG + "\n$$",
        "<details><summary>" + LONG + "</summary>",
        "short lines\nstay as\nthey are",
        LONG + "  \nafter a hard break",
    ],
)
def test_what_has_a_shape_of_its_own_is_not_refilled(markdown):
    assert wrapped(markdown) == markdown


def test_prose_is_refilled_and_says_the_same():
    markdown = (
        f"{LONG.strip()}\n\n* {LONG.strip()}\n  goes on\n* next\n\n> {LONG.strip()}\n>\n> end"
    )
    new = wrapped(markdown)
    assert max(map(len, new.split("\n"))) <= WIDTH - 2 and new != markdown
    assert wrapped(new) == new, "a second time changes nothing"
    assert markdown2html_mistune(new).split() == markdown2html_mistune(markdown).split()


def test_a_formula_stays_on_its_line_and_no_line_becomes_a_list():
    formula = "$" + " + ".join("abcdefgh") + "$"
    text = f"{'word ' * 17}{formula} and {'more ' * 15}- not a list 1. nor this"
    lines = wrapped(text).split("\n")
    assert any(formula in line for line in lines) and len(lines) > 1
    assert not any(re.match(r"[-*+] |\d+\. ", line) for line in lines)


def test_every_twin_is_within_its_columns():
    wide = {page_name(t): too_wide(t.read_text(encoding="utf-8")) for t in committed_twins()}
    assert not {name: lines for name, lines in wide.items() if lines}, "run `pages wrap`"
