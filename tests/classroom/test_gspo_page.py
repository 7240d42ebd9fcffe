"""The lesson on GSPO: its explorers say what the formulas say, and its tasks can be done."""

from __future__ import annotations

from itertools import product
from math import log, log1p

import pytest
import torch

from rlnb import ZOO, Batch, check
from rlnb.classroom.explorers import answer_ratio, one_outlier
from rlnb.classroom.pictures import gspo as pictures
from rlnb.toys import RouterPolicy

SHARES = [round(0.05 * k, 2) for k in range(41)]
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


def test_the_goal_of_the_outlier_has_one_length_and_one_sign():
    """It is met at 512 tokens, in a bad answer only."""
    settings = [
        one_outlier.compute(leap, length, A)
        for leap, length, A in product(LEAPS, one_outlier.LENGTHS, (1, -1))
    ]
    goal = one_outlier.long_and_gspo_only
    assert not goal(one_outlier.one_outlier_explorer().data)
    assert {(d["leap"], d["length"], d["A"]) for d in settings if goal(d)} == {(-0.2, 512, -1)}
    # GSPO alone is harsher than GRPO in no longer answer
    alone = [
        (d["length"], d["A"], d["leap"])
        for d in settings
        if d["GSPO"][1] == 0 and 0.0 not in (*d["GRPO"], *d["GMPO"])
    ]
    assert max(T for T, A, _ in alone if A < 0) == 512
    assert max((T, leap) for T, A, leap in alone if A > 0) == (256, 0.15)
    assert log(0.8) == pytest.approx(-0.22, abs=0.004)
    assert round(log(1.2) / log1p(4e-4)) == 456 and round(log(0.8) / log1p(-3e-4)) == 744


def test_the_goals_on_the_band_can_be_met_and_not_by_one_move():
    settings = [
        answer_ratio.compute(share, length, band)
        for share, length in product(SHARES, answer_ratio.LENGTHS)
        for band in answer_ratio.BANDS
    ]
    explorer = answer_ratio.answer_ratio_explorer()
    goals = (answer_ratio.best_in_the_middle, answer_ratio.long_answers_bounded)
    for goal in goals:
        assert not goal(explorer.data)
    assert {
        (d["flips"], d["length"], d["band"]) for d in settings if answer_ratio.best_in_the_middle(d)
    } == {(0.15, 2048, "3e-4, 4e-4"), (0.15, 8192, "3e-4, 4e-4")}
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
    calm, flipped = answer_ratio.pool()
    assert -flipped.mean() == pytest.approx(0.18, abs=0.005)
    assert -calm.mean() == pytest.approx(3e-5, abs=5e-6)
    assert (3e-4 - 3e-5) / 0.18 == pytest.approx(0.0015, abs=1e-6)  # one flip in 670 tokens
    at_edge = answer_ratio.compute(0.15, answer_ratio.LONGEST)
    assert at_edge["kl"] == pytest.approx(3e-4, abs=1e-5)
    assert answer_ratio.inside(at_edge) == [14, 12, 26, 35, 37, 27]
    # short answers leave on both sides, the longest below, and about half of them
    assert answer_ratio.counts(at_edge)[1] / 64 == pytest.approx(0.5, abs=0.1)
    assert answer_ratio.counts(at_edge)[2] == 0
    _, below, above = answer_ratio.counts(answer_ratio.compute(0.15, 32))
    assert 0 < below / 2 <= above
    # without flips: no band of the list serves both 128 and 32,768 tokens
    calm_ones = answer_ratio.compute(0.0, answer_ratio.LONGEST, "1e-4")
    assert answer_ratio.inside(calm_ones)[1::4] == [5, 57]
    assert answer_ratio.readout(calm_ones).endswith("s^T at the upper edge: 26.5.")
    assert answer_ratio.inside(calm_ones, "2e-3, 2.5e-3")[1] == 64
    assert 32768 * log(1.0025) / log(10) == pytest.approx(35.5, abs=0.1)
    for band, (_, high) in answer_ratio.BANDS.items():
        bounded = 32768 * log1p(high) < log(answer_ratio.LIMIT)
        assert not (bounded and answer_ratio.inside(calm_ones, band)[1] >= answer_ratio.ALIVE)


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
    said = pictures.settling((8, 64), both, (0.01, 0.002)).alt
    assert "-0.0100, -0.0020" in said and "of 6" in said
