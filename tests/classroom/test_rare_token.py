"""What the rare-token explorer computes: by hand, by counting batches, and against PPO's clip."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rlnb.classroom.explorers import rare_token_explorer
from rlnb.classroom.explorers.rare_token import BATCHES, LOWEST, STARTS, alt, compute
from rlnb.objective import clip


def batches(**params):
    return [rule.batches for rule in compute(**params)["rules"].values()]


def test_a_token_of_one_percent_gets_to_twelve_or_to_nearly_thirteen_per_mille():
    rules = compute()["rules"]
    after = [0.01 * rules[name].ratio for name in ("symmetric", "chosen")]
    assert after == pytest.approx([0.012, 0.0128], abs=1e-12)


def test_the_batches_to_one_half_and_to_nine_tenths():
    assert batches(target=0.5)[:2] == [22, 16]
    assert batches(target=0.9)[:2] == [25, 19]


@pytest.mark.parametrize("p0", [0.0001, 0.01, 0.1])
@pytest.mark.parametrize("epsilon_high", [0.1, 0.28, 0.7])
def test_the_number_of_batches_is_the_counted_one(p0, epsilon_high):
    rule = compute(p0=p0, target=0.5, epsilon_high=epsilon_high)["rules"]["chosen"]
    p, n = p0, 0
    while p < 0.5:
        p, n = p * min(1.05**8, 1 + epsilon_high), n + 1
    assert rule.batches == n
    if n <= BATCHES:
        assert rule.path[n] >= 0.5 > rule.path[n - 1]


def test_a_whole_quotient_stays_whole():
    assert batches(p0=0.125, target=0.5, epsilon_high=1.0, updates=16, step=0.2)[1] == 2
    assert batches(p0=0.5, target=0.5, updates=1, step=0.0) == [0, 0, 0]


def test_an_edge_that_is_not_reached_changes_nothing():
    rules = compute(updates=1)["rules"]
    assert not rules["symmetric"].held and not rules["chosen"].held
    assert len({rule.batches for rule in rules.values()}) == 1
    assert rules["symmetric"].ratio == pytest.approx(1.05)
    four = compute(updates=4)["rules"]  # 1.05^4 = 1.2155: between the two edges
    assert four["symmetric"].held and not four["chosen"].held
    assert four["chosen"].batches == four["none"].batches < four["symmetric"].batches


def test_the_first_update_of_a_batch_is_never_cut():
    """At ratio 1 no band ends a gradient: with one update a batch the clip does nothing."""
    for rule in compute(updates=1, step=0.2, epsilon_high=0.0)["rules"].values():
        assert rule.ratio == pytest.approx(1.2) and not rule.held
    chosen = compute(updates=2, step=0.2, epsilon_high=0.1)["rules"]["chosen"]
    assert chosen.held and chosen.inside.tolist() == pytest.approx([1, 1.2, 1.2])


def test_the_edge_is_where_the_package_s_clip_ends_the_gradient():
    for name, rule in compute(updates=16)["rules"].items():
        if math.isinf(rule.epsilon):
            continue
        for factor, alive in ((0.999, True), (1.001, False)):
            log_ratio = torch.tensor([factor * rule.ratio], dtype=torch.float64).log()
            log_ratio.requires_grad_()
            clip(0.2, high=rule.epsilon)(None, torch.ones(1), log_ratio).sum().backward()
            assert (log_ratio.grad != 0) == alive, name


def test_nothing_moves_without_a_step_and_no_probability_passes_one():
    assert batches(step=0.0) == [None, None, None]
    for p0 in STARTS:
        for rule in compute(p0=p0, step=0.2, updates=16)["rules"].values():
            assert rule.path.max() <= 1 and rule.path.min() >= LOWEST
            assert len(rule.path) == BATCHES + 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"p0": 0.0},
        {"p0": 0.9},
        {"target": 1.5},
        {"updates": 0},
        {"step": -0.1},
        {"epsilon_high": -0.2},
    ],
)
def test_a_setting_outside_its_range_is_refused_with_a_sentence(wrong):
    with pytest.raises(ValueError, match="need 0 < p0|at least"):
        compute(**wrong)


def test_artists_hold_what_compute_says_and_the_words_the_numbers():
    explorer = rare_token_explorer()
    for params in ({"updates": 3}, {"step": 0.0}, {"p0": 0.0001, "step": 0.02}):
        artists, data = explorer.set(**params).artists, explorer.data
        for name, rule in data["rules"].items():
            assert np.array_equal(artists["path", name].get_ydata(), rule.path)
            assert np.array_equal(artists["inside", name].get_ydata(), rule.inside)
            seen = artists["there", name].get_xdata()
            within = rule.batches is not None and rule.batches <= BATCHES
            assert list(seen) == ([rule.batches] if within else [])
        assert explorer.alt_text() == alt(data)
    assert "22 batches to 0.50" in alt(compute()) and "0.01 to 0.0128" in alt(compute())
    assert "never gets to" in alt(compute(step=0.0))
