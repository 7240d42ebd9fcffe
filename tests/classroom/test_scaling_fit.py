"""What the scaling explorer computes: against the fit, the theory, and its own caption."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.classroom.explorers import scaling_fit_explorer
from rlnb.classroom.explorers.scaling_fit import (
    CAPTION,
    KNOWN,
    NOISES,
    POINTS,
    RUNS,
    SEEN,
    TRUE,
    alt,
    compute,
)
from rlnb.toys import Sigmoid, ceiling_error, fit_sigmoid


def test_the_fit_shown_is_the_package_s_fit_of_the_points_shown():
    for params in ({}, {"seen": 62, "noise": 0.002}, {"seed": 7}):
        data = compute(**params)
        fit = fit_sigmoid(data["budget"], data["points"])
        assert data["fit"] == pytest.approx(
            [fit.ceiling, fit.exponent, fit.midpoint, fit.start], rel=1e-3
        )
        assert data["curves"][0] == pytest.approx(Sigmoid(*data["fit"])(data["at"]))


def test_the_spread_is_that_of_the_runs_and_agrees_with_theory_where_the_ceiling_is_known():
    data = compute(seen=100, noise=0.005)
    assert data["fits"].shape == (RUNS, 4)
    assert data["spread"] == data["fits"][:, 0].std()
    assert data["spread"] == pytest.approx(data["error"], rel=0.3)
    assert data["error"] == ceiling_error(np.arange(1.0, 101), TRUE, 0.005)
    early = compute(seen=12)
    assert early["spread"] > 0.2 and early["error"] > 0.5


def test_the_seed_changes_the_points_and_not_the_runs_behind_the_band():
    one, two = compute(seed=0), compute(seed=1)
    assert not np.array_equal(one["points"], two["points"])
    assert one["fits"] == pytest.approx(two["fits"], rel=1e-6)
    assert np.array_equal(compute(seen=41)["points"][:26], compute(seen=26)["points"])


def test_the_caption_s_numbers():
    assert compute(noise=0.01)["known_from"] == 77 and "77 %" in CAPTION
    assert compute(noise=0.002)["known_from"] == 36 and "36 %" in CAPTION
    assert compute(noise=0.03)["known_from"] is None
    assert ceiling_error(np.arange(1.0, 78), TRUE, 0.01) < KNOWN
    assert ceiling_error(np.arange(1.0, 77), TRUE, 0.01) >= KNOWN


def test_every_setting_of_the_sliders_can_be_computed():
    for noise in NOISES:
        for seen in SEEN:
            data = compute(seen, noise)
            assert np.isfinite(data["curves"]).all()
            assert data["fits"][:, 0].max() <= 1 and len(data["points"]) == seen
    assert max(SEEN) == POINTS


@pytest.mark.parametrize("wrong", [{"seen": 3}, {"seen": 101}, {"noise": 0.0}, {"seed": -1}])
def test_a_setting_outside_its_range_is_refused_with_a_sentence(wrong):
    with pytest.raises(ValueError, match="must be"):
        compute(**wrong)


def test_artists_hold_what_compute_says_and_the_words_the_numbers():
    explorer = scaling_fit_explorer()
    for params in ({"seen": 12}, {"seen": 62, "noise": 0.03, "seed": 4}):
        artists, data = explorer.set(**params).artists, explorer.data
        assert np.array_equal(artists["points"].get_xdata(), data["budget"])
        assert np.array_equal(artists["fit"].get_ydata(), data["curves"][0])
        assert artists["spread"].get_xydata().tolist() == [[data["seen"], data["spread"]]]
        outline = artists["band"].get_paths()[0].vertices
        assert outline[:, 1].max() == data["curves"][1:].max()
        for number in (f"{data['fit'][0]:.3f}", f"{data['spread']:.3f}", f"{data['error']:.3f}"):
            assert number in alt(data)
