"""The lesson on GRPO: its explorers say what the formulas say, and its tasks can be done."""

from __future__ import annotations

import math

import pytest

from rlnb import check
from rlnb.classroom.explorers import mixed_groups, one_group

GROUPS = [(size, right) for size in range(2, 21) for right in range(size + 1)]
BUDGETS = [(size, rate) for size in mixed_groups.SIZES for rate in mixed_groups.RATES]


@pytest.mark.parametrize(("size", "right"), [(16, 1), (16, 15), (4, 2), (20, 7)])
def test_a_right_answer_gets_the_root_of_the_odds_against_it(size, right):
    data, p = one_group.compute(size, right, 0.3), right / size
    assert data["zscore"][0] == pytest.approx(math.sqrt((1 - p) / p))
    assert data["zscore"][-1] == pytest.approx(-math.sqrt(p / (1 - p)))
    assert data["centred"][0] == pytest.approx(0.3 * (1 - p))


def test_a_group_of_equal_rewards_is_silent_and_says_so():
    for size, right, pay in ((5, 0, 1.0), (5, 5, 1.0), (12, 12, 0.7)):  # 0.7: a rounded mean
        data = one_group.compute(size, right, pay)
        assert not data["zscore"].any() and not data["centred"].any()
        assert "silent" in one_group.readout(data)


def test_only_the_group_of_eleven_with_one_right_answer_is_the_smallest_loud_one():
    loud = [group for group in GROUPS if one_group.loud(one_group.compute(*group))]
    above_3 = [group for group in GROUPS if one_group.compute(*group)["zscore"][0] > 3]
    assert loud == [(11, 1)] and min(above_3) == (11, 1)


def test_the_pay_moves_the_left_panel_and_not_the_right_one():
    dear, cheap = one_group.compute(8, 1, 1.0), one_group.compute(8, 1, 0.1)
    assert cheap["centred"][0] == pytest.approx(dear["centred"][0] / 10)
    assert cheap["zscore"][0] == pytest.approx(dear["zscore"][0])
    assert one_group.pay_does_not_matter(cheap) and not one_group.pay_does_not_matter(dear)


def test_small_and_large_groups_push_equally_many_right_answers_of_a_hard_prompt():
    small, large = mixed_groups.compute(8, 0.02), mixed_groups.compute(64, 0.02)
    assert small["right"] == pytest.approx(large["right"], abs=1e-6)
    assert large["share"] > 4 * small["share"] and large["wrong"] > 4 * small["wrong"]


def test_the_expected_numbers_are_those_of_all_groups_counted():
    size, p = 4, 0.3
    right = sum(
        math.comb(size, k) * p**k * (1 - p) ** (size - k) * k for k in range(1, size)
    )  # right answers in a mixed group
    data = mixed_groups.compute(size, p)
    assert data["right"] == pytest.approx(right * mixed_groups.BUDGET / size)
    assert data["mixed"] == pytest.approx(data["groups"] * data["share"])


def test_the_task_on_silent_groups_has_a_dead_end_and_a_way():
    heard = [b for b in BUDGETS if mixed_groups.hard_and_heard(mixed_groups.compute(*b))]
    assert heard == [(128, 0.02)]
    assert mixed_groups.compute(64, 0.02)["right"] == pytest.approx(2.56, abs=0.01)
    assert round(127**0.5, 1) == 11.3 and round(7**0.5, 2) == 2.65


def test_pushing_a_rare_wrong_answer_down_feeds_the_commonest_and_costs_the_rare_right_one():
    """The page's example: right 0.04, a common wrong answer 0.60, eighteen more at 0.02."""
    import torch

    pi = torch.tensor([0.04, 0.60] + [0.02] * 18, dtype=torch.float64)
    drawn = torch.eye(20, dtype=torch.float64)[5]
    after = (pi.log() - 0.54 * (drawn - pi)).softmax(0)
    assert round(after[0].item(), 2) == 0.03 and round(after[1].item(), 2) == 0.68


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
