"""The page on KL: what its explorers compute, what its goals ask for, what its pictures name."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from rlnb.classroom import check
from rlnb.classroom.explorers import kl_leash, kl_pull
from rlnb.classroom.pictures import kl as pictures


def by_autograd(distance: float, estimate: str, place: str, samples: str) -> torch.Tensor:
    """Minus the mean gradient of the penalty in the logits, (3,)."""
    ref, pays = torch.tensor(kl_pull.REFERENCE), torch.tensor(kl_pull.REWARDS)
    x = (ref.log() + distance * pays).requires_grad_()
    log_pi = x.log_softmax(0)
    older = (ref.log() + distance / 2 * pays).log_softmax(0)
    log_q = log_pi.detach() if samples == "fresh" else older
    ell = log_pi - ref.log()
    k = {"k1": ell, "k2": ell**2 / 2, "k3": torch.exp(-ell) - 1 + ell}[estimate]
    rho = (log_pi - log_q).exp() if "ρ" in samples else torch.ones(3)
    rho = rho if samples == "older, ρ differentiated" else rho.detach()
    value = rho.detach() * k.detach() * log_pi if place == "reward" else rho * k
    return -torch.autograd.grad((log_q.exp() * value).sum(), x)[0]


@pytest.mark.parametrize("estimate", kl_pull.ESTIMATES)
@pytest.mark.parametrize("place", kl_pull.PLACES)
@pytest.mark.parametrize("samples", kl_pull.SAMPLES)
@pytest.mark.parametrize("distance", [0.3, 2.0, 4.5])
def test_the_push_is_what_autograd_makes_of_the_penalty(estimate, place, samples, distance):
    push = kl_pull.compute(distance, estimate, place, samples)["push"]
    assert np.allclose(push, by_autograd(distance, estimate, place, samples).numpy(), atol=1e-12)


def test_home_is_downhill_on_the_kl_of_policy_from_reference():
    data = kl_pull.compute(2.5)
    ref = torch.tensor(kl_pull.REFERENCE)
    x = torch.tensor(data["policy"]).log().requires_grad_()
    log_pi = x.log_softmax(0)
    slope = torch.autograd.grad((log_pi.exp() * (log_pi - ref.log())).sum(), x)[0]
    assert np.allclose(data["home"], -slope.numpy(), atol=1e-12)


def test_k1_in_the_loss_has_no_push_on_fresh_samples_and_a_wrong_one_on_old():
    assert np.abs(kl_pull.compute(3.0, "k1")["push"]).max() < 1e-12
    assert kl_pull.compute(3.0, "k1", samples="older")["rate"] < -0.5


def settings(explorer, distances):
    """Every setting that the explorer of the pushes offers, at some distances."""
    menus = [
        {name: value}
        for name, control in explorer.controls.items()
        if name != "distance"
        for _, value in control.options
    ]
    names = [name for name in explorer.controls if name != "distance"]
    values = [[m[name] for m in menus if name in m] for name in names]
    for distance in distances:
        for chosen in itertools.product(*values):
            yield {"distance": distance, **dict(zip(names, chosen, strict=True))}


def reached(explorer, goal, distances=(0.0, 0.3, 1.0, 3.0, 5.0)):
    assert not goal(explorer.data), "open at the start"
    found = [s for s in settings(explorer, distances) if goal(kl_pull.compute(**s))]
    return {tuple(v for name, v in s.items() if name != "distance") for s in found}


def test_only_k3_in_the_reward_reads_right_and_raises_the_kl_and_only_far_away_on_this_road():
    explorer, goal = kl_pull.kl_pull_explorer(), kl_pull.right_and_rising
    assert reached(explorer, goal) == {("k3", "reward")}
    far = [d for d in range(51) if goal(kl_pull.compute(d / 10, "k3", "reward"))]
    assert far == list(range(43, 51))
    near = [kl_pull.compute(d / 10, "k3", "reward")["rate"] for d in range(1, 43)]
    assert 0 < min(near) and max(near) < 0.12


def test_near_the_reference_only_k2_and_k3_in_the_reward_are_weak():
    explorer, goal = kl_pull.kl_pull_explorer(), kl_pull.never_negative_and_weak
    assert reached(explorer, goal) == {("k2", "reward"), ("k3", "reward")}
    assert round(kl_pull.compute(0.5, "k3", "reward")["rate"], 2) == 0.04
    assert round(kl_pull.compute(0.5, "k3", "loss")["rate"], 2) == 0.96


@pytest.mark.parametrize("estimate", kl_pull.ESTIMATES)
@pytest.mark.parametrize("place", kl_pull.PLACES)
def test_the_rate_is_how_fast_the_kl_falls_along_the_push(estimate, place):
    """By a small step on the logits, along the penalty's push and along the right one."""
    data = kl_pull.compute(4.5, estimate, place)

    def after(push):
        x = np.log(data["policy"]) + 1e-6 * push
        p = np.exp(x) / np.exp(x).sum()
        return data["kl"] - p @ np.log(p / kl_pull.REFERENCE)

    assert math.isclose(data["rate"], after(data["push"]) / after(data["home"]), abs_tol=1e-4)


