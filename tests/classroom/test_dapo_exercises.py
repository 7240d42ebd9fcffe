"""DAPO's checks: the penalty against the package, the filter's bug, the code to recognise."""

from __future__ import annotations

import pytest
import torch

from rlnb import check
from rlnb.objective import overlong

LENGTHS = torch.tensor([16384.0, 17408.0, 18432.0, 20480.0], dtype=torch.float64)


def test_the_penalty_has_the_published_numbers_and_is_the_package_s():
    reference = check.overlong_penalty.exercise.reference
    assert reference(LENGTHS, 20480, 4096).tolist() == [0, -0.25, -0.5, -1]
    for probe in check.overlong_penalty.exercise.probes:
        a = probe.cast(torch.float64)
        theirs = overlong(a["max_length"], a["cache"]).penalty(a["lengths"])
        torch.testing.assert_close(reference(**a), theirs, rtol=0, atol=1e-12)


def test_the_uncapped_form_agrees_as_far_as_generation_goes():
    reference = check.overlong_penalty.exercise.reference
    uncapped = reference(LENGTHS, 20480, 4096, capped=False)
    assert torch.equal(uncapped, reference(LENGTHS, 20480, 4096))
    assert reference(torch.tensor([24576.0]), 20480, 4096, capped=False) == -2


def test_a_penalty_in_another_form_or_for_one_answer_is_judged():
    def in_cases(lengths, max_length, cache):
        start = max_length - cache
        ramp = (start - lengths) / cache
        inside = torch.where(lengths <= start, 0.0, ramp)
        return torch.where(lengths > max_length, -1.0, inside)

    assert repr(check.overlong_penalty(in_cases)) == "right: overlong_penalty"

    def one_at_a_time(lengths, max_length, cache):
        if lengths <= max_length - cache:
            return 0.0
        return max(-1.0, (max_length - cache - lengths) / cache)

    verdict = check.overlong_penalty(one_at_a_time)
    assert not verdict and "torch.where chooses per entry" in verdict.message


def test_integer_division_is_named():
    verdict = check.overlong_penalty(lambda lengths, L, c: ((L - c - lengths) // c).clamp(-1, 0))
    assert verdict.kind == "known mistake" and "what // gives" in verdict.message


def all_wrong_is_never_kept(mixed_groups):
    kept = mixed_groups(torch.zeros(4), torch.tensor([90.0, 95.0, 20.0, 100.0]), 4, 100, 20)
    assert len(kept) == 0, "no answer is right: there is nothing to keep"


def test_the_filter_s_bug_is_exposed_by_an_all_wrong_group_of_unequal_lengths():
    assert check.silent_bug_dapo(all_wrong_is_never_kept)

    def all_right_is_never_kept(mixed_groups):
        kept = mixed_groups(torch.ones(2), torch.tensor([99.0, 100.0]), 2, 100, 20)
        assert kept.shape == (0, 2)

    assert check.silent_bug_dapo(all_right_is_never_kept)


@pytest.mark.parametrize("lengths", [[20.0, 30.0, 40.0, 50.0], [100.0, 100.0, 100.0, 100.0]])
@pytest.mark.parametrize("correct", [[0.0] * 4, [1.0, 0.0, 0.0, 1.0]])
def test_the_filter_s_bug_survives_short_answers_and_equal_ones(lengths, correct):
    def usual(mixed_groups):
        kept = mixed_groups(torch.tensor(correct), torch.tensor(lengths), 4, 100, 20)
        assert len(kept) == (sum(correct) > 0)

    assert check.silent_bug_dapo(usual).message.startswith("your test passes on the broken code")


def test_a_kept_group_still_pays_for_its_length():
    right = check.silent_bug_dapo.right
    correct, lengths = torch.tensor([1.0, 0.0]), torch.tensor([90.0, 10.0])
    assert right(correct, lengths, 2, 100, 20).tolist() == [[0.5, 0.0]]


@pytest.mark.parametrize("answer", ["DAPO", "dapo", " d.a.p.o "])
def test_the_code_is_dapo_s(answer):
    verdict = check.name_this_dapo(answer)
    assert verdict and "1.28" in verdict.message


@pytest.mark.parametrize("near", ["GRPO", "Dr. GRPO", "PPO", "CISPO", "GSPO", "ScaleRL"])
def test_a_near_miss_is_told_what_gives_it_away(near):
    verdict = check.name_this_dapo(near)
    assert verdict.kind == "wrong" and "look at the baseline" not in verdict.message
