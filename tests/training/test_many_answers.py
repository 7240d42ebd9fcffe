"""Thirty-two answers a problem: the shipped counts, pass@k, and the command that measures them."""

from __future__ import annotations

import json

import pytest

from rlnb.training import BadInput, Recipe, data_folder
from rlnb.training.studies.many_answers import ANSWERS, measure, pass_at, solved

PATH = data_folder() / "runs" / "chain_many_answers.json"


def test_pass_at_k_is_the_chance_of_a_draw_without_replacement():
    assert pass_at(2, [1], 3) == pytest.approx(2 / 3)  # one of three, two drawn
    assert pass_at(3, [2, 0], 4) == pytest.approx(0.5)  # three of four miss no two right ones
    assert pass_at(1, [5, 15, 10]) == pytest.approx(30 / 96)
    for k in (0, 33):
        with pytest.raises(BadInput, match="expected 1 to 32"):
            pass_at(k, [1])


def test_the_base_solves_every_problem_in_32_answers_and_no_trained_model_does():
    counts = solved(PATH)
    assert list(counts) == ["base", "seed 0", "seed 1", "seed 2"]
    assert all(len(row) == 250 and max(row) <= ANSWERS for row in counts.values())
    assert [row.count(0) for row in counts.values()] == [0, 6, 1, 1]
    base, *trained = counts.values()
    for row in trained:  # ahead with one answer, behind with all
        assert pass_at(1, row) > pass_at(1, base) + 0.5
        assert pass_at(8, row) > pass_at(8, base)
        assert pass_at(32, row) < pass_at(32, base) == 1.0


def test_written_out_answers_say_the_same_without_the_luck_of_ten_digits():
    ended, written = solved(PATH), solved(PATH, written=True)
    assert list(written) == list(ended)
    for name, row in written.items():
        assert all(w <= e for w, e in zip(row, ended[name], strict=True))
    assert [row.count(0) for row in written.values()] == [1, 6, 1, 1]
    assert pass_at(1, written["base"]) < 0.6 * pass_at(1, ended["base"])  # the rest was direct
    assert pass_at(8, written["base"]) < pass_at(1, written["seed 0"])


def test_the_command_writes_what_is_missing_and_keeps_what_is_there(tmp_path):
    path = tmp_path / "many.json"
    recipe = Recipe(steps=1, prompts=2, num_generations=2, eval_every=0, checkpoint_every=0)
    measure(path, recipe, prompts=3, answers=2)
    first = json.loads(path.read_text(encoding="utf-8"))
    assert list(solved(path)) == ["base", "seed 0", "seed 1", "seed 2"]
    assert list(solved(path, written=True)) == list(solved(path))
    assert all(len(row) == 3 for row in solved(path).values())
    path.write_text(json.dumps(first | {"base": [9, 9, 9]}), encoding="utf-8")
    measure(path, recipe, prompts=3, answers=2)
    assert solved(path)["base"] == [9, 9, 9]
