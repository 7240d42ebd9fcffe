"""The lesson on GRPO's two divisors: the explorers keep to the formulas, the tasks can be done."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from rlnb import ZOO, check
from rlnb.classroom.explorers import (
    length_drift,
    length_drift_explorer,
    prompt_weight,
    prompt_weight_explorer,
)
from rlnb.classroom.pictures import grpo_biases, recorded_runs
from rlnb.toys import Bandit, estimator_moments


@pytest.mark.parametrize(("name", "rule"), [("grpo", "divided"), ("dr_grpo", "mean")])
@pytest.mark.parametrize("right", [1, 4, 9])
def test_the_weight_is_that_of_the_enumerated_gradient(name, rule, right):
    objective = ZOO[name].replace(terms=())
    rewards = [1.0] * right + [0.0] * (10 - right)
    found = estimator_moments(Bandit(torch.zeros(10, dtype=torch.float64)), rewards, objective, 4)
    weight = prompt_weight.compute(right / 10, 4)["weight"][rule]
    torch.testing.assert_close(found.mean, weight * found.truth, atol=1e-5, rtol=0)


def test_the_weight_is_the_same_at_both_ends_and_capped_and_the_medium_prompt_leads():
    for rate, size in itertools.product((0.01, 0.1, 0.3), prompt_weight.SIZES):
        hard, easy = (prompt_weight.compute(p, size) for p in (rate, 1 - rate))
        assert hard["ratio"] == pytest.approx(easy["ratio"])
        assert hard["weight"]["divided"] <= (size - 1) ** 0.5 + 1e-9
        assert hard["net_ratio"] < 1 and hard["weight"]["mean"] == pytest.approx((size - 1) / size)


def test_only_pairs_and_triples_treat_a_rare_prompt_like_a_medium_one():
    alike = {
        size
        for size in prompt_weight.SIZES
        if abs(prompt_weight.compute(0.05, size)["ratio"] - 1) < 1e-9
    }
    assert alike == {2, 3}


def test_weight_and_push_pull_against_each_other_and_only_large_groups_give_both():
    def reached(size):
        rates = [round(p, 2) for p in prompt_weight.RATES.tolist()]
        goal = prompt_weight.heavy_and_pushed
        return [p for p in rates if p < 0.5 and goal(prompt_weight.compute(p, size))]

    assert not any(reached(size) for size in (2, 3, 4, 8, 16))
    assert reached(32) == [0.08, 0.09, 0.1, 0.11] and 0.1 in reached(64)
    assert not any(prompt_weight.heavy_and_pushed(prompt_weight.compute(0.3, s)) for s in (32, 64))
    for rate, size in itertools.product((0.05, 0.1, 0.3), prompt_weight.SIZES):
        data = prompt_weight.compute(rate, size)
        assert data["ratio"] * data["net_ratio"] < 1  # 1 in the limit of large groups


def test_no_goal_is_met_at_the_start():
    for explorer, goals in (
        (prompt_weight_explorer(), (prompt_weight.heavy_and_pushed,)),
        (length_drift_explorer(), (length_drift.hidden_growth, length_drift.held_up)),
    ):
        assert not any(goal(explorer.data) for goal in goals)
        assert explorer.alt_text()


def test_the_drift_formula_is_the_sum_it_stands_for():
    for q in (0.02, 0.1, 0.3, 0.9):
        lengths = np.arange(1.0, 5001.0)
        chance = q * (1 - q) ** (lengths - 1)
        assert length_drift.stop_push(q) == pytest.approx((chance / lengths).sum() - q)


def test_the_drift_tasks_take_both_sliders_and_a_coin_moves_no_length():
    share = [round(0.05 * k, 2) for k in range(1, 20)]
    knows = range(50, 101, 5)
    data = {(s, k): length_drift.compute(s, k) for s in share for k in knows}
    hidden = [at for at, one in data.items() if length_drift.hidden_growth(one)]
    assert (0.9, 90) in hidden and min(s for s, _ in hidden) > 0.8
    held = [at for at, one in data.items() if length_drift.held_up(one)]
    assert (0.5, 75) in held and {k for _, k in held} == {70, 75}
    assert not any(s == 0.2 or k == 80 for s, k in hidden + held)  # one slider from the start
    for s in share:
        for side in ("right", "wrong"):
            assert data[s, 50][side] == pytest.approx(np.full(length_drift.STEPS + 1, 10.0))


def test_the_pictures_say_their_numbers():
    lengths = grpo_biases.length_runs({"GRPO": "both", "Dr. GRPO": "neither"}, "They part.")
    assert "right 13, 14, 14, wrong 65, 64, 64" in lengths.alt and lengths.caption == "They part."
    bonus = grpo_biases.bonus_runs()
    for rule in recorded_runs.BONUS_RUNS:
        for value in recorded_runs.waits(rule)[:, -10:].mean(1):
            assert f"{value:.2f}" in bonus.alt
    types = grpo_biases.by_type()
    assert "+0.004 ± 0.006, +0.011 ± 0.005" in types.alt
    odd = grpo_biases.odd_one_out({"8 of 16": (1.0, 0.25, 0.5), "15 of 16": (3.87, 0.06, 0.24)})
    assert "3.87" in odd.alt and odd.png != types.png


def test_the_divisor_alone_drives_the_lengths_apart_with_the_std_or_without():
    for seed in (0, 1, 2):
        wrong, right = (
            np.nanmean(
                recorded_runs.curve("pick_mean_only", seed, f"completions/mean_length_{s}")[70:]
            )
            for s in ("wrong", "right")
        )
        assert right < 15 and wrong > 60


def test_a_run_that_keeps_the_std_without_the_length_keeps_lengths_together():
    for seed in (0, 1, 2):
        wrong, right = (
            np.nanmean(recorded_runs.curve("pick_dapo", seed, f"completions/mean_length_{s}")[70:])
            for s in ("wrong", "right")
        )
        assert abs(wrong - right) < 6 < 50 < recorded_runs.length_gap("GRPO", 71, 80)[seed]


def test_the_new_exercises_know_their_mistakes():
    root = check.prompt_weight(lambda rate, size: (rate * (1 - rate)).rsqrt())
    assert not root and "large group" in repr(root)
    alone = check.stop_push(lambda q: -q * q.log() / (1 - q))
    assert not alone and "E[1/T] alone" in repr(alone)
    assert check.stop_push(lambda q: q * (-q.log() / (1 - q) - 1))
