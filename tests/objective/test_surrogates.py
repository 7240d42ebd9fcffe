"""What a token is worth: value and slope of each surrogate at known ratios."""

from __future__ import annotations

import math

import pytest
import torch
from worked import worked_batch

from rlnb.objective import (
    Batch,
    Objective,
    cispo,
    clip,
    group_center,
    kl_cov,
    logprob,
    product,
    ratio,
    raw_reward,
    sapo,
    token_mean,
    token_sum,
    vespo,
)


def slope(surrogate, rho, A):
    """d value / d log pi at one token with ratio rho."""
    lp = torch.tensor([[math.log(rho) - 3]], dtype=torch.float64, requires_grad=True)
    batch = worked_batch().replace(logprobs=lp)
    value = surrogate(batch, torch.tensor([[A]], dtype=torch.float64), lp + 3)
    return torch.autograd.grad(value.sum(), lp)[0].item()


SIGNS = torch.tensor([1.0, -1.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("rho", "a", "value", "slope"),
    [
        (1.5, 1.0, 1.2, 0.0),
        (0.5, 1.0, 0.5, 1.0),
        (1.5, -1.0, -1.5, -1.0),
        (0.5, -1.0, -0.8, 0.0),
        (1.1, 1.0, 1.1, 1.0),
        (0.9, -1.0, -0.9, -1.0),
        (0.1, -1.0, -0.8, 0.0),
        (100.0, -1.0, -100.0, -1.0),
    ],
)
def test_min_kills_only_the_improving_side(rho, a, value, slope):
    r = torch.tensor([[rho]], requires_grad=True)
    got = clip(0.2)(None, torch.tensor([[a]]), r.log())
    got.sum().backward()
    assert got.item() == pytest.approx(value)
    assert r.grad.item() == pytest.approx(slope)


def test_dual_clip_stops_the_bad_token_that_rose():
    r = torch.tensor([[4.0, 2.0, 4.0]], requires_grad=True)
    got = clip(0.2, dual=3.0)(None, torch.tensor([[-1.0, -1.0, 1.0]]), r.log())
    got.sum().backward()
    assert got[0].tolist() == pytest.approx([-3.0, -2.0, 1.2])
    assert r.grad[0].tolist() == pytest.approx([0.0, -1.0, 0.0])


def test_clip_higher_moves_only_the_upper_edge():
    r = torch.tensor([[1.25, 1.25, 0.75]], requires_grad=True)
    clip(0.2, high=0.28)(None, torch.tensor([[1.0, -1.0, -1.0]]), r.log()).sum().backward()
    assert r.grad[0].tolist() == [1.0, -1.0, 0.0]


def test_on_policy_every_ratio_surrogate_has_reinforces_gradient():
    torch.manual_seed(0)
    lp = (-torch.rand(4, 5)).requires_grad_()
    batch = Batch(lp, torch.ones(4, 5), torch.tensor([1.0, 0.0, 0.0, 1.0]), 2)
    grads = [
        torch.autograd.grad(Objective(group_center(), s, token_mean)(batch).loss, lp)[0]
        for s in (logprob(), clip(0.2), clip(3e-4, high=4e-4, dual=3.0))
    ]
    assert torch.equal(grads[0], grads[1]) and torch.equal(grads[1], grads[2])


@pytest.mark.parametrize(
    ("tau", "rho", "weight"),
    [
        (1.0, 0.5, 0.5 * 0.940015),
        (1.0, 1.0, 1.0),
        (1.0, 1.4, 1.4 * 0.961043),
        (1.0, 2.0, 2 * 0.786448),
        (1.05, 0.5, 0.5 * 0.934140),
        (1.05, 1.4, 1.4 * 0.957165),
        (1.05, 2.0, 2 * 0.768110),
    ],
)
def test_sapo_gate_at_known_ratios(tau, rho, weight):
    A = 1.0 if tau == 1.0 else -1.0
    assert slope(sapo(), rho, A) == pytest.approx(weight * A, abs=2e-6)


def test_sapo_peaks_above_one():
    weights = {rho: slope(sapo(), rho, 1.0) for rho in (2.00, 2.0601, 2.12)}
    assert max(weights, key=weights.get) == 2.0601
    assert weights[2.0601] == pytest.approx(1.574675, abs=1e-6)


def test_cispo_weight_is_bounded_and_never_zero():
    assert [slope(cispo(5.0), rho, 1.0) for rho in (0.01, 1.0, 4.0, 50.0)] == pytest.approx(
        [0.01, 1.0, 4.0, 5.0]
    )
    assert slope(cispo(None), 50.0, 1.0) == pytest.approx(50.0)
    assert slope(cispo(1.2, floor=0.8), 0.01, -1.0) == pytest.approx(-0.8)


def test_vespo_weight_by_hand():
    """A > 0, W = 1.5785: W^2 e^(3(1-W)); A < 0, W = 0.452571: W^3 e^(2(1-W))."""
    batch = worked_batch(advantages=SIGNS)
    out = Objective(raw_reward(), vespo(), token_sum, ratio=product)(batch)
    out.loss.backward()
    first = 1.5785**2 * math.exp(3 * (1 - 1.5785))
    second = -(0.45257142857**3) * math.exp(2 * (1 - 0.45257142857))
    assert batch.logprobs.grad[0, :3].tolist() == pytest.approx([-first] * 3, abs=1e-9)
    assert batch.logprobs.grad[1].tolist() == pytest.approx([-second] * 5, abs=1e-9)


def test_kl_cov_penalises_the_largest_covariance_and_says_it_is_not_silent():
    batch = worked_batch(advantages=SIGNS)
    plain = Objective(raw_reward(), ratio(), token_sum)
    out = plain.replace(surrogate=kl_cov(1 / 8, coefficient=0.1))(batch)
    gap = out.loss - plain(batch).loss
    # the rarest token of the bad answer (p = .06) has the largest covariance; |log 1.2|
    assert gap.item() == pytest.approx(0.1 * math.log(1.2), abs=1e-12)
    assert not kl_cov().silent and clip().silent


def test_delta_is_dual_clip_above_the_upper_edge_only():
    rho = torch.linspace(0.3, 5, 200, dtype=torch.float64).log()[None]
    for A in (1.0, -1.0):
        A = torch.full_like(rho, A)
        same = clip(0.2, delta=3.0)(None, A, rho), clip(0.2, dual=3.0)(None, A, rho)
        assert torch.equal(*same)
    tight, band = clip(0.2, delta=1.1), clip(0.2)
    up = torch.ones_like(rho)
    assert tight(None, up, rho).max().item() == pytest.approx(1.1)
    assert band(None, up, rho).max().item() == pytest.approx(1.2)


def test_a_band_wider_than_one_never_cuts_below():
    assert slope(clip(10.0), 0.001, -1.0) == pytest.approx(-0.001)


@pytest.mark.parametrize(
    ("gate", "at_two", "peak", "place"),
    [
        ("sigmoid", 1.572895, 1.574675, 2.0601),
        ("erf", 1.213061, 1.336733, 1.6180),
        ("arctan", 1.000000, 1.207107, 1.4142),
        ("softsign", 0.707107, 1.142985, 1.2808),
    ],
)
def test_soft_gates_start_at_slope_one_and_peak_where_the_study_says(gate, at_two, peak, place):
    def weight(x):
        rho = torch.tensor(x, dtype=torch.float64)[None].requires_grad_()
        value = sapo(1.0, 1.05, gate)(None, torch.ones_like(rho), rho.log()).sum()
        return (torch.autograd.grad(value, rho)[0] * rho)[0].detach()

    assert weight([1.0, 2.0]).tolist() == pytest.approx([1.0, at_two], abs=1e-6)
    grid = torch.linspace(0.5, 4, 35001, dtype=torch.float64)
    curve = weight(grid.tolist())
    assert curve.max().item() == pytest.approx(peak, abs=1e-6)
    assert grid[curve.argmax()].item() == pytest.approx(place, abs=2e-4)


def test_the_sign_of_the_advantage_picks_the_temperature_of_every_gate():
    x = torch.tensor([[2.0, 2.0]], dtype=torch.float64)
    A = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    for gate in ("sigmoid", "erf", "arctan", "softsign"):
        both = sapo(1.0, 3.0, gate)(None, A, x.log())[0]
        assert both[0] == sapo(1.0, 1.0, gate)(None, A, x.log())[0, 0]
        assert both[1] == sapo(3.0, 3.0, gate)(None, A, x.log())[0, 1]
    with pytest.raises(ValueError, match="gate must be one of sigmoid, erf"):
        sapo(gate="tanh")
