"""The loop in two processes on one CPU, started by torchrun: one process' gradients and metrics."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rlnb.training import distributed
from rlnb.training.metrics_file import read

HERE = Path(__file__).parent


def torchrun(*arguments: str, timeout: int = 240) -> subprocess.CompletedProcess:
    paths = [str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
         "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What two_processes.py measured."""
    out = tmp_path_factory.mktemp("two") / "found.json"
    done = torchrun(str(HERE / "two_processes.py"), str(out))
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(out.read_text(encoding="utf-8"))
    assert said["processes"] == 2
    return said


@pytest.mark.parametrize("name", ["dr_grpo", "grpo", "gspo", "ppo", "dapo"])
def test_two_processes_have_the_gradient_and_the_metrics_of_one(found, name):
    assert found[name]["size"] > 1e-3
    assert found[name]["gradient"] < 1e-6
    assert found[name]["metrics"] < 1e-6


def test_three_steps_of_two_end_where_one_with_the_same_answers_ends(found):
    said = found["trainings"]
    assert said["between"] == 0, "both processes took the same optimizer steps"
    assert said["losses"] < 1e-5 and said["weights"] < 1e-5
    assert said["size"] > 1e-2


def test_parts_that_draw_numbers_are_refused(found):
    assert "draws random numbers, and 2 processes would each draw their own" in found["random"]


def test_the_command_line_runs_in_two_and_one_of_them_writes(tmp_path):
    out = tmp_path / "run"
    command = ["-m", "rlnb.training.distributed", "grpo", "--prompts", "2", "--num-generations",
               "2", "--max-completion-length", "12", "--eval-prompts", "4", "--eval-generations",
               "1", "--checkpoint-every", "1", "--out", str(out)]  # fmt: skip
    first = torchrun(*command, "--steps", "1")
    assert first.returncode == 0, first.stderr[-3000:]
    again = torchrun(*command, "--steps", "2", "--resume")
    assert again.returncode == 0, again.stderr[-3000:]
    steps = [record["step"] for record in read(out) if record["record"] == "step"]
    assert steps == [1, 2]
    assert (out / "model" / "model.safetensors").exists()


def test_one_process_is_left_as_it_was():
    rows = torch.arange(5)
    assert distributed.world() == (0, 1)
    assert torch.equal(distributed.share(rows), rows)
    assert distributed.shared(len, torch.nn.Linear(1, 1), None, 1) is len


def test_the_other_processes_write_elsewhere(tmp_path):
    given = ["grpo", "--out=here", "--steps", "1"]
    assert distributed._elsewhere(given, tmp_path) == [
        "grpo", "--out", str(tmp_path), "--steps", "1",
    ]  # fmt: skip
