"""The shipped model and runs are found from anywhere, and their absence is a sentence."""

from __future__ import annotations

import pytest

from rlnb.training import BadInput, data_folder, load, read, shipped


def test_data_is_found_whatever_the_working_directory_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, _ = load(data_folder() / "model", device="cpu")
    assert sum(p.numel() for p in model.parameters()) == 308_016
    assert read(data_folder() / "runs" / "chain_dr_grpo_seed0.jsonl")[0]["task"] == "chain"


def test_a_package_without_its_course_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "_DATA", tmp_path / "data")
    with pytest.raises(BadInput, match="pip install -e ."):
        data_folder()
