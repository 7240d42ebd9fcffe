"""The lesson on GSPO: its explorers say what the formulas say, and its tasks can be done."""

from __future__ import annotations

from itertools import product
from math import log, log1p

import numpy as np
import pytest
import torch

from rlnb import ZOO, Batch, check
from rlnb.classroom.explorers import answer_ratio, one_outlier
from rlnb.classroom.pictures import gspo as pictures

SHARES = [0.5 * k for k in range(17)]
LEAPS = [k / 20 for k in range(-60, 61)]
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


def test_each_goal_of_the_outlier_has_one_length_and_one_sign():
    """Both are met at 512 tokens: GSPO cuts alone in a bad answer, GRPO in a good one."""
    settings = [
        one_outlier.compute(leap, length, A)
        for leap, length, A in product(LEAPS, one_outlier.LENGTHS, (1, -1))
    ]
    start = one_outlier.one_outlier_explorer().data
    for goal, found in (
        (one_outlier.long_and_gspo_only, {(-0.2, 512, -1)}),
        (one_outlier.short_and_grpo_only, {(0.2, 512, 1)}),
    ):
        assert not goal(start)
        assert {(d["leap"], d["length"], d["A"]) for d in settings if goal(d)} == found
    # GSPO alone is harsher than GRPO in no longer answer, and GRPO alone in no shorter one
    alone = [
        (d["length"], d["A"])
        for d in settings
        if d["GSPO"][1] == 0 and 0.0 not in (*d["GRPO"], *d["GMPO"])
    ]
    assert max(T for T, A in alone if A < 0) == 512 and max(T for T, A in alone if A > 0) == 256
    assert log(1.2) == pytest.approx(0.18, abs=0.003) and log(0.8) == pytest.approx(
        -0.22, abs=0.004
    )
    assert round(log(1.2) / log1p(4e-4)) == 456 and round(log(0.8) / log1p(-3e-4)) == 744


def test_the_goals_on_the_band_have_a_dead_end_and_a_way():
    settings = [
        answer_ratio.compute(share, length, band)
        for share, length in product(SHARES, answer_ratio.LENGTHS)
        for band in answer_ratio.BANDS
    ]
    start = answer_ratio.answer_ratio_explorer().data
    for goal in (answer_ratio.narrowest_band, answer_ratio.worst_in_the_middle):
        assert not goal(start) and any(goal(d) for d in settings)
    assert {d["band"] for d in settings if answer_ratio.narrowest_band(d)} == {"0.03, 0.04"}
    middle = [d for d in settings if answer_ratio.worst_in_the_middle(d)]
    assert {(d["band"], d["length"]) for d in middle} == {("0.01", 32), ("0.01", 128)}
    # neither goal is met by one move from the start, nor the second on the way to the first
    for change in ({"flips": 3.0}, {"length": 32}, {"band": "0.01"}, {"flips": 3.0, "length": 512}):
        d = answer_ratio.compute(**{"flips": 0.0, "length": 128, "band": "2e-3, 2.5e-3"} | change)
        assert not answer_ratio.narrowest_band(d) and not answer_ratio.worst_in_the_middle(d)
    assert not answer_ratio.worst_in_the_middle(answer_ratio.compute(3.0, 512, "0.01"))


def test_what_the_tasks_on_the_band_show():
    flips = {band: answer_ratio.compute(3.0, 512, band) for band in answer_ratio.BANDS}
    assert {band: answer_ratio.counts(d)[0] for band, d in flips.items()} == {
        "3e-4, 4e-4": 2, "2e-3, 2.5e-3": 10, "0.01": 52, "0.03, 0.04": 64, "0.2": 64,
    }  # fmt: skip
    assert answer_ratio.inside(flips["0.01"]) == [49, 51, 40, 44, 41, 46, 52]
    assert 1.04**512 == pytest.approx(5e8, rel=0.06)
    assert flips["0.01"]["kl"] == pytest.approx(0.005, abs=5e-4) and 0.2 / 512 < 0.0005
    # at a share of 3 % most answers of 8 tokens have no flip, most of 32 have one, all of 512
    draw = answer_ratio.samples()[2]
    hit = {T: (draw[:, :T] < 0.03).any(1) for T in (8, 32, 512)}
    assert hit[8].mean() < 0.25 and hit[32].mean() > 0.6 and hit[512].all()
    assert 0.97**8 == pytest.approx(0.78, abs=0.005)
    # and no answer of 32 tokens is outside without one
    s = np.exp(answer_ratio.compute(3.0, 32, "0.01")["columns"][2])
    assert not ((np.abs(s - 1) > 0.01) & ~hit[32]).any()


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
    assert "-0.0100, -0.0020" in pictures.settling((8, 64), both, (0.01, 0.002)).alt
