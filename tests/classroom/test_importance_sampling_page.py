"""The explorers of the page on importance sampling: their numbers, and that tasks can be done."""

from __future__ import annotations

import math

import pytest

from rlnb.classroom.explorers import drift, product_weight


def test_drift_shares_sum_to_one_and_the_truth_is_the_formula():
    data = drift.compute(1.5, 3)
    assert data["share"].sum() == pytest.approx(1, abs=1e-12)
    assert data["true"] == pytest.approx(1000 * math.exp(-2.25))
    assert data["claimed"] == pytest.approx(1 / (data["share"] ** 2).sum())


def test_without_drift_all_samples_count():
    assert drift.compute(0.0)["claimed"] == pytest.approx(1000)


def test_both_tasks_on_drift_are_open_at_first_and_can_be_done():
    explorer = drift.drift_explorer()
    assert not drift.half_is_left(explorer.data)
    assert drift.half_is_left(explorer.set(mu=0.85).data)
    honest = [b for b in range(20) if drift.says_too_little(explorer.set(mu=2.0, batch=b).data)]
    assert honest == [5, 8], "the page names batch 8 and says that two of twenty say too little"


def test_a_batch_that_says_too_little_holds_a_heavy_sample():
    share = [drift.compute(2.0, b)["share"].max() for b in range(20)]
    assert sorted(range(20), key=lambda b: -share[b])[:2] == [8, 5]
    assert share[8] > 0.5 and drift.compute(2.0, 8)["x"].max() == pytest.approx(4.40, abs=0.005)


@pytest.mark.parametrize("length", [1, 2, 10, 1000])
@pytest.mark.parametrize("spread", [0.01, 0.2])
def test_the_shares_of_answers_and_of_the_mean_both_sum_to_one(length, spread):
    data = product_weight.compute(length, spread)
    tail = 1e-2 if (length, spread) == (1000, 0.2) else 1e-9  # the axis ends at 10^18
    assert data["written"].sum() == pytest.approx(1, abs=tail)
    assert data["carried"].sum() == pytest.approx(1, abs=tail)


def test_median_and_worth_of_an_answer_by_hand():
    two = product_weight.compute(2, 0.2)
    assert two["median"] == pytest.approx(0.96) and two["ess"] == pytest.approx(1000 / 1.04**2)
    long = product_weight.compute(1000, 0.2)
    assert long["median"] == pytest.approx(0.96**500)
    assert long["beyond"] > 0.999


def test_both_tasks_on_the_product_are_open_at_first_and_can_be_done():
    explorer = product_weight.product_weight_explorer()
    assert not product_weight.worth_less_than_one(explorer.data)
    assert product_weight.worth_less_than_one(explorer.set(length=200).data)
    assert product_weight.compute(100, 0.2)["ess"] > 1, "200 is the shortest of the list"
    alive = [
        s
        for s in product_weight.SPREADS
        if product_weight.long_and_alive(explorer.set(length=1000, spread=s).data)
    ]
    assert alive == [0.01, 0.02]
