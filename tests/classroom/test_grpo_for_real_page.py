"""The lesson on a whole run: its tasks can be done, its pictures draw, its numbers hold."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.classroom import explorers
from rlnb.classroom.explorers import gpu_budget, rollouts
from rlnb.classroom.pictures import grpo_for_real as pictures
from rlnb.classroom.pictures.larger_model import larger
from rlnb.classroom.pictures.recorded_runs import evaluations
from rlnb.training import data_folder
from rlnb.training.studies import own_answers
from rlnb.training.studies.controls import reports
from rlnb.training.studies.many_answers import parts, pass_at, rate, shares, solved

RUNS = data_folder() / "runs"
MANY = RUNS / "chain_many_answers.json"
EVERY = [
    (step, prompt, answer)
    for step in rollouts.steps()
    for prompt in (1, 2)
    for answer in range(1, 9)
]
TALLEST = 525  # CSS pixels of controls and picture, on a screen 1366 wide
ROW, LINE = 36, 32  # of controls, of the text below them


def test_one_recorded_answer_is_wrong_with_right_steps():
    found = [at for at in EVERY if rollouts.right_steps_wrong_end(rollouts.compute(*at))]
    assert found == [(30, 2, 4)]
    data = rollouts.compute(30, 2, 4)
    assert data["prompt"].startswith("5+5") and "".join(data["tokens"]).startswith("5+3=8")


def test_one_recorded_answer_blames_a_harmless_wait_as_hard_as_the_slip():
    for show in rollouts.SHOW:
        found = [at for at in EVERY if rollouts.harmless_blamed(rollouts.compute(*at, show))]
        assert found == ([(10, 2, 2)] if show == "logit" else [])
    data = rollouts.compute(10, 2, 2, "logit")
    hardest, second = np.argsort(-np.abs(data["push"]))[:2]
    assert (data["tokens"][hardest], data["tokens"][second]) == ("6", "wait")
    assert rollouts.slips(data["texts"][1])[-2:] == [True, False]  # 4-7=6, and what follows


def test_no_recorded_answer_is_right_with_a_wrong_step():
    """The page shows such an answer typed by hand, since these groups have none."""
    for at in EVERY:
        data = rollouts.compute(*at)
        assert not (data["reward"] and any(rollouts.slips("".join(data["tokens"]))))


def test_long_answers_need_both_cures_and_the_larger_model_another_optimizer():
    fits, settings = gpu_budget.long_answers_fit, {"answer_tokens": 8192}
    assert not fits(gpu_budget.compute())
    assert not fits(gpu_budget.compute(**settings, in_flight=8))
    assert not fits(gpu_budget.compute(**settings, checkpointing=True))
    assert fits(gpu_budget.compute(**settings, in_flight=128, checkpointing=True))
    assert fits(gpu_budget.compute(**settings, in_flight=128, micro_batch=1))
    both = settings | {"in_flight": 128, "checkpointing": True}
    assert not fits(gpu_budget.compute(**both, optimizer="sgd"))  # the task locks these two
    assert not fits(gpu_budget.compute(**both, models="verifier, reference"))
    lean = {"in_flight": 8, "micro_batch": 1, "checkpointing": True}
    larger = gpu_budget.larger_model_fits
    assert not larger(gpu_budget.compute("1.7B", **lean))
    assert not larger(gpu_budget.compute("1.7B", optimizer="adamw8bit"))
    assert larger(gpu_budget.compute("1.7B", optimizer="adamw8bit", **lean))
    smallest = gpu_budget.compute("4B", optimizer="sgd", answer_tokens=64, **lean)
    assert smallest["peak"] > 32e9 > smallest["room"]


@pytest.mark.parametrize("make", [explorers.rollouts_explorer, explorers.gpu_budget_explorer])
def test_controls_and_picture_fit_a_laptop(make):
    explorer = make()
    rows = -(-len(explorer.controls) // explorer.columns)
    assert ROW * rows + LINE + explorer.figure.get_size_inches()[1] * 96 <= TALLEST
    assert explorer.readout is not None


def test_the_pictures_say_what_the_page_says():
    many = parts(MANY)
    alt = pictures.two_logs().alt
    assert "mixed groups: verifier 0.91 to 0.35, coin 1.00 to 1.00" in alt, alt
    assert "entropy, nats a token: verifier 0.18 to 0.03, coin 0.21 to 0.21" in alt
    alt = pictures.style_and_steps().alt
    for said in ("answers 0.61, 0.17, 0.00", "steps 0.64, 0.79, 0.93", "pass@1 0.39, 0.70, 0.93"):
        assert said in alt, alt
    assert "to 0.35, 0.30, 0.23 in 20" in pictures.coin().alt
    assert "Loss from -0.038 to 0.000" in pictures.loss_and_reward().alt
    alt = pictures.unsolved({name: rows["clean"] for name, rows in many.items()}).alt
    assert "base 193, 150, 92, 36, 7, 1; seed 0 26, 11, 8, 7, 6, 6; seed 1 19," in alt
    assert pictures.six_answers().alt.count("earns 1") == 2
    said = larger().alt
    assert "from 0.46 to 0.99, 0.99, 0.99 in 60 steps; coin, 20 steps: 0.44, 0.48, 0.47" in said
    assert "0.3M sampled 0.39 to 0.92, 0.94, 0.93" in said
    assert "25M direct forced 0.24 to 0.26, 0.26, 0.26" in said
    logs = pictures.five_logs().alt
    assert "A: paid 0.84 to 0.91, right 0.39 to 0.01; B: right 0.48 to 0.13" in logs


def test_a_model_has_one_end_value_in_all_pictures():
    once = [seed[0] for seed in own_answers.reports(RUNS / "chain_own_answers.json")]
    filtered = once, own_answers.reports(RUNS / "chain_own_answers_four.json")
    at_the_end = {"dr_grpo": "0.92, 0.94, 0.93", "right only": "0.93, 0.93, 0.95"}
    for arm, said in at_the_end.items():
        found = pictures.ends(arm)
        assert ", ".join(f"{last['pass@1']:.2f}" for _, last in found) == said
        assert said in pictures.filtering(*filtered).alt
        assert {f"{first['pass@1']:.2f}" for first, _ in found} == {"0.39"}
    assert f"Verifier: from 0.39 to {at_the_end['dr_grpo']}" in pictures.coin().alt


def test_the_base_has_one_number_and_the_parts_of_the_gain_add_up_to_it():
    counts = solved(MANY)
    mean, error = rate(counts["base"])
    assert f"{mean:.2f} ± {error:.2f}" == "0.39 ± 0.01"
    assert mean == pytest.approx(pass_at(1, counts["base"]))
    base, parts_of = shares(MANY, "base"), []
    for seed in range(3):
        trained = shares(MANY, f"seed {seed}")
        fewer, better = base["d"] - trained["d"], trained["steps"] - base["steps"]
        found = (fewer * (base["steps"] - base["direct"]), (1 - base["d"]) * better, fewer * better)
        assert mean + sum(found) == pytest.approx(rate(counts[f"seed {seed}"])[0], abs=1e-3)
        parts_of.append(found)
    assert [round(x, 2) for x in parts_of[0]] == [0.25, 0.11, 0.17]
    for other in parts_of[1:]:
        assert max(abs(x - y) for x, y in zip(other, parts_of[0], strict=True)) < 0.02
    said = dict(zip(("style alone", "steps alone", "needs both"), parts_of[0], strict=True))
    assert "needs both +0.17, after training 0.92" in pictures.three_parts(mean, said).alt


def test_the_best_way_of_answering_fell_from_250_in_every_seed():
    found = reports(RUNS / "chain_controls.json")
    best = {name: round(250 * row["forced/steps/greedy"]) for name, row in found.items()}
    assert best == {"base": 250, "seed 0": 242, "seed 1": 248, "seed 2": 248}


def test_the_tries_of_the_base_are_not_luck():
    many, counts = parts(MANY), solved(MANY)
    assert [rows["clean"].count(0) for rows in many.values()] == [1, 6, 1, 1]
    lost = [i for i, right in enumerate(counts["seed 0"]) if not right]
    assert sum(many["base"]["clean"][i] for i in lost) == 36 and len(lost) == 6


def test_after_ten_steps_the_style_has_gone_furthest():
    gone = {}
    for name in ("direct", "entropy", "pass@1"):
        steps, table = evaluations("chain_dr_grpo", name)
        first, ten, last = table.mean(0)[[0, steps.index(10), -1]]
        gone[name] = (ten - first) / (last - first)
    assert gone["direct"] > 0.7 > gone["entropy"] > 0.6 > gone["pass@1"] > 0.5


def test_float32_is_the_slowest_of_the_five_changes():
    changes = (
        {"answer_tokens": 600},
        {"in_flight": 64},
        {"checkpointing": True},
        {"mixed": False},
        {"models": "verifier, reference"},
    )
    seconds = [sum(gpu_budget.compute(**c)["seconds"].values()) for c in changes]
    assert max(seconds) == seconds[3] > 1.5 * max(s for s in seconds if s != seconds[3])


def test_trained_on_right_answers_only_two_seeds_lose_two_problems_and_one_none():
    path = RUNS / "chain_many_right_only.json"
    clean = {name: 250 - part["clean"].count(0) for name, part in parts(path).items()}
    assert clean == {"base": 249, "seed 0": 247, "seed 1": 247, "seed 2": 250}
    assert solved(path)["base"] == solved(MANY)["base"]  # one base, the same answers
