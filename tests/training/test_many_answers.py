"""Thirty-two answers a problem: the shipped counts, pass@k, and the command that measures them."""

from __future__ import annotations

import json

import pytest

from rlnb.training import BadInput, Recipe, data_folder
from rlnb.training.studies.many_answers import ANSWERS, measure, parts, pass_at, rate, solved

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


def test_answers_with_every_step_right_are_among_the_right_ones():
    counts = solved(PATH)
    for name, kinds in parts(PATH).items():
        rows = zip(counts[name], kinds["direct, right"], kinds["clean"], strict=True)
        assert all(lucky + clean <= right for right, lucky, clean in rows)
    assert parts(PATH)["base"]["clean"].count(0) == 1


def test_the_error_of_pass_at_1_counts_problems():
    mean, error = rate([32, 0, 32, 0])
    assert mean == 0.5 and error == pytest.approx((1 / 3) ** 0.5 / 2)


def test_the_command_writes_what_is_missing_and_keeps_what_is_there(tmp_path):
    path = tmp_path / "many.json"
    recipe = Recipe(steps=1, prompts=2, num_generations=2, eval_every=0, checkpoint_every=0)
    measure(path, recipe, prompts=3, answers=2)
    first = json.loads(path.read_text(encoding="utf-8"))
    assert set(first) == {"header", "parts", "base", "seed 0", "seed 1", "seed 2"}
    assert all(len(first[name]) == 3 for name in solved(path))
    path.write_text(json.dumps(first | {"base": [9, 9, 9]}), encoding="utf-8")
    measure(path, recipe, prompts=3, answers=2)
    assert solved(path)["base"] == [9, 9, 9]
