"""The lesson on REINFORCE: its explorers say what the sums say, and its tasks can be done."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rlnb import check
from rlnb.classroom.explorers import one_push, uphill
from rlnb.classroom.pictures import reinforce as pictures
from rlnb.objective import ZOO
from rlnb.toys import Bandit, expected_gradient, true_gradient

PUSHES = [(a, c / 4) for a in one_push.NAMES for c in range(-6, 7)]
CLOUDS = [(n, c) for n in uphill.SIZES for c in uphill.CONSTANTS]


@pytest.mark.parametrize("constant", [0.0, 0.5, -1.0, 1.5])
def test_the_mean_push_is_the_true_gradient_whatever_is_added(constant):
    policy = Bandit(torch.tensor(one_push.PI).log())
    data = one_push.compute("C", constant)
    truth = true_gradient(policy, one_push.RIGHT).numpy()
    assert np.allclose(data["mean"], truth, atol=1e-12)
    rewards = one_push.RIGHT + constant
    estimate = expected_gradient(policy, rewards, ZOO["reinforce"], 1).numpy()
    assert np.allclose(data["mean"], estimate, atol=1e-12)


def test_the_mean_is_the_pushes_weighed_with_their_probabilities():
    pushes = np.stack([one_push.compute(name, 0.75)["push"] for name in one_push.NAMES])
    assert np.allclose(one_push.PI @ pushes, one_push.compute("A", 0.75)["mean"], atol=1e-12)


def test_the_task_on_one_push_needs_both_sliders():
    goal = one_push.wrong_draw_hits_the_right
    reached = {setting for setting in PUSHES if goal(one_push.compute(*setting))}
    assert reached == {(name, c / 4) for name in "CD" for c in range(1, 7)}
    assert not goal(one_push_start())


def one_push_start():
    return one_push.one_push_explorer().data


def test_the_dots_scatter_around_the_true_gradient():
    """The true gradient is (1, 0) in the picture's units, at any constant."""
    for constant in (0.0, -0.5, 1.0):
        dots = uphill.compute(4096, constant)["dots"]
        error = dots.std(0) / len(dots) ** 0.5
        assert (np.abs(dots.mean(0) - (1, 0)) < 4 * error).all()


def test_ten_more_in_every_reward_takes_more_than_a_thousand_answers():
    assert uphill.compute(1024, 10.0)["share"] < 0.9 < 0.95 < uphill.compute(4096, 10.0)["share"]
    assert uphill.compute(16, 0.0)["share"] > 0.95 > 0.6 > uphill.compute(16, 10.0)["share"]


def test_most_steps_of_one_answer_go_downhill_when_every_reward_is_above_0():
    """Exactly: an answer's own push points uphill with probability 0.4224, whatever is added."""
    done = {setting for setting in CLOUDS if uphill.mostly_downhill(uphill.compute(*setting))}
    assert done == {(1, 1.0), (1, 3.0), (1, 10.0)}
    pi, _, score = uphill.world()
    assert pi[score[:, 0] < 0].sum() == pytest.approx(0.5776, abs=5e-5)
    assert uphill.compute(1, 10.0)["down"] == pytest.approx(0.5776, abs=0.01)
    most = int(np.where(score[:, 0] < 0, pi, 0).argmax())
    assert most == int(pi.argmax()) == 0  # "stop" at once


def test_without_a_right_answer_a_step_at_rewards_0_and_1_stands_still():
    for n in (1, 4, 16):
        data = uphill.compute(n, 0.0)
        assert data["down"] == 0
    assert uphill.compute(16, 0.0)["share"] == pytest.approx(0.98465, abs=0.003)


def test_four_answers_are_enough_with_a_number_between_the_rewards():
    done = {setting for setting in CLOUDS if uphill.few_answers(uphill.compute(*setting))}
    assert done == {(4, -0.5), (4, -0.2)}
    start = uphill.uphill_explorer().data
    assert not uphill.few_answers(start) and not uphill.mostly_downhill(start)
    for one_move in [(n, 0.0) for n in uphill.SIZES] + [(16, c) for c in uphill.CONSTANTS]:
        data = uphill.compute(*one_move)
        assert not uphill.few_answers(data) and not uphill.mostly_downhill(data), one_move


