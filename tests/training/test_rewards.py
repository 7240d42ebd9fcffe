"""The tiny bonus, and the metrics that tell right answers from wrong ones."""

from __future__ import annotations

import math

import pytest
import torch

from rlnb.training import TASKS, BadInput, Rollout, Sampling, WaitBonus, summary
from rlnb.training.evaluation import Answers
from rlnb.training.metrics_file import Recorder, read, series
from rlnb.training.step import rollout_metrics


@pytest.mark.parametrize(
    "text, reward",
    [("so7", 1.0), ("wait" * 3 + "so7", 1.03), ("wait" * 10 + "so7", 1.1),
     ("wait" * 99 + "so7", 1.1), ("so8", 0.0), ("waitso8", 0.01), ("", 0.0), ("wai", 0.0)],
)  # fmt: skip
def test_the_bonus_counts_at_most_ten(chain, text, reward):
    assert WaitBonus(chain)(chain.parse("4+3=?"), text) == pytest.approx(reward, abs=1e-12)


def test_no_bonus_pays_for_a_mistake(chain):
    reward, problem = WaitBonus(chain), chain.parse("4+3=?")
    assert reward(problem, "wait" * 1000 + "so8") < reward(problem, "so7")


def test_a_negative_limit_is_refused(chain):
    with pytest.raises(BadInput, match="most: got -1, expected 0 or more"):
        WaitBonus(chain, most=-1)


def four_answers():
    lengths = torch.tensor([2, 4, 6, 3])
    mask = torch.arange(6)[None] < lengths[:, None]
    zero = torch.zeros(4, 6)
    finished = torch.tensor([True, True, False, True])
    return Rollout(zero.long(), mask.long(), zero.long(), mask, zero, zero, finished, 2,
                   Sampling(max_new_tokens=6))  # fmt: skip


def test_lengths_of_right_and_wrong_answers_do_not_depend_on_truncation():
    # The third answer reads right and was cut: no reward, but it counts among the right lengths.
    verified = torch.tensor([1.0, 0.0, 1.0, 0.0])
    rollout, texts = four_answers(), ["so7", "wait", "", "waitwait"]
    metrics = rollout_metrics(rollout, verified * rollout.finished, verified, texts)
    assert metrics["completions/mean_length_right"] == 4.0  # (2 + 6) / 2
    assert metrics["completions/mean_length_wrong"] == 3.5  # (4 + 3) / 2
    assert metrics["rewards/verify/mean"] == 0.25  # here truncation does count
    assert metrics["completions/mean_wait"] == 0.75


def test_a_step_without_a_right_answer_has_no_right_length(tmp_path):
    zero = torch.zeros(4)
    metrics = rollout_metrics(four_answers(), zero, zero, [""] * 4)
    assert math.isnan(metrics["completions/mean_length_right"])
    recorder = Recorder(tmp_path / "run.jsonl", [{"record": "header"}])
    recorder.write("step", step=1, **metrics)
    recorder.close()
    records = read(tmp_path / "run.jsonl")
    assert series(records, "completions/mean_length_right") == {}
    assert series(records, "completions/mean_length_wrong") == {1: 3.75}


def test_a_record_keeps_five_digits_and_the_header_keeps_all(tmp_path):
    recorder = Recorder(tmp_path / "run.jsonl")
    recorder.write("header", rate=1.23456789e-4)
    recorder.write("step", step=1, loss=1.23456789e-4, reward=0.5, tokens=123456789)
    recorder.close()
    header, step = read(tmp_path / "run.jsonl")
    assert header["rate"] == 1.23456789e-4
    assert (step["loss"], step["reward"], step["tokens"]) == (1.2346e-4, 0.5, 123456789)


def test_the_summary_grades_a_task_that_knows_its_difficulties():
    types = TASKS["types"]
    problems = [types.parse(p) for p in ("0:1+1+1=?", "6:1+1+1=?", "6:2+2+2=?")]
    right = torch.tensor([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    answers = Answers(problems, ["wait", ""] * 3, right, right > -1, right + 5, right)
    report = summary(types, answers)
    assert (report["pass@1/0.05"], report["pass@1/0.95"]) == (0.5, 0.75)
    assert report["mean_wait"] == 0.5 and "pass@1/0.5" not in report
    assert not [name for name in summary(TASKS["chain"], chain_answers()) if "pass@1/" in name]


def chain_answers():
    right = torch.tensor([[1.0, 0.0]])
    return Answers([TASKS["chain"].parse("4+3=?")], ["so7", "so8"], right, right > -1, right, right)
