"""What page 06 asks of its explorers, and what it says of the clip."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.classroom.explorers import one_token, reuse


@pytest.fixture(scope="module")
def every_rate():
    """Thirty and four steps a batch at every rate of the slider."""
    return {(k, rate): reuse.compute(k, rate) for k in (4, 30) for rate in reuse.RATES}


def borne(every_rate, steps, rule):
    """The rates at which a rule ends at 0.65 or more."""
    return [
        rate
        for (k, rate), data in every_rate.items()
        if k == steps and data["end"][rule] >= reuse.ENOUGH
    ]


def test_one_step_a_batch_knows_no_clip():
    data = reuse.compute(1, 10.0)
    assert np.array_equal(data["chance"]["no clip"], data["chance"]["clip and min"])


def test_without_a_clip_four_steps_bear_ten_times_the_rate_of_thirty(every_rate):
    assert borne(every_rate, 30, "no clip") == [1.0]
    assert borne(every_rate, 4, "no clip") == [10.0]
    reached = [key for key, data in every_rate.items() if reuse.saved_without(data)]
    assert reached == [(30, 1.0)]


def test_with_the_clip_the_largest_rate_is_the_same_for_four_steps_and_thirty(every_rate):
    assert borne(every_rate, 30, "clip and min") == [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0]
    assert borne(every_rate, 4, "clip and min") == [5.0, 10.0, 20.0, 40.0]
    reached = [key for key, data in every_rate.items() if reuse.largest_that_holds(data)]
    assert reached == [(4, 40.0)]


def test_thirty_steps_at_rate_10_leave_one_answer_in_play_without_a_clip(every_rate):
    alive = every_rate[30, 10.0]["alive"]
    assert alive["no clip"][2].mean() < 1.1 and alive["clip and min"][30].mean() > 5


@pytest.fixture(scope="module")
def at_80():
    """Thirty steps at rate 80 from six starts: (rule, grader) -> mean chance at the end."""
    return {
        (rule, grader): reuse.six_starts(rule, 30, 80.0, grader=grader, seeds=20).mean()
        for rule in ("clip alone", "clip and min")
        for grader in reuse.GRADERS
    }


def test_the_min_costs_only_where_copies_of_one_answer_disagree(at_80):
    cost = {g: at_80["clip alone", g] - at_80["clip and min", g] for g in reuse.GRADERS}
    assert cost["dice"] > 0.03 and cost["averaged"] < 0.003 and cost["exact"] < -0.005


def test_the_gate_of_the_clip_alone_does_not_see_who_graded(at_80):
    """Copies share one ratio, so only the sum of their advantages counts."""
    assert at_80["clip alone", "dice"] == pytest.approx(at_80["clip alone", "averaged"], abs=1e-3)


def test_six_starts_begin_with_the_explorers_and_refuse_another_word():
    assert reuse.six_starts("no clip", 1, 10.0).shape == (6, 10)
    with pytest.raises(ValueError, match="grader: expected one of dice, averaged, exact"):
        reuse.six_starts("no clip", 1, 10.0, grader="fair")
    with pytest.raises(ValueError, match="no rule is called 'clap'"):
        reuse.six_starts("clap", 1, 10.0)


def test_a_readout_fits_its_line(every_rate):
    assert max(len(reuse.readout(data)) for data in every_rate.values()) <= 120


def test_the_thick_line_is_the_smaller_of_the_two_thin_ones():
    for A in (1.0, -1.0):
        data = one_token.compute(0.5, A)
        assert np.allclose(data["curve"], np.minimum(data["raw"], data["cut"]), atol=1e-5)


def test_a_sliders_rounding_does_not_carry_a_token_over_the_edge():
    assert one_token.compute(1.2000000000000002, 1.0)["push"] == pytest.approx(1.2)
