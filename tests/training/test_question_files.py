"""Questions of one's own, in GSM8K's format: rows, splits, the number that is compared."""

from __future__ import annotations

import json
import random
import sys
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rlnb.training import BadInput, is_held_out, questions
from rlnb.training.__main__ import find_task, main
from rlnb.training.prompt_pool import PromptPool
from rlnb.training.tasks import Questions, corpus, held_out
from rlnb.training.tasks.worked import number

CLIPS = {
    "question": "Natalia sold 48 clips in April, and half as many in May. How many in all?",
    "answer": "In May it was 48/2 = <<48/2=24>>24.\nIn all 48+24 = <<48+24=72>>72.\n#### 72",
}


def rows(count, start=0):
    return [
        {"question": f"What is {i} + {i}?", "answer": f"{i} + {i} = {2 * i}\n#### {2 * i:,}"}
        for i in range(start, start + count)
    ]


def written(path, found):
    path.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    return path


def test_a_file_becomes_a_task_whose_splits_do_not_meet(tmp_path):
    task = questions(written(tmp_path / "sums.jsonl", [CLIPS, *rows(999, 500)]))
    assert task.name.startswith("sums-") and len(task.train) + len(task.test) == 1000
    assert 60 < len(task.test) < 140 and not set(task.train) & set(task.test)
    tested = {problem.prompt for problem in held_out(task, 40)}
    for problem, text in corpus(task, random.Random(0), 200):
        assert problem.prompt not in tested and not is_held_out(problem.prompt)
        assert task.parse(problem.prompt) == problem and task.verify(problem, text) == 1.0
    assert PromptPool.drawn(task, 50, 3).problems  # which refuses held-out prompts


def test_a_worked_solution_is_the_demonstration_without_annotations(tmp_path):
    task = questions(written(tmp_path / "one.jsonl", [CLIPS]))
    problem = task.parse(CLIPS["question"])
    assert problem.answer == "72" and problem.prompt.startswith(CLIPS["question"] + "\n")
    assert task.demo(random.Random(0), problem) == (
        "In May it was 48/2 = 24.\nIn all 48+24 = 72.\n#### 72"
    )


@pytest.mark.parametrize(
    "text, right",
    [("#### 72", 1), ("so\n####72.", 1), ("#### $72.00", 1), ("####  72 \nand more", 1),
     ("#### 7\n#### 72", 1), ("#### 72\n#### 7", 0), ("72", 0), ("#### 70+2", 0), ("#### 72 73", 0),
     ("#### seventy-two", 0), ("#### 7_2", 0), ("#### \u0667\u0662", 0), ("#### 0x48", 0),
     ("#### 72e0", 0), ("#### --72", 0), ("#### -72", 0), ("#### \n72", 0), ("#### 144/2", 0),
     ("#### " + "9" * 5000, 0), ("#" * 5000 + "72", 1), ("", 0), ("#### __import__('os')", 0)],
)  # fmt: skip
def test_only_the_number_behind_the_last_mark_counts(tmp_path, text, right):
    task = questions(written(tmp_path / "one.jsonl", [CLIPS]))
    assert task.verify(task.parse(CLIPS["question"]), text) == right


@given(st.fractions().map(lambda f: Fraction(round(f * 1000), 1000)), st.booleans())
@example(Fraction(-1234567), True)
def test_a_written_number_is_read_exactly(value, commas):
    text = f"{value.numerator / value.denominator:,.3f}" if commas else str(float(value))
    if "e" not in text and abs(value) < 10**9:
        assert number(text) == value


@given(st.text("0123456789.,-$ #e\n\u0663\u00b2", max_size=30))
def test_no_text_makes_the_verifier_raise(text):
    task = Questions("x", {"q": "#### 5"}, {})
    assert task.verify(task.parse("q"), f"####{text}") in (0.0, 1.0)


def test_a_test_file_beside_it_holds_the_held_out_problems(tmp_path):
    written(tmp_path / "train.jsonl", rows(100))
    written(tmp_path / "test.jsonl", rows(20, 90))
    task = find_task(str(tmp_path))
    assert list(task.test) == [row["question"] for row in rows(20, 90)]
    assert not set(task.test) & set(task.train) and 75 < len(task.train) <= 90


@pytest.mark.parametrize("splits", [True, False])
def test_a_folder_that_datasets_saved(tmp_path, splits):
    datasets = pytest.importorskip("datasets")
    found = datasets.Dataset.from_list(rows(100))
    if splits:
        test = datasets.Dataset.from_list(rows(20, 200))
        found = datasets.DatasetDict({"train": found, "test": test})
    found.save_to_disk(tmp_path / "saved")
    task = find_task(str(tmp_path / "saved"))
    assert task.verify(task.parse("What is 7 + 7?"), "#### 14") == 1.0
    assert (len(task.test) == 20) is splits


def test_without_datasets_a_saved_folder_is_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "dataset_info.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(BadInput, match="needs datasets, which is not installed; .*pip install"):
        questions(tmp_path)


@pytest.mark.parametrize(
    "raw, message",
    [(b'{"question": "a"}\n', "row 1 of .* lacks a question or an answer"),
     (b'{"question": "a", "answer": 3}\n', "row 1 of .* lacks a question or an answer"),
     (b'[]\n', "row 1 of .* lacks a question or an answer"),
     (b'{"question": "a", "answer": "#### 1"}\n\n{"que\n', "line 3 of .* is not JSON"),
     (b'{"question": "a\xff", "answer": "#### 1"}\n', "line 1 of .* is not UTF-8"),
     (b'{"question": "a", "answer": "72"}\n', "row 1 of .* has no number behind ####"),
     (b'{"question": "a", "answer": "#### 1 or 2"}\n', "row 1 of .* has no number behind ####"),
     (b'{"question": "a", "answer": "#### 1"}\n{"question": "a", "answer": "#### 2"}\n',
      "row 2 of .* asks again"),
     (b"", "has no training question")],
)  # fmt: skip
def test_what_is_no_question_is_named_with_its_line(tmp_path, raw, message):
    path = tmp_path / "mine.jsonl"
    path.write_bytes(raw)
    with pytest.raises(BadInput, match=message):
        questions(path)


def test_a_file_that_is_not_there_and_a_folder_of_something_else(tmp_path):
    with pytest.raises(BadInput, match="cannot read .*No such file"):
        questions(tmp_path / "none.jsonl")
    with pytest.raises(BadInput, match=r"has no train\.jsonl and was not saved by datasets"):
        questions(tmp_path)


def test_two_files_of_one_name_are_two_tasks(tmp_path):
    first = questions(written(tmp_path / "a.jsonl", rows(30))).name
    assert questions(written(tmp_path / "a.jsonl", rows(31))).name != first


def test_the_small_model_refuses_questions_in_english(tmp_path, model_folder, capsys):
    path = written(tmp_path / "sums.jsonl", rows(200))
    line = ["grpo", "--model", str(model_folder), "--task", str(path), "--steps", "1",
            "--eval-prompts", "4", "--device", "cpu", "--out", str(tmp_path / "run")]  # fmt: skip
    assert main(line) == 2
    assert "the model's vocabulary cannot express" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
