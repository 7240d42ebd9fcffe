"""The explorers of the page on importance sampling: their numbers, and that tasks can be done."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import torch

from rlnb.classroom.explorers import product_weight


def test_a_batch_cannot_see_the_heavy_answers_that_it_lacks():
    """The page says 60 where the formula gives 24, and 16 where it gives less than one."""
    sixty, less = product_weight.compute(95, 0.2), product_weight.compute(177, 0.2)
    assert 55 < sixty["reported"] < 65 and round(sixty["ess"]) == 24
    assert less["ess"] < 1 < product_weight.compute(176, 0.2)["ess"]
    assert round(less["reported"]) == 16
    short = product_weight.compute(20, 0.02)
    assert short["reported"] == pytest.approx(short["ess"], rel=0.01)
    for length in (1, 20, 100, 1000):
        assert 1 <= product_weight.compute(length, 0.2)["reported"] <= 1000


def test_most_of_the_mean_square_lies_where_a_batch_has_one_answer():
    """And not most of the mean: that is why the formula and a batch part so early."""
    for length in (95, 177):
        data = product_weight.compute(length, 0.2)
        assert data["beyond"] < 0.4 and data["beyond_squared"] > 0.75


def test_what_a_cap_of_two_keeps_of_the_mean_weight():
    for length, kept in ((20, "0.85"), (100, "0.43"), (1000, "0.002")):
        ups = torch.arange(length + 1, dtype=torch.float64)
        size = torch.tensor(float(length), dtype=torch.float64)
        chance = torch.lgamma(size + 1) - torch.lgamma(ups + 1) - torch.lgamma(size - ups + 1)
        chance = (chance - size * math.log(2)).exp()
        weight = (ups * math.log(1.2) + (size - ups) * math.log(0.8)).exp()
        assert chance @ weight == pytest.approx(1)
        assert f"{chance @ weight.clamp(max=2):.2g}" == kept


def test_dividing_by_the_sum_takes_away_most_of_the_noise_of_the_first_pictures():
    """The page says 122 of 1,000 for the mean over n, 462 for the one over the sum of w."""
    old, new = torch.tensor([[0.1, 0.4, 0.2, 0.3], [0.4, 0.1, 0.3, 0.2]], dtype=torch.float64)
    reward = torch.tensor([1.0, 0.0, 0.5, 0.0], dtype=torch.float64)
    dice = torch.Generator().manual_seed(0)
    drawn = torch.multinomial(old, 4_000_000, replacement=True, generator=dice).view(4000, 1000)
    weight, paid = (new / old)[drawn], reward[drawn]
    plain = new @ reward**2 - (new @ reward) ** 2  # the variance of one fresh answer
    by_n = plain / (weight * paid).mean(1).var()
    by_sum = plain / ((weight * paid).sum(1) / weight.sum(1)).var()
    assert by_n == pytest.approx(122, rel=0.1) and by_sum == pytest.approx(462, rel=0.1)


def test_one_token_reports_what_its_weights_give():
    """w is 0.8 or 1.2: the middle of 51 batches has close to 500 of each."""
    assert product_weight.compute(1, 0.2)["reported"] == pytest.approx(1000 / 1.04, abs=1)


@pytest.mark.parametrize("length", [1, 2, 10, 1000])
@pytest.mark.parametrize("spread", [0.01, 0.2])
def test_the_shares_of_answers_and_of_both_means_sum_to_one(length, spread):
    data = product_weight.compute(length, spread)
    for name in ("written", "carried", "squared"):
        assert data[name].sum() == pytest.approx(1, abs=1e-2), name  # the axis ends at 10^32


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
    assert product_weight.compute(1000, 0.2)["half_width"] == 32


def test_both_tasks_on_the_product_are_open_at_first_and_can_be_done():
    explorer = product_weight.product_weight_explorer()
    assert not product_weight.reports_sixty(explorer.data)
    assert product_weight.reports_sixty(explorer.set(length=95).data)
    assert 15 < explorer.data["ess"] < 40
    assert not product_weight.half_of_long_answers(explorer.set(length=1000, spread=0.1).data)
    for length, steps in ((1000, [5]), (800, [6])):
        alive = [
            step
            for step in range(1, 41)
            if product_weight.half_of_long_answers(
                explorer.set(length=length, spread=0.005 * step).data
            )
        ]
        assert alive == steps, "0.025 and 0.03: half is left when T chi^2 is near ln 2"


def test_a_moved_axis_is_redrawn_as_from_scratch():
    explorer = product_weight.product_weight_explorer()
    explorer.pixels()
    explorer.set(length=1000, spread=0.02)
    assert (explorer.pixels() == explorer.pixels_from_scratch()).all()


PAGE = Path(__file__).parents[2] / "notebooks" / "04_importance_sampling.ipynb"


@pytest.fixture(scope="module")
def toy():
    """What the page's folded cells define: the three-word policies and their trainers."""
    wanted = ("# the toy, folded", "# the answer, part 1", "# the price, folded, part 1")
    names = {"torch": torch}
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    for cell in nbformat.read(PAGE, as_version=4).cells:
        if cell.cell_type == "code" and cell.source.startswith(wanted):
            exec(cell.source, names)
    yield SimpleNamespace(**names)
    torch.set_default_dtype(before)


def ends(toy, rule: str, answers: int = 64, rate: float = 1.0, steps: int = 40) -> torch.Tensor:
    """What the 20 policies earn after all steps on one batch."""
    found = []
    for i, start in enumerate(toy.policies):
        y, z = toy.written(start, i, n=answers), start
        for _ in range(steps):
            z = z + rate * toy.gradient(z, start, y, rule, (y == 1).double().mean())
        found.append(toy.earned(z))
    return torch.stack(found)


def test_the_token_rule_over_all_answers_is_what_listing_them_gives(toy):
    every = torch.cartesian_prod(*[torch.arange(3)] * 4)
    for start in toy.policies[:3]:
        z = (start + 0.3 * start.flip(0)).requires_grad_()
        log_pi, log_old = (toy.log_probability(x, every) for x in (z, start))
        share = log_old.sum(1).exp()
        reward = (every == 1).double().mean(1)
        rho = (log_pi - log_old).exp().detach()
        listed = torch.autograd.grad((share * reward) @ (rho * log_pi).sum(1), z)[0]
        assert torch.allclose(listed, toy.over_all(z.detach(), start, T=4))


def test_more_answers_cure_the_noise_of_self_normalising_and_not_the_bias_of_a_cap(toy):
    capped, normed = (
        ends(toy, f"whole answer, {how}", answers=512) for how in ("capped at 2", "divided by Σw")
    )
    best = torch.stack(
        [(toy.written(z, i, n=512) == 1).double().mean(1).max() for i, z in enumerate(toy.policies)]
    )
    told = [round(float(x.mean()), 2) for x in (capped, normed, best)]
    assert told == [0.44, 0.52, 0.54]


def test_smaller_steps_do_not_save_the_whole_answer_weight(toy):
    rules = ("one ratio per token", "ratios ignored", "whole-answer ratio")
    token, ignored, answer = (ends(toy, rule, rate=0.3, steps=133) for rule in rules)
    assert [round(float(x.mean()), 2) for x in (token, ignored)] == [0.82, 0.72]
    assert (answer < torch.minimum(token, ignored)).all()
