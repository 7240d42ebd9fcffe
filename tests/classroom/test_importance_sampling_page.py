"""The explorers of the page on importance sampling: their numbers, and that tasks can be done."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import torch

from rlnb.classroom.explorers import product_weight
from rlnb.shipped import data_folder


def test_a_batch_reports_more_than_its_weighted_mean_is_worth():
    """The page says: reported 50 to 70, measured about 15; a very large batch would report 27."""
    for length in range(86, 103):
        data = product_weight.compute(length, 0.2)
        assert 50 < data["reported"] < 70 and 13 < data["worth"] < 19
    sixty = product_weight.compute(92, 0.2)
    assert round(sixty["reported"]) in (60, 61, 62) and round(sixty["ess"]) == 27
    assert round(sixty["worth"]) in (15, 16)
    short = product_weight.compute(20, 0.02)
    assert short["reported"] == pytest.approx(short["ess"], rel=0.01)
    for length in (1, 20, 100, 1000):
        assert 1 <= product_weight.compute(length, 0.2)["reported"] <= 1000


@pytest.mark.parametrize("length", [20, 92])
def test_reported_and_measured_are_those_of_batches_drawn_otherwise(length):
    dice = np.random.default_rng(7)
    heads = dice.binomial(length, 0.5, (2000, 1000))
    log_weight = heads * math.log(1.2) + (length - heads) * math.log(0.8)
    weight = np.exp(log_weight - log_weight.max(1, keepdims=True))
    mean = (weight * heads / length).sum(1) / weight.sum(1)
    data = product_weight.compute(length, 0.2)
    reported = np.median(weight.sum(1) ** 2 / (weight**2).sum(1))
    assert data["reported"] == pytest.approx(reported, rel=0.05)
    assert data["worth"] == pytest.approx(0.24 / length / ((mean - 0.6) ** 2).mean(), rel=0.2)


def test_most_of_the_mean_square_lies_where_a_batch_has_one_answer():
    """And not most of the mean: that is why the formula and a batch part so early."""
    for length in (92, 177):
        data = product_weight.compute(length, 0.2)
        assert data["beyond"] < 0.4 and data["beyond_squared"] > 0.7


def test_divided_by_n_the_batch_is_worth_less_than_one_fresh_answer():
    """Exactly, by counting heads: Var(w f) / 1,000 against Var(f) under today's policy."""
    heads = np.arange(93)
    chance = np.array([math.comb(92, int(k)) for k in heads]) * 0.5**92
    value = 1.2**heads * 0.8 ** (92 - heads) * heads / 92
    variance = chance @ value**2 - (chance @ value) ** 2
    assert chance @ value == pytest.approx(0.6)
    assert 0.1 < (0.24 / 92) / (variance / 1000) < 0.2


def test_one_token_reports_what_its_weights_give():
    """w is 0.8 or 1.2: the middle one of the batches has close to 500 of each."""
    assert product_weight.compute(1, 0.2)["reported"] == pytest.approx(1000 / 1.04, abs=1)


@pytest.mark.parametrize("length", [1, 2, 10, 1000])
@pytest.mark.parametrize("spread", [0.01, 0.2])
def test_the_shares_of_both_policies_sum_to_one(length, spread):
    data = product_weight.compute(length, spread)
    for name in ("old", "today"):
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
    assert (data["old"] > 0.01 * data["old"].max()).sum() > 20
    assert product_weight.compute(1000, 0.2)["half_width"] == 32


def test_both_tasks_on_the_product_are_open_at_first_and_can_be_done():
    explorer = product_weight.product_weight_explorer()
    assert not product_weight.reports_sixty(explorer.data)
    assert product_weight.reports_sixty(explorer.set(length=95).data)
    assert not product_weight.sixty_of_long_answers(explorer.data)
    for length, steps in ((1000, [12]), (850, [13])):
        alive = [
            step
            for step in range(1, 41)
            if product_weight.sixty_of_long_answers(
                explorer.set(length=length, spread=0.005 * step).data
            )
        ]
        assert alive == steps, "0.06 and 0.065: the same T chi^2 as before"


