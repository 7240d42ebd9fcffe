"""The shipped model, loaded once; and small recipes, so that the folder stays quick."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rlnb.training import TASKS, Recipe, load

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def model_folder():
    return ROOT / "data" / "model"


@pytest.fixture(scope="session")
def shipped(model_folder):
    """(model, tokenizer), shared: do not train it."""
    return load(model_folder, device="cpu")


@pytest.fixture
def fresh(shipped):
    """(model, tokenizer) of one's own, to train."""
    model, tokenizer = shipped
    return copy.deepcopy(model), tokenizer


@pytest.fixture(scope="session")
def chain():
    return TASKS["chain"]


@pytest.fixture
def tiny():
    """A recipe of seconds: 4 prompts x 4 answers, two evaluations of 16 samples."""
    return Recipe(
        steps=4, prompts=4, num_generations=4,
        eval_every=2, eval_prompts=8, eval_generations=2, eval_greedy=False, checkpoint_every=2,
    )  # fmt: skip


ELSEWHERE = """
import contextlib, io, json, sys
import rlnb.training, rlnb.training.__main__ as line
out = {"modules": sorted({name.split(".")[0] for name in sys.modules})}
out["held_out"] = rlnb.training.is_held_out("9*4+2*1*7-1=?")
with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.suppress(SystemExit):
    line.main(["--help"])
print(json.dumps(out | {"help": text.getvalue()}))
"""


@pytest.fixture(scope="session")
def elsewhere():
    """What a new process sees: its modules, one prompt's split, the command line's help."""
    run = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
