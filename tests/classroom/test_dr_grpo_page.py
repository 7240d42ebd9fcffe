"""The lesson on Dr. GRPO: tasks can be done, pictures draw, and its numbers are what they are."""

from __future__ import annotations

import itertools

import pytest
import torch

from rlnb import ZOO, check
from rlnb.classroom.explorers import micro_batches, shared_divisor
from rlnb.classroom.explorers.micro_batches import compute, hidden
from rlnb.classroom.pictures import dr_grpo as pictures
from rlnb.classroom.pictures.aggregation_rules import stop_drift
from rlnb.objective import local_token_mean, token_mean
from rlnb.objective.batch import Totals
from rlnb.toys import running_batch

EVERY = list(itertools.product(range(1, 9), range(1, 9), (1, 2, 4)))


def test_all_four_at_once_is_right_whatever_the_lengths():
    for first, last, rows in EVERY:
        if rows == 4:
            assert compute(first, last, rows)["times"].tolist() == [1.0] * 4


def test_one_answer_a_piece_is_the_sequence_mean():
    data = compute(1, 8, 1)
    weight = data["times"] * data["lengths"]
    assert weight == pytest.approx([weight[0]] * 4)


def test_the_explorer_weighs_as_the_package_does():
    batch = running_batch()
    totals = Totals.of_groups(batch)
    right = token_mean()(batch, totals)[0, 0]
    pieces = [local_token_mean()(batch.rows(range(i, i + 2)), totals)[0, 0] / 2 for i in (0, 2)]
    whole = compute(3, 6, 2)["times"]  # the running group alone: 8 and 8 tokens
    assert whole.tolist() == [1.0] * 4
    assert pieces[0] == pieces[1] == 1 / 16 and right == 1 / 30


def test_the_heavy_token_needs_pieces_of_one_answer():
    found = [setting for setting in EVERY if compute(*setting)["times"].max() > 3]
    assert found and {rows for _, _, rows in found} == {1}
    assert (1, 8, 1) in found and (2, 8, 1) not in found


def test_the_hidden_bug_needs_equal_counts_and_has_a_way():
    found = [setting for setting in EVERY if hidden(compute(*setting))]
    assert (3, 6, 2) in found
    assert all(first + 5 == 2 + last and rows == 2 for first, last, rows in found)
    assert not hidden(compute(2, 5, 2))  # equal, but two lengths are the same


def test_no_goal_is_met_at_the_start():
    data = micro_batches.micro_batches_explorer().data
    assert not hidden(data)


def test_the_short_wrong_answer_is_loudest_under_grpo_and_quiet_under_dr_grpo():
    fresh = running_batch().replace(old_logprobs=None)
    push = {}
    for name in ("grpo", "dr_grpo"):
        loss = ZOO[name].replace(terms=())(fresh).loss
        push[name] = torch.autograd.grad(loss, fresh.logprobs)[0][:, 0].abs()
    assert push["grpo"].argmax() == 5 and push["dr_grpo"].argmax() == 4
    assert push["dr_grpo"][5] == push["dr_grpo"].min()


def test_pictures_draw_and_say_their_numbers():
    runs = torch.stack([torch.linspace(10, 70, 5), torch.linspace(10, 2, 5)], 1)[None]
    assert "wrong 70.0, right 2.0" in pictures.lengths_by_memory({"one": runs}, 10.0, "x").alt
    ends = {1: (70.0, 1.0), 4: (19.0, 6.0), 32: (10.6, 9.4), 0: (10.0, 10.0)}
    words = pictures.who_shares({n: stop_drift(n) for n in (1, 4, 32)}, ends, 10.0, "x").alt
    assert "1: 1.558" in words and "constant: 10.0 and 10.0" in words
    four = {name: torch.tensor([1.0, -1.0, 2.0, -2.0]) for name in "abcd"}
    assert pictures.four_losses(four, [1, 2, 1, 2], [1, 0, 1, 0], caption="x").png