def test_a_moved_axis_is_redrawn_as_from_scratch():
    explorer = product_weight.product_weight_explorer()
    explorer.pixels()
    explorer.set(length=1000, spread=0.02)
    assert (explorer.pixels() == explorer.pixels_from_scratch()).all()


PAGE = Path(__file__).parents[2] / "notebooks" / "04_importance_sampling.ipynb"


@pytest.fixture(scope="module")
def toy():
    """What the page's folded cells define: the three-word policies and their trainers."""
    wanted = (
        "# the toy, folded",
        "# the answer, part 1",
        "# the answer, part 2",
        "# the price, folded, part 1",
        "# the price, folded, part 2",
        "# the price, folded, part 3",
    )
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


def test_both_rules_over_all_old_answers_are_what_listing_them_gives(toy):
    every = torch.cartesian_prod(*[torch.arange(3)] * 4)
    for start in toy.policies[:3]:
        z = (start + 0.3 * start.flip(0)).requires_grad_()
        log_pi, log_old = (toy.log_probability(x, every) for x in (z, start))
        share = log_old.sum(1).exp()
        reward = (every == 1).double().mean(1)
        rho = (log_pi - log_old).exp().detach()
        b = share @ reward
        assert b == pytest.approx(float(toy.earned(start, T=4)))
        for weight, told in (
            (rho, toy.over_all(z.detach(), start, T=4)),
            (torch.ones_like(rho), toy.over_all_ignored(z.detach(), start, T=4)),
        ):
            total = (share * (reward - b)) @ (weight * log_pi).sum(1)
            listed = torch.autograd.grad(total, z, retain_graph=True)[0]
            assert torch.allclose(listed, told)


def test_dividing_by_the_sum_or_a_cap_does_not_rescue_the_whole_answer_ratio(toy):
    """Below the plain whole-answer ratio's 0.55, and so below ratios ignored."""
    toy.rules["divided"] = lambda x: len(x) * x.sum(1, True).softmax(0)
    assert ends(toy, "divided").mean() < 0.5 and ends(toy, "divided", rate=3.0).mean() < 0.45
    for cap in (2.0, 5.0, 30.0, 100.0):
        toy.rules["cap"] = lambda x, cap=cap: x.sum(1, True).exp().clamp(max=cap)
        assert ends(toy, "cap").mean() < 0.5


def test_a_larger_batch_helps_the_product_near_the_old_policy_only(toy):
    told = [
        round(float(toy.in_batches(rule, k, 2, 4096).quantile(0.5)))
        for k in (1, 5)
        for rule in ("whole-answer ratio", "one ratio per token")
    ]
    assert told == [2, 4, 34, 16]


def test_one_heavy_answer_takes_the_ess_from_500_to_240():
    """The recorded batch that falls to 235: its largest |log w| is that of a weight of 26."""
    record = json.loads((data_folder() / "runs/engine_gap.json").read_text())
    batch = record["lags, seed 1"]["1"][3]
    heavy = math.exp(batch["largest answer"])
    assert round(heavy) == 26 and round(512 * batch["effective share"]) == 235
    with_it = (511 + heavy) ** 2 / (511**2 / 500 + heavy**2)
    assert with_it == pytest.approx(240, abs=4)
    middle = sorted(x["effective share"] for i in range(3) for x in record[f"lags, seed {i}"]["8"])[
        6
    ]
    assert round(512 * middle) == 367 and 512 * middle ** (1000 / 28) < 1


def test_smaller_steps_do_not_save_the_whole_answer_weight(toy):
    rules = ("one ratio per token", "ratios ignored", "whole-answer ratio")
    token, ignored, answer = (ends(toy, rule, rate=0.3, steps=133) for rule in rules)
    assert token.mean() > ignored.mean() > answer.mean()
    assert (answer < torch.minimum(token, ignored)).all()
