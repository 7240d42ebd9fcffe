"""The page on KL: what its explorers compute, what its goals ask for, what its pictures name."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rlnb.classroom import check
from rlnb.classroom.explorers import kl_leash, kl_pull
from rlnb.classroom.pictures import kl as pictures


def by_autograd(distance: float, form: str, samples: str) -> torch.Tensor:
    """Minus the mean gradient of the penalty in the logits, (3,)."""
    ref, pays = torch.tensor(kl_pull.REFERENCE), torch.tensor(kl_pull.REWARDS)
    x = (ref.log() + distance * pays).requires_grad_()
    log_pi = x.log_softmax(0)
    older = (ref.log() + distance / 2 * pays).log_softmax(0)
    log_q = log_pi.detach() if samples == "fresh" else older
    ell = log_pi - ref.log()
    kind, place = form.split()
    k = {"k1": ell, "k2": ell**2 / 2, "k3": torch.exp(-ell) - 1 + ell}[kind]
    weighted = samples in ("old, constant", "old, full")
    rho = (log_pi - log_q).exp() if weighted else torch.ones(3)
    rho = rho if samples == "old, full" else rho.detach()
    value = rho.detach() * k.detach() * log_pi if place == "reward" else rho * k
    return -torch.autograd.grad((log_q.exp() * value).sum(), x)[0]


@pytest.mark.parametrize("form", kl_pull.FORMS)
@pytest.mark.parametrize("samples", kl_pull.SAMPLES)
@pytest.mark.parametrize("distance", [0.3, 2.0, 4.5])
def test_the_push_is_what_autograd_makes_of_the_penalty(form, samples, distance):
    push = kl_pull.compute(distance, form, samples)["push"]
    assert np.allclose(push, by_autograd(distance, form, samples).numpy(), atol=1e-12)


def test_home_is_downhill_on_the_kl_of_policy_from_reference():
    data = kl_pull.compute(2.5)
    ref = torch.tensor(kl_pull.REFERENCE)
    x = torch.tensor(data["policy"]).log().requires_grad_()
    log_pi = x.log_softmax(0)
    slope = torch.autograd.grad((log_pi.exp() * (log_pi - ref.log())).sum(), x)[0]
    assert np.allclose(data["home"], -slope.numpy(), atol=1e-12)


def test_k1_in_the_loss_has_no_push_on_fresh_samples_and_a_wrong_one_on_old():
    assert math.isnan(kl_pull.compute(3.0, "k1 loss")["angle"])
    assert kl_pull.compute(3.0, "k1 loss", "old")["angle"] > 150


def solved(explorer, goal, **settings) -> bool:
    assert not goal(explorer.data)
    return goal(explorer.set(**settings).data)


def test_each_goal_of_the_push_is_open_at_the_start_and_can_be_reached():
    explorer = kl_pull.kl_pull_explorer
    assert solved(explorer(), kl_pull.nearly_downhill, distance=0.6)
    assert solved(explorer(), kl_pull.far_and_downhill, form="k2 loss")
    assert solved(explorer(), kl_pull.far_and_downhill, form="k1 reward", distance=5.0)
    full = {"samples": "old, full"}
    assert solved(explorer(), kl_pull.home_with_full, form="k3 loss", **full)
    assert solved(explorer(), kl_pull.home_with_full, form="k1 loss", **full)


def test_the_near_misses_of_the_push_do_not_count():
    assert kl_pull.compute(2.0, "k2 loss", "old, constant")["angle"] < 0.01  # the fold says so
    for form in ("k1 loss", "k2 loss", "k3 loss"):
        assert not kl_pull.home_with_full(kl_pull.compute(2.0, form, "old, constant"))
    for form in ("k2 loss", "k1 reward"):
        assert not kl_pull.home_with_full(kl_pull.compute(2.0, form, "old, full"))
    assert not kl_pull.home_with_full(kl_pull.compute(0.0, "k3 loss", "old, full"))
    assert not kl_pull.nearly_downhill(kl_pull.compute(0.7, "k3 loss"))
    assert not kl_pull.nearly_downhill(kl_pull.compute(0.6, "k2 loss"))
    assert not kl_pull.far_and_downhill(kl_pull.compute(2.9, "k2 loss"))
    assert not kl_pull.far_and_downhill(kl_pull.compute(4.0, "k1 loss"))


def test_the_goal_of_beta_is_open_at_the_start_and_can_be_reached():
    explorer = kl_leash.kl_leash_explorer
    assert solved(explorer(), kl_leash.k3_holds_lower, beta=0.08)


def test_roads_away_begin_with_the_quieter_k3_and_cross_at_no_common_kl():
    roads = pictures.roads_away(references=2)
    crossed = {name: [x[y > 1][0].item() for x, y in some] for name, some in roads.items()}
    assert all(y[0] < 1 for some in roads.values() for _, y in some)
    sharp, _, flat = crossed.values()
    assert max(sharp) < 0.2 and min(flat) > 0.63


def test_the_push_starts_where_the_tables_of_the_page_stand():
    data = kl_pull.kl_pull_explorer().set(form="k1 loss", samples="old").data
    assert round(data["angle"]) == 167 and round(kl_pull.compute()["kl"], 4) == 0.66


def test_k3_holds_lower_up_to_a_beta_of_eight_hundredths():
    lower = [b for b in range(1, 101) if kl_leash.k3_holds_lower(kl_leash.compute(b / 100))]
    assert lower == list(range(1, 9))


@pytest.mark.parametrize("beta", [0.04, 0.2, 0.7])
def test_resting_points_are_where_the_pushes_cancel(beta):
    d = kl_leash.compute(beta, 1e-3)
    p = d["k3"]
    assert math.isclose(p * (1 - p), beta * (p - 1e-3), abs_tol=1e-12)
    moved = math.log(d["reverse"] / (1 - d["reverse"])) - math.log(1e-3 / (1 - 1e-3))
    assert math.isclose(moved, 1 / beta, rel_tol=1e-5)


@pytest.mark.parametrize("beta", [0.04, 0.2])
def test_with_the_std_of_the_group_the_balance_is_at_one_over_one_plus_beta_squared(beta):
    p = 1 / (1 + beta**2)
    assert math.isclose(math.sqrt(p * (1 - p)), beta * p, rel_tol=1e-12)


def test_the_slope_that_is_asked_for_gives_both_kls_and_its_shifts_are_named():
    ref = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    x = torch.tensor([0.9, -0.4, 0.1], dtype=torch.float64).requires_grad_()
    log_pi = x.log_softmax(0)
    ell = log_pi - ref.log()
    both = (log_pi.exp() * ell).sum() - (ref * ell).sum()
    (true,) = torch.autograd.grad(both, x, retain_graph=True)
    slope = check.kl_slope.exercise.reference(ell.detach())
    (mine,) = torch.autograd.grad((log_pi.exp().detach() * slope * log_pi).sum(), x)
    assert torch.allclose(mine, true, atol=1e-12)
    assert check.kl_slope(lambda ell: ell + 1 - torch.exp(-ell)).kind == "right"
    for off in (0, 2):
        verdict = check.kl_slope(lambda ell, off=off: ell + off - torch.exp(-ell))
        assert verdict.kind == "known mistake" and "must be 0" in verdict.message


def test_one_bell_sits_on_a_peak_in_one_direction_and_over_both_in_the_other():
    told = pictures.two_directions().alt
    assert "at 2.98, width 1.02" in told and "at 0.00, width 3.16" in told
