"""The race: exact measures, an honest loop, the rule of verdicts, and what is committed."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import rlnb.objective.zoo
from rlnb.objective import ZOO, cispo, clip, ratio
from rlnb.shipped import data_folder
from rlnb.training import BadInput
from rlnb.training.recipe import BaseRecipe
from rlnb.training.studies.race import large, running
from rlnb.training.studies.race.__main__ import main
from rlnb.training.studies.race.large import LargeArm, base_folder, make_bases, run_large
from rlnb.training.studies.race.rows import GRPO, NONE, ROWS, TAIL, Row
from rlnb.training.studies.race.running import best_rate, race
from rlnb.training.studies.race.small import Arm, run
from rlnb.training.studies.race.verdicts import (
    against_cpu,
    compared,
    questions,
    recorded,
    results,
    results_at_equal_cpu,
    verdict,
)
from rlnb.training.studies.race.world import World, base, coarse, codes, measures, sample, score

FOLDER = data_folder() / "runs" / "race"
RECORDED = [name for name in questions() if (FOLDER / f"{name}.json").is_file()]
SHORT = Arm(GRPO, answers=64 * 6)


# The worlds: sums over a table, against every answer written out


def test_pass_rates_and_entropy_are_those_of_all_answers():
    world, net = World(), base(World(), 0)
    table, found = net.table()[0].detach(), measures(world, net)
    words = torch.tensor(list(itertools.product(range(4), repeat=4)))
    before = torch.cat([torch.full((256, 1), 4), words[:, :-1]], 1)
    passed, entropy, zeros = [], [], []
    for p in range(world.prompts):
        lp = score(table, torch.full((256,), p), before, words).sum(1)
        assert lp.exp().sum().item() == pytest.approx(1)
        right = (words[:, None] == codes(world)[p]).all(-1).any(-1)
        assert right.sum() == 2
        passed.append(lp.exp()[right].sum().item())
        entropy.append(-(lp.exp() * lp).sum().item() / 4)
        zeros.append((lp.exp() * (words == 0).sum(1)).sum().item())
    mean = torch.tensor([passed, entropy, zeros]).double().mean(1)
    assert found["pass@1"] == pytest.approx(mean[0].item(), abs=1e-6)
    assert found["entropy"] == pytest.approx(mean[1].item(), abs=1e-6)
    assert found["words 0"] == pytest.approx(mean[2].item(), abs=1e-5)
    wanted = sum(1 - (1 - p) ** 16 for p in passed) / len(passed)
    assert found["pass@16"] == pytest.approx(wanted, abs=1e-9)
    assert 0.1 < found["pass@1"] < 0.25


@pytest.mark.parametrize("world", [World(), TAIL], ids=["code", "tail"])
def test_sampled_answers_agree_with_the_exact_measures(world):
    net, gen = base(world, 1), torch.Generator().manual_seed(0)
    prompts = torch.arange(world.prompts).repeat_interleave(25_600 // world.prompts)
    drawn = sample(world, net.table()[0].detach(), prompts, gen)
    found = measures(world, net)
    if world.kind == "code":
        assert drawn.right.mean().item() == pytest.approx(found["pass@1"], abs=0.01)
        return
    assert drawn.right.mean().item() == pytest.approx(1 / 3, abs=0.01)
    for name, hit in (("right length", 1.0), ("wrong length", 0.0)):
        mean = drawn.mask.sum(1)[drawn.right == hit].mean().item()
        assert mean == pytest.approx(found[name], abs=0.15)


def test_a_router_sends_to_other_experts_and_a_replay_does_not():
    world = World(experts=8)
    net = base(world, 0).copy()
    table, routes = net.table()
    with torch.no_grad():
        net.weights["router"].add_(torch.randn(24, 8, dtype=torch.float64) * 0.3)
    moved, others = net.table()
    replayed, same = net.table(routes)
    assert (others != routes).any() and torch.equal(same, routes)
    kept = others == routes
    torch.testing.assert_close(moved[kept], replayed[kept])
    assert (replayed - table).abs()[~kept].mean() < (moved - table).abs()[~kept].mean()


def test_coarse_weights_are_near_and_fewer_bits_are_further():
    net = base(World(), 0)
    for name, w in net.weights.items():
        gaps = [(coarse(net, bits).weights[name] - w).abs() for bits in (7, 3)]
        assert (gaps[0] <= w.abs() * 2**-7).all() and gaps[0].sum() < gaps[1].sum()
    half = net.weights["head"].detach().bfloat16().double()
    torch.testing.assert_close(coarse(net, 7).weights["head"].detach(), half)


# The loop


def test_one_update_per_rollout_is_one_run_with_and_without_clip():
    with_clip, without = (run(replace(SHORT, objective=o), 3, 0.005) for o in (GRPO, NONE))
    assert with_clip["measures"] == without["measures"]
    assert with_clip["seen"]["outside"] == 0 and with_clip["seen"]["largest"] == 1
    used = [run(replace(SHORT, objective=o, minibatches=4, passes=2), 3, 0.005)["measures"]
            for o in (GRPO, NONE)]  # fmt: skip
    assert used[0] != used[1]


def test_a_run_repeats_itself_and_seeds_differ():
    one, again, other = run(SHORT, 5, 0.003), run(SHORT, 5, 0.003), run(SHORT, 6, 0.003)
    one.pop("cpu"), again.pop("cpu")
    assert one == again and one["measures"] != other["measures"]
    assert one["updates"] == 6 and [p[0] for p in one["curve"]] == [64 * k for k in range(1, 7)]


def test_stale_answers_have_ratios_off_one_and_refills_cost_answers():
    stale = run(replace(SHORT, stale=3, objective=GRPO.replace(surrogate=cispo(5.0))), 0, 0.01)
    assert stale["seen"]["outside"] > 0
    refilled = run(replace(SHORT, refill=True), 0, 0.003)
    assert refilled["updates"] < 6 and refilled["curve"][-1][0] >= 64 * 6
    rough = run(replace(SHORT, bits=3), 0, 0.003)
    assert rough["seen"]["engine"] > 0 and run(SHORT, 0, 0.003)["seen"]["engine"] == 0


@pytest.mark.parametrize("row", ROWS)
def test_every_small_arm_takes_steps_and_moves(row):
    for arm in ROWS[row].arms.values():
        if isinstance(arm, LargeArm):
            continue
        found = run(replace(arm, answers=64 * 2), 0, ROWS[row].rates[arm.ladder][-1])
        assert found["updates"] >= arm.updates and found["measures"] != found["start"]


def test_a_large_run_is_a_record_of_the_same_shape_also_where_no_ratio_was_seen():
    arm = ROWS["stale_chain"].arms["no clip, k = 4"]
    recipe = replace(arm.recipe, steps=2, prompts=1, num_generations=2, eval_prompts=2)
    brief = replace(arm, recipe=replace(recipe, eval_every=1, max_completion_length=3))
    found, small = run_large(brief, 0, 1e-4), run(SHORT, 0, 0.003)
    assert set(small) == set(found) and found["seen"]["largest"] == 1.0  # every answer was cut off
    assert [point[:2] for point in found["curve"]] == [[2, 1], [4, 2]]


# The rule


def test_verdicts_by_the_rule():
    assert verdict(-0.02, 0.03, 0.03) == "no difference larger than 0.03"
    assert verdict(0.001, 0.031, 0.03) == "better" and verdict(-0.5, -0.001, 0.03) == "worse"
    assert verdict(-0.031, 0.001, 0.03) == "inconclusive"
    assert verdict(0.001, 0.02, 0.03).startswith("no difference")  # sure, and too small to matter


def test_a_difference_is_paired_and_its_interval_covers_it():
    shared = torch.randn(20, generator=torch.Generator().manual_seed(0)).double()
    noise = 0.1 * torch.randn(20, generator=torch.Generator().manual_seed(1)).double()
    difference, low, high = compared((shared + 0.2 + noise).tolist(), shared.tolist())
    assert low < difference < high and high - low < 0.2  # unpaired it would be 1.6 wide
    assert 0 < low and difference == pytest.approx(0.2 + noise.mean().item(), abs=1e-6)
    wide, *_ = compared((3 * shared).tolist(), shared.tolist(), "sd")
    assert wide == pytest.approx(2 * shared.std().item(), abs=1e-5)
    with pytest.raises(ValueError, match="the same seeds, at least 2"):
        compared([1.0, 2.0], [1.0, 2.0, 3.0])


def test_the_coverage_of_the_interval_is_near_what_it_says():
    gen = torch.Generator().manual_seed(0)
    inside = 0
    for _ in range(150):
        x = torch.randn(20, generator=gen).tolist()
        _, low, high = compared(x, [0.0] * 20)
        inside += low <= 0 <= high
    assert inside >= 143  # 99 % said; a percentile interval of 20 seeds keeps some 98


# The questions, and the runner


def test_every_question_has_its_arms_a_claim_and_a_size():
    import yaml

    known = {c["id"] for c in yaml.safe_load((data_folder() / "claims.yaml").read_text("utf-8"))}
    assert set(questions()) == set(ROWS)
    for name, asked in questions().items():
        arms = ROWS[name].arms
        assert {arm for pair in asked["compare"] for arm in pair} == set(arms), name
        assert set(asked["claims"]) <= known and asked["smallest_effect"] > 0
        assert asked["question"].endswith("?") or asked["question"].endswith(".")
        budgets = {getattr(a, "answers", None) or a.recipe.steps * a.recipe.prompts for a in
                   arms.values()}  # fmt: skip
        assert len(budgets) == 1, f"{name}: arms with unequal budgets"


def test_the_best_rate_is_the_best_mean():
    assert best_rate({0.1: [0.2, 0.4], 0.01: [0.5, 0.3], 0.001: [0.0, 0.9]}) == 0.001


@pytest.fixture
def brief(monkeypatch):
    """`clip` as a row of two short arms and two rates."""
    arms = {
        name: Arm(o, answers=128, minibatches=2)
        for name, o in (("clip, 2 updates", GRPO), ("no clip, 2 updates", NONE))
    }
    asked = questions()["clip"] | {"compare": [list(arms)], "seeds": 3}
    monkeypatch.setitem(ROWS, "clip", Row(arms, {"Adam": (0.001, 0.01)}, (100,)))
    monkeypatch.setitem(questions(), "clip", asked)


def test_a_stopped_race_goes_on_and_ends_as_if_it_had_not_stopped(brief, tmp_path, monkeypatch):
    whole = json.loads(race("clip", tmp_path).read_text())
    count, do = 0, running._do

    def stops(job):
        nonlocal count
        count += 1
        if count > 7:
            raise KeyboardInterrupt
        return do(job)

    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setattr(running, "_do", stops)
    with pytest.raises(KeyboardInterrupt):
        race("clip", other)
    assert len((other / "clip.partial.jsonl").read_text().splitlines()) == 7
    with (other / "clip.partial.jsonl").open("a") as file:
        file.write('{"use": "race", "arm')  # killed while writing
    count = -100
    again = json.loads(race("clip", other).read_text())
    assert count == -100 + whole["header"]["runs"] - 7
    for record in (whole, again):
        record["header"].pop("cpu_seconds")
        for arm in record["arms"].values():
            arm.pop("cpu")
    assert again == whole and not (other / "clip.partial.jsonl").exists()
    assert [c.seeds for c in results("clip", other)] == [3]


def test_the_command_lists_runs_and_refuses(brief, tmp_path, capsys):
    assert main(["clip", "--out", str(tmp_path), "--seeds", "2", "--rates", "recorded"]) == 0
    assert "clip, 2 updates against no clip, 2 updates: pass@1" in capsys.readouterr().out
    assert main(["clips", "--out", str(tmp_path)]) == 2
    assert "there is no row 'clips'; known: clip, stale" in capsys.readouterr().err
    with pytest.raises(BadInput, match="'clips' is not run"):
        recorded("clips")


@pytest.fixture
def two_bases(monkeypatch):
    """A row of one short 0.3M run, from bases of one step."""
    arm = ROWS["stale_chain_bases"].arms["GRPO, k = 4"]
    recipe = replace(arm.recipe, steps=1, prompts=1, num_generations=2, eval_prompts=2)
    arm = replace(arm, recipe=replace(recipe, eval_every=1, max_completion_length=3))
    arms = {name: replace(arm, objective=o) for name, o in (("GRPO", GRPO), ("no clip", NONE))}
    asked = questions()["stale_chain_bases"] | {"compare": [["no clip", "GRPO"]], "seeds": 2}
    monkeypatch.setitem(ROWS, "stale_chain_bases", Row(arms, {"AdamW": (1e-4,)}))
    monkeypatch.setitem(questions(), "stale_chain_bases", asked)
    monkeypatch.setattr(large, "BaseRecipe", lambda seed: BaseRecipe(steps=1, batch=8, seed=seed))
    return arm


def test_other_bases_are_made_once_and_a_run_starts_from_the_one_of_its_seed(two_bases, tmp_path):
    assert base_folder(two_bases, 0, tmp_path) == tmp_path / "chain_1"
    assert base_folder(two_bases, 5, tmp_path) == tmp_path / "chain_2"
    shipped = ROWS["stale_chain"].arms["GRPO, k = 4"]
    assert base_folder(shipped, 5, tmp_path) == data_folder() / "model"
    found = json.loads(race("stale_chain_bases", tmp_path).read_text())
    assert set(found["bases"]) == {"chain_1", "chain_2"}
    weights = [(tmp_path / f"bases/chain_{k}/model.safetensors").read_bytes() for k in (1, 2)]
    assert weights[0] != weights[1]
    again = make_bases([two_bases], tmp_path / "bases")
    assert {k: round(v["cpu_time"], 1) for k, v in again.items()} == found["bases"]
    assert all(base["cpu_time"] > 0 for base in again.values())


def test_the_second_view_starts_at_the_base_and_ends_at_the_run_s_seconds():
    arms = recorded("reuse")["arms"]
    for name, (seconds, curve) in against_cpu("reuse").items():
        assert curve.shape == (20, 7) and len(seconds) == 7 and seconds[0] == 0
        assert seconds[-1] == pytest.approx(sorted(arms[name]["cpu"])[10], abs=0.02)
        assert curve[:, -1] == pytest.approx(arms[name]["measures"]["pass@1"], abs=1e-4)
        assert curve[3, 0] == curve[0, 0] != curve[1, 0]  # seeds 0 and 3 share a base
    with pytest.raises(BadInput, match="'length' has no curve of pass@1"):
        against_cpu("length")


def test_at_equal_cpu_the_dearer_arm_is_read_before_its_end(brief, tmp_path):
    record = json.loads(race("clip", tmp_path).read_text())
    cheap, dear = record["arms"]
    for arm, cpu in ((cheap, 1.0), (dear, 2.0)):  # the dear one is half done after 1 second
        record["arms"][arm] |= {"cpu": [cpu] * 3, "answers": [64, 128]}
        record["arms"][arm]["curve"] = [[0.2 * cpu, 0.4], [0.3 * cpu, 0.4], [0.4 * cpu, 0.4]]
    (tmp_path / "clip.json").write_text(json.dumps(record))
    (found,) = results_at_equal_cpu("clip", tmp_path)
    assert (found.arm, found.measure) == (cheap, "pass@1 after 1 CPU seconds")
    assert found.difference == pytest.approx(0.4 - (0.4 + 0.6 + 0.8) / 3)
    per_answer, per_second = results("reuse"), results_at_equal_cpu("reuse")
    assert per_answer[-1].verdict == "better" and per_second[-1].verdict == "worse"


# What is committed


@pytest.mark.parametrize("row", RECORDED)
def test_a_committed_row_is_what_its_arms_say(row):
    record, asked = recorded(row), questions()[row]
    assert record["objectives"] == {n: repr(a.objective) for n, a in ROWS[row].arms.items()}
    for name, arm in record["arms"].items():
        assert arm["seeds"] == list(range(asked["seeds"])), name
        values = arm["measures"][asked["measure"]]
        assert len(values) == asked["seeds"] and None not in values
        if asked["rates"] == "tuned":
            tried = {float(r): x for r, x in record["tuning"][name].items()}
            assert arm["rate"] == best_rate(tried)
    assert record["header"]["cpu_seconds"] > 0 and record["header"]["torch"]
    assert len(results(row)) == len(asked["compare"])


# what is run again wherever the tests run: two seeds of every arm
SUBSET = [
    ("length", ("1/T", "constant")),
    ("std_graded", ("z-score", "mean only")),
    ("std_scales", ("z-score, Adam", "mean only, Adam")),
    ("reuse", ("8 passes", "1 pass")),
    ("stale", ("DPPO, k = 16", "GRPO, k = 16")),
    ("kl", ("beta 0.4", "beta 0")),
    ("precision", ("2 bits, ratio to sampler", "2 bits")),
]


def test_the_subset_that_runs_again_takes_well_under_two_minutes():
    """By the CPU seconds in the records, and as much again for making the bases."""
    cost = sum(sum(recorded(row)["arms"][arm]["cpu"][:2]) for row, arms in SUBSET for arm in arms)
    assert 2 * cost < 60


@pytest.mark.parametrize(("row", "arms"), SUBSET, ids=[row for row, _ in SUBSET])
def test_a_rerun_falls_inside_the_recorded_intervals(row, arms):
    """Two seeds again: near the recorded spread, and their difference on the recorded side."""
    record, measure = recorded(row)["arms"], questions()[row]["measure"]
    (found,) = (c for c in results(row) if (c.arm, c.against) == arms)
    means = []
    for name in arms:
        values = [run(ROWS[row].arms[name], s, record[name]["rate"])["measures"][measure]
                  for s in (0, 1)]  # fmt: skip
        low, high = min(record[name]["measures"][measure]), max(record[name]["measures"][measure])
        room = 0.25 * (high - low)
        assert all(low - room <= v <= high + room for v in values), (name, values)
        means.append(sum(values) / 2)
    slack = found.high - found.low
    assert found.low - slack <= means[0] - means[1] <= found.high + slack
    assert (means[0] - means[1]) * found.difference > 0


def test_the_plain_objective_of_the_race_is_dapo_s_but_for_the_edge():
    assert GRPO == ZOO["dapo"].replace(surrogate=clip(0.2))
    assert NONE == GRPO.replace(surrogate=ratio())


def test_the_zoo_s_comments_cite_the_race_as_it_ended():
    text = (Path(rlnb.objective.zoo.__file__)).read_text(encoding="utf-8")
    cited = re.findall(r"race (\w+), (.+?): ([+-]\d\.\d+)", text)
    assert len(cited) == 7
    for row, arm, number in cited:
        (found,) = (c for c in results(row) if c.arm == arm)
        assert f"{found.difference:+.3f}" == number, (row, arm)
        assert found.verdict in ("better", "worse")
