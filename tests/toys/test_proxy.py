"""Pushing on a proxy: weights, KLs, what a score is worth, and Gao's forms."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from rlnb.toys.proxy import (
    GAO_FORMS,
    Grader,
    answer_pool,
    best_of_n_kl,
    best_of_n_weights,
    fit_gao,
    kl_to_uniform,
    pool_kl,
    tilted_weights,
)

SCORES = torch.tensor([0.3, -1.0, 2.0, 0.7], dtype=torch.float64)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_best_of_n_weights_count_all_draws(n):
    counted = torch.zeros(4, dtype=torch.float64)
    for draw in itertools.product(range(4), repeat=n):
        counted[max(draw, key=lambda i: SCORES[i])] += 4.0**-n
    torch.testing.assert_close(best_of_n_weights(SCORES, n), counted)


def test_the_formula_is_the_limit_of_many_answers_and_a_bound_for_few():
    for n in (2, 16, 64):
        exact = kl_to_uniform(best_of_n_weights(torch.arange(100_000.0).double(), n)).item()
        assert exact == pytest.approx(best_of_n_kl(n), abs=2e-3)
        assert pool_kl(torch.full((7,), 1 / 7).double(), n) <= best_of_n_kl(n)
    assert best_of_n_kl(1) == 0.0
    sizes = torch.tensor([2.0, 64.0], dtype=torch.float64)
    expected = [math.log(2) - 0.5, math.log(64) - 63 / 64]
    assert best_of_n_kl(sizes).tolist() == pytest.approx(expected)


def test_the_exact_kl_of_a_pool_is_that_of_its_weights():
    even = torch.full((4,), 0.25, dtype=torch.float64)
    expected = kl_to_uniform(best_of_n_weights(SCORES, 3))
    torch.testing.assert_close(pool_kl(even, 3), expected)
    hopeless = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64)
    assert torch.isfinite(pool_kl(hopeless, 8))


def test_no_policy_with_the_same_kl_has_a_higher_score_than_the_tilted_one():
    w = tilted_weights(SCORES, 0.8)
    kl, mean = kl_to_uniform(w), w @ SCORES
    dice = torch.Generator().manual_seed(0)
    for _ in range(2000):
        other = torch.rand(4, generator=dice, dtype=torch.float64).pow(3)
        other = other / other.sum()
        if kl_to_uniform(other) <= kl:
            assert other @ SCORES <= mean + 1e-12


@pytest.mark.parametrize("bad", [0, -1.0])
def test_bad_arguments_are_refused(bad):
    for call in (lambda: best_of_n_weights(SCORES, bad), lambda: best_of_n_kl(bad),
                 lambda: tilted_weights(SCORES, bad)):  # fmt: skip
        with pytest.raises(ValueError, match="at least 1|above 0"):
            call()
    with pytest.raises(ValueError, match="form"):
        fit_gao(torch.ones(2), torch.ones(2), "d")


def test_the_grader_says_what_its_pool_does():
    gold, careless, glitchy = answer_pool(64)
    for scores, grader in ((careless, Grader(1.0, 1.0)), (glitchy, Grader())):
        better = gold[:, ::2] > gold[:, 1::2]
        right = (better == (scores[:, ::2] > scores[:, 1::2])).double().mean().item()
        assert grader.accuracy() == pytest.approx(right, abs=0.004)
        for n in (4, 64):
            found = (best_of_n_weights(scores, n) * gold).sum(1).mean().item()
            assert grader.best_of(n) == pytest.approx(found, abs=0.03)
    near = (glitchy - 2.0).abs() < 0.1
    worth = Grader().worth(torch.tensor([2.0], dtype=torch.float64)).item()
    assert worth == pytest.approx(gold[near].mean().item(), abs=0.03)
    assert Grader(1.0, 1.0).worth(torch.tensor([3.0])).item() == pytest.approx(1.5)
    assert 0.35 < Grader().fooled(64) < 0.45


def test_gao_s_forms_are_recovered():
    d = torch.linspace(0.3, 2.5, 8, dtype=torch.float64)
    for form, shape in GAO_FORMS.items():
        assert fit_gao(d, 1.3 * d + 0.6 * shape(d), form) == pytest.approx((1.3, 0.6))
