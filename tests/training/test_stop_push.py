"""The push on the decision to stop: by hand, and on the shipped base of `pick`."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from rlnb.objective import ZOO, sequence_mean, token_mean
from rlnb.training import (
    ESTIMATORS,
    TASKS,
    BadInput,
    CoinFlip,
    Decisions,
    Rollout,
    Sampling,
    data_folder,
    load,
    sample_decisions,
    stop_push,
)


@pytest.fixture(scope="module")
def base():
    return load(data_folder() / "model_pick", device="cpu")


@pytest.fixture(scope="module")
def decisions(base):
    return sample_decisions(*base, TASKS["pick"], batches=12)


def by_hand():
    """Two batches of one group of two: lengths 2 and 4, the first answer right in both.

    Scores -0.5 on the stop of the short answers, +0.5 and -0.5 in the long ones, +0.25 more in the
    second batch's.
    """
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]] * 2).bool()
    score = torch.tensor([[0, -0.5, 0, 0], [0, 0.5, 0, -0.5],
                          [0, -0.5, 0, 0], [0, 0.5, 0.25, -0.5]])  # fmt: skip
    zero = torch.zeros(4, 4)
    rollout = Rollout(zero[:, :1].long(), mask[:, :1].long(), zero.long(), mask, zero, zero,
                      torch.ones(4).bool(), 2, Sampling(max_new_tokens=8))  # fmt: skip
    problems = [TASKS["pick"].parse("44529:1?")] * 4
    right = torch.tensor([True, False, True, False])
    return Decisions(rollout, problems, ["a", "b", "c", "d"], right, score != 0, zero, score, 2)


def test_the_push_of_a_group_of_two_by_hand():
    # A = +-1/2. 1/T: c = 1/4 and 1/8. push of the right answer -1/2 * 1/4 * 1/2 = -1/16, of the
    # long wrong one 0 and -1/2 * 1/8 * 1/4 = -1/64; halved by the mean over two answers. The unit
    # is the mean of 1/8 and 1/16: 3/32.
    push = stop_push(by_hand(), ESTIMATORS["mean_only"])
    assert push.right.batches.tolist() == pytest.approx([-1 / 3, -1 / 3])
    assert push.wrong.batches.tolist() == pytest.approx([0.0, -1 / 12])
    assert push.right.mean == pytest.approx(-1 / 3) and push.right.error == pytest.approx(0.0)
    # std of (0, -1/12) is 1/(12 sqrt 2), over sqrt 2: 1/24
    assert push.wrong.error == pytest.approx(1 / 24)


def test_a_constant_divisor_by_hand_and_its_scale_does_not_matter():
    push = stop_push(by_hand(), ESTIMATORS["dr_grpo"])  # c A is +-const, its mean size cancels
    assert push.right.batches.tolist() == pytest.approx([-0.25, -0.25])
    assert push.wrong.batches.tolist() == pytest.approx([0.0, -0.125])
    token = stop_push(by_hand(), ESTIMATORS["mean_only"].replace(weights=token_mean))
    assert token.right.batches.tolist() == pytest.approx([-0.25, -0.25])


def test_a_given_reward_replaces_the_verifier_and_truncation_takes_it_away():
    always = stop_push(by_hand(), ESTIMATORS["grpo"], lambda problem, text: float(text in "ac"))
    assert always.right.batches.tolist() == pytest.approx([-1 / 3, -1 / 3])
    cut = by_hand()
    cut = dataclasses.replace(
        cut, rollout=dataclasses.replace(cut.rollout, finished=torch.tensor([1, 1, 0, 1]).bool())
    )
    second = stop_push(cut, ESTIMATORS["grpo"]).right.batches[1]
    assert second == 0.0  # its group is all zero


def test_the_length_divisor_shortens_right_and_lengthens_wrong_answers(decisions):
    for name in ("grpo", "mean_only"):
        push = stop_push(decisions, ESTIMATORS[name])
        assert push.right.mean < -0.08 and push.wrong.mean > 0.08
        assert push.right.mean < -4 * push.right.error and push.wrong.mean > 4 * push.wrong.error


def test_without_the_length_divisor_there_is_no_such_push(decisions):
    for name in ("dr_grpo", "zscore_constant", "dapo"):
        push = stop_push(decisions, ESTIMATORS[name])
        assert abs(push.right.mean) < 0.05 and abs(push.wrong.mean) < 0.05


def test_a_coin_flip_pushes_nowhere(decisions):
    for objective in ESTIMATORS.values():
        push = stop_push(decisions, objective, CoinFlip(0))
        assert abs(push.right.mean) < 0.05 and abs(push.wrong.mean) < 0.05


def test_the_base_decides_the_same_way_whether_right_or_wrong(decisions):
    found = decisions.summary()
    assert abs(found["go_on/right"] - 0.6) < 0.05 and abs(found["go_on/wrong"] - 0.6) < 0.05
    assert 0.14 < found["pass@1"] < 0.23 and found["truncated"] < 0.002
    # A score has mean zero: went on or not, against the probability of it.
    assert abs(decisions.score[decisions.decided].mean()) < 0.03
    assert (decisions.score[~decisions.decided] == 0).all()


def test_the_estimators_differ_in_the_divisors_only():
    grpo = ESTIMATORS["grpo"]
    assert grpo == ZOO["grpo"].replace(terms=()) and grpo.weights == sequence_mean()
    assert ESTIMATORS["mean_only"].replace(weights=ZOO["dr_grpo"].weights) == ZOO["dr_grpo"]


@pytest.mark.parametrize(
    "task, batches, message",
    [("chain", 2, "has no verdicts"), ("types", 2, "has no verdicts"), ("pick", 1, "2 or more")],
)
def test_what_cannot_be_measured_is_refused(base, task, batches, message):
    with pytest.raises(BadInput, match=message):
        sample_decisions(*base, TASKS[task], batches=batches)
