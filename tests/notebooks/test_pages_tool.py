"""rlnb.classroom.pages: what a build keeps, what it drops, and when it refuses."""

from __future__ import annotations

import os

import nbformat
import pytest

from rlnb.classroom import pages

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
