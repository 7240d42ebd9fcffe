"""How many GPUs write: limits of the model, and what its numbers mean."""

from __future__ import annotations

import pytest

from rlnb.toys.split import Rates, asynchronous, best_split, synchronous

RATES = Rates(load=2e-3, each=1e-4, train=6e-5, mean=1000.0, longest=8000.0)


def test_a_batch_by_hand():
    one = asynchronous(RATES, gpus=4, batch=100, writers=2, in_flight=20)
    assert one.age == pytest.approx(0.4)
    writing = 100 * 1000 / (2 * 20 / (2e-3 + 20e-4))
    assert one.seconds == pytest.approx(max(writing, 100 * 1000 * 6e-5 / 2))


def test_synchronous_waits_for_the_longest_on_however_many_gpus():
    least = 7000 * (RATES.load + RATES.each)
    assert synchronous(RATES, 10**6, 1024).seconds > least
    assert synchronous(RATES, 8, 1024).seconds > synchronous(RATES, 64, 1024).seconds


def test_more_gpus_are_never_slower_and_the_age_limit_holds():
    seconds = []
    for gpus in (8, 64, 512, 4096):
        found = best_split(RATES, gpus, 1024, oldest=2.0)
        assert found.age <= 2.0 and 0 < found.writers < gpus
        seconds.append(found.seconds)
    assert seconds == sorted(seconds, reverse=True)
    assert best_split(RATES, 64, 1024).seconds <= best_split(RATES, 64, 1024, 0.5).seconds


def test_impossible_splits_are_refused():
    with pytest.raises(ValueError, match="writers"):
        asynchronous(RATES, 4, 64, 4)
    with pytest.raises(ValueError, match="no split"):
        best_split(RATES, 64, 8, oldest=0.01)
    with pytest.raises(ValueError, match="1 or more"):
        synchronous(RATES, 0, 8)
