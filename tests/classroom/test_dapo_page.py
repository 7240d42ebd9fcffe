"""The lesson on DAPO: its explorer and pictures say what the formulas and the records say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rlnb import check
from rlnb.classroom.explorers import kept_groups, rare_token
from rlnb.classroom.lesson import task
from rlnb.classroom.pictures import dapo as pictures
from rlnb.classroom.pictures.recorded_runs import curve, final

GOALS = (rare_token.equal_though_silenced,)


def test_the_goals_are_not_met_at_the_start_and_can_be():
    board = task("dapo.test", rare_token.rare_token_explorer(), *((g.__name__, g) for g in GOALS))
    board.explorer.set(p0=0.01, updates=16, step=0.05)
    assert board.solved == [False]
    board.explorer.set(p0=0.01, updates=4, step=0.15)
    assert board.solved == [True]
    board.explorer.set(p0=0.85, updates=16, step=0.3)
    assert board.solved == [True]


def test_late_in_training_no_group_size_is_cheap_in_groups_and_in_answers():
    late = {size: kept_groups.compute(size, kept_groups.LATE) for size in kept_groups.SIZES}
    few_draws = {size for size, data in late.items() if data["groups"] < 3}
    few_answers = {size for size, data in late.items() if kept_groups.cheap_in_answers(data)}
    assert few_draws == {32, 64} and few_answers == {2, 4}
    start = kept_groups.compute()
    assert not kept_groups.cheap_in_answers(start)
    price = {size: round(data["answers"]) for size, data in late.items()}
    assert (price[2], price[8], price[64]) == (32, 40, 138)
    assert round(late[2]["groups"]) == 16 and round(late[64]["groups"]) == 2


def test_the_price_is_counted_right():
    dice, rates = np.random.default_rng(0), kept_groups.compute(8, 4)["rates"]
    right = dice.binomial(8, np.tile(rates, 50_000))
    share = ((right > 0) & (right < 8)).mean()
    assert kept_groups.compute(8, 4)["groups"] == pytest.approx(1 / share, rel=0.02)


def test_from_085_on_no_edge_clips_a_good_token_however_large_the_steps():
    def silent(p0):
        rules = rare_token.compute(p0, 16, rare_token.MAX_STEP)["rules"].values()
        return any(rule.silent for rule in rules)

    assert [p0 for p0 in rare_token.STARTS if not silent(p0)] == [0.85, 0.9]


def test_only_tokens_above_one_over_the_edge_are_never_silenced():
    for p0 in rare_token.STARTS:
        data = rare_token.compute(p0, 16, rare_token.MAX_STEP)
        assert (data["rules"]["1.20"].silent == 0) == (p0 > 1 / 1.2)


def test_in_a_recorded_run_success_silences_groups():
    for seed in range(3):
        mixed, right = (curve("chain_dr_grpo", seed, n) for n in ("groups/mixed", "reward"))
        assert mixed[:10].mean() > 0.88 and 0.37 < mixed[-10:].mean() < 0.4
        assert 0.9 < right[-10:].mean() < 0.945


def test_refilling_is_behind_per_answer_at_the_best_of_four_rates_and_higher_at_the_largest_two():
    at = {
        name: np.array([pictures.at_answers(run, 2560) for run in runs])
        for name, runs in pictures.ARMS.items()
    }
    assert {name: int(x.mean(1).argmax()) for name, x in at.items()} == {"plain": 1, "refilled": 1}
    assert at["plain"][1].min() > at["refilled"][1].max()
    assert (at["refilled"].mean(1) > at["plain"].mean(1))[2:].all()
    for seed in range(3):
        made = curve("chain_refill", seed, "generated")
        mixed = curve("chain_refill", seed, "groups/mixed")
        assert 1.7 < made.mean() / 64 < 1.85
        assert 1.17 < made.sum() / (made * mixed).sum() < 1.26


def test_late_a_wide_batch_does_what_a_refilled_one_does():
    after, paid = (
        {arm: pictures.late_at(arm, by, n) for arm in pictures.LATE}
        for by, n in (("updates", 36), ("rounds", 5120))
    )
    best = {arm: int(x.mean(1).argmax()) for arm, x in after.items()}
    plain, refilled, wide = (after[arm][best[arm]] for arm in ("plain", "refilled", "wide"))
    assert plain.max() < min(refilled.min(), wide.min())
    assert abs(refilled.mean() - wide.mean()) < 0.006
    assert (after["refilled"] > after["plain"]).all()
    level = [x.mean(1).max() for x in paid.values()]
    assert max(level) - min(level) < 0.012


def test_a_ratio_moves_with_the_updates_since_sampling_and_not_with_reuse():
    """In these runs every answer is used once; the number is how many updates late."""
    largest = {
        late: np.array([np.median(curve(run, seed, "ratio/max")[10:]) for seed in range(3)])
        for late, run in ((0, "chain_stale_0"), (8, "chain_stale_8_clip"))
    }
    assert (largest[0] == 1).all() and largest[8].min() > 1.5


def test_answers_between_two_evaluations_lie_on_the_line():
    assert pictures.at_answers("chain_stale_0", 2560) == pytest.approx(final("chain_stale_0"))
    first, last = (np.array(final("chain_stale_0", step=n)) for n in (20, 40))
    half = pictures.at_answers("chain_stale_0", 1920)
    assert half == pytest.approx(((first + last) / 2).tolist())


def test_pictures_draw_and_say_their_numbers():
    assert "0.38" not in pictures.silent_run().alt
    assert "0.38" in pictures.silent_run(answered=True).alt
    alt = pictures.late_race().alt
    assert "after 36 updates, wide: " in alt and "after 5,120 answers, refilled: " in alt
    assert "last ten steps: 0.93 right, 0.39 mixed" in pictures.hill().alt
    trap = pictures.overlong_trap(torch.tensor([9.0, 11.0]), torch.tensor([0.0, -0.5]),
                                  torch.tensor([1.0, -1.0]))  # fmt: skip
    assert "11 tokens: penalty -0.5000, advantage -1.00" in trap.alt


@pytest.mark.parametrize(("p", "size"), [(0.3, 3), (0.9, 5)])
def test_the_reward_that_is_logged_is_the_mean_over_all_mixed_groups(p, size):
    chance = [math.comb(size, k) * p**k * (1 - p) ** (size - k) for k in range(size + 1)]
    inside = sum(k / size * chance[k] for k in range(1, size)) / sum(chance[1:-1])
    reference = check.kept_reward.exercise.reference
    assert reference(torch.tensor(p, dtype=torch.float64), size).item() == pytest.approx(inside)


def test_the_fates_are_those_of_a_loop_that_draws():
    def loop(rewards, wanted):
        fates, kept = torch.zeros(rewards.shape[:2], dtype=rewards.dtype), 0
        for r, one_round in enumerate(rewards):
            if kept >= wanted:
                break
            for n, group in enumerate(one_round):
                fates[r, n] = 1
                if group.max() > group.min() and kept < wanted:
                    fates[r, n], kept = 2, kept + 1
        return fates

    assert check.refill_fates(loop).kind == "right"
