"""The lesson on agents: its explorers say what the toys say, and its tasks can be done."""

from __future__ import annotations

from itertools import product

import pytest

from rlnb import check
from rlnb.classroom.explorers import turn_credit, two_authors
from rlnb.classroom.pictures import agents as pictures
from rlnb.toys.turns import expected_push

ROWS = {
    "1, right": [("policy", "4"), ("desk", "7"), ("policy", "so")],
    "2, wrong": [("policy", "4"), ("desk", "wait"), ("policy", "so"), ("policy", "end")],
}
STEPS = [round(0.05 * k, 2) for k in range(21)]


def test_no_goal_holds_at_the_start():
    start = two_authors.two_authors_explorer().data
    assert not two_authors.driven_furthest(start) and not two_authors.cheap_and_driven(start)
    start = turn_credit.turn_credit_explorer().data
    assert not turn_credit.careless_and_still_better(start)


def test_an_error_every_second_time_drives_the_worlds_token_furthest():
    ends = {q: two_authors.compute(q, 1.0)["world"][-1] for q in STEPS[1:-1]}
    assert [q for q in ends if two_authors.driven_furthest(two_authors.compute(q, 1.0))] == [0.5]
    assert min(ends, key=ends.get) == 0.5
    assert not two_authors.driven_furthest(two_authors.compute(0.5, 0.5))


def test_a_small_cost_makes_the_fall_slower_and_not_shorter():
    goal, ends = two_authors.cheap_and_driven, two_authors.compute
    assert goal(ends(0.5, 0.05)) and goal(ends(0.4, 0.05)) and not goal(ends(0.1, 0.05))
    assert not goal(ends(0.5, 1.0)) and not goal(ends(0.5, -0.05))


def test_a_rare_token_that_goes_with_success_ends_as_a_certainty():
    assert expected_push(0.9, 0.9) == pytest.approx(expected_push(0.1, 0.1))
    sure = two_authors.compute(0.1, -1.0)
    assert sure["world"][-1] == pytest.approx(0)
    said = two_authors.readout(sure)
    assert "earns 1.00" in said and "(chance 1.00)" in said


def test_the_push_stops_where_the_page_says_behind_a_history_that_went_well():
    q, error, ok = 0.3, 0.1, 0.5  # advantages, both above the group's mean
    mean = q * error + (1 - q) * ok
    stop = q * error / mean
    assert round(stop, 2) == 0.08
    for pi, sign in ((stop - 0.02, 1), (stop, 0), (stop + 0.02, -1)):
        push = q * error * (1 - pi) - (1 - q) * ok * pi  # E[A (1[error] - pi)]
        assert push == pytest.approx(q * error - pi * mean)
        assert push == pytest.approx(0) if sign == 0 else push * sign > 0


def test_forty_one_percent_is_the_worst_grader_that_still_wins_at_32_turns():
    wins = [e for e in range(51) if turn_credit.careless_and_still_better(
        turn_credit.compute(32, e / 100))]  # fmt: skip
    assert wins == [41]


def test_five_turns_is_the_shortest_for_a_grader_wrong_one_time_in_four():
    four, five = turn_credit.compute(4, 0.25), turn_credit.compute(5, 0.25)
    assert four["graded"] == pytest.approx(four["final"])
    assert five["graded"] < five["final"]


def test_a_grader_that_throws_a_coin_needs_no_number_of_trajectories():
    data = turn_credit.compute(64, 0.5)
    assert "no number of" in turn_credit.readout(data) and "fewer: the sum" in turn_credit.readout(
        data
    )


def test_explorers_reach_their_goals_by_their_controls():
    explorer = turn_credit.turn_credit_explorer().set(turns=32, error=0.41)
    assert turn_credit.careless_and_still_better(explorer.data)
    explorer = two_authors.two_authors_explorer().set(share=0.5, gap=0.05)
    assert two_authors.cheap_and_driven(explorer.data)


@pytest.mark.parametrize("turns", [1, 2, 5, 10])
def test_one_shared_logit_never_needs_more_than_eight_trajectories(turns):
    sums = [sum(a) - turns / 2 for a in product((0, 1), repeat=turns)]
    push = [s * s for s in sums]  # the sum of rewards, times the sum of scores
    mean = sum(push) / len(push)
    variance = sum(p * p for p in push) / len(push) - mean**2
    assert 4 * variance / mean**2 == pytest.approx(8 - 8 / turns)


def test_the_pictures_draw_and_say_whose_tokens_moved():
    assert "[wait]" in pictures.transcript(ROWS, caption="c").alt
    panels = {"p": {"1, right": [0.5, 0.0, 0.5], "2, wrong": [-0.5, -0.5, -0.5, -0.5]}}
    assert "−0.50" in pictures.pushes(ROWS, panels, caption="c").alt
    for picture in (pictures.first_run(caption="c"), pictures.desk_runs(caption="c"),
                    pictures.two_panels(["leak", "masked"], caption="c")):  # fmt: skip
        assert picture.png[:4] == b"\x89PNG" and picture.alt


def test_the_shared_desk_shows_only_beside_a_sibling():
    bug = check.silent_bug_agents
    assert not bug(lambda replies: replies([["4+3=", "x="]]) == [["7", "7"]])
    assert bug(lambda replies: replies([["4+3="], ["x="]])[1] == ["0"])


def test_a_shared_desk_leaves_a_quarter_of_the_push_towards_calculating():
    """Every coin and every result of six places summed: mean of advantage times score."""

    def push(shared):
        total, stack = 0.0, [((), 0, 1.0)]
        while stack:
            done, memory, p = stack.pop()
            if len(done) == 6:
                mean = sum(R for _, R in done) / 6
                total += p * sum((R - mean) * (calculates - 0.5) for calculates, R in done) / 6
                continue
            at = memory if shared else 0
            stack += [
                ((*done, (1, 1)), 1, p * 0.2),
                ((*done, (1, 0)), 0, p * 0.3),
                ((*done, (0, at)), at, p * 0.5),
            ]
        return total

    assert f"{push(True):.3f}" == "0.022" and f"{push(False):.3f}" == "0.083"
