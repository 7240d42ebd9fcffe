"""Preference losses: numbers made by hand, gradients, limits, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch

from rlnb.objective import preference as p
from rlnb.objective.preference import Pairs


@pytest.fixture(autouse=True)
def float64():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def one(h_w=2.0, h_l=-1.0, T_w=4, T_l=5):
    """One pair: log pi_w = -6, log pi_l = -9, and references that give h_w and h_l."""
    chosen, rejected = (torch.tensor([x], requires_grad=True) for x in (-6.0, -9.0))
    refs = (torch.tensor([-6.0 - h_w]), torch.tensor([-9.0 - h_l]))
    return Pairs(chosen, rejected, *refs, torch.tensor([T_w]), torch.tensor([T_l]))


def sigma(x):
    return 1 / (1 + math.exp(-x))


BY_HAND = {  # beta 0.1, h_w = 2, h_l = -1, T = 4 and 5
    "dpo": (p.dpo, {}, 0.554355),
    "ipo": (p.ipo, {}, 4.0),  # (3 - 5)^2
    "normalized_ipo": (p.normalized_ipo, {}, 18.49),  # (0.5 + 0.2 - 5)^2
    "normalized_dpo": (p.normalized_dpo, {}, -math.log(sigma(0.07))),
    "dpo_shift": (p.dpo_shift, {"factor": 0.95}, 0.556486),
    "dpo_nll": (p.dpo_nll, {}, 2.054355),  # + 6 / 4
    "conservative": (p.conservative_dpo, {}, 0.9 * 0.554355 + 0.1 * 0.854355),
    "robust": (p.robust_dpo, {}, (0.9 * 0.554355 - 0.1 * 0.854355) / 0.8),
    "simpo": (p.simpo, {"beta": 2.0, "gamma": 1.0}, -math.log(sigma(2 * (-1.5 + 1.8) - 1))),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_hand_numbers(name):
    function, keywords, expected = BY_HAND[name]
    assert function(one(), **keywords).item() == pytest.approx(expected, abs=2e-6)


def test_simpo_of_averages():
    pairs = Pairs(torch.tensor([-0.5]), torch.tensor([-0.9]), None, None,
                  torch.tensor([1]), torch.tensor([1]))  # fmt: skip
    assert p.simpo(pairs, beta=2.0, gamma=1.0).item() == pytest.approx(0.798139, abs=1e-6)


def test_bradley_terry_by_hand():
    r_w, r_l = torch.tensor([1.2]), torch.tensor([0.3])
    assert p.bradley_terry(r_w, r_l).item() == pytest.approx(0.341154, abs=1e-6)
    led = p.bradley_terry(r_w, r_l, margin=0.5).item()
    assert led == pytest.approx(-math.log(sigma(0.4)), abs=1e-12)
    centred = p.bradley_terry(r_w, r_l, center=0.01).item()
    assert centred == pytest.approx(0.341154 + 0.01 * 2.25, abs=1e-6)


def test_the_push_of_dpo_is_beta_times_the_chance_of_being_wrong():
    pairs = one()
    p.dpo(pairs).sum().backward()
    assert pairs.chosen.grad.item() == pytest.approx(-0.042556, abs=1e-6)
    assert pairs.rejected.grad.item() == pytest.approx(0.042556, abs=1e-6)


def test_dpo_shift_pushes_the_rejected_answer_less():
    pairs = one()
    p.dpo_shift(pairs, factor=0.5).sum().backward()
    assert pairs.rejected.grad / pairs.chosen.grad == pytest.approx(-0.5)


def test_kto_by_hand():
    logp, ref = torch.tensor([2.0, -1.0]), torch.zeros(2)
    loss = p.kto(logp, ref, torch.tensor([True, False]), torch.tensor(0.5))
    assert loss.tolist() == pytest.approx([0.462570, 0.462570], abs=1e-6)
    weighted = p.kto(logp, ref, torch.tensor([True, False]), 0.5, 0.1, 2.0, 3.0)
    assert weighted.tolist() == pytest.approx([0.925140, 1.387711], abs=2e-6)


def test_the_reference_point_of_kto_is_never_negative_and_has_no_gradient():
    logp = torch.tensor([1.0, -4.0], requires_grad=True)
    assert p.kto_reference_point(logp, torch.zeros(2)).item() == 0.0
    point = p.kto_reference_point(logp + 4, torch.zeros(2))
    assert point.item() == pytest.approx(2.5) and not point.requires_grad


def test_the_reference_carries_no_gradient():
    refs = [torch.tensor([x], requires_grad=True) for x in (-7.0, -8.0)]
    chosen = torch.tensor([-6.0], requires_grad=True)
    p.dpo(Pairs(chosen, torch.tensor([-9.0]), *refs)).sum().backward()
    assert chosen.grad is not None and refs[0].grad is None and refs[1].grad is None


def test_an_offset_of_both_log_ratios_changes_no_gap_loss():
    """beta log Z(x) drops out: D01's point."""
    moved = one(h_w=2.0 + 7.3, h_l=-1.0 + 7.3)
    for function in (p.dpo, p.ipo, p.conservative_dpo, p.robust_dpo):
        assert function(moved).item() == pytest.approx(function(one()).item(), abs=1e-12)
    assert p.dpo_shift(moved).item() != pytest.approx(p.dpo_shift(one()).item(), abs=1e-3)


