"""Page 09: which groups have a signal, the bonus that the division blows up, the riddle."""

from __future__ import annotations

import pytest
import torch

from rlnb import ZOO, Objective, check
from rlnb.classroom.exercises.informative_groups import _advantages, advantages
from rlnb.objective import group_zscore, sequence_sum
from rlnb.toys import running_batch


def test_informative_groups_are_those_with_an_advantage():
    """The package's z-score is not zero exactly where the reference keeps a group."""
    zscore = Objective(group_zscore(), ZOO["reinforce"].surrogate, sequence_sum)
    for probe in check.keep_informative.exercise.probes:
        a = probe.cast(torch.float64)
        rewards, size = a["rewards"], a["num_generations"]
        row = torch.zeros(len(rewards), 1, dtype=torch.float64)
        batch = running_batch().replace(
            logprobs=row,
            completion_mask=torch.ones_like(row),
            rewards=rewards,
            num_generations=size,
            old_logprobs=None,
            ref_logprobs=None,
        )
        A = zscore.prepare(batch).advantages.view(-1, size)
        kept = check.keep_informative.exercise.reference(rewards, size)
        assert torch.equal((A != 0).any(1), kept), probe.label


@pytest.mark.parametrize(
    "rule",
    [
        lambda r: r.std(1) > 0,
        lambda r: r.std(1, correction=0) > 0,
        lambda r: r.var(1) > 0,
        lambda r: (r - r.mean(1, keepdim=True)).abs().sum(1) > 0,
    ],
)
def test_every_way_to_ask_for_a_std_above_zero_is_caught(rule):
    verdict = check.keep_informative(lambda rewards, size: rule(rewards.view(-1, size)))
    assert not verdict
    assert "twelve" in verdict.message


def test_other_right_ways_are_right():
    def by_first(rewards, size):
        groups = rewards.view(-1, size)
        return (groups != groups[:, :1]).any(1)

    def as_a_list(rewards, size):
        return [len(set(group.tolist())) > 1 for group in rewards.view(-1, size)]

    def as_numbers(rewards, size):
        return by_first(rewards, size).to(rewards.dtype)

    assert check.keep_informative(by_first).kind == "right"
    assert check.keep_informative(as_numbers).kind == "right"
    assert check.keep_informative(as_a_list).kind == "convention"


@pytest.mark.parametrize("least", [1e-4, 1e-6, 1e-8, 1e-10])
def test_a_threshold_on_the_std_is_caught_and_named(least):
    """Twelve float32 rewards of 700.1 have a std of 6e-5, above 1e-6: no threshold is right."""
    assert float(torch.full((12,), 700.1).std()) > 1e-6
    verdict = check.keep_informative(lambda r, g: r.view(-1, g).std(1) > least)
    assert not verdict and "second eps" in verdict.message


def test_a_wrong_answer_of_yes_and_no_is_shown_and_nothing_raises():
    verdict = check.keep_informative(lambda r, g: r.view(-1, g)[:, 0] != r.view(-1, g)[:, 1])
    assert verdict.kind == "wrong" and "[1.0000, 0.0000] came" in verdict.message
    assert check.keep_informative(lambda r, g: ...).kind == "not attempted"
    integers = check.keep_informative(
        lambda r, g: (r.view(-1, g).amax(1) != r.view(-1, g).amin(1)).long()
    )
    assert "int64 came out" in integers.message  # a mask of integers would index, not select


def test_the_blown_up_bonus_is_exposed_where_all_are_right_and_survives_a_mixed_group():
    bonus = torch.tensor([0.01, 0.0, 0.0, 0.0])

    def small_where_all_are_right(f):
        assert f(torch.ones(4), bonus, 4).abs().max() < 0.02

    def order_in_a_mixed_group(f):
        A = f(torch.tensor([1.0, 1.0, 0.0, 0.0]), bonus, 4)
        assert A[0] > A[1] > A[2] and A.sum().abs() < 1e-5 and (A.abs() - 1).abs().max() < 0.02

    assert check.silent_bug_grpo_biases(small_where_all_are_right)
    assert not check.silent_bug_grpo_biases(order_in_a_mixed_group)


def test_the_blown_up_bonus_reaches_the_bound():
    bonus = torch.zeros(16, dtype=torch.float64)
    bonus[0] = 0.01
    right = torch.ones(16, dtype=torch.float64)
    assert float(advantages(right, bonus, 16)[0]) == pytest.approx(15**0.5, abs=0.01)
    assert float(_advantages(right, bonus, 16)[0]) == pytest.approx(0.01 * 15 / 16)


def push_per_token(name):
    """Of each answer of the running batch on fresh data, in units of the first answer's."""
    explained = ZOO[name].replace(terms=()).explain(running_batch().replace(old_logprobs=None))
    push = -explained.gradient[:, 0]
    return push / push[0]


def test_the_riddle_s_table_is_dr_grpo_s_and_rloo_s_and_no_other_s():
    table = push_per_token("dr_grpo")
    assert [round(x, 6) for x in table.tolist()] == [1, 1, -1, -1, 1.5, -0.5, -0.5, -0.5]
    torch.testing.assert_close(push_per_token("rloo"), table)
    for name in ("grpo", "dapo", "reinforce", "reinforce_batch_mean"):
        assert (push_per_token(name) - table).abs().max() > 0.1, name


def test_the_riddle_takes_both_names_and_explains_the_near_ones():
    for name in ("Dr. GRPO", "dr_grpo", "RLOO"):
        assert check.name_this_grpo_biases(name)
    for name, clue in (("GRPO", "3/5"), ("dapo", "1.73"), ("ppo", "critic"), ("maxrl", "3")):
        verdict = check.name_this_grpo_biases(name)
        assert not verdict and clue in verdict.message
    assert check.name_this_grpo_biases(None).kind == "not attempted"
