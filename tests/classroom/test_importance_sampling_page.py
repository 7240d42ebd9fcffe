"""The explorers of the page on importance sampling: their numbers, and that tasks can be done."""

from __future__ import annotations

import math

import pytest
import torch

from rlnb.classroom.explorers import product_weight


def test_a_batch_cannot_see_the_heavy_answers_that_it_lacks():
    """The page says 16 or 17 where the formula gives less than one."""
    data = product_weight.compute(177, 0.2)
    assert data["ess"] < 1 and round(data["reported"]) in (16, 17)
    short = product_weight.compute(20, 0.02)
    assert short["reported"] == pytest.approx(short["ess"], rel=0.01)
    for length in (1, 20, 100, 1000):
        assert 1 <= product_weight.compute(length, 0.2)["reported"] <= 1000


def test_what_a_kl_of_a_thousandth_of_a_nat_leaves_of_a_thousand_answers():
    """The interview's rule of thumb: chi^2 is about twice the KL, for the coins of the page too."""
    coin = -0.5 * math.log(1.2 * 0.8)
    assert 0.2**2 / coin == pytest.approx(2, rel=0.03)
    assert round(1000 / 1.002**1000) == 136 and 1000 / 1.02**1000 < 1e-4


def test_one_token_reports_what_its_weights_give():
    """w is 0.8 or 1.2: the middle of 51 batches has close to 500 of each."""
    assert product_weight.compute(1, 0.2)["reported"] == pytest.approx(1000 / 1.04, abs=1)


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


def test_a_moved_axis_is_redrawn_as_from_scratch():
    explorer = product_weight.product_weight_explorer()
    explorer.pixels()
    explorer.set(length=1000, spread=0.02)
    assert (explorer.pixels() == explorer.pixels_from_scratch()).all()


def earned(z: torch.Tensor, length: int) -> torch.Tensor:
    """Mean share of word 1 in answers of the page's three-word policy that starts at word 0."""
    chance, total = torch.eye(3, dtype=z.dtype)[0], 0.0
    for _ in range(length):
        chance = chance @ z.softmax(-1)
        total = total + chance[1]
    return total / length


def by_own_ratio(z: torch.Tensor, z_old: torch.Tensor, length: int) -> torch.Tensor:
    """The mean over old answers of sum_t rho_t R grad log pi(y_t), from word to word."""
    old, new = z_old.softmax(-1), z.softmax(-1)
    words = [torch.eye(3, dtype=z.dtype)[0]]
    for _ in range(length - 1):
        words.append(words[-1] @ old)
    value, total = torch.zeros(3, dtype=z.dtype), 0.0
    for word in reversed(words):
        worth = torch.tensor([0.0, 1.0, 0.0], dtype=z.dtype) + value
        total = total + word @ new @ worth
        value = old @ worth
    return total / length


@pytest.mark.parametrize(("length", "told"), [(4, 0.26), (64, 0.32)])
def test_the_error_of_one_ratio_per_token_grows_little_with_the_length(length, told):
    errors = []
    for seed in range(20):
        dice = torch.Generator().manual_seed(seed)
        draw = torch.randn(2, 3, 3, generator=dice, dtype=torch.float64)
        z_old, z = draw[0], (draw[0] + 0.5 * draw[1]).requires_grad_()
        (right,) = torch.autograd.grad(earned(z, length), z)
        (got,) = torch.autograd.grad(by_own_ratio(z, z_old, length), z)
        errors.append((got - right).norm() / right.norm())
    assert round(torch.stack(errors).quantile(0.5).item(), 2) == told