def test_the_recorded_gap_comes_from_the_divisor():
    last = {name: pictures.gaps(run)[:, -10:].mean() for name, run in pictures.RUNS.items()}
    own, step, fixed = last.values()
    assert own > 45 and abs(step) < 6 and abs(fixed) < 3
    assert "tokens of the step: DAPO" in pictures.recorded_lengths("x").alt


def test_the_mean_of_means_is_named_in_the_workers_exercise():
    def bug(per_token, mask, rows, workers):
        parts = zip(per_token.split(rows), mask.split(rows), strict=True)
        means = [torch.where(m, x, 0).sum() / m.sum().clamp(min=1) for x, m in parts]
        return torch.stack(means) * workers / len(means)

    assert "the bug of this page" in repr(check.worker_losses(bug))


def test_padding_exposes_the_silent_bug_and_a_full_batch_does_not():
    x, mask = torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bool)
    assert not check.silent_bug_dr_grpo(lambda f: torch.isclose(f(x, mask, 3), torch.tensor(1.0)))
    assert check.silent_bug_dr_grpo(lambda f: torch.isclose(f(x, mask, 6), torch.tensor(0.5)))


@pytest.mark.parametrize("n", [1, 2, 8, 32])
def test_the_explorer_of_shared_divisors_sums_to_the_exact_push(n):
    data = shared_divisor.compute(10, 10, n)
    assert data["push"] == pytest.approx(stop_drift(n), abs=1e-9)
    assert data["bars"].sum() == pytest.approx(data["push"]) and abs(data["fixed"].sum()) < 1e-9


def test_longer_answers_are_pushed_more_under_1_over_t_and_no_more_when_many_share():
    push = {
        (mean, n): shared_divisor.compute(mean, mean, n)["push"]
        for mean in shared_divisor.MEANS
        for n in shared_divisor.SIZES
    }
    assert push[200, 2] < push[5, 1] < push[10, 1] < push[200, 1]
    assert push[200, 8] > 0.1 > push[200, 16]
    assert push[10, 16] == pytest.approx(push[200, 16], rel=0.15)
    start = shared_divisor.shared_divisor_explorer().data
    goal = shared_divisor.its_own_divisor
    assert not goal(start) and not goal(shared_divisor.compute(200, 200, 8))
    assert goal(shared_divisor.compute(200, 5, 8))
    alike = [push[mean, n] * (n - 1) for mean, n in push if n > 1]
    assert max(alike) < 1  # the bound of the page


def test_a_long_answer_among_short_ones_is_its_own_divisor():
    data, drawn = shared_divisor.compute(200, 5, 8), torch.Generator().manual_seed(0)

    def lengths(mean, *shape):
        u = torch.rand(shape, generator=drawn, dtype=torch.float64)
        return 1 + (u.log() / torch.tensor(1 - 1 / mean).log()).floor()

    T, S = lengths(200, 400_000), lengths(5, 400_000, 7).sum(1)
    push = 235 / (T + S) * (1 - T / 200)
    assert data["push"] == pytest.approx(push.mean().item(), abs=5 * push.std().item() / 632)
    assert data["push"] > 1
    assert round(shared_divisor.compute(200, 5, 64)["push"], 2) == 0.30  # among 63 still


def test_the_token_mean_is_biased_and_no_less_noisy_than_the_constant_in_the_toy():
    dice, q, n = torch.Generator().manual_seed(0), torch.tensor(0.1), 32
    T = 1 + (torch.rand(20_000, n, generator=dice).log() / (-q).log1p()).floor()
    right = (torch.rand(20_000, n, generator=dice) < 0.5).float()
    push = ((right - right.mean(1, keepdim=True)) * right * (1 - q * T)).sum(1)
    fixed, counted = push, push * (n / q) / T.sum(1)
    assert abs(fixed.mean()) < 0.05 < 0.2 < counted.mean()
    assert fixed.std() < counted.std() < 1.05 * fixed.std()
