"""The lesson on GRPO: its explorers say what the formulas say, and its tasks can be done."""

from __future__ import annotations

import math

import pytest

from rlnb import check
from rlnb.classroom.explorers import group_size, one_group

GROUPS = [
    (size, right, mine / 10) for size in range(2, 21) for right in range(20) for mine in range(11)
]
SETTINGS = [(size, ratio) for size in range(2, 65) for ratio in group_size.RATIOS]


@pytest.mark.parametrize(("size", "right"), [(16, 1), (16, 15), (4, 2), (20, 7)])
def test_a_right_answer_gets_the_root_of_the_odds_against_it(size, right):
    data, p = one_group.compute(size, right - 1, 1.0), right / size
    assert data["zscore"][0] == pytest.approx(math.sqrt((1 - p) / p))
    assert data["zscore"][-1] == pytest.approx(-math.sqrt(p / (1 - p)))
    assert data["centred"][0] == pytest.approx(1 - p)


def test_a_group_of_equal_rewards_is_silent_and_says_so():
    for size, right, mine in ((5, 0, 0.0), (5, 4, 1.0), (12, 19, 1.0)):
        data = one_group.compute(size, right, mine)
        assert not data["zscore"].any() and not data["centred"].any()
        assert "silent" in one_group.readout(data)


def test_only_a_group_of_eleven_with_all_others_alike_is_the_smallest_loud_one():
    above_3 = [g for g in GROUPS if one_group.compute(*g)["zscore"][0] > 3 + 1e-9]
    assert min(size for size, _, _ in above_3) == 11
    loud = [g for g in GROUPS if one_group.loud(one_group.compute(*g))]
    assert {right for _, right, _ in loud} == {0}
    assert {mine for _, _, mine in loud} == {k / 10 for k in range(1, 11)}  # any reward will do


def test_nearly_right_among_right_ones_gets_what_a_failure_gets():
    sunk = [g for g in GROUPS if one_group.nearly_right_and_sunk(one_group.compute(*g))]
    assert {(size, min(right, size - 1)) for size, right, _ in sunk} == {
        (size, size - 1) for size in range(8, 21)
    }
    nearly, failed = one_group.compute(8, 7, 0.9), one_group.compute(8, 7, 0.0)
    assert round(nearly["centred"][0], 2) == -0.09 and round(nearly["zscore"][0], 2) == -2.65
    assert nearly["zscore"] == pytest.approx(failed["zscore"])
    assert "-0.00" not in one_group.alt(one_group.compute(20, 18, 0.9))


def test_small_and_large_groups_push_equally_many_right_answers_of_a_hard_prompt():
    def right_ones(size, p):
        """Of 128 answers, counted over all numbers k of right ones in a group."""
        ways = (math.comb(size, k) * p**k * (1 - p) ** (size - k) * k for k in range(1, size))
        return 128 / size * sum(ways)

    assert right_ones(8, 0.02) == pytest.approx(128 * 0.02 * (1 - 0.02**7))
    assert right_ones(64, 0.02) == pytest.approx(right_ones(8, 0.02), abs=1e-6)
    assert round(right_ones(8, 0.02), 2) == 2.56


@pytest.mark.parametrize(("p", "b"), [(0.04, 0.8), (0.91, 0.0), (0.5, 0.5)])
def test_a_misfit_adds_its_square_to_the_mean_squared_advantage(p, b):
    assert p * (1 - b) ** 2 + (1 - p) * b**2 == pytest.approx(p * (1 - p) + (b - p) ** 2)


def test_four_times_the_noise_does_not_want_four_times_the_group():
    assert [group_size.compute(5, r)["best"] for r in (16, 64, 256)] == [5, 9, 17]
    assert [s for s in SETTINGS if group_size.best_at_64(group_size.compute(*s))] == [(9, 64)]
    flat = [g for g in range(2, 65) if group_size.compute(g, 64)["here"]["all three"] <= 1.03]
    assert (flat[0], flat[-1]) == (6, 14)


def test_the_three_parts_of_the_noise_add_up_and_one_is_the_least():
    for size, ratio in SETTINGS:
        here = dict(group_size.compute(size, ratio)["here"])
        assert here.pop("all three") == pytest.approx(sum(here.values()))
    assert min(group_size.compute(g, 16)["here"]["all three"] for g in range(2, 65)) == 1


def test_the_largest_advantage_is_a_root_and_its_square_is_named():
    assert check.largest_advantage(lambda size: (size - 1).sqrt())
    assert "square" in repr(check.largest_advantage(lambda size: size - 1))
    assert check.largest_advantage(lambda size: (size - 1) / size.sqrt())  # Bessel's


def test_the_sum_over_the_batch_does_not_expose_the_repeated_means():
    import torch

    rewards = torch.tensor([1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    bug = check.silent_bug_grpo
    assert not bug(lambda f: abs(f(rewards[:4], 4).sum()) < 1e-6)
    assert bug(lambda f: f(rewards, 4).view(2, 4).sum(1).abs().max() < 1e-6)
