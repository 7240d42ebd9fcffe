"""The two studies behind the page on evaluation: what they write, on a task of one step."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rlnb.training import Recipe, data_folder, pass_at_k
from rlnb.training.models.loading import load
from rlnb.training.run import start
from rlnb.training.studies import countdown_counts, entropy_law, first_steps, kept_answers
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


def test_first_steps_are_counted_by_hand_and_written_once(tmp_path, monkeypatch):
    path = tmp_path / "first.json"
    small = replace(
        kept_answers.STUDIES["countdown"],
        recipe=Recipe(steps=1, prompts=2, num_generations=2),
        problems=2,
        answers=3,
    )
    texts = ["9-2=7,7*2=14so(9-2)*2", "9+2=11,11+2=13so9+2+2", "so9+2+2"] * 2

    class Said:
        problems = first_steps.held_out(TASKS["countdown"], 2)

        def __init__(self):
            self.texts = texts

    model = load(data_folder() / "model", device="cpu")
    monkeypatch.setattr(first_steps, "trained", lambda *a: model)
    monkeypatch.setattr(first_steps, "pass_rate", lambda *a, **k: Said())
    monkeypatch.setattr(first_steps, "reaching", lambda numbers, target: ["9-2=7,7*2=14"])
    first_steps.measure(path, tmp_path, small, seeds=(0,))
    found = first_steps.settled(path)
    steps = [{"9-2": 1, "2+9": 1}] * 2
    row = {"written": [2, 2], "commonest": [1, 1], "leads": [1, 1], "steps": steps}
    assert found == {"base": row, "seed 0": row}
    before = path.read_text(encoding="utf-8")
    monkeypatch.delattr(first_steps, "trained")  # nothing is left to do
    first_steps.measure(path, tmp_path, small, seeds=(0,))
    assert path.read_text(encoding="utf-8") == before


def test_the_trained_models_settle_and_where_a_product_is_needed_mostly_wrongly():
    found = first_steps.settled(data_folder() / "runs" / "countdown_first_steps.json")
    product = first_steps.needs_product()

    def share(name, key, kind):
        row = found[name]
        chosen = [i for i, needed in enumerate(product) if needed is kind]
        return sum(row[key][i] for i in chosen) / sum(row["written"][i] for i in chosen)

    for seed in ("seed 0", "seed 1", "seed 2"):
        assert all(
            share(seed, "commonest", k) > 2 * share("base", "commonest", k) for k in (False, True)
        )
        assert share(seed, "leads", False) > 0.7 and share(seed, "leads", True) < 0.4


def test_what_sixteen_tries_lost_was_lost_where_a_product_is_needed():
    many = countdown_counts.counted(data_folder() / "runs" / "countdown_counts.json")
    product = first_steps.needs_product()

    def rate(name, k, kind):
        rows = [
            pass_at_k(1024, c, k)
            for c, p in zip(many[name]["right"], product, strict=True)
            if p is kind
        ]
        return sum(rows) / len(rows)

    for seed in ("seed 0", "seed 1", "seed 2"):
        assert rate(seed, 16, True) < rate("base", 16, True) - 0.14
        assert rate(seed, 16, False) > rate("base", 16, False) - 0.02
        assert rate(seed, 1, False) > rate("base", 1, False) + 0.3
        assert abs(rate(seed, 1, True) - rate("base", 1, True)) < 0.07


def test_the_favourite_after_training_is_another_one_more_often_than_by_luck():
    found = first_steps.settled(data_folder() / "runs" / "countdown_first_steps.json")
    luck = first_steps.agreement(found["base"]["steps"])
    assert 0.54 < luck[0] < 0.62 and 0.41 < luck[1] < 0.48
    for seed in ("seed 0", "seed 1", "seed 2"):
        kept, part = first_steps.favourites(found["base"]["steps"], found[seed]["steps"])
        assert kept < luck[1] - 0.1 and 0.14 < part < 0.2


def test_problems_gained_where_the_favourite_can_reach_the_target_and_fell_where_it_cannot():
    found = first_steps.settled(data_folder() / "runs" / "countdown_first_steps.json")
    many = countdown_counts.counted(data_folder() / "runs" / "countdown_counts.json")
    good, product = first_steps.leading_steps(), first_steps.needs_product()
    rose, fell = [], []
    for seed in ("seed 0", "seed 1", "seed 2"):
        for i, steps in enumerate(found[seed]["steps"]):
            before, after = many["base"]["right"][i], many[seed]["right"][i]
            if kept_answers.fisher(before, after, 1024) < 0.05 / 64:
                where = (product[i], max(steps, key=steps.get) in good[i])
                (rose if after > before else fell).append(where)
    kinds = [(False, True), (False, False), (True, True), (True, False)]
    assert [rose.count(kind) for kind in kinds] == [96, 5, 19, 8]
    assert [fell.count(kind) for kind in kinds] == [2, 1, 9, 30]
