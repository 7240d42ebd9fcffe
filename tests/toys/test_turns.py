"""The toys of many turns say what enumeration says."""

from __future__ import annotations

import itertools
import math

import pytest

from rlnb.toys.turns import additive_push, author_path, enough_trajectories, expected_push


def enumerated(turns, rule, turn):
    """Mean and variance over all 2^T trajectories."""
    total = square = 0.0
    for right in itertools.product((0, 1), repeat=turns):
        past = 0 if rule == "trajectory" else turn
        credit = sum(right[past:]) - (turns - past) / 2
        push = (right[turn] if rule == "turn" else credit + 0.5) - 0.5
        push *= right[turn] - 0.5
        total, square = total + push, square + push * push
    mean = total / 2**turns
    return mean, square / 2**turns - mean * mean


@pytest.mark.parametrize("rule", ["trajectory", "to go", "turn"])
@pytest.mark.parametrize(("turns", "turn"), [(1, 0), (4, 0), (4, 3), (7, 2)])
def test_mean_and_variance_are_those_of_all_trajectories(turns, rule, turn):
    assert additive_push(turns, rule, turn) == pytest.approx(enumerated(turns, rule, turn))


def test_the_four_horizons_of_the_statement():
    assert [additive_push(t)[1] for t in (2, 8, 32, 128)] == [0.0625, 0.4375, 1.9375, 7.9375]


def test_a_careless_grader_of_turns_by_enumeration():
    for error in (0.0, 0.1, 0.4):
        outcomes = [
            (0.5 * p, (a - 0.5) * ((a if same else 1 - a) - 0.5))
            for a in (0, 1)
            for same, p in ((True, 1 - error), (False, error))
        ]
        mean = sum(p * x for p, x in outcomes)
        variance = sum(p * x * x for p, x in outcomes) - mean**2
        assert additive_push(9, "turn", error=error) == pytest.approx((mean, variance))


def test_a_grader_wrong_two_times_in_five_needs_as_much_as_25_turns():
    """1 / (1 - 2e)^2 = T."""
    careless = enough_trajectories(*additive_push(2, "turn", error=0.4))
    assert careless == pytest.approx(enough_trajectories(*additive_push(25)))
    assert enough_trajectories(*additive_push(9, "turn", error=0.5)) == math.inf


def test_the_push_on_the_worlds_token_does_not_know_the_policy():
    assert {expected_push(0.3, p) for p in (0.9, 0.3, 1e-12)} == {-0.21}
    assert expected_push(0.3, 0.5, gap=0.0) == 0
    assert expected_push(1e-6, 1e-6) == pytest.approx(-1e-6, rel=1e-3)  # its own: dies out


def test_own_tokens_slow_down_and_the_worlds_do_not():
    own, world = (author_path(who, 0.3, steps=1000) for who in ("policy", "world"))
    assert own[0] == world[0] == pytest.approx(math.log(0.3))
    assert own[-1] > -8 and world[-1] == pytest.approx(math.log(0.3 / 0.7) - 210, abs=0.01)
