"""Slots, batches and versions: conservation, the synchronous case, the age by Little's count."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.toys.rollout_queue import lengths, simulate, stretched


def test_lengths_have_mean_one_and_the_tail_that_was_asked_for():
    drawn = lengths(200_000, 0.8)
    assert drawn.mean() == pytest.approx(1.0, abs=0.01)
    assert np.log(drawn).std() == pytest.approx(0.8, abs=0.01)


def test_slots_refill_at_once():
    assert stretched([1.0, 1.0, 4.0, 1.0], 2) == (5.0, 0.7)
    assert stretched([2.0] * 6, 3) == (4.0, 1.0)
    assert stretched([3.0], 4) == (3.0, 0.25)


def test_equal_answers_without_a_limit_ahead_alternate():
    run = simulate(8, 8, 0, 0.0, train=0.5, steps=6)
    assert run.time_per_step == pytest.approx(1.5)
    assert run.busy == pytest.approx(1 / 1.5)
    assert (run.staleness == 0).all()


def test_every_batch_is_full_and_no_answer_is_used_twice_or_before_it_is_finished():
    run = simulate(16, 32, 2, 1.0, steps=12, seed=3)
    used = [a for batch in run.trained for a in batch]
    assert {len(batch) for batch in run.trained} == {32}
    assert len(set(used)) == len(used) == 12 * 32
    for (start, end), batch in zip(run.steps, run.trained, strict=True):
        assert end - start == pytest.approx(0.5)
        assert all(a.finished <= start for a in batch)
    for slot in range(16):  # a slot writes one answer at a time
        mine = sorted((a.begun, a.finished) for a in run.written if a.slot == slot)
        assert all(b[0] >= a[1] - 1e-12 for a, b in zip(mine, mine[1:], strict=False))


@pytest.mark.parametrize("lag", [0, 0.5, 1, 3])
def test_the_limit_on_what_may_be_begun_holds(lag):
    run = simulate(200, 32, lag, 1.0, steps=10)
    for number, answer in enumerate(run.written):
        assert number < (answer.version + 1 + lag) * 32


def test_the_mean_age_is_open_answers_over_batch():
    for slots, lag in ((64, 1), (32, 1), (128, 2), (64, 0.5)):
        run = simulate(slots, 64, lag, 1.0, steps=200)
        assert run.staleness.mean() == pytest.approx(run.unused / 64, abs=0.03)


def test_the_longest_answers_are_older_than_the_limit():
    run = simulate(64, 64, 1, 1.0, steps=24)
    assert run.staleness.mean() == pytest.approx(1.0, abs=0.05)
    assert run.staleness.max() > 5


def test_taken_in_order_no_answer_is_older_than_the_limit_and_a_step_waits():
    for lag in (0, 1, 3, 4):
        kept, free = (simulate(64, 64, lag, 1.0, in_order=order) for order in (True, False))
        used = [a for batch in kept.trained for a in batch]
        assert set(used) == set(kept.written[: len(used)])  # nothing is passed over
        assert kept.staleness.max() == lag
        assert kept.time_per_step >= free.time_per_step
        if lag:
            assert free.staleness.max() > lag
    assert simulate(64, 64, 1, 1.0, in_order=True).time_per_step > 3


def test_one_batch_ahead_is_several_times_as_fast_under_a_long_tail_only():
    ratio = {tail: simulate(64, 64, 0, tail).time_per_step / simulate(64, 64, 1, tail).time_per_step
             for tail in (0.0, 1.0)}  # fmt: skip
    assert ratio[1.0] > 5 and ratio[0.0] < 1.6


@pytest.mark.parametrize(
    "bad", [{"slots": 0}, {"batch": 0}, {"lag": -1}, {"tail": -0.1}, {"steps": 1}]
)
def test_impossible_numbers_are_refused(bad):
    with pytest.raises(ValueError, match="must be"):
        simulate(**({"slots": 4, "batch": 4, "lag": 0, "tail": 1.0} | bad))
