"""The base before any RL: what its file says, and that a fresh one is written alike."""

from __future__ import annotations

import json

import pytest

from rlnb.classroom.explorers import cooled_base as explorer
from rlnb.classroom.lesson import task
from rlnb.training import data_folder
from rlnb.training.studies import cooled_base


def test_a_style_s_share_and_its_right_answers_add_up_to_pass_at_1():
    found = cooled_base.rows(data_folder() / "runs" / "chain_cooled_base.json")
    assert set(found) == {(o, t) for o in cooled_base.OPENINGS for t in cooled_base.TEMPERATURES}
    for row in found.values():
        d = row["direct"]
        total = d * row.get("right/direct", 0.0) + (1 - d) * row.get("right/steps", 0.0)
        assert total == pytest.approx(row["pass@1"], abs=3e-4)


def test_above_nine_tenths_takes_both_handles():
    found = {
        (o, t): explorer.compute(t, o)["p"]
        for o in cooled_base.OPENINGS
        for t in cooled_base.TEMPERATURES
    }
    assert max(p for (o, _), p in found.items() if o == "its own") < 0.5
    assert found["steps", 1.0] == pytest.approx(0.66, abs=0.005)
    assert found["steps", 0.7] == pytest.approx(0.93, abs=0.005)
    goals = task("real.test", explorer.cooled_base_explorer(), ("x", explorer.above_nine_tenths))
    assert goals.solved == [False]
    done = {key for key in found if explorer.above_nine_tenths(explorer.compute(key[1], key[0]))}
    assert done == {("steps", 0.7)}


def test_a_file_is_written_once(tmp_path, monkeypatch):
    monkeypatch.setattr(cooled_base, "TEMPERATURES", (0.0, 1.0))
    path = tmp_path / "cooled.json"
    cooled_base.measure(path, prompts=4, num_generations=2)
    found, before = cooled_base.rows(path), path.read_text()
    assert len(found) == 6 and found["steps", 0.0]["direct"] == 0.0
    assert "right/steps" not in found["direct", 1.0]
    assert json.loads(before)["header"]["prompts"] == 4
    cooled_base.measure(path)
    assert path.read_text() == before
