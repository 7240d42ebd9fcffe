"""The KL explorer's numbers against closed forms and a search, its exercises against torch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from rlnb import check
from rlnb.classroom.explorers import kl_explorer
from rlnb.classroom.explorers.kl_directions import compute


@pytest.mark.parametrize(("mean", "deviation"), [(1.0, 2.0), (-6.0, 0.7), (6.0, 6.0)])
def test_one_peak_gives_the_closed_form_in_both_directions(mean, deviation):
    """KL(N(a, s^2) || N(b, t^2)) = log(t / s) + (s^2 + (a - b)^2) / (2 t^2) - 1/2."""
    data = compute(distance=0.0, mean=mean, deviation=deviation)
    forward = math.log(deviation) + (1 + mean**2) / (2 * deviation**2) - 0.5
    reverse = -math.log(deviation) + (deviation**2 + mean**2) / 2 - 0.5
    assert data["forward"] == pytest.approx(forward, abs=1e-9)
    assert data["reverse"] == pytest.approx(reverse, abs=1e-9)


@pytest.mark.parametrize(("distance", "weight"), [(3.0, 0.5), (2.0, 0.2), (5.0, 0.95)])
def test_best_forward_model_has_the_moments_of_the_target(distance, weight):
    data = compute(distance, weight, fit="forward")
    mean = (2 * weight - 1) * distance
    assert data["mean"] == pytest.approx(mean)
    assert data["deviation"] ** 2 == pytest.approx(1 + distance**2 - mean**2)
    entropy = 0.5 * math.log(2 * math.pi * math.e * data["deviation"] ** 2)
    assert data["forward"] == pytest.approx(entropy - data["entropy"], abs=1e-9)


@pytest.mark.parametrize("weight", [0.05, 0.3, 0.5, 0.95])
@pytest.mark.parametrize("distance", [0.0, 1.0, 2.0, 2.6, 3.0, 5.0])
def test_no_gaussian_on_a_grid_beats_the_best_ones(distance, weight):
    best = compute(distance, weight)["best"]
    for mean in np.arange(-6, 6.1, 1.0):
        for deviation in (0.7, 0.9, 1.0, 1.1, 1.5, 2.0, 2.4, 3.2, 4.5):
            data = compute(distance, weight, mean, deviation)
            assert data["forward"] >= best["forward"][2] - 1e-9
            assert data["reverse"] >= best["reverse"][2] - 1e-9


def test_best_reverse_model_is_a_stationary_point():
    for distance, weight in ((3.0, 0.5), (2.6, 0.5), (2.0, 0.3), (4.0, 0.8)):
        mean, deviation, least = compute(distance, weight)["best"]["reverse"]
        for step in (-1e-3, 1e-3):
            for moved in ((mean + step, deviation), (mean, deviation + step)):
                worse = compute(distance, weight, *moved)["reverse"] - least
                assert 0 <= worse < 2e-5


def test_forward_covers_both_peaks_and_reverse_takes_the_heavier_one():
    best = compute()["best"]
    assert best["forward"][:2] == pytest.approx((0, math.sqrt(10)))
    assert best["reverse"][0] == pytest.approx(3, abs=0.02)  # the right one of two equal peaks
    assert best["reverse"][1] == pytest.approx(1, abs=0.03)
    assert compute(weight=0.3)["best"]["reverse"][0] < -2.9
    far = compute(distance=5.0, weight=0.3)["best"]["reverse"]
    assert far == pytest.approx((-5, 1, -math.log(0.7)), abs=1e-4)


def test_close_peaks_leave_nothing_to_choose():
    """Picking needs a gap: at 2 either direction stands between the peaks, from about 2.8 not."""
    assert abs(compute(distance=2.0)["best"]["reverse"][0]) < 1e-6
    assert compute(distance=3.0)["best"]["reverse"][0] > 2.9
    single = compute(distance=0.0)["best"]
    for mean, deviation, least in single.values():
        assert (mean, deviation, least) == pytest.approx((0, 1, 0), abs=1e-9)


def test_terms_of_the_picture_add_up_to_the_bars():
    data = compute(distance=2.0, mean=0.5, deviation=1.5)
    for way in ("forward", "reverse"):
        assert data[f"{way}_term"].sum() * 0.05 == pytest.approx(data[way], abs=1e-6)


def test_an_unknown_fit_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="fit must be one of .* got 'both'"):
        compute(fit="both")


def test_artists_hold_what_compute_says():
    explorer = kl_explorer()
    for params in ({}, {"mean": -6.0, "deviation": 0.7}, {"mean": 0.0, "distance": 2.0}):
        artists, data = explorer.set(**params).artists, explorer.data
        for name in ("target", "model"):
            assert np.array_equal(artists[name].get_ydata(), data[name])
        heights = [bar.get_height() for bar in artists["bars"]]
        assert heights == [min(data[way], 4.0) for way in ("forward", "reverse")]
        said = [text.get_text() for text in artists["values"]]
        assert said == [f"{data[way]:.2f}" for way in ("forward", "reverse")]
        marks = [line.get_ydata()[0] for line in artists["best"]]
        assert marks == [data["best"][way][2] for way in ("forward", "reverse")]


def test_alt_text_and_readout_hold_both_numbers_and_both_bounds():
    explorer = kl_explorer().set(mean=0.0, deviation=3.2, distance=3.0)
    for words in (explorer.alt_text(), explorer.line.value):
        for number in ("0.956", "0.462", "0.689"):
            assert number in words


def probes(one):
    return [probe.cast(torch.float64).values() for probe in one.exercise.probes]


def test_kl_divergence_is_torch_s():
    for p, q in probes(check.kl_divergence):
        ours = check.kl_divergence.exercise.reference(p, q)
        theirs = F.kl_div(q.log(), p, reduction="sum")
        if (p[q == 0] > 0).any():
            assert ours == math.inf
        elif not (q == 0).any():
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_cross_entropy_is_entropy_plus_kl():
    for p, q in probes(check.cross_entropy):
        H = check.cross_entropy.exercise.reference
        KL = check.kl_divergence.exercise.reference
        torch.testing.assert_close(H(p, q), H(p, p) + KL(p, q), rtol=0, atol=1e-12)


def test_plain_formulas_hear_of_zero_times_log_zero():
    plain = check.kl_divergence(lambda p, q: (p * (p / q).log()).sum())
    assert plain.kind == "known mistake" and plain.message.startswith("0 log 0 counts as 0")
    plain = check.cross_entropy(lambda p, q: -(p * q.log()).sum())
    assert plain.kind == "known mistake" and plain.message.startswith("0 log 0 counts as 0")


def test_the_usual_right_answers_pass():
    assert check.kl_divergence(lambda p, q: torch.where(p > 0, p * (p / q).log(), 0).sum())
    assert check.kl_divergence(lambda p, q: (p * (p / q).log())[p > 0].sum())
    assert check.cross_entropy(lambda p, q: -torch.where(p > 0, p * q.log(), 0).sum())


def test_the_library_s_argument_order_is_named():
    verdict = check.kl_divergence(lambda p, q: F.kl_div(p.log(), q, reduction="sum"))
    assert verdict.message.startswith("this is KL(q || p)")
    verdict = check.kl_divergence(lambda p, q: F.kl_div(q.log(), p, reduction="batchmean"))
    assert verdict.message.startswith("you divided by the number of outcomes")
