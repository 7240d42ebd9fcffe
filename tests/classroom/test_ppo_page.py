"""What page 06 asks of its explorers, and what it says of the clip."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.classroom.explorers import one_token, reuse


@pytest.fixture(scope="module")
def thirty():
    """Thirty steps a batch at every rate of the slider."""
    return {rate: reuse.compute(30, rate) for rate in reuse.RATES}


def test_one_step_a_batch_knows_no_clip():
    data = reuse.compute(1, 10.0)
    assert np.array_equal(data["chance"]["no clip"], data["chance"]["clip and min"])


def test_without_a_clip_thirty_steps_bear_one_rate_which_is_no_end_of_the_slider(thirty):
    assert [rate for rate, data in thirty.items() if reuse.saved_without(data)] == [1.0]
    assert min(thirty) < 1.0


def test_with_the_clip_thirty_steps_bear_a_wide_range_and_not_every_rate(thirty):
    held = [rate for rate, data in thirty.items() if data["end"]["clip and min"] >= 0.65]
    assert held == [0.5, 1.0, 5.0, 10.0, 20.0, 40.0]
    assert [rate for rate, data in thirty.items() if reuse.largest_that_holds(data)] == [40.0]


def test_the_fast_starter_is_overtaken_because_it_has_few_answers_left():
    data = reuse.compute(4, 10.0)
    assert data["early"]["no clip"] > data["early"]["clip and min"] + 0.02
    assert data["end"]["no clip"] < data["end"]["clip and min"] - 0.01
    left = {rule: data["alive"][rule][reuse.EARLY].mean() for rule in reuse.RULES}
    assert left["no clip"] < 3 and left["clip and min"] > 10


def test_a_goal_of_four_steps_is_not_that_of_thirty():
    assert not reuse.saved_without(reuse.compute(4, 10.0))
    assert not reuse.largest_that_holds(reuse.compute(4, 40.0))


def test_a_readout_fits_its_line(thirty):
    assert max(len(reuse.readout(data)) for data in thirty.values()) <= 120


def test_a_good_token_is_pushed_hardest_just_inside_the_edge():
    reached = [
        hundredths
        for hundredths in range(5, 225, 5)
        if one_token.pushed_hardest(one_token.compute(hundredths / 100, 1.0))
    ]
    assert reached[0] == 115 and set(reached) <= {115, 120}
    assert not one_token.pushed_hardest(one_token.compute(2.0, -1.0))


def test_a_sliders_rounding_does_not_carry_a_token_over_the_edge():
    assert one_token.compute(1.2000000000000002, 1.0)["push"] == pytest.approx(1.2)
