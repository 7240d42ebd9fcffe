"""Several rewards on one answer: the two orders, GDPO's collapse, TRL's arithmetic."""

from __future__ import annotations

import pytest
import torch

from rlnb.objective import several_rewards

ROOT2 = 2**0.5


def both_orders(rewards, **keywords):
    r = torch.tensor(rewards, dtype=torch.float64)
    return [
        several_rewards(r, len(r), order=order, over_batch=False, **keywords).tolist()
        for order in ("sum_then_normalize", "normalize_then_sum")
    ]


def test_the_sum_cannot_tell_one_reward_from_two():
    one, two = [[0.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 1.0]]
    assert both_orders(one)[0] == pytest.approx(both_orders(two)[0], abs=1e-5)
    assert both_orders(one)[1] == pytest.approx([-1.0, 1.0], abs=1e-5)
    assert both_orders(two)[1] == pytest.approx([-2.0, 2.0], abs=1e-5)


def test_a_reward_that_all_share_is_exactly_silent():
    shared = [[0.7, 1.0], [0.7, 1.0], [0.7, 1.0]]
    assert both_orders(shared) == [[0.0] * 3, [0.0] * 3]


def test_one_reward_is_the_group_s_z_score_in_either_order():
    for found in both_orders([[1.0], [0.0], [0.0], [1.0]]):
        assert found == pytest.approx([1.0, -1.0, -1.0, 1.0], abs=1e-5)


def test_the_last_step_runs_over_the_batch():
    r = torch.rand(12, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    A = several_rewards(r, 4, order="normalize_then_sum")
    assert A.mean().abs() < 1e-12 and A.std(correction=0).item() == pytest.approx(1, abs=1e-5)


def test_weights_come_after_the_z_scores_as_in_trl():
    r = torch.rand(8, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    w = torch.tensor([2.0, 0.5], dtype=torch.float64)
    grouped = r.view(2, 4, 2)
    each = (grouped - grouped.mean(1, keepdim=True)) / (grouped.std(1, keepdim=True) + 1e-4)
    total = (each.view(8, 2) * w).sum(1)
    expected = (total - total.mean()) / (total.std() + 1e-4)
    found = several_rewards(r, 4, w, "normalize_then_sum", correction=1, eps=1e-4)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"num_generations": 3}, "multiple"),
        ({"num_generations": 1}, "num_generations"),
        ({"weights": torch.ones(3)}, "one per reward"),
        ({"order": "sum"}, "order"),
    ],
)
def test_what_does_not_fit_is_refused(keywords, words):
    with pytest.raises(ValueError, match=words):
        several_rewards(torch.zeros(4, 2), **({"num_generations": 2} | keywords))
