"""The explorers of the page on importance sampling: their numbers, and that tasks can be done."""

from __future__ import annotations

import math

import pytest

from rlnb.classroom.explorers import drift, product_weight


def test_drift_shares_sum_to_one_and_the_truth_is_the_formula():
    data = drift.compute(1.5, 3)
    assert data["share"].sum() == pytest.approx(1, abs=1e-12)
    assert data["formula"] == pytest.approx(1000 * math.exp(-2.25))
    assert data["reported"] == pytest.approx(1 / (data["share"] ** 2).sum())


def test_without_drift_all_samples_count():
    assert drift.compute(0.0)["reported"] == pytest.approx(1000)


def test_the_task_on_drift_is_open_at_first_and_can_be_done():
    explorer = drift.drift_explorer()
    assert not drift.reports_too_little(explorer.data)
    honest = [b for b in range(20) if drift.reports_too_little(explorer.set(mu=2.0, batch=b).data)]
    assert honest == [5, 8], "the page names batch 8"


@pytest.mark.parametrize("mu", [0.0, 0.5, 2.0, 3.0])
def test_every_sample_lies_within_the_axis_and_the_heaviest_is_seen(mu):
    for batch in range(20):
        data = drift.compute(mu, batch)
        assert 0.2 * data["top"] < 100 * data["share"].max() < data["top"]


def test_a_batch_that_reports_too_little_holds_a_heavy_sample():
    share = [drift.compute(2.0, b)["share"].max() for b in range(20)]
    assert sorted(range(20), key=lambda b: -share[b])[:2] == [8, 5]
    assert share[8] > 0.5 and drift.compute(2.0, 8)["x"].max() == pytest.approx(4.40, abs=0.005)


@pytest.mark.parametrize("length", [1, 2, 10, 1000])
@pytest.mark.parametrize("spread", [0.01, 0.2])
def test_the_shares_of_answers_and_of_the_mean_both_sum_to_one(length, spread):
    data = product_weight.compute(length, spread)
    tail = 5e-2 if (length, spread) == (1000, 0.2) else 1e-3  # the axis ends at 10^16 at most
    assert data["written"].sum() == pytest.approx(1, abs=tail)
    assert data["carried"].sum() == pytest.approx(1, abs=tail)


def test_median_and_worth_of_an_answer_by_hand():
    two = product_weight.compute(2, 0.2)
    assert two["median"] == pytest.approx(0.96) and two["ess"] == pytest.approx(1000 / 1.04**2)
    long = product_weight.compute(1000, 0.2)
    assert long["median"] == pytest.approx(0.96**500)
    assert long["beyond"] > 0.999


def test_the_axis_follows_the_weights():
    """Answers of nearly equal weight fill the axis as well: no three bars on thirty decades."""
    data = product_weight.compute(1000, 0.02)
    assert data["half_width"] == 2 and data["edges"][-1] == 2
    assert (data["written"] > 0.01 * data["written"].max()).sum() > 20
    assert product_weight.compute(1000, 0.2)["half_width"] == 16


def test_both_tasks_on_the_product_are_open_at_first_and_can_be_done():
    explorer = product_weight.product_weight_explorer()
    assert not product_weight.less_than_one(explorer.data)
    assert product_weight.less_than_one(explorer.set(length=177).data)
    assert explorer.data["ess"] < 1 < product_weight.compute(176, 0.2)["ess"]
    assert not product_weight.as_many_at_ten_times(explorer.set(length=200, spread=0.02).data)
    alive = [
        step
        for step in range(1, 41)
        if product_weight.as_many_at_ten_times(explorer.set(spread=0.005 * step).data)
    ]
    assert alive == [12, 13], "0.060 and 0.065: a tenth of the variance is 0.2 / sqrt(10)"


@pytest.mark.parametrize(
    ("explorer", "setting"),
    [
        (drift.drift_explorer(), {"mu": 2.0, "batch": 8}),
        (product_weight.product_weight_explorer(), {"length": 1000, "spread": 0.02}),
    ],
)
def test_a_moved_axis_is_redrawn_as_from_scratch(explorer, setting):
    explorer.pixels()
    explorer.set(**setting)
    assert (explorer.pixels() == explorer.pixels_from_scratch()).all()
