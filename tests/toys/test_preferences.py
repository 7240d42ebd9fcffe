"""The toy of three answers: its exact optimum, its one line, and training that follows both."""

from __future__ import annotations

import pytest
import torch

from rlnb.objective.preference import dpo, dpo_nll, ipo, simpo
from rlnb.toys.preferences import (
    REFERENCE,
    TASTE,
    along_the_pair,
    descend,
    descend_on_draws,
    kl_optimum,
    tone_features,
    win_chances,
)

REF = torch.tensor(REFERENCE, dtype=torch.float64)
R = torch.tensor(TASTE, dtype=torch.float64)


@pytest.mark.parametrize("beta", [0.1, 1.0, 5.0])
def test_the_optimum_beats_its_neighbours(beta):
    def objective(pi):
        return (pi * (R - beta * (pi.log() - REF.log()))).nan_to_num(0).sum()

    best = kl_optimum(REF, R, beta)
    g = torch.Generator().manual_seed(0)
    for _ in range(50):
        noise = 0.3 * torch.randn(3, generator=g, dtype=torch.float64)
        assert objective((best.log() + noise).softmax(0)) <= objective(best) + 1e-12


def test_chances_to_win_add_to_one():
    chance = win_chances(R)
    assert torch.allclose(chance + chance.T, torch.ones(3, 3, dtype=torch.float64))
    assert chance[0, 2] == torch.sigmoid(torch.tensor(2.0, dtype=torch.float64))


@pytest.mark.parametrize("shared", [0.0, 0.7, 1.5])
@pytest.mark.parametrize("loss", [dpo, ipo, lambda pairs: simpo(pairs)])
def test_every_loss_of_the_gap_stays_on_one_line(shared, loss):
    features = tone_features(shared)
    path = descend(loss, features, REF, rate=0.02, steps=200)
    gap = (path[:, 0] - REF[0].log()) - (path[:, 1] - REF[1].log())
    assert torch.allclose(path.exp(), along_the_pair(features, REF, gap), rtol=0, atol=1e-12)
    assert gap[-1] > 0.05


def test_the_anchor_leaves_the_line():
    features = tone_features(1.5)
    path = descend(dpo_nll, features, REF, steps=500)
    gap = (path[:, 0] - REF[0].log()) - (path[:, 1] - REF[1].log())
    assert (path.exp() - along_the_pair(features, REF, gap)).abs().max() > 0.3
    assert path[-1, 0].exp() > 0.99


def test_in_a_table_the_chosen_answer_never_falls_and_above_strength_one_it_goes_to_zero():
    gap = torch.linspace(0, 200, 400, dtype=torch.float64)
    table = along_the_pair(tone_features(0.0), REF, gap)[:, 0]
    assert bool((table.diff() >= 0).all()) and table[-1] > 0.999
    assert along_the_pair(tone_features(0.95), REF, gap)[-1, 0] > 0.99
    assert along_the_pair(tone_features(1.05), REF, gap)[-1, 0] < 0.01
    shared = along_the_pair(tone_features(1.5), REF, gap)
    assert shared[:, 0].max() > 0.4 and shared[-1, 2] > 0.999


def test_beta_must_be_positive():
    with pytest.raises(ValueError):
        kl_optimum(REF, R, 0.0)


def test_fresh_pairs_bring_the_third_answer_into_a_comparison():
    features = tone_features(1.5)
    given = descend_on_draws(features, REF, R, fresh=False)[-1].exp()
    fresh = descend_on_draws(features, REF, R, fresh=True)[-1].exp()
    assert given[2] > 0.9 and fresh[0] > 0.99


def test_on_the_given_pair_the_mean_over_choices_stops_where_people_do():
    path = descend_on_draws(tone_features(0.0), REF, R, fresh=False, beta=1.0, steps=500)
    gap = (path[-1, 0] - path[-1, 1]) - (REF[0] / REF[1]).log()
    assert gap.item() == pytest.approx(1.0, abs=1e-6)
