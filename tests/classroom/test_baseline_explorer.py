"""The baseline explorer's numbers against enumeration, and its picture against a fresh drawing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rlnb.classroom.explorers.baseline import (
    BASELINES,
    PROBABILITIES,
    REWARDS,
    alt,
    baseline_explorer,
    compute,
)
from rlnb.objective import ZOO
from rlnb.toys import Bandit, expected_gradient, true_gradient


@pytest.mark.parametrize(("baseline", "offset"), [(0.0, 0.0), (0.5, 0.0), (-1.0, 2.0), (3.0, 1.3)])
def test_mean_of_all_draws_is_the_true_gradient_at_any_baseline(baseline, offset):
    policy = Bandit(torch.tensor(PROBABILITIES).log())
    data = compute(baseline, offset)
    assert np.allclose(data["expected"], true_gradient(policy, REWARDS).numpy(), atol=1e-12)
    shifted = expected_gradient(policy, REWARDS + offset - baseline, ZOO["reinforce"], 1)
    assert np.allclose(data["expected"], shifted.numpy(), atol=1e-12)


@pytest.mark.parametrize(("baseline", "offset"), [(0.0, 0.0), (0.7, 0.4), (-1.0, 2.0)])
def test_variance_is_the_enumerated_one(baseline, offset):
    data = compute(baseline, offset)
    away = data["push"] - data["expected"]
    enumerated = PROBABILITIES @ (away**2).sum(1)
    assert data["variance"] == pytest.approx(enumerated, abs=1e-12)
    assert data["answers"] == pytest.approx(enumerated / (data["expected"] ** 2).sum(), abs=1e-12)


def test_best_baseline_has_the_lowest_variance_and_is_not_the_mean_reward():
    data = compute()
    assert data["best_baseline"] == pytest.approx(0.31 / 0.7)
    assert data["mean_reward"] == pytest.approx(0.5)
    assert data["best_answers"] <= data["curve"].min()
    assert abs(BASELINES[data["curve"].argmin()] - data["best_baseline"]) < 0.025


def test_an_offset_moves_the_parabola_and_keeps_its_depth():
    plain, moved = compute(), compute(offset=1.5)
    assert moved["best_baseline"] == pytest.approx(plain["best_baseline"] + 1.5)
    assert moved["best_answers"] == pytest.approx(plain["best_answers"])
    assert compute(1.5, 1.5)["answers"] == pytest.approx(plain["answers"])


def test_picture_after_a_move_equals_a_fresh_drawing():
    explorer = baseline_explorer().set(baseline=1.0, offset=0.5)
    assert np.array_equal(explorer.pixels(), explorer.pixels_from_scratch())
    assert explorer.alt_text() == alt(compute(1.0, 0.5))
    assert "-" not in alt(compute(-1.0)).replace("four-answer", "")
