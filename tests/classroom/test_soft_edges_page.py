"""The lesson on CISPO, SAPO and DPPO: weights, explorers, and tasks with a dead end and a way."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rlnb import check
from rlnb.classroom.explorers import four_edges, many_updates
from rlnb.classroom.pictures import soft_edges
from rlnb.objective import cispo, clip, divergence_mask, ratio, sapo
from rlnb.toys import running_group

PARTS = {
    "no clip": (ratio(), None),
    "PPO": (clip(0.2), None),
    "CISPO": (cispo(5.0), None),
    "SAPO": (sapo(), None),
    "DPPO": (ratio(), divergence_mask(0.15)),
}
PLACES = np.array([0.1, 0.5, 0.79, 0.81, 1.0, 1.19, 1.21, 2.0, 3.5, 4.9, 5.1, 6.5])
MARKS = [(old, r, s) for old in four_edges.OLD for r in four_edges.SEEN for s in ("good", "bad")]
TRIED = [
    many_updates.compute(start, rate, updates)
    for start in many_updates.STARTS
    for rate in many_updates.RATES
    for updates in (1, 2, 8, 10, 15, 20, 30)
]


@pytest.mark.parametrize("old", [0.0001, 0.1, 0.5])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", PARTS)
def test_the_weight_is_autograd_s(name, sign, old):
    surrogate, mask = PARTS[name]
    before = torch.full((len(PLACES),), old, dtype=torch.float64).log()
    logp = (before + torch.tensor(PLACES).log()).requires_grad_()
    token = SimpleNamespace(logprobs=logp, anchor_logprobs=before)
    A = torch.full_like(before, sign)
    value = surrogate(token, A, logp - before)
    if mask is not None:
        value = value * mask(token, A, logp - before)
    (slope,) = torch.autograd.grad(value.sum(), logp)
    drawn = soft_edges.weights(PLACES, sign, old)[name]
    np.testing.assert_allclose(drawn, sign * slope.numpy(), rtol=0, atol=1e-12)


def test_at_ratio_one_all_weights_are_one():
    for old in four_edges.OLD:
        for sign in ("good", "bad"):
            at = four_edges.compute(old, 1.0, sign)["at"]
            assert list(at.values()) == pytest.approx([1.0] * 4)


def test_only_a_rare_good_token_gets_more_from_dppo_than_the_cap():
    done = [m for m in MARKS if four_edges.dppo_beyond_the_cap(four_edges.compute(*m))]
    assert done and all(sign == "good" and r > 5 for _, r, sign in done)
    assert {old for old, _, _ in done} == {0.0001, 0.01}
    bad = four_edges.compute(0.99, 0.82, "bad")["at"]
    assert bad["DPPO"] == 0 < bad["PPO"]


def test_sapo_lets_go_of_bad_tokens_that_rose_and_of_no_other():
    done = [m for m in MARKS if four_edges.sapo_lets_go(four_edges.compute(*m))]
    assert done and all(sign == "bad" and r >= 3.75 for _, r, sign in done)
    assert {old for old, _, _ in done} == {0.0001, 0.01, 0.05, 0.1, 0.2}


def test_only_a_large_rate_carries_a_rare_token_far_under_ppo():
    done = [data for data in TRIED if data["start"] <= 0.01 and data["end"]["PPO"] > 0.1]
    assert done and all(data["rate"] >= 3 for data in done)
    assert any(data["updates"] == 1 for data in done)


def test_the_rules_agree_on_a_token_whose_ratio_stays_near_one():
    ends = many_updates.compute(0.5, 0.05, 10)["end"].values()
    assert min(ends) - 0.5 >= 0.05 and max(ends) - min(ends) < 0.005
    for data in TRIED:
        ends = data["end"].values()
        far = data["updates"] >= 10 and min(ends) - data["start"] >= 0.05
        if far and max(ends) - min(ends) < 0.005:
            assert data["start"] >= 0.3


def test_a_cliff_bounds_no_single_step_and_a_cap_no_policy():
    start = many_updates.compute()
    assert not many_updates.dppo_lands(start) and not many_updates.cispo_ahead(start)
    landed = {data["rate"] for data in TRIED if many_updates.dppo_lands(data)}
    assert landed == {0.05, 0.5, 3.0}  # smaller and larger than the picture's 0.2
    ahead = [
        n for n in range(1, 31) if many_updates.cispo_ahead(many_updates.compute(0.01, 0.2, n))
    ]
    assert ahead == list(range(12, 31))


def test_the_two_tokens_of_the_page():
    rare = many_updates.compute(0.01, 0.2, 8)["end"]
    assert rare["PPO"] == pytest.approx(0.0122, abs=5e-5)
    assert rare["SAPO"] < 0.06 < rare["CISPO"] < 0.5 < rare["DPPO"]
    assert len(set(many_updates.compute(0.01, 0.2, 8)["path"]["PPO"][1:])) == 1
    common = many_updates.compute(0.5, 0.2, 8)["end"].values()
    assert 0.62 < min(common) and max(common) < 0.69


def test_an_impossible_token_says_so():
    data = four_edges.compute(0.9, 2.0)
    assert not data["possible"] and "not possible" in four_edges.readout(data)
    assert not four_edges.dppo_beyond_the_cap(data)


def test_the_explorers_say_their_numbers_in_a_line():
    edges = four_edges.four_edges_explorer().set(old=0.1, ratio=2.0)
    assert "0.1 → 0.2" in edges.line.value and "SAPO 1.57" in edges.line.value
    updates = many_updates.many_updates_explorer().set(rate=3.0)
    assert updates.line.value == many_updates.readout(updates.data)


@pytest.mark.parametrize(
    "make", [four_edges.four_edges_explorer, many_updates.many_updates_explorer]
)
def test_an_explorer_is_redrawn_as_if_it_were_new(make):
    explorer = make()
    name, control = next(iter(explorer.controls.items()))
    explorer.set(**{name: control.options[-1][1] if control.options else control.max})
    np.testing.assert_array_equal(explorer.pixels(), explorer.pixels_from_scratch())


def test_the_pictures_draw_and_say_what_is_seen():
    runs = torch.tensor([[0.8, 0.82], [0.9, 0.92]])
    drawn = (
        soft_edges.climbs({"no clip": [[0.01, 0.9], [0.5, 0.6]]}, "c"),
        soft_edges.weight_curves("PPO", "SAPO", caption="c"),
        soft_edges.edge_map(running_group()),
        soft_edges.race((1, 2), {"a": {"PPO": runs}, "b": {"PPO": runs}}, "c"),
        soft_edges.tightness({"PPO": runs, "CISPO, cap 1": runs}, "c"),
        soft_edges.masks({"a": {"DPPO": runs}, "b": {"DPPO": runs}}, "c"),
    )
    for picture in drawn:
        assert picture.png.startswith(b"\x89PNG") and len(picture.alt) > 60
    assert "0.91" in drawn[-1].alt


def test_the_shapes_of_the_exercises_are_known_mistakes():
    """CISPO without the stop-gradient, and a mask that does not ask for the direction."""

    def forgotten(logprobs, old_logprobs, mask, advantages, cap):
        lp, old = (torch.where(mask, x, 0.0) for x in (logprobs, old_logprobs))
        worth = (lp - old).exp().clamp(max=cap) * advantages[:, None] * lp
        return -torch.where(mask, worth, 0.0).sum() / mask.sum()

    def blind(logprobs, old_logprobs, advantages, low, high):
        far = (logprobs.exp() - old_logprobs.exp()).abs()
        return torch.where(advantages > 0, far <= high, far <= low)

    assert "detach" in str(check.cispo_loss(forgotten))
    assert "direction" in str(check.dppo_mask(blind))


def test_the_objective_behind_the_capped_weight():
    ratio = torch.tensor([0.5, 2.0, 4.9, 5.1, 20.0], dtype=torch.float64).log().requires_grad_()
    rho, c = ratio.exp(), 5.0
    objective = torch.where(rho < c, rho, c * (1 + (rho / c).log()))
    (slope,) = torch.autograd.grad(objective.sum(), ratio)
    torch.testing.assert_close(slope, rho.detach().clamp(max=c))
