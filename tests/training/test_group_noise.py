"""The noise of a step by group size: the estimate against all groups counted, and what ships."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from rlnb.training import data_folder
from rlnb.training.studies import group_noise

REWARD = torch.tensor([1.0, 0.2, 0.0], dtype=torch.float64)
POLICIES = torch.tensor([[0.3, 0.3, 0.4], [0.1, 0.6, 0.3]], dtype=torch.float64)


def counted(pi, size):
    """Mean push and mean squared push of a group, over all 3^size groups, on the three logits."""
    scores = torch.eye(3, dtype=torch.float64) - pi
    mean, square = torch.zeros(3, dtype=torch.float64), 0.0
    for drawn in product(range(3), repeat=size):
        y = torch.tensor(drawn)
        advantage = group_noise.leave_one_out(REWARD[y][None])[0]
        push = (advantage[:, None] * scores[y]).mean(0)
        mean, square = mean + pi[y].prod() * push, square + pi[y].prod() * (push @ push)
    return mean, square


def constants(pi):
    """v and c of the page, for one prompt."""
    scores = torch.eye(3, dtype=torch.float64) - pi
    length, mu = scores.square().sum(1), pi @ REWARD
    gradient = (pi * (REWARD - mu)) @ scores
    own = gradient @ gradient
    v = pi @ ((REWARD - mu) ** 2 * length) - own
    c = (pi @ (REWARD - mu) ** 2) * (pi @ length) + own
    return v, c


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_noise_within_a_prompt_is_v_plus_c_over_the_number_of_others(size):
    for pi in POLICIES:
        mean, square = counted(pi, size)
        v, c = constants(pi)
        assert size * (square - mean @ mean) == pytest.approx((v + c / (size - 1)).item())


def test_the_best_size_is_one_plus_the_root_of_c_over_tau():
    within = [5.0 + 48.0 / (size - 1) for size in group_noise.SIZES]
    assert group_noise.best_size({"between": 3.0, "within": within}) == pytest.approx(5)
    noise = group_noise.noise({"between": 3.0, "within": within})
    assert noise == pytest.approx([6 + 53, 12 + 21, 24 + 5 + 48 / 7, 48 + 8.2, 96 + 5 + 48 / 31])
    assert min(3 * g + 48 / (g - 1) for g in range(2, 33)) == 3 * 5 + 48 / 4


def test_the_estimate_finds_the_numbers_of_a_world_that_can_be_counted():
    """Two prompts with logits of their own, drawn by a coin; 40,000 prompts of 8 answers."""
    dice = torch.Generator().manual_seed(0)
    which = torch.randint(2, (40_000,), generator=dice)
    y = POLICIES[which].multinomial(8, True, generator=dice)
    scores = torch.eye(3, dtype=torch.float64)[y] - POLICIES[which][:, None]
    gradients = [counted(pi, 2)[0] for pi in POLICIES]
    square = sum(g @ g for g in gradients).item() / 4  # of the mean over the coin
    between = sum(g @ g for g in gradients).item() / 2 - square
    found = group_noise.parts(scores @ scores.mT, REWARD[y], square)
    assert found["between"] * square == pytest.approx(between, rel=0.1)
    for size, within in zip((2, 4, 8), found["within"], strict=True):
        v, c = (sum(x) / 2 for x in zip(*map(constants, POLICIES), strict=True))
        assert within * square == pytest.approx((v + c / (size - 1)).item(), rel=0.05)


def test_groups_of_four_to_eight_are_the_quietest_of_the_shipped_model():
    tables = [group_noise.noise(one) for one in group_noise.shipped()]
    assert len(tables) == 3
    for two, four, eight, sixteen, most in tables:
        assert two > 1.35 * four and 1.0 < eight / four < 1.2
        assert 1.3 < sixteen / four < 1.6 and 2.2 < most / four < 2.7
    assert all(4.2 < group_noise.best_size(one) < 5 for one in group_noise.shipped())
    assert all(0.37 < one["pass@1"] < 0.41 for one in group_noise.shipped())


def test_the_file_is_described_and_small():
    path = data_folder() / "runs" / "chain_group_noise.json"
    assert path.name in (path.parent / "README.md").read_text("utf-8")
    assert path.stat().st_size < 2000 and "/home" not in path.read_text("utf-8")


def test_a_small_measurement_runs():
    found = group_noise.measure(0, prompts=3, answers=4)
    assert len(found["within"]) == 2 and 0 <= found["pass@1"] <= 1
