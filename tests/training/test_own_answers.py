"""Imitation of one's own right answers: what is kept, and what the recorded rounds say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rlnb.training import Recipe, data_folder
from rlnb.training.models.loading import load
from rlnb.training.studies import own_answers
from rlnb.training.studies.controls import reports
from rlnb.training.tasks import TASKS

SMALL = Recipe(steps=1, prompts=2, num_generations=4, eval_every=0, checkpoint_every=0)


def test_only_right_answers_are_kept_and_a_study_goes_on_where_it_stopped(tmp_path):
    model, tokenizer = load(data_folder() / "model", device="cpu")
    rows = own_answers.right_answers(model, tokenizer, SMALL, seed=0)
    assert 0 < len(rows) < 8
    for ids, prompt in rows:
        asked, text = (
            tokenizer.decode(part).replace(" ", "") for part in (ids[:prompt], ids[prompt:-1])
        )
        problem = TASKS["chain"].parse(asked.replace(tokenizer.bos_token or "\0", ""))
        assert ids[-1] == tokenizer.eos_token_id and TASKS["chain"].verify(problem, text)
    path = tmp_path / "own.json"
    own_answers.measure(path, SMALL, seeds=(0,), rounds=1, prompts=2, num_generations=2)
    before = path.read_text()
    own_answers.measure(path, SMALL, seeds=(0,), rounds=1, prompts=2, num_generations=2)
    assert path.read_text() == before and own_answers.reports(path)[0][0]["kept"] == len(rows)


def test_filtering_makes_the_base_what_it_is_when_right_and_loses_no_problem():
    base = reports(data_folder() / "runs" / "chain_controls.json")["base"]
    found = own_answers.reports(data_folder() / "runs" / "chain_own_answers.json")
    first = [rounds[0] for rounds in found]
    when_right = base["direct"] * base["forced/direct"] / base["pass@1"]  # Bayes
    assert abs(np.mean([r["direct"] for r in first]) - when_right) < 0.07
    assert all(0.6 < r["pass@1"] < 0.75 and r["greedy"] > 0.97 for r in first)
    assert all(rounds[2]["pass@1"] > 0.9 for rounds in found)
    assert all(r["pass@8"] > 0.99 for rounds in found for r in rounds)


def test_four_fresh_parts_of_the_same_budget_end_where_grpo_ends():
    runs = data_folder() / "runs"
    once = own_answers.reports(runs / "chain_own_answers.json")
    four = own_answers.reports(runs / "chain_own_answers_four.json")
    header = json.loads((runs / "chain_own_answers_four.json").read_text())["header"]["recipe"]
    assert header["steps"] * 4 == 40 and header["prompts"] * header["num_generations"] == 128
    assert all(len(rounds) == 4 for rounds in four)
    ends = [round(rounds[-1]["pass@1"], 2) for rounds in four]
    assert ends == [0.95, 0.96, 0.94]
    assert min(ends) > 0.93 > max(rounds[0]["pass@1"] for rounds in once)
    for rounds in four:  # each part keeps more, and ends better, than the one before
        assert [r["kept"] for r in rounds] == sorted(r["kept"] for r in rounds)
        assert [r["pass@1"] for r in rounds] == sorted(r["pass@1"] for r in rounds)


def test_parts_must_divide_the_updates(tmp_path, capsys):
    with pytest.raises(SystemExit):
        own_answers.main([str(tmp_path / "x.json"), "--parts", "3"])
    assert "--parts must divide 40" in capsys.readouterr().err