@pytest.mark.parametrize("distance", [0.5, 2.0, 5.0])
def test_the_bold_ring_goes_through_the_policy_and_keeps_its_kl(distance):
    data = kl_pull.compute(distance)
    points = kl_pull.ring(data["kl"])
    points = points[~np.isnan(points[:, 0])]
    kl = (points * np.log(points / kl_pull.REFERENCE)).sum(1)
    assert np.allclose(kl, data["kl"], atol=1e-9)
    assert np.abs(points - data["policy"]).sum(1).min() < 0.05


def test_k3_in_the_reward_is_one_kl_minus_the_other():
    for distance in (0.5, 3.0, 5.0):
        reward, loss, home = (
            kl_pull.compute(distance, k, place)["push"]
            for k, place in (("k3", "reward"), ("k3", "loss"), ("k2", "loss"))
        )
        assert np.allclose(reward, home - loss, atol=1e-12)


def test_near_the_reference_k3_in_the_loss_pushes_nearly_right():
    assert abs(kl_pull.compute(0.2, "k3")["rate"] - 1) < 0.02
    assert abs(kl_pull.compute(3.0, "k3")["rate"] - 1) > 0.1


def test_on_old_samples_value_and_gradient_are_right_if_rho_is_differentiated():
    explorer = kl_pull.kl_pull_explorer(old=True)
    full = "older, ρ differentiated"

    def both_right(data):
        return data["samples"] != "fresh" and kl_pull.reads_right(data) and data["right"]

    assert reached(explorer, both_right) == {("k1", full), ("k3", full)}
    # right gradient, but another value
    near = kl_pull.compute(3.0, "k2", samples="older, ρ constant")
    assert near["right"] and not kl_pull.reads_right(near)


@pytest.mark.parametrize("distance", [1.0, 4.0])
def test_three_spellings_of_one_push_on_old_samples(distance):
    ways = (
        ("k2", "loss", "older, ρ constant"),
        ("k3", "loss", "older, ρ differentiated"),
        ("k1", "reward", "older, ρ constant"),
    )
    pushes = [kl_pull.compute(distance, *way)["push"] for way in ways]
    assert np.allclose(pushes, kl_pull.compute(distance)["home"], atol=1e-12)


def test_the_lines_under_the_explorers_are_not_cut():
    leash = kl_leash.kl_leash_explorer()
    for old in (False, True):
        for s in settings(kl_pull.kl_pull_explorer(old), (0.0, 3.0, 5.0)):
            assert len(kl_pull.readout(kl_pull.compute(**s))) <= 120
    for reward in kl_leash.REWARDS:
        for beta in (0.01, 0.2, 1.0):
            assert len(kl_leash.readout(kl_leash.compute(beta, 1e-6, reward))) <= 120
    assert "does not hold" in leash.set(reward=kl_leash.REWARDS[1]).line.value


def test_the_goal_of_beta_is_open_at_the_start_and_can_be_reached():
    explorer = kl_leash.kl_leash_explorer()
    assert not kl_leash.k3_holds_lower(explorer.data)
    assert kl_leash.k3_holds_lower(explorer.set(beta=0.08).data)


def test_over_the_std_the_kl_holds_a_rare_answer_from_a_beta_of_0213_on():
    """Below that its share of the push tops out under 1, and the climb goes on."""
    over = {"start": 1e-4, "reward": kl_leash.REWARDS[1]}
    assert kl_leash.compute(0.212, **over)["reverse"] == 1.0
    assert 0.4 < kl_leash.compute(0.213, **over)["reverse"] < 0.7


