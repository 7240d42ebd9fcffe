"""The page on the zoo: its pictures say what the objectives are, and its numbers."""

from __future__ import annotations

import pytest
import torch

from rlnb import ZOO, from_trl, from_verl
from rlnb.classroom.explorers import composer, race_rates
from rlnb.classroom.explorers.composer_menus import choices_of
from rlnb.classroom.explorers.composer_picture import moved
from rlnb.classroom.lesson import task
from rlnb.classroom.pictures import labs, race
from rlnb.classroom.pictures import zoo as pictures
from rlnb.interop.labs import lab
from rlnb.objective import (
    Objective,
    cispo,
    clip,
    engine_ratio,
    group_zscore,
    ratio,
    token,
    token_mean,
)
from rlnb.toys import running_batch, running_group
from rlnb.training.studies.race.rows import ROWS
from rlnb.training.studies.race.verdicts import questions


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


def test_the_pictures_draw_and_say_what_they_show():
    assert "mean per answer" in repr(pictures.seven_choices())
    assert "advantage (A), Better than what? group's mean and std" in repr(pictures.seven_choices())
    drawn = pictures.ageing([0, 1], {"SAPO": [1.0, 0.7], "GSPO": [1.0, 0.7]},
                            {"SAPO": "GRPO", "GSPO": "GRPO"})  # fmt: skip
    assert "SAPO against GRPO 1.00 to 0.70" in repr(drawn)


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


def test_seven_methods_take_three_directions_on_a_fresh_batch_and_two_on_one_prompt():
    families = ("grpo gspo sapo", "dapo cispo", "dr_grpo dppo")
    slopes = [
        [slope(plain(name), fresh(running_batch(complete=True))) for name in names.split()]
        for names in families
    ]
    for family in slopes:
        assert all(cosine(family[0], other) > 1 - 1e-9 for other in family)
    for i in range(3):
        assert cosine(slopes[i][0], slopes[i - 1][0]) < 0.998
    grpo, dapo, dr_grpo = (
        slope(plain(name), fresh(running_group())) for name in ("grpo", "dapo", "dr_grpo")
    )
    assert cosine(dapo, dr_grpo) > 1 - 1e-9 and cosine(dapo, grpo) < 0.95


def test_a_clip_of_ten_silences_no_bad_token_and_no_good_one_below_eleven():
    r1 = plain("grpo").replace(surrogate=clip(10.0))
    assert (slope(r1, running_group()) != 0).all()
    for sign, alive in ((1.0, [True, True, False]), (-1.0, [True, True, True])):
        log_ratio = torch.tensor([[0.001, 10.9, 11.1]]).log().requires_grad_()
        worth = clip(10.0)(running_group(), torch.full((1, 3), sign), log_ratio)
        (found,) = torch.autograd.grad(worth.sum(), log_ratio)
        assert (found[0] != 0).tolist() == alive


def test_the_tasks_are_not_done_at_the_start_and_can_be_done():
    explorer = composer.composer_explorer(composer.TAUGHT, "dr_grpo")
    goals = task("zoo.test", explorer, ("few pushes", composer.few_pushes))
    assert explorer.params["start"] == "dr_grpo" and goals.solved == [False]
    explorer.set(surrogate=cispo(5.0))
    assert goals.solved == [True]


def test_the_lesson_s_composer_offers_what_was_taught_and_names_nothing_else():
    explorer = composer.composer_explorer(composer.TAUGHT)
    assert "credit" not in explorer.controls
    for name in composer.TAUGHT:
        data = explorer.set(start=name).data
        assert data["name"] == name and data["problem"] is None
        assert data["said"] == {} and data["nearest"] == ()
    options = {
        menu: [part for _, part in control.options]
        for menu, control in explorer.controls.items()
        if menu != "start"
    }
    base = choices_of("dr_grpo")
    idle = [
        (menu, part)
        for menu, parts in options.items()
        for part in parts
        if part != base[menu] and not moved(composer.compute("dr_grpo", **{menu: part})).any()
    ]
    olmo = engine_ratio("token", "truncate", high=2.0)
    assert lab("OLMo 3 Think").objective.gates == (olmo,)
    assert idle == [("ratio", token("sampling")), ("gates", olmo)]


