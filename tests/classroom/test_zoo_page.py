"""The page on the zoo: its pictures say what the objectives are, and its numbers."""

from __future__ import annotations

import pytest
import torch

from rlnb import ZOO, from_trl, from_verl
from rlnb.classroom.explorers import composer
from rlnb.classroom.lesson import task
from rlnb.classroom.pictures import zoo as pictures
from rlnb.objective import clip, engine_ratio, leave_one_out, token
from rlnb.toys import running_batch, running_group


def fresh(batch):
    now = batch.logprobs.detach()
    return batch.replace(old_logprobs=now, sampling_logprobs=now)


def slope(objective, batch):
    (found,) = torch.autograd.grad(objective(batch).loss, batch.logprobs)
    return found[batch.mask]


def plain(name):
    return ZOO[name].replace(terms=())


def cosine(a, b):
    return torch.cosine_similarity(a, b, 0).item()


def test_the_words_on_a_way_are_the_parts_that_differ():
    for start, end, _, parts in pictures.WAYS:
        assert sorted(parts) == sorted(pictures.changed_parts(start, end)), (start, end)
        assert start in pictures.PLACES and end in pictures.PLACES


def test_of_grpo_s_neighbours_only_sapo_is_one_choice_away():
    near = {name: len(pictures.changed_parts("grpo", name)) for name in pictures.PLACES}
    assert near["sapo"] == 1 and near["dapo"] == near["dr_grpo"] == near["gspo"] == 2
    assert pictures.changed_parts("dapo", "cispo") == ["surrogate"]


def test_the_pictures_draw_and_say_what_they_show():
    assert "mean per answer" in repr(pictures.seven_choices())
    assert "dapo to cispo: surrogate capped weight" in repr(pictures.ways())
    drawn = pictures.ageing([0, 1], {"SAPO": [1.0, 0.7], "GSPO": [1.0, 0.7]},
                            {"SAPO": "GRPO", "GSPO": "GRPO"})  # fmt: skip
    assert "SAPO against GRPO 1.00 to 0.70" in repr(drawn)
    curves = {name: torch.linspace(2, 1, 9) for name in pictures.WEIGHTS}
    assert "MaxRL" in repr(pictures.prompt_weights(torch.linspace(0.1, 0.9, 9), curves))


def test_two_teams_take_the_same_first_step_and_part_at_a_ratio_of_3_5():
    teams = [
        from_trl(loss_type="grpo").objective,
        from_trl(loss_type="dapo").objective,
        from_verl(adv_estimator="grpo").objective,
    ]
    one, two, three = (slope(team, fresh(running_group())) for team in teams)
    assert cosine(two, three) > 1 - 1e-12 and cosine(one, three) < 0.95
    batch = running_group()
    two, three = (slope(team, batch) for team in teams[1:])
    (other,) = ((two - three).abs() > 0.01).nonzero()
    ratio = (batch.logprobs - batch.old_logprobs).exp()[batch.mask]
    assert ratio[other].item() == pytest.approx(3.5) and three[other] == 0


def test_eight_methods_take_three_directions_on_a_fresh_batch():
    families = ("grpo gspo gmpo sapo", "dapo cispo", "dr_grpo dppo")
    slopes = [
        [slope(plain(name), fresh(running_batch(complete=True))) for name in names.split()]
        for names in families
    ]
    for family in slopes:
        assert all(cosine(family[0], other) > 1 - 1e-9 for other in family)
    for i in range(3):
        assert cosine(slopes[i][0], slopes[i - 1][0]) < 0.998


def test_a_clip_of_ten_silences_no_bad_token_and_no_good_one_below_eleven():
    r1 = plain("grpo").replace(surrogate=clip(10.0))
    assert (slope(r1, running_group()) != 0).all()
    for sign, alive in ((1.0, [True, True, False]), (-1.0, [True, True, True])):
        log_ratio = torch.tensor([[0.001, 10.9, 11.1]]).log().requires_grad_()
        worth = clip(10.0)(running_group(), torch.full((1, 3), sign), log_ratio)
        (found,) = torch.autograd.grad(worth.sum(), log_ratio)
        assert (found[0] != 0).tolist() == alive


def test_the_tasks_are_not_done_at_the_start_and_can_be_done():
    explorer = composer.composer_explorer()
    goals = task(
        "zoo.test",
        explorer,
        ("two idle parts", composer.idle_parts),
        ("another baseline", composer.another_baseline),
    )
    assert goals.solved == [False, False]
    explorer.set(start="grpo", ratio=token("sampling"), gates=engine_ratio())
    assert goals.solved == [True, False]
    explorer.set(start="dr_grpo", advantage=leave_one_out())
    assert goals.solved == [True, True]