def test_roads_away_begin_with_the_quieter_k3_and_cross_at_no_common_kl():
    roads = pictures.roads_away(references=2)
    crossed = {name: [x[y > 1][0].item() for x, y in some] for name, some in roads.items()}
    assert all(y[0] < 1 for some in roads.values() for _, y in some)
    sharp, _, flat = crossed.values()
    assert max(sharp) < 0.2 and min(flat) > 0.63


def test_the_push_starts_where_the_tables_of_the_page_stand():
    assert round(kl_pull.kl_pull_explorer(old=True).data["kl"], 4) == 0.66


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


@pytest.mark.parametrize("beta", [0.04, 0.2, 0.22, 0.5, 1.0])
@pytest.mark.parametrize("start", [1e-6, 1e-4, 0.1])
def test_over_the_std_a_climb_ends_where_the_explorer_says(beta, start):
    """Found again on a fine grid: the first place at which a penalty takes all of the push."""
    d = kl_leash.compute(beta, start, kl_leash.REWARDS[1])
    before = math.log(start / (1 - start))
    x = np.linspace(before, 16, 200_001)
    p = 1 / (1 + np.exp(-x))
    for name, pull in (("reverse", (x - before) * p * (1 - p)), ("k3", p - start)):
        held = np.flatnonzero(beta * pull >= np.sqrt(p * (1 - p)))
        if len(held):
            assert math.isclose(d[name], p[held[0]], abs_tol=1e-4)
        else:
            assert d[name] == 1.0


@pytest.mark.parametrize("beta", [0.04, 0.2])
def test_with_the_std_of_the_group_k3_balances_at_one_over_one_plus_beta_squared(beta):
    d = kl_leash.compute(beta, reward=kl_leash.REWARDS[1])
    assert math.isclose(d["k3"], 1 / (1 + beta**2), rel_tol=1e-4)


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


def test_far_away_a_typical_batch_misses_the_answer_that_carries_k3():
    """Of 16 answers at a distance of 5: how often none pays 0, and what k3 then reads."""
    p = kl_pull.compute(5.0)["policy"]
    ell = np.log(p / kl_pull.REFERENCE)
    k3 = np.expm1(-ell) + ell
    assert round(p[2], 2) == 0.03 and round((1 - p[2]) ** 16, 2) == 0.6
    assert round(p[:2] @ k3[:2] / (1 - p[2]), 2) == 0.97 and round(p @ ell, 2) == 1.41


def test_a_fixed_price_leads_past_the_reference_as_its_formula_says():
    """E_old[rho l_old] is KL(pi || ref) - KL(pi || old); at old the gradient is that of the KL."""
    old = torch.tensor(kl_pull.compute(3.0)["policy"])
    ref = torch.tensor(kl_pull.REFERENCE)
    x = torch.tensor([0.3, -0.2, 0.9], dtype=torch.float64)
    pi = x.softmax(0)
    price = (old / ref).log()
    rho = pi / old
    both = (pi * (pi / ref).log()).sum() - (pi * (pi / old).log()).sum()
    assert math.isclose(old @ (rho * price), both, abs_tol=1e-12)
    at_old = old * (price - old @ price)
    assert np.allclose(-at_old.numpy(), kl_pull.compute(3.0)["home"], atol=1e-12)


def test_the_noise_of_a_reward_s_kl_is_beta_root_kl_of_the_reward_s_own():
    """2,000 answers of 400 tokens, drawn; each token nearer than 0.02 nats to the reference."""
    dice = np.random.default_rng(0)
    p = kl_pull.compute(0.5)["policy"]
    ell = np.log(p / kl_pull.REFERENCE)
    y = dice.choice(3, size=(2000, 400), p=p)
    score = np.eye(3)[y] - p  # (answers, tokens, 3)
    later = np.cumsum((ell[y] - p @ ell)[:, ::-1], axis=1)[:, ::-1]
    penalty = (score * later[..., None]).sum(1).var(0).sum()
    reward = (score * dice.choice((-1, 1), size=2000)[:, None, None]).sum(1).var(0).sum()
    assert math.isclose((penalty / reward) ** 0.5, (400 * p @ ell) ** 0.5, rel_tol=0.06)


def test_the_tree_says_what_follows_each_first_word():
    alt = pictures.styles([(0.4, 0.5, 0.02), (0.6, 0.5, 0.0)], 1000).alt
    assert "word 0: chance 0.40, under the reference 0.50, then 1,000 tokens at 0.02" in alt
