"""The lesson on GSPO: its explorers say what the formulas say, and its tasks can be done."""

from __future__ import annotations

from itertools import product
from math import log, log1p

import numpy as np
import pytest
import torch

from rlnb import check
from rlnb.classroom.explorers import answer_ratio
from rlnb.classroom.pictures import gspo as pictures
from rlnb.toys import RouterPolicy

SHARES = [round(0.05 * k, 2) for k in range(41)]


def test_the_goals_on_the_band_can_be_met_and_not_by_one_move():
    settings = [
        answer_ratio.compute(share, length, band)
        for share, length in product(SHARES, answer_ratio.LENGTHS)
        for band in answer_ratio.BANDS
    ]
    explorer = answer_ratio.answer_ratio_explorer()
    goals = (answer_ratio.most_inside, answer_ratio.long_answers_bounded)
    for goal in goals:
        assert not goal(explorer.data)
    assert {
        (d["flips"], d["length"], d["band"]) for d in settings if answer_ratio.most_inside(d)
    } == {(0.35, 512, "3e-4, 4e-4"), (0.35, 2048, "3e-4, 4e-4")}
    assert {
        (d["flips"], d["length"], d["band"])
        for d in settings
        if answer_ratio.long_answers_bounded(d)
    } == {(0.0, 32768, "1e-4")}
    start = explorer.params
    moves = [start | {"flips": share} for share in SHARES]
    moves += [start | {"length": length} for length in answer_ratio.LENGTHS]
    moves += [start | {"band": band} for band in answer_ratio.BANDS]
    for move in moves:
        assert not any(goal(answer_ratio.compute(**move)) for goal in goals)


def test_what_the_tasks_on_the_band_show():
    """Short answers leave by noise, long ones by drift; each count is far from the next one."""
    page = answer_ratio.compute(0.35, answer_ratio.LONGEST)
    inside = np.array(answer_ratio.inside(page))
    assert inside.round().tolist() == [15, 24, 28, 28, 21, 8]
    assert page["kl"] == pytest.approx(0.00066, abs=1e-5) and page["kl"] > 2 * 3e-4
    answers = 64 * answer_ratio.LONGEST / np.array(answer_ratio.LENGTHS)
    error = np.sqrt(inside * (100 - inside) / answers)  # of a share in per cent, one sigma
    for end in (0, -1):
        gap, both = inside[2] - inside[end], np.hypot(error[2], error[end])
        assert gap > 5 * both
    for share in (0.3, 0.4):  # the lesson holds beside the task's setting
        beside = np.array(answer_ratio.inside(answer_ratio.compute(share, answer_ratio.LONGEST)))
        assert set(np.flatnonzero(beside >= beside.max() - answer_ratio.TIE)) == {2, 3}
    below, above = page["shares"][0, 1:], page["shares"][-1, 1:]
    assert below.min() > 35 and above[0] > 90 and above[1] == 0  # both sides; below only
    # without flips: no band of the list serves both 128 and 32,768 tokens
    calm_ones = answer_ratio.compute(0.0, answer_ratio.LONGEST, "1e-4")
    assert [round(x) for x in answer_ratio.inside(calm_ones)[1::4]] == [9, 89]
    assert answer_ratio.readout(calm_ones).endswith("s^T at the upper edge: 26.5.")
    assert log(answer_ratio.LIMIT) / answer_ratio.LONGEST == pytest.approx(0.0002, abs=2e-5)
    wide = answer_ratio.compute(0.0, 128, "2e-3, 2.5e-3")
    assert answer_ratio.inside(wide)[1] > 95
    assert 32768 * log(1.0025) / log(10) == pytest.approx(35.5, abs=0.1)
    for band, (_, high) in answer_ratio.BANDS.items():
        bounded = 32768 * log1p(high) < log(answer_ratio.LIMIT)
        short = answer_ratio.inside(answer_ratio.compute(0.0, 128, band))[1]
        assert not (bounded and short >= answer_ratio.ALIVE)


def test_two_engines_with_rounded_weights_differ_by_a_kl_of_three_lower_edges():
    """The sampler's weights in bfloat16, as on the page on systems: the KL per token."""
    trainer = RouterPolicy(seed=0)
    sampler = trainer.rounded()
    with torch.no_grad():
        y = sampler.sample(400, 50, torch.Generator().manual_seed(1))
        _, experts = sampler.logprobs(y)
        p = sampler.distributions(y)
        free, replayed = (
            (p.exp() * (p - trainer.distributions(y, routes))).sum(-1).mean().item()
            for routes in (None, experts)
        )
    assert free == pytest.approx(0.0009, abs=5e-5)
    assert replayed == pytest.approx(0.00002, abs=5e-6)


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
    said = pictures.settling((8, 64), both, (0.01, 0.002)).alt
    assert "-0.0100, -0.0020" in said and "of 6" in said
