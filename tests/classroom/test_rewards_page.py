"""The lesson on rewards: its explorers, tasks with a dead end and a way, pictures and numbers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from rlnb import check
from rlnb.classroom.exercises import rewards as exercises
from rlnb.classroom.explorers import capped_reward, rare_glitch
from rlnb.classroom.pictures import drift
from rlnb.classroom.pictures import rewards as pictures
from rlnb.classroom.pictures.recorded_runs import evaluations
from rlnb.shipped import data_folder
from rlnb.toys.proxy import (
    Grader,
    answer_pool,
    best_of_n_kl,
    best_of_n_weights,
    group_pay,
    kl_to_uniform,
    pool_kl,
    tilted_weights,
)
from rlnb.training.tasks import TASKS

GLITCHES = [
    (q, s, n) for q in rare_glitch.SHARES for s in (1.0, 3.0, 10.0, 20.0) for n in (64, 1024)
]
CAPPED = [(b, c) for b in capped_reward.BETAS for c in capped_reward.CAPS]


def test_the_goals_are_not_met_at_the_start():
    assert not rare_glitch.accurate_and_ruinous(rare_glitch.compute())
    assert not capped_reward.best_cap_at_no_leash(capped_reward.compute())


def test_ruin_needs_glitches_too_rare_for_the_test_on_pairs():
    done = [g for g in GLITCHES if rare_glitch.accurate_and_ruinous(rare_glitch.compute(*g))]
    assert {(q, n) for q, _, n in done} == {(0.005, 1024)}
    clean = rare_glitch.compute(0.0, 10.0, 1024)
    assert f"{100 * clean['accuracy']:.1f}" == "93.7" and clean["picked"] > 3


def test_glitches_are_harmless_only_where_they_are_as_narrow_as_gold():
    at = {s: rare_glitch.compute(0.02, s)["peak"] == 1024 for s in rare_glitch.SIZES}
    assert at == {s: s <= 1 for s in rare_glitch.SIZES}
    wide = [rare_glitch.compute(0.02, s)["peak"] for s in (3.0, 20.0)]
    assert max(wide) <= 64  # from 3 on the size hardly matters


def test_the_leash_alone_is_a_dead_end_and_a_tight_cap_is_the_way():
    found = {(b, c): capped_reward.compute(b, c) for b, c in CAPPED}
    done = [k for k, d in found.items() if capped_reward.best_cap_at_no_leash(d)]
    assert done == [(0.1, 2.0)]
    for beta in (0.1, 0.2, 0.3):  # and the cap that promises most, 3, is below it near there
        assert found[beta, 2.0]["at_gold"] > found[beta, 3.0]["at_gold"] + 0.3
    rising = {c for c in capped_reward.CAPS if found[0.1, c]["at_gold"] == found[0.1, c]["best"]}
    assert rising == {1.0, 2.0}  # from 3 on gold turns
    assert found[0.1, 1.0]["at_gold"] < 1.4 and found[0.1, 3.0]["at_gold"] < 0.8
    assert found[3.0, math.inf]["best"] == pytest.approx(0.25, abs=0.01)
    assert found[3.0, 5.0]["best"] < 0.7


def test_the_path_under_a_cap_is_the_toy_s():
    gold, _, score = answer_pool()
    w = tilted_weights(score.clamp(-3, 3), 0.5)
    data = capped_reward.compute(0.5, 3.0)
    assert data["at_gold"] == pytest.approx((w * gold).sum(1).mean().item())
    assert data["at_kl"] == pytest.approx(kl_to_uniform(w).mean().item(), abs=1e-9)


def test_the_explorers_draw_and_say_what_they_show():
    explorer = rare_glitch.rare_glitch_explorer()
    start = explorer.pixels()
    explorer.set(share=0.005, size=20.0, n=1024)
    assert (explorer.pixels() != start).any()
    assert "gold 0.40" in rare_glitch.readout(explorer.data)
    explorer = capped_reward.capped_reward_explorer()
    explorer.set(beta=0.1, cap=2.0)
    assert "gold 1.73" in capped_reward.readout(explorer.data) and "±2" in explorer.alt_text()
    for cls in (rare_glitch, capped_reward):
        with pytest.raises(ValueError, match="expected|must"):
            cls.compute(-1.0)


def test_the_weak_check_ends_at_nothing_in_every_seed_and_the_control_does_not():
    for run, low, high in (("sort_is_sorted", 0.0, 0.01), ("sort_verify", 0.4, 0.5)):
        _, table = evaluations(run)
        assert (low <= table[:, -1]).all() and (table[:, -1] <= high).all()


def test_the_recorded_answers_are_in_order_and_wrong_in_the_end():
    path = data_folder() / "runs" / "sort_is_sorted_answers.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["answers"]
    sort = TASKS["sort"]
    for row in rows:
        assert sort.verify(sort.parse(row["prompt"]), row["completion"]) == row["reward"]
    last = [row for row in rows if row["step"] == 40]
    assert len(last) == 4 and not any(row["reward"] for row in last)
    for row in last:
        numbers = [int(n) for n in row["completion"].split(",")]
        assert numbers == sorted(numbers)


def test_one_list_is_right_and_how_many_are_in_order():
    assert f"{math.comb(104, 5):,}" == "91,962,520"  # multisets of five of 0 ... 99


def test_the_pictures_draw():
    draws = (1, 2, 4)
    curve = ([0.0, 0.5, 1.0], [0.0, 0.4, 0.7])
    for picture in (
        pictures.paid_and_true(truth=False),
        pictures.paid_and_true(),
        drift.three_pays(),
        drift.penalised_pays(),
        drift.right_and_nats(),
        pictures.score_and_gold(draws, {"A": curve, "B": curve}),
        pictures.one_ruler({"A": {"best of N": curve, "RL, paid the score": curve}}),
        pictures.at_equal_nats(dict.fromkeys(pictures.PAYS, curve), "All that RL is paid."),
    ):
        assert len(picture.png) > 5000 and picture.alt and picture.caption


def test_the_numbers_of_the_card():
    b, a = Grader(), Grader(1.0, 1.0)
    assert (round(b.accuracy(), 2), round(a.accuracy(), 2)) == (0.92, 0.75)
    assert b.best_of(32) == pytest.approx(1.57, abs=0.02)
    assert b.best_of(256) == pytest.approx(0.50, abs=0.02)
    assert a.best_of(256) == pytest.approx(1.98, abs=0.04)


def test_at_equal_nats_the_cap_wins_up_to_three_and_one_beta_is_not_equal_nats():
    gold, careless, glitchy = answer_pool()

    def end(beta, paid):
        w = tilted_weights(paid, beta)
        return kl_to_uniform(w).mean().item(), (w * gold).sum(1).mean().item()

    kl_a, gold_a = zip(*(end(b, careless) for b in (1.0, 0.7, 0.5)), strict=True)
    for beta in (0.5, 0.3, 0.2):
        kl, worth = end(beta, glitchy.clamp(-2, 2))
        assert 1.2 < kl < 2.6 and worth > np.interp(kl, kl_a, gold_a) + 0.1
    kl, worth = end(0.02, glitchy.clamp(-2, 2))
    assert kl < 3.4 and worth < gold_a[-1]  # nothing is left to choose from
    assert round(end(3.4, careless)[0], 2) == 0.09 and round(end(3.4, glitchy)[0], 1) == 2.5


def test_at_one_beta_both_graders_have_the_same_gold_and_b_burns_more_nats():
    gold, careless, glitchy = answer_pool()
    spent = {}
    for beta in (10, 5, 4):
        for name, score in (("A", careless), ("B", glitchy)):
            w = tilted_weights(score, beta)
            assert (w * gold).sum(1).mean().item() == pytest.approx(1 / beta, abs=0.01)
            spent[name, beta] = kl_to_uniform(w).mean().item()
        # gold's own part is 1 / (2 beta^2), and A's error of std 1 costs as much again
        assert spent["A", beta] == pytest.approx(1 / beta**2, rel=0.03)
    assert round(spent["B", 5] / spent["A", 5]) == 10
    w = tilted_weights(glitchy, 1.0)  # the list ends: one answer has nearly everything
    assert w.max(1).values.mean() > 0.8 and (w * gold).sum().item() / 128 < 0.15


def test_pass_or_fail_is_paid_alike_so_gold_never_turns():
    gold, _, glitchy = answer_pool()
    passed = (glitchy > 2).double()
    worth = [(tilted_weights(passed, b) * gold).sum(1).mean().item() for b in (2, 1, 0.5, 0.2, 0.1)]
    worth.append((tilted_weights(passed, 0.02) * gold).sum(1).mean().item())
    assert worth == sorted(worth) and f"{worth[-1]:.2f}" == "1.72"


def test_grpo_on_the_score_turns_above_the_raw_score_and_below_the_rank():
    gold, _, glitchy = answer_pool()
    even = torch.full(gold.shape, 1 / gold.shape[1])
    pay = group_pay(glitchy, even, torch.Generator().manual_seed(3), groups=16)
    worth = [
        (tilted_weights(pay, b) * gold).sum(1).mean().item()
        for b in (4, 2, 1.5, 1, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1)
    ]
    assert max(worth) == pytest.approx(1.02, abs=0.01) and worth.index(max(worth)) == 5
    assert worth[-1] < 0.3
    path = kl_to_uniform(tilted_weights(pay, 0.5)).mean().item()
    assert path == pytest.approx(1.3, abs=0.05)


def test_a_cap_s_limit_is_the_mean_gold_above_it():
    gold, _, glitchy = answer_pool()
    for cap, mean in ((2.0, 1.72), (3.0, 0.64)):
        up = (glitchy >= cap).double()
        above = ((up * gold).sum(1) / up.sum(1)).mean().item()
        end = (tilted_weights(glitchy.clamp(-cap, cap), 1e-3) * gold).sum(1).mean().item()
        assert end == pytest.approx(above, abs=0.003) and round(above, 2) == mean


def test_above_which_cap_the_glitches_are_outnumbered():
    gold, _, glitchy = answer_pool()
    far = (gold - glitchy).abs() > 1.2  # six stds of the sharp error
    for cap, mean, low, high in ((2, 1.7, 0.22, 0.28), (3, 0.6, 0.78, 0.84)):
        up = glitchy > cap
        assert round(gold[up].mean().item(), 1) == mean
        assert low < far[up].double().mean() < high


def test_a_wrong_answer_is_not_kept_where_all_are_wrong():
    rewards = torch.tensor([[0.0, 0.0], [0.2, 0.8]])
    assert exercises.keep_best(rewards, 0.5).tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_the_silent_bug_passes_at_one_and_is_seen_at_all():
    def at_one(estimate):
        gold = torch.tensor([1.0, 2.0, 6.0])
        return torch.isclose(estimate(gold, gold, 1), torch.tensor(3.0).to(torch.float64)).item()

    def at_all(estimate):
        gold = torch.tensor([0.5, 2.0, -1.0], dtype=torch.float64)
        score = torch.tensor([0.1, 0.2, 0.3])
        return torch.isclose(estimate(gold, score, 3), gold[2]).item()

    assert not check.silent_bug_rewards(at_one).passed
    assert check.silent_bug_rewards(at_all).passed


def test_the_coin_forgets_at_least_as_fast_as_the_weak_check_and_small_steps_learn_the_right_list():
    path = data_folder() / "runs" / "sort_pays.json"
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    ends = {}
    for run in runs:
        ends.setdefault((run["learning_rate"], run["pay"]), []).append(run["solved"])
    assert all(len(rows) == 3 for rows in ends.values()) and len(ends) == 6
    area = {key: np.mean(rows) for key, rows in ends.items()}
    for rate in (3e-4, 3e-5):
        assert area[rate, "coin"] < area[rate, "in order"] < area[rate, "right list"]
    last = {key: [row[-1] for row in rows] for key, rows in ends.items()}
    assert max(last[3e-4, "coin"] + last[3e-4, "in order"]) < 0.02
    assert (
        max(last[3e-5, "coin"] + last[3e-5, "in order"]) < 0.3 < 0.6 < min(last[3e-5, "right list"])
    )
    assert len({row[0] for rows in ends.values() for row in rows}) == 1  # one base
    assert round(100 * max(last[3e-5, "coin"])) == 16


def test_best_of_n_s_formula_is_a_bound_and_near_exact_only_while_answers_are_rare():
    _, _, score = answer_pool()
    exact = {n: kl_to_uniform(best_of_n_weights(score, n)).mean().item() for n in (32, 256, 10**6)}
    assert exact[32] == pytest.approx(best_of_n_kl(32), abs=1e-3)
    assert exact[256] == pytest.approx(best_of_n_kl(256), abs=1e-3)
    assert exact[10**6] == pytest.approx(math.log(4096), abs=1e-6)
    assert exact[10**6] < best_of_n_kl(10**6) - 4
    two = pool_kl(torch.tensor([0.5, 0.5], dtype=torch.float64), 1024).item()  # scores differ
    assert two == pytest.approx(math.log(2)) and best_of_n_kl(1024) > 5.9


def test_the_highest_scores_are_glitches_and_no_beta_brings_more():
    gold, _, score = answer_pool()
    assert 24 < score.max(1).values.mean() < 26
    best = max((tilted_weights(score, b) * gold).sum(1).mean().item() for b in
               (0.3, 0.5, 1, 2, 2.5, 3, 3.2, 3.3, 3.4, 3.5, 3.6, 4, 5, 10, 30))  # fmt: skip
    assert f"{best:.2f}" == "0.26"


def test_a_penalty_holds_the_sorter_whatever_it_is_paid_and_slows_what_it_learns():
    path = data_folder() / "runs" / "sort_leash.json"
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    ends = {}
    for run in runs:
        key = (run["learning_rate"], run["beta"], run["pay"])
        ends.setdefault(key, []).append(run["solved"][-1])
    assert len({run["solved"][0] for run in runs}) == 1 and len(ends) == 12
    assert all(len(rows) == 3 for rows in ends.values())
    for pay in ("in order", "coin"):
        assert max(ends[3e-4, 0.0, pay]) < 0.01 < 0.2 < min(ends[3e-4, 0.1, pay])
        assert max(ends[3e-4, 0.1, pay]) < min(ends[3e-4, 1.0, pay])
        assert min(ends[3e-4, 1.0, pay]) > 0.39
    low, middle, high = (ends[3e-5, beta, "right list"] for beta in (1.0, 0.1, 0.0))
    assert 0.5 < min(low) and max(low) < min(middle) and max(low) < min(high)
    assert drift.penalty_ends()["coin", 1.0] == "40"
    assert drift.gained() == {0.0: 17, 0.1: 15, 1.0: 6}
    assert drift.three_pays().alt.count("from 0.47") == 4  # one start in every panel


def test_the_penalty_holds_the_coin_s_run_and_does_not_only_slow_its_loss():
    path = data_folder() / "runs" / "sort_leash.json"
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    held = [r["solved"] for r in runs if (r["pay"], r["beta"]) == ("coin", 1.0)]
    _, tenth, *_, last = np.mean(held, axis=0)
    assert len(held) == 3 and abs(tenth - last) < 0.025 < 0.47 - last


def test_at_equal_kl_a_penalty_does_not_lift_what_the_sorter_solves():
    path = data_folder() / "runs" / "sort_nats.json"
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    mean = {
        (pay, beta, what): np.mean(
            [run[what] for run in runs if (run["pay"], run["beta"]) == (pay, beta)], axis=0
        )
        for pay in ("coin", "in order", "right list")
        for beta in (0.0, 0.1, 1.0)
        for what in ("nats", "solved")
    }
    for pay in ("coin", "in order"):
        free, right = mean[pay, 0.0, "nats"], mean[pay, 0.0, "solved"]
        order = np.argsort(free)
        assert (np.diff(right) < 0).all() and right[0] == 0.47  # it falls from the first step
        for beta in (0.1, 1.0):
            at, held = mean[pay, beta, "nats"][1:], mean[pay, beta, "solved"][1:]
            assert abs(np.mean(held - np.interp(at, free[order], right[order]))) < 0.04
            assert max(at) < 2.0
    assert mean["right list", 0.0, "solved"].min() > 0.38


def test_grpo_s_pay_is_a_bounded_z_score_that_does_not_tell_passes_apart():
    gold, _, glitchy = answer_pool(prompts=16)
    even = torch.full(gold.shape, 1 / gold.shape[1])
    pay = group_pay(glitchy, even, torch.Generator().manual_seed(0), groups=16)
    assert 2.5 < pay.max() < 7**0.5
    passed = (glitchy > 2).double()
    pay = group_pay(passed, glitchy.softmax(1), torch.Generator().manual_seed(0), groups=4)
    for row, ok in zip(pay, passed.bool(), strict=True):
        assert row[ok].std() < 1e-9 and row[~ok].std() < 1e-9 and row[ok].min() > row[~ok].max()


def test_pay_for_order_can_only_raise_the_share_of_right_lists():
    """Of the start's answers in order the right ones are a part: the optimum keeps only those."""
    said = pictures.paid_and_true().alt
    in_order, right = 0.85, 0.47
    assert f"Paid: from {in_order}" in said and f"{right} to 0.00" in said
    assert round(100 * right / in_order) == 55 > 100 * right
