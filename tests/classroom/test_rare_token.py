"""What the rare-token explorer computes: by hand, by a loop, and against PPO's clip."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rlnb.classroom.explorers import rare_token_explorer
from rlnb.classroom.explorers.rare_token import (
    BATCHES,
    EDGES,
    MAX_STEP,
    STARTS,
    TARGET,
    UPDATES,
    alt,
    compute,
    readout,
)
from rlnb.objective import clip


def batches(**params):
    return [rule.batches for rule in compute(**params)["rules"].values()]


def test_the_default_silences_four_and_three_of_eight():
    rules = compute()["rules"]
    assert [rules[name].silent for name in ("1.20", "1.28", "no clip")] == [4, 3, 0]
    assert batches() == [25, 21, 16]


@pytest.mark.parametrize("p0", [0.001, 0.1, 0.7])
@pytest.mark.parametrize("step", [0.05, 0.2])
def test_an_update_moves_the_logit_while_the_ratio_is_inside(p0, step):
    for name, rule in compute(p0, 8, step)["rules"].items():
        z = math.log(p0 / (1 - p0))
        for k in range(1, 9):
            if 1 / (1 + math.exp(-z)) / p0 <= 1 + EDGES[name]:
                z += step
            assert rule.inside[k] == pytest.approx(1 / (1 + math.exp(-z)) / p0)


def test_the_edge_is_where_the_package_s_clip_ends_the_gradient():
    for name in ("1.20", "1.28"):
        rule = compute(0.01, 16, 0.03)["rules"][name]
        last = rule.inside[: UPDATES + 1 - rule.silent]
        for ratio, alive in ((last[-2], True), (last[-1], False)):
            log_ratio = torch.tensor([ratio], dtype=torch.float64).log().requires_grad_()
            clip(0.2, high=rule.edge)(None, torch.ones(1), log_ratio).sum().backward()
            assert bool((log_ratio.grad != 0).all()) == alive, name


def test_the_first_update_of_a_batch_is_never_cut():
    """At ratio 1 no band ends a gradient: with one update a batch the clip does nothing."""
    for step in (0.05, MAX_STEP):
        data = compute(updates=1, step=step)
        assert all(rule.silent == 0 for rule in data["rules"].values())
        assert len({rule.ratio for rule in data["rules"].values()}) == 1


def test_probabilities_stay_below_one_and_the_first_batch_at_the_target_is_counted():
    for p0 in STARTS:
        for rule in compute(p0, UPDATES, MAX_STEP)["rules"].values():
            assert rule.path.max() <= 1 and len(rule.path) == BATCHES + 1
            assert (np.diff(rule.path) >= 0).all()
            if rule.batches:
                assert rule.path[rule.batches] >= TARGET > rule.path[rule.batches - 1]


@pytest.mark.parametrize("wrong", [{"p0": 0.0}, {"p0": 1.0}, {"updates": 0}, {"step": 0.0}])
def test_a_setting_outside_its_range_is_refused_with_a_sentence(wrong):
    with pytest.raises(ValueError, match="above 0|at least"):
        compute(**wrong)


def test_artists_hold_what_compute_says_and_the_words_the_numbers():
    explorer = rare_token_explorer()
    for params in ({"updates": 3}, {"step": 0.3}, {"p0": 0.001, "step": 0.02}):
        artists, data = explorer.set(**params).artists, explorer.data
        for name, rule in data["rules"].items():
            assert np.array_equal(artists["path", name].get_ydata(), rule.path)
            there = artists["there", name].get_xdata()
            assert list(there) == ([] if rule.batches is None else [rule.batches])
        assert explorer.alt_text() == alt(data)
    assert "of 8 updates clipped 4 under 1.20, 3 under 1.28. Batches to 0.95: 1.20 25" in readout(
        compute()
    )
    assert "1.20 over 60, 1.28 over 60" in readout(compute(step=0.01, updates=1))
