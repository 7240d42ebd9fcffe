"""Dynamic sampling late in training: two bills for one run, and what was recorded."""

from __future__ import annotations

import json
from dataclasses import replace

import torch

from rlnb.objective import ZOO
from rlnb.shipped import data_folder
from rlnb.training.loop import train
from rlnb.training.models.loading import load
from rlnb.training.recipe import Recipe
from rlnb.training.studies import late_refill
from rlnb.training.tasks import TASKS

SMALL = Recipe(
    prompts=2, num_generations=2, steps=2, eval_every=1, eval_prompts=2, eval_generations=2,
    eval_greedy=False, checkpoint_every=0,
)  # fmt: skip


def test_a_group_counts_when_it_is_mixed():
    rewards = torch.tensor([1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0])
    assert late_refill.needed(rewards, size=2, wanted=1) == 2
    assert late_refill.needed(rewards, size=2, wanted=2) == 4
    assert late_refill.needed(rewards, size=2, wanted=3) == 4  # fewer than wanted: all


def test_a_bill_counts_what_the_loop_draws():
    for resample in (0, 3):
        model, tokenizer = load(data_folder() / "model", device="cpu")
        recipe = replace(SMALL, max_resample=resample)
        bill = late_refill.Bill(recipe)
        records = train(
            model, tokenizer, TASKS["chain"], ZOO["dr_grpo"], recipe,
            reward=bill.reward, watch=bill.watch, progress=False,
        )  # fmt: skip
        drawn = sum(r["generated"] for r in records if r["record"] == "step")
        assert bill.rows[-1]["rounds"] == drawn >= bill.rows[-1]["single"] > 0
        assert [row["updates"] for row in bill.rows] == [0, 1, 2]
        if not resample:
            assert bill.rows[-1]["single"] == drawn == 8


def test_what_was_recorded_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(late_refill, "SEEDS", (0,))
    monkeypatch.setattr(late_refill, "RATES", (3e-4,))
    monkeypatch.setattr(late_refill, "ARMS", {"plain": SMALL})
    path = tmp_path / "late.json"
    first = replace(SMALL, steps=1, eval_every=0)
    late_refill.measure(path, first)
    before = path.read_text()
    late_refill.measure(path, first)
    assert path.read_text() == before and "plain, 0.0003, seed 0" in json.loads(before)


def test_the_recorded_runs_cover_every_arm_rate_and_seed():
    found = json.loads((data_folder() / "runs" / "chain_late_refill.json").read_text("utf-8"))
    names = {
        f"{arm}, {rate:g}, seed {seed}"
        for arm in late_refill.ARMS for rate in late_refill.RATES for seed in late_refill.SEEDS
    }  # fmt: skip
    assert found.keys() == names | {"header"}
    assert all(rows[0]["pass@1"] > 0.9 for name, rows in found.items() if name != "header")
