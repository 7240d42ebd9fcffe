"""The page on the critic: its explorer's numbers, its checks, and that its tasks can be done."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rlnb import check
from rlnb.classroom.exercises import critic as exercises
from rlnb.classroom.explorers import gae as five_tokens
from rlnb.classroom.explorers import wrong_critic
from rlnb.classroom.pictures import critic as pictures
from rlnb.objective import Batch, gae


@pytest.mark.parametrize("lam", [0.0, 0.3, 0.95, 1.0])
def test_an_error_of_one_token_is_the_toy_of_five_tokens(lam):
    assert wrong_critic.compute(lam, 1)["gradient"] == pytest.approx(
        five_tokens.compute(lam)["gradient"], abs=1e-12
    )


@pytest.mark.parametrize("lasts", [1, 7, 30, 80])
@pytest.mark.parametrize("lam", [0.0, 0.9, 0.95, 1.0])
def test_the_gradient_is_the_package_gae_on_all_four_outcomes(lam, lasts):
    good = wrong_critic.P_GOOD
    push = square = 0.0
    for plan, chance, score in (("good", good, 1 - good), ("bad", 1 - good, -good)):
        values = torch.tensor(wrong_critic.staircase(plan, lasts)[1], dtype=torch.float64)[None]
        for reward in (1.0, 0.0):
            settled = wrong_critic.TRUE[plan] if reward else 1 - wrong_critic.TRUE[plan]
            batch = Batch(
                torch.zeros_like(values), torch.ones_like(values), torch.tensor([reward]), 1,
                values=values,
            )  # fmt: skip
            token_rewards = torch.zeros_like(values)
            token_rewards[0, -1] = reward
            A = gae(gamma=1.0, lam=lam)(batch, token_rewards)
            one = score * A[0, 12].item()  # the plan is the 13th shown
            push += chance * settled * one
            square += chance * settled * one**2
    data = wrong_critic.compute(lam, lasts)
    assert data["gradient"] == pytest.approx(push, abs=1e-12)
    assert data["noise"] ** 2 == pytest.approx((square - push**2) / 8, abs=1e-12)
    assert data["off"] ** 2 == pytest.approx(data["bias"] ** 2 + data["noise"] ** 2)


def test_the_sign_turns_at_two_ninths():
    assert wrong_critic.compute(2 / 9, 1)["gradient"] == pytest.approx(0, abs=1e-15)


def test_all_tasks_are_open_at_first_and_can_be_done():
    explorer = wrong_critic.wrong_critic_explorer()
    goals = (wrong_critic.turned_at_95, wrong_critic.least_off)
    assert not any(goal(explorer.data) for goal in goals)
    done = [d for d in range(1, 81) if goals[0](explorer.set(lam=0.95, lasts=d).data)]
    assert done == [30]
    done = [k for k in range(101) if goals[1](explorer.set(lam=k / 100, lasts=10).data)]
    assert done == [99]
    offs = [round(wrong_critic.compute(lam, 10)["off"], 3) for lam in (0.95, 0.99, 1.0)]
    assert offs == [0.089, 0.041, 0.064]
    assert wrong_critic.compute(1.0, 30)["off"] == wrong_critic.compute(0.5, 30)["least"]
    assert wrong_critic.compute(1.0, 20)["off"] > wrong_critic.compute(0.5, 20)["least"]


def test_more_answers_favour_a_larger_lambda_and_never_1():
    """Less of the variance, all of the bias. At 1 the bias squared is flat, the noise is not."""
    lambdas = np.linspace(0.9, 1, 100_001)
    bias = wrong_critic.mean_gradient(lambdas, 10) - wrong_critic.TRUE_GRADIENT
    p, g = wrong_critic.outcomes(10, lambdas)
    variance = p @ g**2 - (p @ g) ** 2
    best = [lambdas[(bias**2 + variance / n).argmin()] for n in (8, 64, 1024)]
    assert np.round(best, 3).tolist() == [0.988, 0.996, 1.0]
    assert best[2] < 1


def test_the_noise_is_the_plans_own_draw_until_lambda_is_near_one():
    noises = [wrong_critic.compute(lam, 10)["noise"] for lam in (0.0, 0.5, 0.95)]
    assert all(0.017 <= noise <= 0.0225 for noise in noises), noises
    assert wrong_critic.compute(1.0, 10)["noise"] > 0.06
    assert wrong_critic.compute(0.95, 29)["right_sign"]
    assert not wrong_critic.compute(0.95, 30)["right_sign"]


def test_the_explorer_redraws_what_a_full_draw_shows():
    explorer = wrong_critic.wrong_critic_explorer().set(lam=0.6, lasts=25)
    assert (explorer.pixels() == explorer.pixels_from_scratch()).all()


@pytest.mark.parametrize("keeps", [0.0, 0.5, 0.9])
def test_tipping_lambda_is_where_the_package_gae_finds_no_lead(keeps):
    """The lead of one plan over the other is a value like any: GAE is linear in the values."""
    claimed, true = torch.tensor([-0.2]).double(), torch.tensor([0.7]).double()
    lam = exercises.tipping_lambda(claimed, true, keeps).item()
    leads = true + (claimed - true) * keeps ** torch.arange(600.0, dtype=torch.float64)
    values = torch.cat([torch.zeros(1), leads])[None]
    rewards = torch.zeros_like(values)
    rewards[0, -1] = true
    batch = Batch(torch.zeros_like(values), torch.ones_like(values), true, 1, values=values)
    assert gae(gamma=1.0, lam=lam)(batch, rewards)[0, 0].item() == pytest.approx(0, abs=1e-9)


def test_tipping_lambda_of_an_error_that_is_gone_at_once_is_two_ninths():
    claimed, true = torch.tensor([-0.2]), torch.tensor([0.7])
    assert exercises.tipping_lambda(claimed, true, 0.0).item() == pytest.approx(2 / 9)
    assert str(check.tipping_lambda(exercises.tipping_lambda)).startswith("right")


def test_an_error_that_ends_at_a_stroke_is_named():
    said = str(check.tipping_lambda(lambda claimed, true, keeps: claimed / (claimed - true)))
    assert "then 1 - keeps of the rest" in said


def test_the_target_at_lambda_1_exposes_the_colleague():
    def my_test(both):
        rewards, values = torch.tensor([0.0, 0.0, 1.0]), torch.tensor([0.2, 0.5, 0.7])
        assert torch.allclose(both(rewards, values, 1.0, 1.0)[1], torch.ones(3))

    assert str(check.silent_bug_critic(my_test)).startswith("right")

    def advantages_only(both):
        rewards, values = torch.tensor([0.0, 0.0, 1.0]), torch.tensor([0.2, 0.5, 0.7])
        assert abs(both(rewards, values, 1.0, 0.95)[0].mean()) < 1e-6

    assert "has not seen the bug" in str(check.silent_bug_critic(advantages_only))


def test_pictures_say_their_numbers():
    picture = pictures.memory({"all": {"policy": 16, "reference": 2}}, ("policy",), caption="c")
    assert "all: 18" in picture.alt
    push = torch.zeros(200)
    push[60] = 0.25
    picture = pictures.pushes({"one": push}, named={"plan": 60}, caption="c")
    assert "200 tokens" in picture.alt and "plan +0.25" in picture.alt
