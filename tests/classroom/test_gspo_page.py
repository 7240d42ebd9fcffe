"""The lesson on GSPO: its explorers say what the formulas say, and its tasks can be done."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from rlnb import ZOO, Batch, check
from rlnb.classroom.explorers import answer_ratio, one_outlier
from rlnb.classroom.pictures import gspo as pictures

SHARES = [0.5 * k for k in range(17)]
LEAPS = [0.25 * k for k in range(-12, 13)]
RULES = {"GRPO": "grpo", "GSPO": "gspo", "GMPO": "gmpo"}


def one_answer(leap: float, length: int, A: int) -> Batch:
    """Two answers, the first with one token that leapt; its z-score is A."""
    old = torch.full((2, length), -5.0, dtype=torch.float64)
    new = old.clone()
    new[0, 0] += leap
    rewards = torch.tensor([1.0, 0.0] if A > 0 else [0.0, 1.0], dtype=torch.float64)
    mask = torch.ones(2, length, dtype=torch.float64)
    return Batch(new.requires_grad_(), mask, rewards, 2, old_logprobs=old)


@pytest.mark.parametrize(
    ("leap", "length", "A"),
    [(2.0, 8, 1), (2.0, 8192, 1), (0.3, 16, 1), (0.25, 1024, 1), (-1.0, 8, 1), (2.0, 8, -1),
     (-2.0, 64, -1), (-0.25, 8, -1), (-0.5, 4096, -1)],
)  # fmt: skip
def test_the_pushes_are_the_gates_of_the_zoo(leap, length, A):
    data = one_outlier.compute(leap, length, A)
    batch = one_answer(leap, length, A)
    for name, method in RULES.items():
        gate = ZOO[method].replace(terms=()).explain(batch).gate[0]
        assert data[name] == pytest.approx((A * gate[0].item(), A * gate[1].item()), abs=1e-9)


def test_no_goal_of_the_outlier_holds_at_the_start_and_each_can_be_reached():
    goals = (one_outlier.grpo_only, one_outlier.long_and_silent, one_outlier.nobody)
    start = one_outlier.one_outlier_explorer().data
    settings = [
        one_outlier.compute(leap, length, A)
        for leap, length, A in product(LEAPS, one_outlier.LENGTHS, (1, -1))
    ]
    for goal in goals:
        assert not goal(start) and any(goal(d) for d in settings)
    assert not any(one_outlier.grpo_only(d) for d in settings if d["length"] < 512)
    assert not any(one_outlier.nobody(d) for d in settings if d["leap"] * d["A"] > 0)


def test_the_goals_on_the_band_have_a_dead_end_and_a_way():
    settings = [
        answer_ratio.compute(share, length, band)
        for share, length in product(SHARES, answer_ratio.LENGTHS)
        for band in answer_ratio.BANDS
    ]
    start = answer_ratio.answer_ratio_explorer().data
    for goal in (
        answer_ratio.wide_band_cuts,
        answer_ratio.best_length,
        answer_ratio.half_of_the_bad,
    ):
        assert not goal(start) and any(goal(d) for d in settings)
    assert {d["length"] for d in settings if answer_ratio.wide_band_cuts(d)} <= {8, 16}
    # without flips the longest answers stay inside, with 3 % those of 16 tokens do
    longest = answer_ratio.compute(0.0, 512, "2e-3, 2.5e-3")
    assert answer_ratio.counts(longest) == (64, 0, 0)
    assert {d["length"] for d in settings if answer_ratio.best_length(d)} == {16}
    found = [answer_ratio.compute(3.0, T, "2e-3, 2.5e-3") for T in answer_ratio.LENGTHS]
    assert [answer_ratio.counts(d)[0] for d in found] == [21, 26, 23, 17, 15, 15, 10]
    assert found[0]["kl"] > 2e-3  # -KL lies below the band: the longest answers go there
    below = [answer_ratio.counts(answer_ratio.compute(f, 512, "3e-4, 4e-4"))[1] for f in (0, 0.5)]
    assert below == [17, 39]


def test_the_readout_names_who_is_silent():
    assert "none of the three" in one_outlier.readout(one_outlier.compute(2.0, 64, -1))
    assert "GRPO, GSPO, GMPO" in one_outlier.readout(one_outlier.compute(2.0, 64, 1))


def test_the_length_that_spares_an_answer_is_a_log_and_its_neighbours_are_named():
    assert check.outlier_length(lambda leap, epsilon: leap / torch.log1p(epsilon))
    assert check.outlier_length(lambda leap, epsilon: leap / epsilon)  # to first order
    assert "no exp" in repr(check.outlier_length(lambda leap, e: leap.exp() / torch.log1p(e)))
    assert "one token" in repr(check.outlier_length(lambda leap, e: (leap / torch.log1p(e)) ** 2))


def test_the_pictures_draw_and_say_their_numbers():
    gap = 0.01 * torch.randn(6, 64, generator=torch.Generator().manual_seed(0))
    gap[0, 3] = 0.7
    A = torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    assert "2.01, 1 outside" in pictures.leaps({"as routed": gap[0].exp()}, "one").alt
    assert "good" in pictures.where_it_shows(gap, A, gap > 0.01).alt
    both = {"router free": gap - 0.01, "old experts held": gap}
    assert "-0.0100" in pictures.settling((8, 64), both, 0.01).alt
