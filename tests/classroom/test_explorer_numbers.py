"""What the explorers compute: by hand, by autograd, by the bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rlnb.classroom.explorers import clip, gae, group_advantage
from rlnb.toys import running_group


def test_clip_leaves_one_dead_corner_per_sign():
    corners = {(c.sign, c.moved): c for c in clip.compute()["corners"]}
    assert {key: round(c.slope, 12) for key, c in corners.items()} == {
        (1, "down"): 1,
        (1, "up"): 0,
        (-1, "down"): 0,
        (-1, "up"): -1,
    }
    assert [corners[key].ratio for key in corners] == [0.5, 1.5, 0.5, 1.5]
    assert [round(corners[key].objective, 12) for key in corners] == [0.5, 1.2, -0.8, -1.5]


def test_clip_dual_gives_negative_advantages_a_floor_and_leaves_positive_ones_alone():
    free, capped = clip.compute(), clip.compute(dual=3.0)
    assert capped["objective"][-1].min() == -3.0
    assert free["objective"][-1].min() < -3.9
    assert np.array_equal(capped["objective"][1], free["objective"][1])
    far = capped["corners"][-1]
    assert (far.sign, far.moved, far.ratio, far.alive) == (-1, "far up", 3.5, False)


def test_clip_infinite_dual_is_no_dual():
    assert clip.compute(dual=math.inf)["corners"] == clip.compute(dual=None)["corners"]


def test_clip_moves_each_edge_on_its_own():
    data = clip.compute(epsilon_low=0.1, epsilon_high=0.28)
    ratio = data["ratio"]
    assert np.array_equal(data["slope"][1] != 0, ratio < 1.28)
    assert np.array_equal(data["slope"][-1] != 0, ratio > 0.9)


def test_clip_slope_per_logprob_is_the_ratio_times_the_slope_per_ratio():
    data = clip.compute(dual=3.0)
    for sign in (1, -1):
        np.testing.assert_allclose(
            data["slope_logprob"][sign], data["ratio"] * data["slope"][sign], atol=1e-12
        )


def test_group_of_the_course_has_one_half_and_one():
    by_std = group_advantage.compute()["by_std"]
    assert by_std["population"].round(4).tolist() == [1, 1, -1, -1]
    assert by_std["bessel"].round(4).tolist() == [0.866, 0.866, -0.866, -0.866]
    assert by_std["none"].tolist() == [0.5, 0.5, -0.5, -0.5]


def test_group_default_is_the_running_group():
    assert tuple(running_group().rewards.tolist()) == group_advantage.RUNNING_GROUP


@pytest.mark.parametrize("std", ["population", "bessel"])
def test_group_bound_is_reached_by_a_lone_success_and_by_nothing_larger(std):
    for size in range(2, 17):
        data = group_advantage.compute("1, 0", size=size, std=std, fill="last", eps=0)
        assert data["largest"] == pytest.approx(data["bound"], abs=1e-12)
    generator = np.random.default_rng(0)
    for size in (2, 5, 16):
        data = group_advantage.compute(generator.normal(size=size).tolist(), std=std, eps=0)
        assert data["largest"] <= data["bound"] + 1e-12


def test_group_of_equal_rewards_is_exactly_zero_and_says_so():
    data = group_advantage.compute([0.7] * 5)
    assert data["advantages"].tolist() == [0.0] * 5
    assert data["equal"]
    assert "exactly 0" in group_advantage.alt(data)


def test_group_list_is_cut_repeated_or_continued():
    assert group_advantage.fill_group((3, 2, 1), 2, "list") == (3, 2)
    assert group_advantage.fill_group((3, 2, 1), 7, "list") == (3, 2, 1, 3, 2, 1, 3)
    assert group_advantage.fill_group((3, 2, 1), 5, "last") == (3, 2, 1, 1, 1)


def test_gae_wrong_critic_turns_the_sign_at_small_lambda():
    lambdas = (0, 0.5, 0.9, 0.95, 1)
    gradients = [round(gae.compute(lam)["gradient"], 4) for lam in lambdas]
    assert gradients == [-0.048, 0.06, 0.1464, 0.1572, 0.168]
    assert [gae.compute(lam)["right_sign"] for lam in (0, 0.22, 0.23, 1)] == [0, 0, 1, 1]


def test_gae_true_gradient_is_that_of_the_expected_reward():
    logit = torch.tensor(math.log(gae.P_GOOD / (1 - gae.P_GOOD)), dtype=torch.float64)
    logit.requires_grad_()
    p = logit.sigmoid()
    (p * gae.P_RIGHT["good"] + (1 - p) * gae.P_RIGHT["bad"]).backward()
    assert gae.TRUE_GRADIENT == pytest.approx(logit.grad.item(), abs=1e-12)


def test_gae_right_critic_makes_lambda_irrelevant():
    assert np.ptp(gae.compute(wrong_critic=False)["curve"]) < 1e-12


def test_gae_advantages_by_hand():
    good, bad = (gae.compute(lam=0.5)["advantages"][b] for b in ("good", "bad"))
    # deltas of the good branch: 0.5 - 0.48, 0.9 - 0.5, then the critic is right
    np.testing.assert_allclose(good, [0.02 + 0.5 * 0.4, 0.4, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(bad, [0.22 + 0.5 * -0.5, -0.5, 0, 0, 0], atol=1e-12)


def test_gae_discount_weighs_the_reward_by_the_tokens_before_it():
    assert gae.compute(lam=1, gamma=0.9)["gradient"] == pytest.approx(0.168 * 0.9**4, abs=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda: clip.compute(sign="up"),
        lambda: clip.compute(dual=0.5),
        lambda: group_advantage.compute(std="sample"),
        lambda: group_advantage.compute(fill="mirror"),
        lambda: group_advantage.compute([1.0]),
        lambda: gae.compute(lam=1.5),
        lambda: gae.compute(gamma=-0.1),
    ],
)
def test_bad_arguments_raise_a_sentence(call):
    with pytest.raises(ValueError, match="got"):
        call()