def test_the_share_is_that_of_the_probabilities():
    """Rewards 0 and 1: a step is uphill when it has a right answer, and only then."""
    pi, rewards, score = uphill.world()
    assert (score[rewards == 1, 0] > 0).all()
    for n in (4, 16):
        assert uphill.compute(n, 0.0)["share"] == pytest.approx(
            1 - (1 - pi @ rewards) ** n, abs=0.01
        )
    assert uphill.compute(4, -1.0)["share"] == pytest.approx(0.9208, abs=0.006)


def test_the_pictures_draw_and_say_what_they_show():
    x = torch.linspace(-1, 1, 9)
    one = (x > 0.3).double()
    assert "1 jump" in pictures.one_draw(x, one, 0.0, ("stop", "1, stop")).alt
    assert "staircase" in pictures.average(x, one, x, (x, one, x), 0.0).alt
    chance, slope = torch.tensor([0.3, 0.2, 0.5]), torch.tensor([0.6, -0.4, 0.6])
    areas = pictures.areas(["a", "b"], chance, slope, torch.tensor([True, True, False]))
    assert "sum to 0.100" in areas.alt
    assert "0.10 to 0.90" in pictures.climb([0.1, 0.9], {"a": [0.4, 0.5], "b": [-1, 0.0]}).alt
    assert "−0.10" in pictures.credit(["0", "stop"], [0.2, 0.1, 1.0]).alt
    dots = np.array([[1.0, 0.0], [-1.0, 2.0]])
    assert "deviation along the true gradient 1.0" in pictures.clouds({"a": dots, "b": dots}).alt
    runs = torch.tensor([[0.2, 0.4], [0.6, 0.8]])
    ends = {"a": runs, "b": runs, "c": runs}
    assert "0.30, 0.70" in pictures.rate_sweep((0.1, 1), ends, 0.2, "all").alt


def test_the_likelier_right_answer_crowds_out_the_other():
    """Exact steps of rate 1 on the explorer's toy: B is right, is never pushed down, and sinks."""
    logits, start = np.log(one_push.PI), one_push.PI[1]
    for _ in range(60):
        pi = np.exp(logits) / np.exp(logits).sum()
        push = pi * (one_push.RIGHT - pi @ one_push.RIGHT)
        assert push[0] > push[1] > 0
        logits = logits + push
    pi = np.exp(logits) / np.exp(logits).sum()
    assert start == 0.1 and pi[1] == pytest.approx(0.0172, abs=1e-4)
    assert pi[0] == pytest.approx(0.9702, abs=1e-4)


def test_the_push_on_a_logit_is_its_probability_times_how_much_better_it_is():
    policy = Bandit([0.4, -1.0, 0.3])
    rewards = torch.tensor([1.0, 0.2, 0.0], dtype=torch.float64)
    found = check.logit_push.exercise.reference(policy.logits.detach(), rewards)
    torch.testing.assert_close(found, true_gradient(policy, rewards), rtol=0, atol=1e-12)
    assert "second half" in repr(check.logit_push(lambda z, R: z.softmax(0) * R))


def test_the_step_loss_is_the_zoo_s_on_the_cut_logits():
    logits = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    tokens = torch.tensor([[3, 1, 2, 0, 0], [3, 1, 0, 2, 1]])
    written = torch.tensor([[0, 0, 1, 0, 0], [0, 0, 1, 1, 1]]).bool()
    rewards = torch.tensor([1.0, 0.5], dtype=torch.float64)
    logp = torch.log_softmax(logits[:, :-1], -1).gather(-1, tokens[:, 1:, None]).squeeze(-1)
    from rlnb import Batch

    batch = Batch(logp, written[:, 1:].double(), rewards, 2)
    ours = check.step_loss.exercise.reference(logits, tokens, written, rewards)
    torch.testing.assert_close(ours, ZOO["reinforce"](batch).loss, rtol=0, atol=1e-12)


def test_a_batch_without_padding_does_not_expose_the_mean_over_everything():
    """Rows of one token and a width of one: there the two are the same function."""
    bug, lp, yes = check.silent_bug_reinforce, torch.tensor([[-1.0], [-2.0]]), torch.ones(2, 1)
    rewards = torch.tensor([1.0, 0.0])

    def narrow(loss):
        assert torch.allclose(loss(lp, yes.bool(), rewards), torch.tensor(0.5))

    def padded(loss):
        wide = torch.cat([lp, torch.zeros(2, 1)], 1), torch.cat([yes, 0 * yes], 1).bool()
        assert torch.allclose(loss(*wide, rewards), loss(lp, yes.bool(), rewards))

    assert not bug(narrow)
    assert bug(padded)
