"""The benchmark of the explorers runs; what it measures in a test says nothing."""

from __future__ import annotations

import explorer_latency
import lab_in_chromium
import pytest


@pytest.mark.skipif(lab_in_chromium.browser() is None, reason=lab_in_chromium.NO_BROWSER)
def test_each_row_has_its_time_and_its_ratio_to_a_bare_slider(capsys):
    rows = explorer_latency.main(["--only", "clip_explorer", "--presses", "2"])
    row = rows["clip_explorer"]
    assert row["ratio"] == row["ms"] / row["way"] > 0
    assert row["picture"] > 0
    said = capsys.readouterr().out
    assert "x bare" in said and "clip_explorer" in said and "gae_explorer" not in said
