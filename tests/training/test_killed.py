"""A run that is killed, or whose disk fills up, is resumed and ends like one left alone."""

from __future__ import annotations

import copy
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch
from safetensors import SafetensorError

from rlnb.objective import ZOO
from rlnb.training import BadInput, CoinFlip, Recipe, checkpoint, load, read, train
from rlnb.training.checkpoint import checkpoints
from rlnb.training.metrics_file import CLOCKS, FILE, Recorder

HERE = Path(__file__).parent


def without_clocks(records):
    return [{k: v for k, v in r.items() if k not in CLOCKS} for r in records]


def weights(folder):
    return (folder / "model" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("seed", [int(os.environ.get("RLNB_KILL_SEED", "0"))])
def test_kill_9_again_and_again_changes_nothing(tmp_path, seed):
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    run = subprocess.run(
        [sys.executable, str(HERE / "killing.py"), str(alone), str(killed), str(seed)],
        capture_output=True, text=True, cwd=HERE.parents[1], timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    *kills, last = [json.loads(text) for text in run.stdout.splitlines()]
    assert last["status"] == 0 and all(kill["killed"] for kill in kills), run.stdout
    assert len(kills) >= 7, run.stdout
    assert sum(kill["plan"] == "moment" for kill in kills) >= 2  # from outside, at random
    assert sum(kill["torn_checkpoint"] for kill in kills) >= 3
    assert any(kill["torn_line"] for kill in kills)
    assert kills[0]["checkpoint"] is None and len({kill["checkpoint"] for kill in kills}) > 3
    assert without_clocks(read(killed)) == without_clocks(read(alone))
    assert weights(killed) == weights(alone)
    assert not list(killed.glob(".checkpoint-*"))  # nothing torn is left lying about


class Full:
    """Stands for a module; the calls of one of its functions from that number on, from 0, fail."""

    def __init__(self, module, name, number, error):
        self.module, self.name, self.left, self.error = module, name, number, error

    def __getattr__(self, name):
        return self.call if name == self.name else getattr(self.module, name)

    def call(self, *arguments, **options):
        self.left -= 1
        if self.left < 0:
            raise self.error
        return getattr(self.module, self.name)(*arguments, **options)


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
READ_ONLY = OSError(errno.EROFS, os.strerror(errno.EROFS))
WEIGHTS_FULL = SafetensorError("Error while serializing: I/O error: No space left on device")


def break_disk(monkeypatch, where, error):
    if where == "rename":  # the checkpoint of step 0 is written, that of step 2 is not
        monkeypatch.setattr(checkpoint, "os", Full(os, "replace", 1, error))
    elif where == "weights":
        call = Full(safetensors.torch, "save_file", 3, error).call
        monkeypatch.setattr(checkpoint, "save_file", call)
    else:
        real = Recorder.write

        def write(self, kind, **fields):
            if kind == "step" and fields["step"] == 3:
                raise error
            return real(self, kind, **fields)

        monkeypatch.setattr(Recorder, "write", write)


@pytest.fixture(scope="module")
def go(shipped, chain):
    """Trains four steps of a recipe with state everywhere, into a folder."""

    def run(folder, steps=4, **options):
        recipe = Recipe(
            steps=steps, prompts=3, num_generations=4, staleness=1, checkpoint_every=2,
            eval_every=4, eval_prompts=4, eval_generations=2, max_completion_length=24,
        )  # fmt: skip
        return train(
            copy.deepcopy(shipped[0]), shipped[1], chain, ZOO["dr_grpo"], recipe, out=folder,
            reward=CoinFlip(5), progress=False, **options,
        )  # fmt: skip

    return run


@pytest.fixture(scope="module")
def alone(go, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "alone"
    go(folder)
    return folder


@pytest.mark.parametrize(
    "where, error, why, kept",
    [("rename", FULL, "No space left on device", 0), ("rename", READ_ONLY, "Read-only file", 0),
     ("weights", WEIGHTS_FULL, "No space left", 0), ("line", FULL, "No space left", 2)],
    ids=["rename", "read-only", "weights", "line"],
)  # fmt: skip
def test_a_disk_that_fills_up_is_one_sentence_and_the_last_checkpoint_is_whole(
    go, alone, tmp_path, monkeypatch, where, error, why, kept
):
    folder, name = tmp_path / "full", f"checkpoint-{kept:06d}"
    with monkeypatch.context() as patch:
        break_disk(patch, where, error)
        with pytest.raises(BadInput, match=f"cannot write to .*{why}.*--resume: .*{name}.*whole"):
            go(folder)
    *_, last = checkpoints(folder)
    assert last.name == name
    load(last, device="cpu")
    torch.manual_seed(3)
    go(folder, resume=True)
    assert without_clocks(read(folder)) == without_clocks(read(alone))
    assert weights(folder) == weights(alone)


def test_a_disk_that_is_full_from_the_start_does_not_promise_a_checkpoint(
    go, tmp_path, monkeypatch
):
    monkeypatch.setattr(checkpoint, "os", Full(os, "replace", 0, FULL))
    with pytest.raises(BadInput, match="start again in an empty folder: there is no checkpoint"):
        go(tmp_path / "full")


def test_a_reward_that_cannot_read_its_file_is_not_called_a_full_disk(fresh, chain, tiny, tmp_path):
    def reward(problem, text):
        raise FileNotFoundError("answers.txt")

    with pytest.raises(FileNotFoundError, match=r"answers\.txt"):
        train(*fresh, chain, ZOO["dr_grpo"], tiny, out=tmp_path, reward=reward, progress=False)


def test_a_run_that_was_lengthened_is_the_long_run(go, alone, tmp_path):
    # From the checkpoint of a whole run, with the weights of one step before in it.
    go(tmp_path / "b", steps=2)
    *_, folder = checkpoints(tmp_path / "b")
    assert (folder / "past.safetensors").stat().st_size > 1.2e6
    go(tmp_path / "b", resume=True)
    ours, theirs = (
        [r for r in without_clocks(read(run)) if r["record"] == "step"]
        for run in (tmp_path / "b", alone)
    )
    assert ours == theirs and weights(tmp_path / "b") == weights(alone)


def test_a_run_killed_before_its_first_checkpoint_says_so(fresh, chain, tiny, tmp_path):
    (tmp_path / FILE).write_text('{"record":"header"}\n')
    with pytest.raises(BadInput, match="there is no checkpoint in"):
        train(*fresh, chain, ZOO["dr_grpo"], tiny, out=tmp_path, resume=True, progress=False)