# The labs


@pytest.mark.parametrize("who", labs.BOXES)
def test_a_lab_s_filled_boxes_are_the_parts_in_which_it_is_not_grpo(who):
    assert sorted(labs.BOXES[who]) == sorted(labs.changed_choices(who))
    surrogate, said = lab(who).objective.surrogate, labs.BOXES[who].get("surrogate", "")
    if isinstance(surrogate, clip) and said:
        numbers = said.replace("−", "-").replace("clip,", "").replace("\n", " ").split(" to ")
        assert [float(x) for x in numbers] == pytest.approx(list(surrogate.edges))


def test_the_labs_picture_says_updates_and_kimi_is_no_row():
    said = repr(labs.labs())
    assert "DeepSeek-R1, updates 16: surrogate clip, −9 to 11, terms k3" in said
    assert "DAPO, updates 16: reward length penalty" in said
    assert (
        "GSPO, updates 4: ratio per answer, surrogate clip, 0.9997 to 1.0004, terms unsaid" in said
    )
    assert "OLMo 3 Think, updates 1: advantage mean only" in said
    with pytest.raises(ValueError, match="Kimi k1.5 is no composition: it squares"):
        labs.changed_choices("Kimi k1.5")


def test_kimi_s_square_pushes_like_a_penalty_in_the_reward():
    torch.manual_seed(0)
    old, R, b, tau = torch.randn(3, 5), torch.tensor([1.0, 0.0, 1.0]), 0.4, 0.3
    logp = (old + 0.2 * torch.randn(3, 5)).requires_grad_()
    gap = R - b - tau * (logp - old).sum(1)
    (slope,) = torch.autograd.grad((gap**2 / 2).sum(), logp)
    assert torch.allclose(-slope, (tau * gap.detach())[:, None].expand(3, 5))


def test_olmo_s_clip_never_acts_at_its_one_update_and_its_gate_does():
    olmo, batch = lab("OLMo 3 Think").objective, running_batch(complete=True)
    now = batch.logprobs.detach()
    late = batch.replace(old_logprobs=now, sampling_logprobs=batch.old_logprobs)
    assert lab("OLMo 3 Think").updates == 1
    assert torch.equal(slope(olmo, late), slope(olmo.replace(surrogate=ratio()), late))
    assert not torch.equal(slope(olmo, late), slope(olmo.replace(gates=()), late))


def test_one_per_cent_a_token_drops_a_long_answer_and_keeps_a_short_one():
    for length, kept in ((100, True), (1000, False)):
        gap = torch.full((1, length), 1.01).log()
        batch = running_batch().replace(
            logprobs=torch.zeros(1, length), old_logprobs=torch.zeros(1, length),
            sampling_logprobs=-gap, completion_mask=torch.ones(1, length),
            rewards=torch.ones(1), num_generations=1,
        )  # fmt: skip
        assert engine_ratio()(batch, torch.ones(1, length), gap).bool().all() == kept


# The race


def test_the_second_view_shows_both_budgets_of_every_arm():
    said = repr(race.two_budgets({"reuse": ("1 pass", "8 passes")}, caption="x"))
    for name, passes in (("1 pass", 1), ("8 passes", 8)):
        arm = race.recorded("reuse")["arms"][name]
        assert arm["updates"][0] == 20 * passes
        mean = sum(arm["measures"]["pass@1"]) / 20
        seconds = sorted(arm["cpu"])
        middle = (seconds[9] + seconds[10]) / 2
        assert f"{name} ends at {mean:.2f} after 1,280 answers, {middle:.2f} CPU seconds" in said


def test_the_race_s_pictures_show_every_seed_and_the_rule_s_words():
    said = repr(race.race("stale", only=["GRPO, k = 16", "no clip, k = 16"], caption="x"))
    assert "a dot per seed" in said and "no clip, k = 16 mean" in said and "better" in said


