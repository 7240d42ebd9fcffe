"""The lesson on baselines: its explorers are what it defines, and its tasks can be done."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from rlnb import check
from rlnb.classroom.explorers import three_pushes, ways_to_be_right
from rlnb.classroom.pictures import baselines as pictures
from rlnb.objective import ZOO
from rlnb.toys import Bandit, estimator_moments

SHARES = np.linspace(0.05, 0.95, 19)
WORLDS = [(p, k, g) for p in SHARES for k in ways_to_be_right.WAYS for g in ways_to_be_right.SIZES]


@pytest.mark.parametrize("good", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("b", [-0.4, 0.0, 0.36, 1.2])
def test_the_mean_push_is_the_gradient_at_any_baseline_and_the_noise_the_instrument_s(good, b):
    data = three_pushes.compute(b, good)
    pi = torch.tensor(data["probabilities"])
    rewards = [float(r) - b for r in three_pushes.REWARDS]
    m = estimator_moments(Bandit(pi.log()), rewards, ZOO["reinforce"], 1)
    assert data["probabilities"] @ data["push"] == pytest.approx(data["expected"])
    assert data["expected"] == pytest.approx(m.truth.numpy())
    assert data["noise"] == pytest.approx(m.trace / float(m.truth.square().sum()))


def test_the_best_baseline_is_the_bottom_and_zero_is_as_noisy_as_twice_the_best():
    data = three_pushes.compute()
    assert data["lowest"] <= data["curve"].min()
    assert data["best"] == pytest.approx(0.4036, abs=1e-4)
    mirror = three_pushes.compute(2 * data["best"])
    assert mirror["noise"] == pytest.approx(data["none"])
    assert three_pushes.compute(-1.0)["noise"] == pytest.approx(22.8, abs=0.05)


def test_the_mean_reward_is_worse_than_none_for_a_sure_policy_unless_the_grader_pays_more():
    """More points for all and nothing subtracted: b is below 0."""

    def worse(points):
        found = [three_pushes.compute(-points, float(good)) for good in SHARES]
        return {round(d["good"], 2) for d in found if d["at_mean"] > d["noise"]}

    assert min(worse(0.0)) == 0.65 and 0.8 in worse(0.0)
    assert 0.8 in worse(0.38) and 0.8 not in worse(0.4)
    assert not worse(1.0) and not worse(10.0)


def test_the_weight_of_the_good_answer_falls_as_the_policy_grows_sure():
    def weight(good):
        pi = three_pushes.compute(good=good)["probabilities"]
        part = pi * ((np.eye(3) - pi) ** 2).sum(1)
        return part / part.sum()

    assert weight(0.3).round(2).tolist() == [0.34, 0.34, 0.33]
    assert weight(0.8).round(2).tolist() == [0.14, 0.38, 0.48]
    assert weight(0.15).round(2)[0] == 0.27
    late = three_pushes.compute(good=0.8)
    assert late["at_mean"] / late["none"] == pytest.approx(6.17, abs=0.01)
    assert three_pushes.compute(good=0.95)["best"] == pytest.approx(0.12, abs=0.005)
    assert three_pushes.compute(good=0.99)["best"] == pytest.approx(0.2 * 3 / 7, abs=0.01)


def test_the_parts_add_up_to_the_noise_and_the_failures_make_most_of_it_for_a_sure_policy():
    for b, good in product((-0.4, 0.0, 1.2), (0.05, 0.3, 0.9)):
        data = three_pushes.compute(b, good)
        assert data["parts"].sum() == pytest.approx(data["noise"])
    late = three_pushes.compute(0.82, 0.8)
    assert late["parts"][0] < 0.12 * late["noise"]


def test_neither_slider_alone_does_the_task():
    """The policy and the baseline have both to be moved."""
    goal = three_pushes.above_the_mean_and_quieter
    baselines = np.arange(-1.4, 2.21, 0.02).round(2)
    assert not any(goal(three_pushes.compute(good=float(g))) for g in SHARES)
    assert not any(goal(three_pushes.compute(float(b))) for b in baselines)
    done = {
        (round(float(b), 2), round(float(g), 2))
        for b in baselines
        for g in SHARES
        if goal(three_pushes.compute(float(b), float(g)))
    }
    assert {g for _, g in done} == {0.05, 0.1, 0.15, 0.2, 0.25}


def test_four_tenths_more_for_everybody_make_nothing_subtracted_worse_than_the_mean():
    noise = {b: three_pushes.compute(b, 0.8)["noise"] for b in (0.0, -0.36, -0.4)}
    at_mean = three_pushes.compute(good=0.8)["at_mean"]
    assert noise[0.0] < noise[-0.36] < at_mean < noise[-0.4]


@pytest.mark.parametrize(("p", "ways"), [(0.9, 1), (0.2, 2), (0.5, 5)])
def test_leave_one_out_costs_what_the_formula_says(p, ways):
    """By enumeration: all pairs of answers, G = 2."""
    wrong = ways_to_be_right.WRONG
    pi = np.array([p / ways] * ways + [(1 - p) / wrong] * wrong)
    rewards = np.array([1.0] * ways + [0.0] * wrong)
    scores = np.eye(len(pi)) - pi
    mean, square = np.zeros(len(pi)), 0.0
    for i, j in product(range(len(pi)), repeat=2):
        push = (rewards[i] - rewards[j]) * (scores[i] - scores[j]) / 2
        mean, square = mean + pi[i] * pi[j] * push, square + pi[i] * pi[j] * push @ push
    noise = 2 * (square / (mean @ mean) - 1)
    data = ways_to_be_right.compute(p, ways, 2)
    assert mean == pytest.approx(pi * (rewards - p))
    assert data["relative"][1] * data["none"] == pytest.approx(noise)


def test_one_string_is_the_disaster_and_the_size_of_the_group_does_not_cure_it():
    for p, ways, size in WORLDS:
        data = ways_to_be_right.compute(p, ways, size)
        if p > 0.79:
            assert (data["relative"][1] > 1) == (ways == 1)
        if ways == 1 and size == 8:
            assert data["relative"][1] > 1


def test_a_hard_prompt_needs_no_baseline():
    hurts = {
        (round(p, 2), g)
        for p, k, g in WORLDS
        if ways_to_be_right.hurts_all_the_same(ways_to_be_right.compute(p, k, g))
    }
    assert hurts == {(0.05, 16), (0.05, 8), (0.1, 8)}
    many = [ways_to_be_right.compute(p, k, g) for p, k, g in WORLDS if k >= 10]
    assert all(data["p"] <= 1 / data["size"] + 0.01 for data in many if data["relative"][1] > 1)


def test_no_task_is_done_before_anything_moved():
    begin = three_pushes.compute()
    assert not three_pushes.above_the_mean_and_quieter(begin)
    start = ways_to_be_right.compute()
    assert not ways_to_be_right.hurts_all_the_same(start)


def test_the_pictures_draw():
    runs = {"": {"a": torch.rand(2, 5), "b": torch.rand(2, 5)}}
    for picture in (
        pictures.rate_lines((0.5, 1.0), runs, 0.3, "caption"),
        pictures.noise_parabola({"0": 0.0, "1": 1.0}),
        pictures.push_table({"b = 0": torch.eye(3)}, (0.3, 0.3, 0.4), "caption"),
        pictures.group_sizes((2, 3), (4.0, 2.0)),
        pictures.two_prompts({"5 and 5": {"a": 3.0, "b": 4.0}}, "caption"),
    ):
        assert picture.png.startswith(b"\x89PNG") and picture.caption
    assert "4.98" in pictures.noise_parabola({"1": 1.0}).alt


def test_the_noise_of_a_run_is_corrected_in_both_parts():
    """Over all pairs of answers the two parts average to the true ones."""
    pi = torch.tensor([0.3, 0.3, 0.4], dtype=torch.float64)
    push = torch.tensor(three_pushes.compute()["push"])
    trace = signal = 0.0
    for i, j in product(range(3), repeat=2):
        pair = push[[i, j]]
        noise = check.noise_scale.exercise.reference(pair)
        part = pair.var(0).sum()
        assert part == 0 or torch.isclose(part / noise, pair.mean(0).square().sum() - part / 2)
        trace = trace + pi[i] * pi[j] * part
        signal = signal + pi[i] * pi[j] * (pair.mean(0).square().sum() - part / 2)
    assert float(trace / signal) == pytest.approx(three_pushes.compute()["none"])


def test_the_shared_baseline_is_the_table_s_with_many_wrong_answers():
    for p, k in ((0.9, 1), (0.5, 5), (0.2, 3)):
        wrong = 20_000
        pi = torch.tensor([p / k] * k + [(1 - p) / wrong] * wrong, dtype=torch.float64)
        size = 1 - 2 * pi + pi.square().sum()
        table = (pi * size)[:k].sum() / (pi * size).sum()
        ours = check.shared_baseline.exercise.reference(torch.tensor([p]), torch.tensor([k]))
        assert float(ours) == pytest.approx(float(table), abs=1e-3)


def test_the_peeking_baseline_keeps_the_signs_and_is_0_for_equal_rewards():
    """What the exercise says of its bug is true for all groups of four of these rewards."""
    right, broken = check.silent_bug_baselines.right, check.silent_bug_baselines.broken
    for group in product((1.0, 0.5, 0.2, 0.0), repeat=4):
        rewards = torch.tensor(group, dtype=torch.float64)
        assert torch.equal(right(rewards).round(decimals=9).sign(),
                           broken(rewards).round(decimals=9).sign())  # fmt: skip
        assert torch.allclose(broken(rewards + 10), broken(rewards))
        if len(set(group)) == 1:
            assert not broken(rewards).any()
