"""The two studies behind the page on evaluation: what they write, on a task of one step."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rlnb.training import Recipe, data_folder
from rlnb.training.models.loading import load
from rlnb.training.run import start
from rlnb.training.studies import countdown_counts, entropy_law, kept_answers
from rlnb.training.tasks import TASKS


def test_a_measured_step_says_what_it_did_to_the_entropy():
    model, tokenizer = load(data_folder() / "model", device="cpu")
    recipe = Recipe(prompts=2, num_generations=4, eval_every=0, checkpoint_every=0)
    run = start(model, tokenizer, TASKS["chain"], entropy_law.PLAIN, recipe)
    shown: list = []
    found = entropy_law.measured_step(run, shown)
    assert found["before"] > 0 and found["after"] != found["before"]
    # a step of AdamW is not small; to first order it is still the gradient's
    assert found["linear"] == pytest.approx(found["after"] - found["before"], abs=0.02)
    assert len(shown) == 8
    assert all(len(row["tokens"]) == len(row["logp"]) == len(row["entropy"]) for row in shown)


def test_kept_answers_writes_what_is_missing_and_keeps_what_is_there(tmp_path):
    path = tmp_path / "kept.json"
    small = replace(
        kept_answers.STUDIES["chain"],
        recipe=Recipe(steps=1, prompts=2, num_generations=2),
        problems=3,
        answers=2,
    )
    kept_answers.measure(small, path, tmp_path)
    right, lines = kept_answers.kept(path)
    assert len(right) == 3 and list(lines) == ["base", "seed 0", "seed 1", "seed 2"]
    assert all(len(row) == 2 for rows in lines.values() for row in rows)
    found = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(found | {"base": ["99"] * 3}), encoding="utf-8")
    kept_answers.measure(small, path, tmp_path)
    assert kept_answers.kept(path)[1]["base"] == ["99"] * 3


def test_the_shipped_answers_agree_with_the_counts_recorded_elsewhere():
    right, lines = kept_answers.kept(data_folder() / "runs" / "chain_kept_answers.json")
    from rlnb.training.studies.many_answers import solved

    counts = solved(data_folder() / "runs" / "chain_many_answers.json")
    for name, rows in lines.items():
        ours = kept_answers.right_counts(right, rows)
        assert abs(sum(ours) - sum(counts[name])) <= 0.02 * 32 * 250


def test_counts_go_on_where_they_stopped_and_look_on_the_way(tmp_path, monkeypatch):
    path = tmp_path / "counts.json"
    small = replace(
        kept_answers.STUDIES["chain"],
        recipe=Recipe(steps=2, prompts=2, num_generations=2),
        problems=3,
    )
    monkeypatch.setattr(countdown_counts, "base_model", lambda task, bases: data_folder() / "model")
    monkeypatch.setattr(countdown_counts, "EVERY", 2)
    for most in (1, None):
        countdown_counts.measure(path, tmp_path, small, answers=4, seeds=(0,), most=most)
        found = countdown_counts.counted(path)
        assert list(found) == ["base", "seed 0"][: 1 if most else 2]
    assert all(len(row["right"]) == len(row["cut"]) == 3 for row in found.values())
    assert found["base"]["steps"] == [0] and found["seed 0"]["steps"] == [2]
    assert max(found["base"]["right"]) <= 4
