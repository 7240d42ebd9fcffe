"""The lesson on evaluation: its tasks can be done, its runs are what the page says they are."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
import torch

from rlnb import check
from rlnb.classroom.exercises.evaluation import entropy_change, majority_vote, pass_at_k
from rlnb.classroom.explorers import entropy_step, five_runs, sharpen_or_learn
from rlnb.classroom.pictures import evaluation as pictures
from rlnb.classroom.pictures import evaluation_entropy as entropy_pictures
from rlnb.toys.entropy import entropy
from rlnb.training import data_folder
from rlnb.training import pass_at_k as passed
from rlnb.training.studies.controls import reports
from rlnb.training.studies.countdown_counts import counted
from rlnb.training.studies.entropy_law import law
from rlnb.training.studies.first_steps import leading_steps, needs_product, settled
from rlnb.training.studies.kept_answers import fisher, kept, right_counts

RUNS = data_folder() / "runs"
POWERS = [k / 10 for k in range(10, 41)]


def countdown():
    right, lines = kept(RUNS / "countdown_kept_answers.json")
    return {name: right_counts(right, rows) for name, rows in lines.items()}


def test_pass_at_k_counts_subsets():
    for right in ([1, 1, 1, 0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1]):
        for k in range(1, len(right) + 1):
            subsets = [any(some) for some in combinations(right, k)]
            c = torch.tensor([float(sum(right))], dtype=torch.float64)
            assert pass_at_k(len(right), c, k).item() == pytest.approx(np.mean(subsets))


def test_the_vote_leaves_out_what_cannot_be_read():
    rows = torch.tensor([[-1.0, -1.0, 3.0], [5.0, 2.0, 2.0], [-1.0, -1.0, -1.0]])
    assert majority_vote(rows).tolist() == [3.0, 2.0, -1.0]


def test_the_covariance_is_the_slope_of_the_entropy():
    z = torch.tensor([0.3, -0.7, 1.4, 0.0], dtype=torch.float64)
    A = torch.tensor([1.0, 0.5, -2.0, 0.25], dtype=torch.float64)
    slope = torch.func.jvp(entropy, (z,), (A,))[1]
    torch.testing.assert_close(entropy_change(z, A, 1.0), slope)


def test_a_cut_answer_exposes_the_silent_bug_and_a_finished_batch_does_not():
    one = torch.ones(1, 2)
    half = torch.tensor([[1.0, 0.0]])
    assert check.silent_bug_evaluation(lambda f: torch.allclose(f(half, half), torch.tensor(0.5)))
    assert not check.silent_bug_evaluation(
        lambda f: torch.allclose(f(half, one), torch.tensor(0.5))
    )


def test_a_model_that_learned_can_be_overtaken():
    reach = sharpen_or_learn.compute()["before"]
    assert (reach[:10] < 1e-4).all() and reach[10] > 5e-4
    goal = sharpen_or_learn.learned_and_behind
    assert min(p for p in POWERS if goal(sharpen_or_learn.compute(p, 5))) == 2.9
    assert min(p for p in POWERS if goal(sharpen_or_learn.compute(p, 10))) == 4.0
    assert not any(goal(sharpen_or_learn.compute(p, 15)) for p in POWERS)
    assert sharpen_or_learn.compute()["learned"] == 0 == sharpen_or_learn.compute()["halved"]


def test_a_curve_that_is_ahead_everywhere_can_hide_losses():
    goal, toy = sharpen_or_learn.ahead_with_losses, sharpen_or_learn.compute
    assert goal(toy(2.0, 10)) and goal(toy(3.0, 15)) and goal(toy(4.0, 20))
    assert not goal(toy()) and not goal(toy(3.0, 5)) and not goal(toy(1.0, 15))
    data = toy(3.0, 15)
    assert (data["now"] > data["base"]).all()
    assert data["halved"] == (2 * data["after"] <= data["before"]).sum() == 23


def test_a_plain_gradient_step_weighs_the_entropy_by_the_squared_chance():
    z = torch.tensor([0.3, -0.7, 1.4, 0.0], dtype=torch.float64)
    A = torch.tensor([1.0, 0.5, -2.0, 0.25], dtype=torch.float64)
    pi = z.softmax(0)
    off = A - (pi * A).sum()
    slope = torch.func.jvp(entropy, (z,), (pi * off,))[1]
    said = -(pi**2 * off * (pi.log() + entropy(z))).sum()
    torch.testing.assert_close(said, slope)


def test_none_right_of_64_was_an_accident_even_among_64_problems():
    many = counted(RUNS / "countdown_counts.json")["base"]["right"]
    chance = np.array(many) / 1024
    assert round(((1 - chance) ** 64).sum(), 2) == 0.03 and min(many) == 73
    assert countdown()["base"][int(chance.argmin())] == 0


def test_sixteen_tries_lost_where_the_commonest_first_step_leads_nowhere():
    many = counted(RUNS / "countdown_counts.json")
    first, leads = settled(RUNS / "countdown_first_steps.json"), leading_steps()
    gap = {True: [], False: []}
    for name in ("seed 0", "seed 1", "seed 2"):
        rows = zip(first[name]["steps"], leads, needs_product(), many["base"]["right"],
                   many[name]["right"], strict=True)  # fmt: skip
        for steps, good, product, b, a in rows:
            if product:
                live = max(steps, key=steps.get) in good
                gap[live].append(passed(1024, a, 16) - passed(1024, b, 16))
    assert len(gap[True]) == 32 and abs(np.mean(gap[True])) < 0.01
    assert len(gap[False]) == 52 and round(np.mean(gap[False]), 2) == -0.25


def dead_ends():
    """(seed, problem) of the products whose commonest first step cannot reach the target."""
    first, leads = settled(RUNS / "countdown_first_steps.json"), leading_steps()
    product = needs_product()
    return first, [
        (s, i)
        for s in ("seed 0", "seed 1", "seed 2")
        for i, steps in enumerate(first[s]["steps"])
        if product[i] and max(steps, key=steps.get) not in leads[i]
    ]


def test_sixteen_tries_fell_because_the_chances_spread_not_because_of_their_mean():
    many = counted(RUNS / "countdown_counts.json")
    _, pairs = dead_ends()
    before = np.array([many["base"]["right"][i] for _, i in pairs]) / 1024
    after = np.array([many[s]["right"][i] for s, i in pairs]) / 1024
    assert (round(before.mean(), 2), round(after.mean(), 2)) == (0.17, 0.14)
    assert round(1 - (1 - round(after.mean(), 2)) ** 16, 2) == 0.91
    assert round(1 - (1 - after.mean()) ** 16, 2) == 0.91
    assert round(np.mean(1 - (1 - after) ** 16), 2) == 0.64
    assert before.min() > 0.07 and (len(after), (after < 0.02).sum()) == (52, 14)
    assert (after > before).sum() == 21
    said = pictures.spread({"before": before, "after": after}, 16).bundles()[0].data
    assert "image/png" in said


def test_a_dead_end_can_be_dropped_and_was_rarely_the_bases_own_favourite():
    many = counted(RUNS / "countdown_counts.json")
    first, pairs = dead_ends()
    own = [max(row, key=row.get) for row in first["base"]["steps"]]
    same = [max(first[s]["steps"][i], key=first[s]["steps"][i].get) == own[i] for s, i in pairs]
    assert sum(same) == 13
    s, i = max(pairs, key=lambda pair: many[pair[0]]["right"][pair[1]])
    open_ended = first[s]["leads"][i] + 64 - first[s]["written"][i]  # may still reach it at once
    assert many[s]["right"][i] / 1024 > 0.5 and open_ended / 64 < 0.25


def test_none_of_64_leaves_open_what_the_page_says():
    alone, picked = (1 - q ** (1 / 64) for q in (0.05, 0.05 / 64))
    assert (round(alone, 2), round(picked, 2)) == (0.05, 0.11)
    assert 0.999**3000 < 0.05 < 0.999**2900


def test_the_cooled_base_has_hardly_any_chance_near_zero_and_the_trained_models_have():
    _, rows = kept(RUNS / "countdown_cooled.json")
    names = ("base, T = 0.35", "seed 0", "seed 1", "seed 2")
    assert [sum(x.count("1") <= 3 for x in rows[name]) for name in names] == [1, 9, 10, 7]


def test_run_b_starts_on_policy_and_its_reward_trails_the_score_until_step_24():
    run = five_runs.recorded("dash_stale", 0)
    assert run["ratio"][0] == pytest.approx(1, abs=0.01) and run["ratio"][1] > 2
    paid = np.array([run["reward"][max(at - 4, 0) : at].mean() for at in run["at"][1:]])
    assert (paid < run["held"][1:])[:6].all() and not (paid < run["held"][1:]).all()
    broken = five_runs.recorded("dash_rate", 0)
    assert (broken["reward"][19:] == 0).all() and (broken["norm"][19:] == 0).all()


def cooled_rate(name, k, T=1.0):
    right, rows = kept(RUNS / "countdown_cooled.json")
    row = rows[name if T == 1 else f"{name}, T = {T}"]
    return np.mean([passed(64, c, k) for c in right_counts(right, row)])


def test_the_cooled_models_are_those_of_the_thousand_answers():
    many = counted(RUNS / "countdown_counts.json")
    for name in ("base", "seed 0", "seed 1", "seed 2"):
        assert abs(cooled_rate(name, 1) - np.mean(many[name]["right"]) / 1024) < 0.015


def test_the_cooled_base_has_most_of_the_gain_and_pays_nothing():
    trained = {k: np.mean([cooled_rate(f"seed {s}", k) for s in (0, 1, 2)]) for k in (1, 16)}
    gained = cooled_rate("base", 1, 0.35) - cooled_rate("base", 1)
    assert gained / (trained[1] - cooled_rate("base", 1)) > 0.7
    assert cooled_rate("base", 16, 0.35) >= cooled_rate("base", 16) > trained[16] + 0.05


def test_no_temperature_gives_the_trained_models_their_sixteen_tries_back():
    for T in (0.0, 0.2, 0.35, 0.5, 0.7, 1.0, 1.25, 1.5):
        for seed in (0, 1, 2):
            assert cooled_rate(f"seed {seed}", 16, T) < cooled_rate("base", 16, 0.35) - 0.03


def test_the_estimate_of_pass_at_8_is_as_noisy_as_the_page_says():
    for n, said in ((8, 0.50), (16, 0.31), (32, 0.21)):
        chance = [comb(n, c) * 0.1**c * 0.9 ** (n - c) for c in range(n + 1)]
        value = np.array([passed(n, c, 8) for c in range(n + 1)])
        std = np.dot(chance, (value - np.dot(chance, value)) ** 2) ** 0.5
        assert round(std, 2) == said


def test_entropy_rises_with_a_rare_right_answer_and_a_large_step_breaks_the_promise():
    assert entropy_step.more_of_both(entropy_step.compute(0.05, 1.5))
    large = entropy_step.compute(0.05, 6.0)
    assert large["said"] > 0.2 and large["done"] < 0
    assert not entropy_step.more_of_both(entropy_step.compute(0.5, 1.5))
    small = entropy_step.compute(0.05, 0.01)
    assert small["said"] == pytest.approx(small["done"], rel=0.02)


def test_a_large_step_loses_the_entropy_that_the_covariance_promises():
    goal, step = entropy_step.promised_and_lost, entropy_step.compute
    assert goal(step(0.05, 6.0)) and not goal(step(0.05, 2.0)) and not goal(step(0.5, 6.0))


@pytest.mark.parametrize("run", five_runs.RUNS)
def test_each_run_fits_its_diagnosis_and_no_other_in_every_seed(run):
    name, truth = five_runs.RUNS[run]
    for seed in (0, 1, 2):
        found = five_runs.signs(five_runs.recorded(name, seed))
        assert [key for key, sign in found.items() if sign[0]] == [truth]
    assert five_runs.named(run)(five_runs.compute(run, truth))
    wrong = [said for said in five_runs.DIAGNOSES if said != truth]
    for said in wrong:
        data = five_runs.compute(run, said)
        assert data["right"] is False and five_runs.readout(data).count("No: ") == 1
    assert not five_runs.named(run)(five_runs.compute())


def test_the_score_of_the_run_with_the_high_rate_falls_within_four_steps():
    for seed in (0, 1, 2):
        fits, because, _ = five_runs.signs(five_runs.recorded("dash_rate", seed))["rate"]
        assert fits and "within 4 steps" in because


def test_the_words_of_the_dashboard_tell_the_reward_from_the_held_out_score():
    said = five_runs.alt(five_runs.compute("A"))
    assert "reward 0.55 at step 1" in said and "held-out score 0.37 at the start" in said


def test_no_run_is_named_at_the_start_and_nothing_is_told():
    data = five_runs.compute()
    assert data["right"] is None and "what do you see" in five_runs.readout(data)


def test_the_curves_cross_between_four_and_eight_in_every_seed():
    counts = countdown()
    mean = {
        name: [pass_at_k(64, torch.tensor(row).double(), k).mean().item() for k in (1, 4, 8, 32)]
        for name, row in counts.items()
    }
    for name in ("seed 0", "seed 1", "seed 2"):
        assert [now > then for now, then in zip(mean[name], mean["base"], strict=True)] == [
            True, True, False, False,
        ]  # fmt: skip
    assert [sum(c > 0 for c in row) for row in counts.values()] == [63, 60, 63, 61]


def test_the_recorded_law_has_the_sign_and_not_the_size():
    record = law(RUNS / "entropy_law.json")
    for seed in (0, 1, 2):
        run = record[f"plain, seed {seed}"]
        change = np.subtract(run["after"], run["before"])
        assert min(run["per_token"]) > 0 and (change < 0).mean() >= 0.95
        assert 0.4 < -np.corrcoef(run["per_token"], change)[0, 1] < 0.7


def test_alone_the_covariance_is_right_more_often_than_not_and_the_first_order_nearly_always():
    r = law(RUNS / "entropy_law.json")["alone, a tenth of the rate"]
    change, up = np.subtract(r["after"], r["before"]), np.array(r["per_token"]) < 0
    assert (len(up), up.sum()) == (272, 27)
    assert ((change > 0)[up].sum(), (change < 0)[~up].sum()) == (16, 218)
    assert (np.array(r["linear"]) * change > 0).sum() == 263


def test_cooling_the_base_loses_nothing_and_heating_the_trained_model_wins_nothing_back():
    right, rows = kept(RUNS / "countdown_temperature.json")
    at = {
        name: [np.mean([passed(64, c, k) for c in right_counts(right, lines)]) for k in (1, 16)]
        for name, lines in rows.items()
    }
    assert at["base, T = 0.5"][0] > at["base"][0] + 0.1
    assert at["base, T = 0.5"][1] > at["base"][1] > 0.94
    for seed in (0, 1, 2):
        cold, hot = at[f"seed {seed}"], at[f"seed {seed}, T = 1.5"]
        assert cold[0] > 0.45 and max(cold[1], hot[1]) < at["base"][1] - 0.05


def test_a_thousand_answers_say_where_the_curves_differ_and_that_nothing_is_at_zero():
    many = counted(RUNS / "countdown_counts.json")
    ks = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    each = {n: np.array([[passed(1024, c, k) for k in ks] for c in many[n]["right"]]) for n in many}
    gap = np.mean([each[f"seed {s}"] for s in (0, 1, 2)], axis=0) - each["base"]
    z = gap.mean(0) / (gap.std(0, ddof=1) / 8)
    assert [int(np.sign(x)) if abs(x) > 2 else 0 for x in z] == [1, 1, 0, 0, -1, -1, -1, -1, -1]
    assert [min(many[n]["right"]) for n in many] == [73, 3, 4, 4]
    rose = countdown()["base"].index(0)
    assert (many["base"]["right"][rose], many["seed 0"]["right"][rose]) == (73, 310)
    for seed in (0, 1, 2):  # along the run
        row = many[f"seed {seed}"]
        assert row["steps"] == list(range(10, 91, 10))
        assert row["entropy"][-1] < 0.7 * many["base"]["entropy"][0]
        assert row["pass@1"][-1] > 0.5 and row["pass@16"][-1] < 0.91


def test_like_is_compared_with_like_sampled_the_trained_model_wins_coldly_nobody():
    found = reports(RUNS / "chain_controls.json")
    assert found["base"]["forced/steps"] < found["seed 0"]["pass@1"] - 0.2
    cold = [found[f"seed {s}"]["greedy"] for s in (0, 1, 2)]
    assert found["base"]["forced/steps/greedy"] >= max(cold) > 0.98
    digits, rows = kept(RUNS / "chain_kept_answers.json")
    right = {n: np.mean([vote(x) == d for d, x in zip(digits, rows[n], strict=True)]) for n in rows}
    assert all(right[f"seed {s}"] > right["base"] + 0.09 for s in (0, 1, 2))


def vote(line):
    said = line.replace(".", "")
    return max(said, key=said.count) if said else "."


def test_lost_votes_are_chosen_by_some_answers_and_judged_by_others():
    digits, rows = kept(RUNS / "chain_kept_answers.json")
    _, fresh = kept(RUNS / "chain_fresh_answers.json")
    lost, again, large = (
        {i for i, (d, line) in enumerate(zip(digits, lines, strict=True)) if vote(line) != d}
        for lines in (rows["base"], [x[:32] for x in fresh["base"]], fresh["base"])
    )
    assert (len(lost), len(lost & again), len(lost & large)) == (34, 12, 2)
    assert len(large) == 7
    trained = np.mean([right_counts(digits, rows[f"seed {s}"]) for s in (0, 1, 2)]) / 32
    assert 1 - len(large) / 250 > trained + 0.03  # a large vote is ahead


def test_made_to_calculate_greedily_the_base_is_right_everywhere():
    base = reports(RUNS / "chain_controls.json")["base"]
    assert base["forced/steps/greedy"] == 1 and 0.6 < base["forced/steps"] < 0.7


def test_fisher_finds_what_rose_and_what_fell():
    counts = countdown()
    found = []
    for seed in (0, 1, 2):
        pairs = zip(counts["base"], counts[f"seed {seed}"], strict=True)
        sure = [(b, a) for b, a in pairs if fisher(b, a, 64) < 0.05 / 64]
        found.append((sum(a > b for b, a in sure), sum(a < b for b, a in sure)))
        if seed == 0:
            assert sorted(b for b, a in sure if a == 0) == [11, 13, 16] and (0, 22) in sure
    assert found == [(29, 4), (29, 4), (30, 3)]


def test_of_the_1024_answers_two_in_three_rose_and_one_in_five_fell():
    """The page once gave the counts of the 64 answers here."""
    record = counted(RUNS / "countdown_counts.json")
    found = []
    for seed in (0, 1, 2):
        both = zip(record["base"]["right"], record[f"seed {seed}"]["right"], strict=True)
        moved = [a - b for b, a in both if fisher(b, a, 1024) < 0.05 / 64]
        found.append((sum(x > 0 for x in moved), sum(x < 0 for x in moved)))
    assert found == [(43, 13), (44, 15), (41, 14)]


def test_an_answer_is_rare_below_the_exponential_of_minus_the_entropy():
    wrong = torch.tensor([0.64, 0.21, 0.07, 0.02], dtype=torch.float64)
    for others, rises in ((wrong, True), (torch.full((39,), 0.95 / 39).double(), False)):
        pi = torch.cat([torch.tensor([0.05], dtype=torch.float64), others])
        z = (pi / pi.sum()).log()
        H = entropy(z)
        step = torch.zeros_like(z)
        step[0] = 1.0
        slope = torch.func.jvp(entropy, (z,), (step,))[1]
        p = z.softmax(0)[0]
        torch.testing.assert_close(slope, -p * (p.log() + H))
        assert (slope > 0).item() is rises and (p < (-H).exp()).item() is rises


def test_every_picture_draws():
    counts, record = countdown(), law(RUNS / "entropy_law.json")
    many = counted(RUNS / "countdown_counts.json")
    shown = [
        pictures.crossing(counts, 64, 16),
        entropy_pictures.along_the_run(many["base"], [many[f"seed {s}"] for s in (0, 1, 2)]),
        pictures.problem_by_problem([3, 40, 5], [20, 0, 6], [True, True, False], 64),
        pictures.estimates(0.1, 8),
        pictures.votes({"base": [0.4, 0.6], "trained": [0.9]}, (1, 2)),
        pictures.ways({"sampled": {"base": 0.2, "trained": 0.9}, "likeliest token": {"base": 1}}),
        pictures.over_temperature({(w, T): np.eye(2) for w in ("before", "after") for T in (0, 1)}),
        pictures.heated({(w, T): np.eye(3) for w in ("before", "after") for T in (0.5, 1.0, 1.5)}),
        entropy_pictures.quadrants(),
        entropy_pictures.law_on_a_run(record["alone, a tenth of the rate"]),
        entropy_pictures.forks(record["tokens"][1:3]),
        entropy_pictures.arms(record, ["plain", "80/20"]),
        entropy_pictures.two_arms(np.full((5, 3), 0.5)),
        pictures.learnability(np.linspace(0, 1, 5), {"p": np.linspace(0, 1, 5)}),
    ]
    for picture in shown:
        assert any("image/png" in bundle.data for bundle in picture.bundles())