def test_robust_dpo_is_unbiased_under_flipped_labels():
    """Mean over a label that is wrong three times in ten = DPO on the clean label."""
    pairs = one()
    turned = Pairs(pairs.rejected, pairs.chosen, pairs.ref_rejected, pairs.ref_chosen)
    e = 0.3
    mean = (1 - e) * p.robust_dpo(pairs, flipped=e) + e * p.robust_dpo(turned, flipped=e)
    assert mean.item() == pytest.approx(p.dpo(pairs).item(), abs=1e-12)


def test_conservative_dpo_has_a_finite_best_gap():
    best = math.log(0.9 / 0.1) / 0.1
    losses = [p.conservative_dpo(one(h_w=g, h_l=0.0)).item() for g in (best - 1, best, best + 1)]
    assert losses[1] < losses[0] and losses[1] < losses[2]


def test_far_from_right_dpo_is_linear_and_finite():
    loss = p.dpo(one(h_w=-1e5, h_l=0.0))
    assert loss.item() == pytest.approx(1e4)
    (slope,) = torch.autograd.grad(p.dpo(far := one(h_w=-1e5, h_l=0.0)).sum(), far.chosen)
    assert slope.item() == pytest.approx(-0.1)


def test_from_tokens_sums_halves_and_ignores_what_is_masked():
    logp = torch.tensor(
        [[-1.0, -2.0, math.nan], [-0.5, math.inf, 7.0], [-3.0, -1.0, -1.0], [-2.0, -2.0, math.nan]],
        requires_grad=True,
    )
    mask = torch.tensor([[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 1, 0]])
    pairs = Pairs.from_tokens(logp, mask, torch.full((4, 3), -1.0))
    assert pairs.chosen.tolist() == [-3.0, -0.5] and pairs.rejected.tolist() == [-5.0, -4.0]
    assert pairs.gap.tolist() == [-1.0 - -2.0, 0.5 - -2.0]
    p.dpo_nll(pairs).mean().backward()
    assert bool((logp.grad[mask == 0] == 0).all()) and bool((logp.grad[mask == 1] != 0).all())


def test_dpo_nll_averages_per_answer_or_over_the_batch():
    pairs = Pairs(torch.tensor([-2.0, -12.0]), torch.zeros(2), torch.tensor([-2.0, -12.0]),
                  torch.zeros(2), torch.tensor([1, 3]), torch.tensor([2, 2]))  # fmt: skip
    per_answer = p.dpo_nll(pairs).mean().item() - math.log(2)
    over_batch = p.dpo_nll(pairs, average="batch").mean().item() - math.log(2)
    assert per_answer == pytest.approx(3.0) and over_batch == pytest.approx(14 / 4)


def test_implicit_rewards_are_detached():
    chosen, rejected = p.implicit_rewards(one())
    assert chosen.item() == pytest.approx(0.2) and rejected.item() == pytest.approx(-0.1)
    assert not chosen.requires_grad


REFUSED = {
    "a column": lambda: Pairs(torch.zeros(2), torch.zeros(2, 1)),
    "no pair": lambda: Pairs(torch.zeros(0), torch.zeros(0)),
    "no reference": lambda: p.dpo(Pairs(torch.zeros(2), torch.zeros(2))),
    "no lengths": lambda: p.simpo(Pairs(torch.zeros(2), torch.zeros(2))),
    "beta 0": lambda: p.dpo(one(), beta=0.0),
    "half flipped": lambda: p.robust_dpo(one(), flipped=0.5),
    "factor 0": lambda: p.dpo_shift(one(), factor=0.0),
    "another average": lambda: p.dpo_nll(one(), average="token"),
    "odd rows": lambda: Pairs.from_tokens(torch.zeros(3, 2), torch.ones(3, 2)),
    "another mask": lambda: Pairs.from_tokens(torch.zeros(4, 2), torch.ones(4, 3)),
    "an empty row": lambda: Pairs.from_tokens(torch.zeros(2, 2), torch.tensor([[1, 1], [0, 0]])),
    "scores": lambda: p.bradley_terry(torch.zeros(2), torch.zeros(2, 1)),
    "answers": lambda: p.kto(torch.zeros(2), torch.zeros(2), torch.zeros(3)),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_refused(why):
    with pytest.raises(ValueError):
        REFUSED[why]()