def test_the_numbers_that_the_answer_on_old_answers_gives():
    arms = race.recorded("stale")["arms"]

    def mean(values):
        return sum(values) / len(values)

    passed = {name: mean(arm["measures"]["pass@1"]) for name, arm in arms.items()}
    assert mean(arms["GRPO, k = 16"]["seen"]["cut"]) == pytest.approx(1 / 4, abs=0.02)
    assert mean(arms["GRPO, k = 4"]["seen"]["cut"]) == pytest.approx(1 / 9, abs=0.01)
    assert arms["no clip, k = 16"]["rate"] == pytest.approx(0.3 * arms["GRPO, k = 16"]["rate"])
    assert all(passed[name] > 3 * 0.16 for name in ("GRPO, k = 16", "no clip, k = 16"))
    verdicts = {c.arm: c.verdict for c in race.results("stale")}
    assert verdicts["no clip, k = 4"] == "worse" and verdicts["no clip, k = 16"] == "better"


def test_the_clip_silences_equally_many_tokens_at_32_updates_and_at_lag_4():
    def cut(row, arm):
        seen = race.recorded(row)["arms"][arm]["seen"]["cut"]
        return sum(seen) / len(seen)

    assert cut("clip", "clip, 32 updates") == pytest.approx(0.11, abs=0.005)
    assert cut("stale", "GRPO, k = 4") == pytest.approx(0.11, abs=0.005)
    assert cut("stale", "GRPO, k = 16") == pytest.approx(0.25, abs=0.005)


def test_gspo_silences_half_of_the_tokens_at_once_and_grpo_some_of_them_later():
    batch = running_batch(complete=True)
    old, now = batch.old_logprobs, batch.logprobs.detach()
    found = []
    for share in (0.05, 1.0):
        aged = batch.replace(logprobs=(old + share * (now - old)).requires_grad_())
        found.append([slope(plain(name), aged) for name in ("grpo", "gspo")])
    (grpo, gspo), (late_grpo, late_gspo) = found
    assert (gspo == 0).sum() == (late_gspo == 0).sum() == 15 and not (grpo == 0).any()
    assert (late_grpo == 0).sum() == 6 and ((late_grpo == 0) & (late_gspo == 0)).sum() == 5
    largest = late_grpo.abs().argmax()
    assert late_gspo[largest] != 0 and late_grpo[largest] / grpo[largest] > 3
    assert cosine(grpo, gspo) < 0.55 < 0.7 < cosine(late_grpo, late_gspo)


def test_the_rates_explorer_says_the_rule_s_word_and_its_task_follows_from_it():
    explorer = race_rates.race_rates_explorer()
    goals = task("zoo.test2", explorer, ("lead", race_rates.largest_shared_lead))
    assert goals.solved == [False]
    words = {
        updates: [race_rates.compute(updates, rate, rate)["verdict"] for rate in race_rates.rates()]
        for updates in race_rates.UPDATES
    }
    assert words[32] == [*["cannot tell"] * 3, *["better"] * 3, *["cannot tell"] * 2]
    assert words[2][:4] == ["no difference that matters"] * 4 and "worse" not in sum(
        words.values(), []
    )
    means = [race_rates.compute(32, rate, rate)["found"][0] for rate in race_rates.rates()]
    assert [mean < 0 for mean in means[:6]] == [True, True] + [False] * 4
    assert max(means) == means[4] == pytest.approx(0.43, abs=0.005) and max(means[6:]) < 0.04
    explorer.set(updates=32, clip_rate=0.003, no_clip_rate=0.01)  # not shared
    explorer.set(updates=8, no_clip_rate=0.003)  # not at 32
    assert goals.solved == [False]
    explorer.set(updates=32)
    assert goals.solved == [True]
    tuned = {2: (0.01, 0.0055, "cannot tell"), 32: (0.001, 0.0006, "cannot tell"),
             8: (0.003, 0.0018, "cannot tell")}  # fmt: skip
    for updates, (clip_rate, no_clip_rate, word) in tuned.items():
        explorer.set(updates=updates, clip_rate=clip_rate, no_clip_rate=no_clip_rate)
        assert explorer.data["chosen"] == explorer.data["best"]
        assert explorer.data["verdict"] == word
    with pytest.raises(ValueError, match="clip_rate must be one of 0.0003"):
        race_rates.compute(8, 0.002)


