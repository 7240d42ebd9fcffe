"""The lesson on preferences: tasks with dead ends, pictures that draw, numbers that matter."""

from __future__ import annotations

import pytest
import torch

from rlnb import check
from rlnb.classroom.explorers import one_pair
from rlnb.classroom.pictures import preferences as pictures
from rlnb.toys import kl_optimum, tone_features
from rlnb.training.studies.preferences import recorded

STRENGTHS = [k / 20 for k in range(41)]
MARGINS = [m / 10 for m in range(81)]
REF = torch.tensor([0.3, 0.5, 0.2], dtype=torch.float64)
BETAS = [b / 10 for b in range(1, 31)]


def test_no_goal_is_met_at_the_start():
    start = one_pair.one_pair_explorer().data
    for goal in (one_pair.last_that_holds, one_pair.strong_and_kept):
        assert not goal(start)


def test_a_perfect_log_with_a_fallen_chosen_answer_needs_sharing():
    def fell(data):
        return data["loss"] < 0.05 and data["chosen"] < 0

    assert fell(one_pair.compute(0.1, 3.0, 1.5))
    assert not any(fell(one_pair.compute(b, 8.0, 0.0)) for b in BETAS)  # a table: never


def test_between_two_gaps_every_line_of_the_log_is_good_and_yes_leads():
    def fooled(gap):
        data = one_pair.compute(1.0, gap, 1.5)
        return data["chosen"] > 0 and data["policy"].argmax() == 2

    assert [fooled(gap) for gap in (1.37, 1.39, 4.22, 4.23)] == [False, True, True, False]
    assert one_pair.compute(1.0, 4.2, 1.5)["loss"] < 0.05


def test_at_strength_one_no_and_yes_rise_together():
    assert one_pair.compute(0.1, 8.0, 1.0)["policy"][0] == pytest.approx(0.6, abs=1e-3)


def test_at_strength_one_and_a_half_only_a_policy_that_hardly_moved_keeps_no_in_front():
    goal = one_pair.strong_and_kept
    assert not any(goal(one_pair.compute(2.1, m, 1.5)) for m in MARGINS)
    assert goal(one_pair.compute(2.2, 3.0, 1.5)) and goal(one_pair.compute(5.0, 3.0, 1.5))
    assert not goal(one_pair.compute(2.2, 3.0, 1.45))
    won = [one_pair.compute(b / 10, m, 1.5) for b in range(22, 51, 4) for m in MARGINS]
    assert max(x["policy"][0] for x in won if goal(x)) < 0.42


def test_the_largest_strength_that_holds_is_just_below_one():
    holds = [k for k in STRENGTHS if one_pair.compute(0.1, 8.0, k)["policy"][0] > 0.9]
    assert max(holds) == 0.95
    assert one_pair.last_that_holds(one_pair.compute(0.1, 8.0, 0.95))
    assert not one_pair.last_that_holds(one_pair.compute(0.1, 7.0, 0.95))


def test_under_adam_yes_rises_by_k_and_the_border_stays_at_one():
    ends = {}
    for k in (0.9, 1.0, 1.1):
        features, theta = tone_features(k), torch.zeros(4, dtype=torch.float64, requires_grad=True)
        adam = torch.optim.Adam([theta], lr=0.05)
        for _ in range(1500):
            h = features @ theta
            loss = -torch.nn.functional.logsigmoid(0.1 * (h[0] - h[1]))
            adam.zero_grad()
            loss.backward()
            adam.step()
        h = (features @ theta).detach()
        assert h[2] / h[0] == pytest.approx(k, abs=1e-3)
        ends[k] = (REF.log() + h).softmax(0)
    assert ends[0.9][0] > 0.8 > ends[1.1][0] and ends[1.1][2] > 0.7
    assert ends[1.0][0] == pytest.approx(0.6, abs=1e-3)


def test_the_readout_fits_its_line():
    for beta, margin, k in ((0.1, 8.0, 2.0), (0.1, 2.0, 1.5), (3.0, 0.0, 0.0)):
        assert len(one_pair.readout(one_pair.compute(beta, margin, k))) <= 120


def test_the_margin_is_beta_times_the_gap():
    for beta, margin in ((0.1, 2.0), (1.0, 2.0)):
        data = one_pair.compute(beta, margin, 0.8)
        log = torch.tensor(data["path"]).log()
        gone = (log[-1, 0] - log[-1, 1]) - (log[0, 0] - log[0, 1])
        assert beta * gone.item() == pytest.approx(margin)


@pytest.mark.parametrize("bad", [{"beta": 0.0}, {"margin": -1.0}, {"shared": -0.1}])
def test_bad_settings_are_refused(bad):
    with pytest.raises(ValueError):
        one_pair.compute(**bad)


def test_pictures_draw():
    ref = torch.tensor([0.3, 0.5, 0.2])
    path = torch.stack([kl_optimum(ref, torch.tensor([2.0, 1.0, 0.0]) * t, 1.0)
                        for t in torch.linspace(0, 1, 12)])  # fmt: skip
    log, file = torch.linspace(0, 1, 12), recorded()
    for picture in (
        pictures.same_files(ref, ref, 0.587, 0.3, "c"),
        pictures.kl_paths({0.1: log + 0.01, 1.0: log + 0.02}, "c"),
        pictures.probabilities({"a": path, "b": path}, "c"),
        pictures.triangle({"a": path, "b": path}, "c", looks=(3, 8)),
        pictures.on_a_network(
            {"a": file["DPO"], "b": file["DPO, fresh pairs"]}, file["header"], "c"
        ),
    ):
        assert len(picture.png) > 1000 and picture.alt


def test_the_silent_bug_is_silent_with_one_prompt():
    bug = check.silent_bug_preferences
    one = torch.tensor([0.2, 0.9, 0.0, 0.4])
    assert [x.tolist() for x in bug.broken(one, 4)] == [x.tolist() for x in bug.right(one, 4)]
    assert bug(lambda f: torch.equal(*(x // 3 for x in f(torch.tensor(
        [1.0, 0.9, 0.8, 0.2, 0.1, 0.0]), 3)))).kind == "right"  # fmt: skip
