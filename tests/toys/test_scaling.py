"""ScaleRL's sigmoid: its identities, its fit, and what the fit can and cannot know."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.toys import Sigmoid, ceiling_error, fit_sigmoid, fit_sigmoids

TRUE = Sigmoid(ceiling=0.6, exponent=1.5, midpoint=20.0, start=0.1)
COMPUTE = np.arange(1.0, 101.0)


def values(curve):
    return [curve.ceiling, curve.exponent, curve.midpoint, curve.start]


def runs(seen, noise, count=200, seed=0):
    noisy = noise * np.random.default_rng(seed).standard_normal((count, seen))
    return COMPUTE[:seen], TRUE(COMPUTE[:seen]) + noisy


def test_the_three_identities():
    assert TRUE(20.0) == pytest.approx((0.6 + 0.1) / 2, abs=1e-12)
    assert TRUE(1e12) == pytest.approx(0.6, abs=1e-9)
    reward = TRUE(COMPUTE)
    odds = np.log((reward - 0.1) / (0.6 - reward))
    assert np.diff(odds) / np.diff(np.log(COMPUTE)) == pytest.approx(1.5, abs=1e-9)


def test_the_closed_form_by_hand():
    assert Sigmoid(1.0, 2.0, 3.0, 0.0)(6.0) == pytest.approx(1 / (1 + 1 / 4))


@pytest.mark.parametrize(
    "truth",
    [
        TRUE,
        Sigmoid(0.95, 0.6, 5.0, 0.0),
        Sigmoid(0.3, 3.0, 50.0, 0.25),
        Sigmoid(0.7, 1.0, 30.0, 0.4),
    ],
)
def test_points_without_noise_give_the_curve_back(truth):
    fit = fit_sigmoid(COMPUTE, truth(COMPUTE))
    assert values(fit) == pytest.approx(values(truth), rel=1e-4, abs=1e-5)
    assert fit_sigmoid(COMPUTE[:25], truth(COMPUTE[:25]))(COMPUTE) == pytest.approx(
        truth(COMPUTE), abs=2e-3
    )  # a quarter of an exact curve is enough: noise is the trouble


def test_no_neighbour_of_the_fit_is_nearer_to_the_points():
    compute, rewards = runs(60, 0.01, count=5)
    for reward in rewards:
        fit = values(fit_sigmoid(compute, reward))
        best = np.square(Sigmoid(*fit)(compute) - reward).sum()
        for place in range(4):
            for factor in (0.999, 1.001):
                near = list(fit)
                near[place] *= factor
                assert np.square(Sigmoid(*near)(compute) - reward).sum() > best


def test_many_runs_at_once_are_the_runs_one_by_one():
    compute, rewards = runs(40, 0.01, count=6)
    together = fit_sigmoids(compute, rewards)
    alone = [values(fit_sigmoid(compute, reward)) for reward in rewards]
    assert together == pytest.approx(np.array(alone), rel=1e-4)


def test_held_ends_stay_and_the_ceiling_is_bounded():
    compute, rewards = runs(50, 0.01, count=3)
    for reward in rewards:
        assert fit_sigmoid(compute, reward, ceiling=0.5).ceiling == 0.5
        assert fit_sigmoid(compute, reward, start=0.0).start == 0.0
        both = fit_sigmoid(compute, reward, ceiling=0.6, start=0.1)
        assert (both.ceiling, both.start) == (0.6, 0.1)
        assert both.midpoint == pytest.approx(20, abs=1)
    early = fit_sigmoids(*runs(10, 0.01))[:, 0]
    assert early.max() == 1.0 and (early == 1.0).mean() > 0.2
    assert fit_sigmoids(*runs(10, 0.01), highest=0.7)[:, 0].max() == 0.7


def test_the_theory_is_what_two_hundred_fits_show_once_the_ceiling_is_known():
    for seen, noise in ((41, 0.002), (62, 0.005), (100, 0.01)):
        compute, rewards = runs(seen, noise)
        fitted = fit_sigmoids(compute, rewards)[:, 0]
        assert fitted.mean() == pytest.approx(0.6, abs=0.004)
        assert fitted.std() == pytest.approx(ceiling_error(compute, TRUE, noise), rel=0.15)


def test_before_the_midpoint_the_ceiling_is_not_known_and_after_it_it_is():
    """Reward 43, 61, 79 and 87 % of the ceiling."""
    spread = [fit_sigmoids(*runs(seen, 0.01))[:, 0].std() for seen in (12, 22, 41, 62)]
    assert spread[0] > 0.25 and spread[1] > 0.12 and 0.02 < spread[2] < 0.05 and spread[3] < 0.02


def test_the_error_is_linear_in_the_noise_and_infinite_where_points_say_nothing():
    one = ceiling_error(COMPUTE, TRUE, 0.01)
    assert ceiling_error(COMPUTE, TRUE, 0.02) == pytest.approx(2 * one)
    assert ceiling_error(COMPUTE[:3], TRUE, 0.01) == float("inf")
    assert ceiling_error(np.full(50, 20.0), TRUE, 0.01) == float("inf")


@pytest.mark.parametrize(
    ("compute", "reward", "said"),
    [
        ([1.0, 2, 3], [0.1, 0.2, 0.3], "at least 4 points, got 3"),
        ([0.0, 1, 2, 3], [0.1, 0.2, 0.3, 0.4], "must be positive"),
        ([1.0, 2, 3, 4], [0.1, 0.2, 0.3], "as long as each other"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_a_sentence(compute, reward, said):
    with pytest.raises(ValueError, match=said):
        fit_sigmoid(compute, reward)
