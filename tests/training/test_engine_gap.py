"""The shipped gaps between writer and scorer, and the command that measures them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from rlnb.training import BadInput, data_folder
from rlnb.training.models.loading import load
from rlnb.training.studies import engine_gap


def test_numbers_of_a_table_by_hand():
    gap = torch.tensor([[0.8, -0.8], [0.1, 5.0]])
    mask = torch.tensor([[True, True], [True, False]])
    found = engine_gap.describe(gap, torch.zeros(2, 2), mask)
    assert found["outside [1/2, 2]"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["largest token"] == pytest.approx(0.8)
    assert found["std answer"] == pytest.approx(0.1 / 2**0.5, rel=1e-4)
    assert found["kl token"] == pytest.approx(-0.1 / 3, rel=1e-4)


def test_a_rounded_copy_is_rounded_and_the_model_is_not():
    model, _ = load(data_folder() / "model")
    before = [p.clone() for p in model.parameters()]
    for form in engine_gap.FORMATS:
        engine = engine_gap.rounded_copy(model, form)
        same = all(
            torch.equal(p.float(), q) for p, q in zip(engine.parameters(), before, strict=True)
        )
        assert same == (form == "float32")
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))
    with pytest.raises(BadInput, match="no 'int3'"):
        engine_gap.rounded_copy(model, "int3")


def test_coarser_formats_are_further_off_and_none_leaves_the_band():
    found = engine_gap.recorded()["formats"]
    stds = [found[form]["std token"] for form in engine_gap.FORMATS]
    assert stds == sorted(stds) and stds[0] < 1e-6 and 0.004 < stds[2] < 0.008
    for numbers in found.values():
        assert numbers["outside [1/2, 2]"] == 0
        assert sum(numbers["histogram"]) == numbers["tokens"]


def test_older_answers_weigh_less_evenly():
    for seed in engine_gap.SEEDS:
        rows = engine_gap.recorded()[f"lags, seed {seed}"]
        middle = [
            sorted(x["effective share"] for x in rows[str(lag)])[2] for lag in engine_gap.LAGS
        ]
        assert middle == sorted(middle, reverse=True)


def test_the_command_writes_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_gap, "PROMPTS", 2)
    monkeypatch.setattr(engine_gap, "ANSWERS", 2)
    monkeypatch.setattr(engine_gap, "FROM", (0,))
    path = tmp_path / "gap.json"
    recipe = replace(engine_gap.RECIPE, steps=1, prompts=2, num_generations=2)
    engine_gap.measure(path, recipe, seeds=(0,))
    found = json.loads(path.read_text(encoding="utf-8"))
    assert set(found) == {"header", "formats", "lags, seed 0"}
    assert len(found["lags, seed 0"]["1"]) == 1 and found["lags, seed 0"]["8"] == []
    path.write_text(json.dumps(found | {"formats": "kept"}), encoding="utf-8")
    engine_gap.measure(path, recipe, seeds=(0,))
    assert json.loads(path.read_text(encoding="utf-8"))["formats"] == "kept"
