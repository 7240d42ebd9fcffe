"""Page 09's explorers, by hand and by enumeration: near-equal rewards, and what a prompt weighs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rlnb import ZOO
from rlnb.classroom import explorers
from rlnb.classroom.explorers import difficulty, near_equal
from rlnb.toys import Bandit, estimator_moments


def test_one_lower_answer_gets_the_bound_whatever_the_gap_without_eps():
    for gap in (1.0, 1e-2, 1e-6):
        for size in (2, 8, 16):
            data = near_equal.compute(gap, size, eps=0.0)
            assert data["largest"] == pytest.approx(math.sqrt(size - 1), rel=1e-6)
            assert data["advantages"][-1] < 0 < data["advantages"][0]


def test_eps_is_where_a_difference_stops_counting():
    by_gap = [round(near_equal.compute(gap)["largest"], 4) for gap in (1e-4, 1e-6, 1e-7)]
    assert by_gap == [2.5681, 0.6575, 0.0847]
    at_eps = near_equal.compute(1.0 / (math.sqrt(7) / 8) * 1e-4, 8, eps=1e-4)
    assert at_eps["std"] == pytest.approx(1e-4)
    assert at_eps["largest"] == pytest.approx(math.sqrt(7) / 2)  # std = eps: half


def test_undivided_the_difference_keeps_its_size():
    data = near_equal.compute(0.01, 8, divide=False)
    assert data["largest"] == pytest.approx(0.01 * 7 / 8)
    assert data["gain"] == 1.0


@pytest.mark.parametrize("pattern", near_equal.PATTERNS)
def test_nothing_passes_the_bound_and_rms_is_one_without_eps(pattern):
    for size in range(2, 17):
        data = near_equal.compute(1e-3, size, eps=0.0, pattern=pattern)
        assert data["curves"]["divided"].max() <= data["bound"] * (1 + 1e-6)
        assert data["rms"] == pytest.approx(1.0)
        assert data["advantages"].sum() == pytest.approx(0, abs=1e-9)


def test_equal_rewards_have_no_advantage_and_no_nan():
    data = near_equal.compute(0.0, eps=0.0)
    assert data["largest"] == 0 and data["std"] == 0 and data["gain"] == math.inf
    assert "nan" not in near_equal.alt(data)


def test_near_equal_curve_passes_through_the_point():
    for divide, name in ((True, "divided"), (False, "undivided")):
        data = near_equal.compute(1e-4, divide=divide, pattern="noise")
        here = near_equal.GAPS.index(1e-4)
        assert data["curves"][name][here] == data["largest"]


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("right", [1, 5, 9])
def test_the_weight_is_the_enumerated_one(size, right):
    rewards = [1.0] * right + [0.0] * (10 - right)
    grpo = ZOO["grpo"].replace(terms=())
    for method, objective in (("zscore", grpo), ("mean", ZOO["dr_grpo"])):
        moments = estimator_moments(Bandit(10), rewards, objective, size)
        weight = difficulty.compute(right / 10, size, method)["weight"]
        torch.testing.assert_close(moments.mean, weight * moments.truth, rtol=0, atol=2e-6)


def test_maxrl_weighs_by_the_sum_of_powers():
    """(1 - (1-p)^(G-1)) / p = sum over j < G-1 of (1-p)^j: truncated 1/p."""
    for p in (0.01, 0.3, 0.9):
        weight = difficulty.compute(p, 8, "maxrl")["weight"]
        assert weight == pytest.approx(sum((1 - p) ** j for j in range(7)))


def test_weights_of_the_page():
    by_rate = [round(difficulty.compute(p)["weight"], 4) for p in (0.5, 0.1, 0.01)]
    assert by_rate == [1.9341, 2.8478, 3.733]
    assert difficulty.compute(0.01)["silent"] == pytest.approx(0.8515, abs=5e-5)
    assert difficulty.compute(0.5)["silent"] == pytest.approx(2**-15)


@pytest.mark.parametrize("size", difficulty.SIZES)
def test_zscore_is_symmetric_below_its_ceiling_and_flat_for_pairs(size):
    data = difficulty.compute(0.1, size)
    curve = data["curves"]["zscore"]
    np.testing.assert_allclose(curve, curve[::-1], rtol=1e-9)
    assert curve.max() < math.sqrt(size - 1) + 1e-12
    assert data["weight"] == pytest.approx(data["mirror"])
    if size == 2:
        np.testing.assert_allclose(curve, 1.0)
    np.testing.assert_allclose(data["curves"]["mean"], (size - 1) / size)


def test_signal_is_the_weight_times_p_one_minus_p():
    data = difficulty.compute(0.3, 8, "maxrl", "signal")
    assert data["signal"] == pytest.approx(data["weight"] * 0.21)
    here = int(np.argmin(np.abs(difficulty.RATES - 0.3)))
    assert data["curves"]["maxrl"][here] == pytest.approx(data["signal"])


def test_a_point_above_the_axis_is_said_to_be_there():
    explorer = explorers.difficulty_explorer().set(rate=0.01, size=64, method="maxrl")
    assert "above the axis" in explorer.alt_text()
    assert "above the axis" not in explorers.difficulty_explorer().alt_text()


def test_artists_hold_what_compute_says():
    explorer = explorers.std_explorer()
    for params in ({}, {"size": 5, "gap": 1e-3, "divide": False}):
        data = explorer.set(**params).data
        bars = [bar for bar in explorer.artists["bars"] if bar.get_visible()]
        assert [bar.get_height() for bar in bars] == data["advantages"].tolist()
        assert explorer.artists["here"].get_xydata().tolist() == [[data["gap"], data["largest"]]]
    explorer = explorers.difficulty_explorer()
    for params in ({}, {"show": "signal", "rate": 0.25}):
        data = explorer.set(**params).data
        top = difficulty.TOP[data["show"]]
        shown = explorer.artists["zscore"].get_ydata() * top
        np.testing.assert_allclose(shown, data["curves"]["zscore"])
        place = explorer.artists["here"].get_xydata()[0]
        assert place == pytest.approx([data["rate"], data[data["show"]] / top])


@pytest.mark.parametrize(
    "call",
    [
        lambda: near_equal.compute(size=17),
        lambda: near_equal.compute(gap=-1.0),
        lambda: near_equal.compute(eps=-1e-6),
        lambda: near_equal.compute(pattern="two"),
        lambda: difficulty.compute(rate=0.0),
        lambda: difficulty.compute(size=5),
        lambda: difficulty.compute(method="dapo"),
        lambda: difficulty.compute(show="loss"),
    ],
)
def test_bad_arguments_raise_a_sentence(call):
    with pytest.raises(ValueError, match=r"got .*\.$"):
        call()
