"""The explorer's noise against brute force, and its picture against a fresh drawing."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch

from rlnb.classroom.explorers.baseline_variance import (
    BASELINES,
    SIZES,
    TOYS,
    alt,
    baseline_variance_explorer,
    compute,
)
from rlnb.objective import ZOO
from rlnb.toys import Bandit, estimator_moments

EACH_TOY = pytest.mark.parametrize("toy", TOYS)


def brute_force(toy, advantages, size):
    """(mean, trace) of (1/G) sum A_i s_i over all ordered groups."""
    pi, rewards = (np.array(x) for x in TOYS[toy])
    score = np.eye(len(pi)) - pi
    mean, second = np.zeros(len(pi)), 0.0
    for group in map(list, product(range(len(pi)), repeat=size)):
        g = advantages(rewards[group]) @ score[group] / size
        p = pi[group].prod()
        mean, second = mean + p * g, second + p * g @ g
    return mean, second - mean @ mean


@pytest.mark.parametrize("toy", ["graded", "graded, best one rare", "two arms"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_group_estimators_are_the_enumerated_ones(toy, size):
    pi, rewards = (np.array(x) for x in TOYS[toy])
    truth = pi * (rewards - pi @ rewards)
    none = brute_force(toy, lambda r: r, 1)[1] / (truth @ truth)
    rules = {
        "group mean": lambda r: r - r.mean(),
        "leave-one-out": lambda r: (r - r.mean()) * len(r) / (len(r) - 1),
        "z-score": lambda r: (r - r.mean()) / (r.std() + 1e-6),
    }
    found, i = compute(toy, 0.0, size)["groups"], SIZES.index(size)
    for name, rule in rules.items():
        mean, trace = brute_force(toy, rule, size)
        cosine = mean @ truth / math.sqrt((mean @ mean) * (truth @ truth))
        assert found[name]["length"][i] == pytest.approx(mean @ truth / (truth @ truth), abs=1e-9)
        assert found[name]["cosine"][i] == pytest.approx(cosine, abs=1e-9)
        assert found[name]["noise"][i] == pytest.approx(
            size * trace / (mean @ mean) / none, rel=1e-9
        )


@EACH_TOY
@pytest.mark.parametrize("b", [-0.5, 0.0, 0.56, 1.4])
def test_variance_at_a_fixed_baseline_is_the_instrument_s(toy, b):
    pi, rewards = TOYS[toy]
    policy = Bandit(torch.tensor(pi, dtype=torch.float64).log())
    moved = estimator_moments(policy, [r - b for r in rewards], ZOO["reinforce"], 1)
    assert compute(toy, b)["variance"] == pytest.approx(moved.trace, abs=1e-12)


@EACH_TOY
def test_the_optimal_baseline_is_the_bottom_of_the_curve(toy):
    data = compute(toy)
    best, lowest = data["named"]["optimal"]
    assert lowest <= data["curve"].min() + 1e-9
    assert abs(BASELINES[data["curve"].argmin()] - best) <= 0.005 + 1e-9
    assert data["named"]["none"] == (0.0, pytest.approx(1.0))


def test_two_arms_put_the_optimum_at_one_minus_p_and_fifty_at_the_mean():
    two, fifty = compute("two arms")["named"], compute("fifty arms")["named"]
    assert two["optimal"] == (pytest.approx(0.1), pytest.approx(0.0, abs=1e-12))
    assert two["mean reward"][1] == pytest.approx(64)
    assert fifty["optimal"][0] == pytest.approx(0.9)


def test_the_group_mean_is_shorter_by_one_gth_and_exactly_as_noisy():
    for toy in TOYS:
        groups = compute(toy)["groups"]
        assert groups["leave-one-out"]["length"] == pytest.approx(np.ones(len(SIZES)))
        assert groups["group mean"]["length"] == pytest.approx(1 - 1 / np.array(SIZES))
        assert groups["group mean"]["noise"] is groups["leave-one-out"]["noise"]


def test_an_unknown_toy_or_size_is_refused_with_the_choices():
    with pytest.raises(ValueError, match="fifty arms"):
        compute("casino")
    with pytest.raises(ValueError, match="num_generations must be one of .* got 5"):
        compute(num_generations=5)


@pytest.mark.parametrize("toy", ["graded", "two arms"])
def test_picture_after_a_move_equals_a_fresh_drawing(toy):
    explorer = baseline_variance_explorer().set(toy=toy, baseline=-0.5, num_generations=16)
    assert np.array_equal(explorer.pixels(), explorer.pixels_from_scratch())
    assert explorer.alt_text() == alt(compute(toy, -0.5, 16))
    assert "b = −0.50" in explorer.alt_text()
