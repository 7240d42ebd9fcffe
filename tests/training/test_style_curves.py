"""Style and skill while a run learns: the two parts make the whole, and every arm is there."""

from __future__ import annotations

import pytest
import torch

from rlnb.objective import difference
from rlnb.shipped import data_folder
from rlnb.toys import running_group
from rlnb.training.recipe import Recipe
from rlnb.training.studies import style_curves


def test_a_run_is_measured_once_from_step_0_on(tmp_path, monkeypatch):
    monkeypatch.setattr(style_curves, "SEEDS", (0,))
    path, small = tmp_path / "curves.json", Recipe(prompts=2, num_generations=2, steps=1)
    style_curves.measure(path, small, at=(1,), prompts=4, num_generations=4)
    before = path.read_text()
    style_curves.measure(path, small, at=(1,), prompts=4, num_generations=4)
    assert path.read_text() == before
    for arm in style_curves.ARMS:
        ((start, end),) = style_curves.curves(path, arm)
        assert (start["step"], end["step"]) == (0, 1)


@pytest.mark.parametrize("arm", style_curves.ARMS)
def test_recorded_styles_make_pass_at_1(arm):
    runs = style_curves.curves(data_folder() / "runs" / "chain_style_curves.json", arm)
    assert len(runs) == 3
    for rows in runs:
        assert [row["step"] for row in rows] == [0, *style_curves.AT]
        for row in rows:
            d = row["direct"]
            whole = d * row["right/direct"] + (1 - d) * row["right/steps"]
            assert whole == pytest.approx(row["pass@1"], abs=2e-4)


def test_the_arms_differ_in_the_advantage_alone_and_a_wrong_answer_has_no_push():
    changes = difference(style_curves.ARMS["dr_grpo"], style_curves.RIGHT_ONLY)
    assert [change.part for change in changes] == ["advantage"]
    group = running_group()
    (slope,) = torch.autograd.grad(style_curves.RIGHT_ONLY(group).loss, group.logprobs)
    wrong = group.rewards == 0
    assert wrong.any() and not slope[wrong].any() and slope[~wrong].any()


def test_without_wrong_answers_level():
    path = data_folder() / "runs" / "chain_style_curves.json"
    grpo, right = ([rows[-1]["pass@1"] for rows in style_curves.curves(path, arm)]
                   for arm in style_curves.ARMS)  # fmt: skip
    assert abs(sum(grpo) - sum(right)) / 3 < 0.015 and min(right) > 0.92
