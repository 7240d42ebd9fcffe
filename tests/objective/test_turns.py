"""Which tokens of a trajectory are trained, and with what credit: by hand."""

from __future__ import annotations

import pytest
import torch

from rlnb.objective import ZOO, Batch
from rlnb.objective.turns import observation_mask, turn_advantages

# user, an example's assistant, user | call, call, tool, tool, answer, end, padding
ROLE = torch.tensor([[1, 2, 1, 2, 2, 3, 3, 2, 2, 0]])


def test_only_what_the_policy_wrote_is_predicted_for_its_own_sake():
    assert observation_mask(ROLE, torch.tensor([3])).int().tolist() == [[0, 0, 1, 1, 0, 0, 1, 1, 0]]


def test_an_assistant_turn_in_the_prompt_is_not_the_policys():
    counted = observation_mask(ROLE, torch.tensor([1])).sum()
    assert counted == observation_mask(ROLE, torch.tensor([3])).sum() + 1


def test_the_worlds_tokens_get_no_gradient_whatever_stands_there():
    mask = observation_mask(ROLE, torch.tensor([3])).repeat(2, 1)
    logp = torch.zeros(2, 9)
    logp[:, 4] = torch.nan
    logp.requires_grad_()
    ZOO["dr_grpo"](
        Batch(logp, mask, torch.tensor([1.0, 0.0]), 2, max_completion_length=9)
    ).loss.backward()
    assert (logp.grad[~mask] == 0).all() and (logp.grad[mask] != 0).all()


def test_credit_by_hand_two_turns_two_rows():
    rewards = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    turn = torch.tensor([[0, 0, -1, 1], [0, -1, 1, 1]])
    # from turn 0 on both earn 1: nothing to tell apart; from turn 1 on 0 and 1
    assert turn_advantages(rewards, turn, 2).tolist() == [[0, 0, 0, -0.5], [0, 0, 0.5, 0.5]]


def test_a_trajectory_that_ended_is_not_in_the_mean_of_later_turns():
    rewards = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    turn = torch.tensor([[0, -1], [0, 1], [0, 1]])
    got = turn_advantages(rewards, turn, 3)
    assert got[1, 1] == -0.5 and got[2, 1] == 0.5 and got[0, 1] == 0


def test_a_terminal_reward_alone_is_grpo_without_the_std():
    rewards = torch.zeros(8, 3, dtype=torch.float64)
    rewards[:, 2] = torch.tensor([1.0, 0, 0, 1, 1, 1, 0, 1])
    turn = torch.tensor([[0, 0, -1, 1, -1, 2]]).repeat(8, 1)
    centred = rewards.sum(1).view(2, 4) - rewards.sum(1).view(2, 4).mean(1, keepdim=True)
    expected = centred.view(8, 1) * (turn >= 0)
    assert torch.allclose(turn_advantages(rewards, turn, 4), expected)


def test_groups_do_not_mix_and_their_credit_sums_to_nothing_per_turn():
    generator = torch.Generator().manual_seed(0)
    rewards = torch.rand(12, 4, generator=generator, dtype=torch.float64)
    turn = torch.arange(4).repeat(12, 1)
    got = turn_advantages(rewards, turn, 3)
    assert got.view(4, 3, 4).sum(1).abs().max() < 1e-12


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: observation_mask(ROLE[0], torch.tensor([3])), "role"),
        (lambda: observation_mask(ROLE, torch.tensor([3, 3])), "prompt_length"),
        (lambda: turn_advantages(torch.zeros(2), ROLE, 2), "rewards"),
        (lambda: turn_advantages(torch.zeros(3, 2), torch.zeros(3, 4).long(), 2), "groups"),
    ],
)
def test_shapes_that_do_not_fit_are_named(call, said):
    with pytest.raises(ValueError, match=said):
        call()