def test_the_lead_of_the_tuning_seeds_at_2_updates_is_gone_on_others():
    tuned = race_rates.compute(2, 0.01, 0.0055)
    assert tuned["chosen"] == tuned["best"]
    again = race.results("clip")[0]
    assert again.arm == "clip, 2 updates" and tuned["found"][0] > 0.07 > 0 > again.difference
    assert again.low < 0 < again.high
    (five, others), (no_five, no_others) = (
        race.both_seeds(f"{arm}, 2 updates") for arm in ("clip", "no clip")
    )
    assert sum(x < min(five) for x in others) == 12 and min(others) > 0.4 > 2 * 0.17
    fall, rise = (sum(a) / 20 - sum(b) / 5 for a, b in ((others, five), (no_others, no_five)))
    assert fall < -0.11 and abs(rise) < 0.01
    drawn = repr(race.held_out(("clip, 2 updates", "no clip, 2 updates"), caption=""))
    assert "clip, the 5: mean 0.78" in drawn and "the 20 others: mean 0.66, 0.46 to" in drawn


def test_the_lead_at_the_clip_s_rate_is_gone_on_the_same_seeds_at_own_rates():
    own = race_rates.compute(32, 0.001, 0.0006)
    assert own["chosen"] == own["best"] and own["verdict"] == "cannot tell"
    assert own["found"] == pytest.approx((-0.004, -0.198, 0.190), abs=6e-4)


def test_the_race_s_two_sides_are_one_line_up_to_the_clip():
    for updates in (2, 8, 32):
        with_clip, without = (
            ROWS["clip"].arms[f"{a}, {updates} updates"] for a in ("clip", "no clip")
        )
        line = Objective(group_zscore(), clip(0.2), token_mean)
        assert with_clip.objective == line and with_clip.updates == updates
        assert without.objective == line.replace(surrogate=ratio())
        assert with_clip.answers == without.answers == 64 * 40 and with_clip.optimizer == "Adam"


def test_the_lead_of_a_team_that_tunes_its_clip_and_copies_the_rate():
    copied = race_rates.compute(32, 0.001, 0.001)
    assert copied["chosen"]["clip"] == copied["best"]["clip"]
    assert copied["found"] == pytest.approx((0.193, -0.180, 0.566), abs=6e-4)
    step = race_rates.compute(32, 0.001, 0.0006)["means"]["no clip"] - copied["means"]["no clip"]
    assert step == pytest.approx(0.197, abs=6e-4)
    fair = {c.arm: c for c in race.results("clip")}
    at_32, at_8 = fair["clip, 32 updates"], fair["clip, 8 updates"]
    assert at_32.verdict == "inconclusive" and at_32.high - at_32.low > 2 * race_rates.S
    assert at_8.verdict == "better" and at_8.low < race_rates.S


def test_the_page_says_how_many_comparisons_were_run_and_what_they_start_from():
    assert len(questions()) == 16
    assert sum(len(race.results(name)) for name in questions()) == 59
    for row in ("clip", "stale"):
        for arm in race.recorded(row)["arms"].values():
            assert arm["start"]["pass@1"] == pytest.approx([0.16] * 3, abs=0.0025)
            assert len(arm["seeds"]) == 20 and not set(arm["seeds"]) & {100, 101, 102, 103, 104}
    rates = race_rates.rates()
    assert (rates[-1] / rates[0]) ** (1 / 7) == pytest.approx(1.8, abs=0.05)
    assert len(rates) == 8 and all(1.6 < b / a <= 2 for a, b in zip(rates, rates[1:], strict=False))
