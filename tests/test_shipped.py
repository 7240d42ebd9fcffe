"""The shipped model and runs are found from anywhere, and their absence is a sentence."""

from __future__ import annotations

import pytest

from rlnb import shipped
from rlnb.shipped import NotShipped, data_folder, shipped_folder
from rlnb.training import load, read


def test_data_is_found_whatever_the_working_directory_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, _ = load(data_folder() / "model", device="cpu")
    assert sum(p.numel() for p in model.parameters()) == 308_016
    assert read(data_folder() / "runs" / "chain_dr_grpo_seed0.jsonl")[0]["task"] == "chain"


def test_a_package_without_its_course_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "_PACKAGE", tmp_path / "rlnb")
    for find in (data_folder, lambda: shipped_folder("notebooks")):
        with pytest.raises(NotShipped, match="pip install -e ."):
            find()


def test_a_wheels_own_copy_comes_before_a_folder_of_that_name_beside_the_package(
    tmp_path, monkeypatch
):
    # site-packages/data may belong to anybody.
    for folder in ("data", "rlnb/_shipped/data"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(shipped, "_PACKAGE", tmp_path / "rlnb")
    assert data_folder() == tmp_path / "rlnb" / "_shipped" / "data" and not shipped.in_checkout()


def test_no_copy_of_the_shipped_files_lies_in_the_checkout():
    assert shipped.in_checkout() and (shipped_folder("notebooks") / "00_start_here.ipynb").is_file()
