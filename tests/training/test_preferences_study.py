"""DPO on the small model: pairs that are pairs, and the shipped record."""

from __future__ import annotations

import json
import random

import pytest
import torch

from rlnb.objective.preference import dpo
from rlnb.training import data_folder
from rlnb.training.models.loading import load
from rlnb.training.studies.preferences import GRADED, Arm, draw_pairs, recorded, train_arm
from rlnb.training.tasks import TASKS


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_pair_answers_one_prompt_and_its_first_row_is_right():
    model, tokenizer = load(data_folder() / "model")
    data, drawn = draw_pairs(model, tokenizer, random.Random(0), 6)
    assert len(data.completion_ids) == 12 and drawn >= 12
    task = TASKS["chain"]
    asked = tokenizer.batch_decode(data.prompt_ids, skip_special_tokens=True)
    asked = [text.replace(" ", "") for text in asked]
    assert asked[:6] == asked[6:]
    for row, text in enumerate(data.texts(tokenizer)):
        right = task.verify(task.parse(asked[row]), text)
        assert right == (1.0 if row < 6 else 0.0)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_run_starts_at_log_two_and_repeats(fresh):
    arm = Arm(dpo, pairs=8, fresh=fresh)
    first = train_arm(arm, 0, steps=2)
    assert first["loss"][0] == pytest.approx(0.6931, abs=1e-4)
    assert first["loss"][1] < first["loss"][0] and first["pass@1"] == []
    assert train_arm(arm, 0, steps=2) == first


def test_the_record_shows_the_rise_the_fall_and_what_fresh_pairs_do():
    file = recorded()
    header = file["header"]
    assert header["pass@1"] < 0.4 and header["graded"] == list(GRADED)
    for run in file["DPO"]:
        assert run["loss"][-1] < 0.4 and run["margin"][-1] > 1
        assert run["chosen"][-1] < -2
        best, end = max(run["pass@1"]), run["pass@1"][-1]
        assert best > 0.65 and header["pass@1"] < end < best - 0.1
    for run in file["DPO, 2,560 pairs"]:  # each pair seen once: it turns all the same
        assert max(run["pass@1"]) - run["pass@1"][-1] > 0.1
    for run in file["DPO, beta 1"]:
        assert run["loss"][-1] < 0.1 and abs(run["chosen"][-1]) < 1 < 2 * run["pass@1"][-1]
    for run in file["DPO, fresh pairs"]:
        assert run["pass@1"][-1] > 0.9 and run["chosen"][-1] > 0
        assert run["answers"] > file["DPO"][0]["answers"]


def test_another_file_can_be_read(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"header": {}}), encoding="utf-8")
    assert recorded(path) == {"header": {}}
