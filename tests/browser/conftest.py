"""One JupyterLab, one window, and one notebook with every explorer of the course."""

from __future__ import annotations

import os

import lab_in_chromium
import pytest


@pytest.fixture(scope="session")
def chromium():
    """Without a browser these tests say so; with CI set they fail."""
    if lab_in_chromium.browser() is None:
        if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
            pytest.fail(f"{lab_in_chromium.NO_BROWSER}. With CI set they must run.", pytrace=False)
        pytest.skip(lab_in_chromium.NO_BROWSER)


@pytest.fixture(scope="session")
def tab(chromium, tmp_path_factory):
    """A tab with one cell per explorer, as it stands on its page, every one run."""
    base = tmp_path_factory.mktemp("lab")
    sources = list(lab_in_chromium.explorer_cells().values())
    set_up = "from rlnb.classroom import explorers"
    page = lab_in_chromium.write_notebook(base / "explorers.ipynb", [set_up, *sources])
    with (
        lab_in_chromium.serving(base) as lab,
        lab_in_chromium.window() as window,
        lab_in_chromium.opened(page, lab, window) as tab,
    ):
        yield tab
