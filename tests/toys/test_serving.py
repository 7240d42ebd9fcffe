"""Batches, pages and prefix trees, by hand and by what must hold."""

from __future__ import annotations

import pytest

from rlnb.toys.rollout_queue import lengths
from rlnb.toys.serving import in_batches, serve, tree_tokens

SIZES = [int(x) for x in (lengths(300, 1.0) * 50).round().clip(1, 400)]


def test_batches_wait_for_their_longest():
    assert in_batches([1, 5, 2, 2], 2) == 5 + 2
    assert in_batches([3], 4) == 3


def test_reserving_is_pages_as_large_as_the_longest():
    assert serve(SIZES, 4096, longest=400) == serve(SIZES, 4096, page=400)


def test_refilled_slots_lie_between_the_bound_and_the_batches():
    steps = serve(SIZES, 10**9, page=16, slots=32).steps
    assert max(max(SIZES), sum(SIZES) / 32) <= steps < in_batches(SIZES, 32)


def test_small_pages_hold_more_answers():
    held = [serve(SIZES, 2048, page=page, slots=32).in_flight for page in (16, 128, 400)]
    assert held[0] > held[1] > held[2]


def test_memory_that_runs_out_costs_tokens_written_again():
    found = serve([10, 10, 10], memory=20, page=1)
    assert found.recomputed > 0 and found.steps > 10
    assert serve([10, 10], memory=20, page=1).recomputed == 0


def test_a_tree_stores_a_shared_prompt_once():
    prompt = ["p"] * 50
    answers = [[*prompt, g, *range(g)] for g in range(4)]
    assert tree_tokens(answers) == 50 + sum(1 + g for g in range(4))
    assert tree_tokens([]) == 0


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="room"):
        serve([100], memory=50, page=16)
    with pytest.raises(ValueError, match="longest"):
        serve([100], memory=500, longest=50)
