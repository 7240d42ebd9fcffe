"""Trains the same tiny run twice: left alone in A, killed again and again in B. Run by test_killed.

    python killing.py A B SEED

Each attempt is a forked process, so that a kill is a kill and the libraries are loaded once. It is
killed with SIGKILL, either by itself at some call that writes, or from outside at a random moment.
Prints one line of JSON per attempt on B.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import torch

from rlnb.objective import ZOO
from rlnb.training import TASKS, CoinFlip, PromptPool, Recipe, checkpoint, data_folder, load, train
from rlnb.training.checkpoint import checkpoints
from rlnb.training.metrics_file import FILE, Recorder, line

RECIPE = Recipe(
    steps=12, prompts=3, num_generations=4, minibatches=2, staleness=1, eval_every=6,
    eval_prompts=4, eval_generations=2, checkpoint_every=2, max_completion_length=16,
)  # fmt: skip
# Where a process kills itself: a call, and how often it was made before in this process. The first
# is in the first checkpoint, so that the run starts anew.
PLANS = [
    ("save_file", 1), "moment", ("save_file", 3), "moment", ("fsync", 3), "moment", ("line", 3),
    ("replace", 2), "moment", ("rmtree", 1), ("replaced", 1), None,
]  # fmt: skip


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(name, count):
    """The process dies at the count-th call, counted from 0; a line is torn in the middle."""
    left = [count]

    def mortal(real, after=False):
        def call(*arguments, **options):
            left[0] -= 1
            if left[0] >= 0:
                return real(*arguments, **options)
            if after:
                real(*arguments, **options)
            die()

        return call

    if name == "save_file":
        checkpoint.save_file = mortal(checkpoint.save_file)
    elif name == "rmtree":
        checkpoint.shutil.rmtree = mortal(shutil.rmtree)
    elif name in ("replace", "replaced"):
        os.replace = mortal(os.replace, after=name == "replaced")
    elif name == "fsync":
        os.fsync = mortal(os.fsync)
    elif name == "line":
        real = Recorder.write

        def write(self, kind, **fields):
            left[0] -= 1
            if left[0] >= 0:
                return real(self, kind, **fields)
            self._file.write(line({"record": kind, **fields})[:20])
            self._file.flush()
            die()

        Recorder.write = write


def attempt(folder, armed=None):
    """The process id of one attempt to train to the end."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        if armed:
            arm(*armed)
        resume = bool(checkpoints(folder))
        if not resume:  # killed before the first checkpoint: there is nothing to lose yet
            shutil.rmtree(folder, ignore_errors=True)
        torch.manual_seed(os.getpid())  # a new process has other global random numbers
        train(
            MODEL, TOKENIZER, TASKS["chain"], ZOO["grpo"], RECIPE, out=folder, resume=resume,
            reward=CoinFlip(5), pool=PromptPool.drawn(TASKS["chain"], 9, retire=0.75),
            progress=False,
        )  # fmt: skip
        status = 0
    finally:
        os._exit(status)


def left_behind(folder):
    """What a killed process leaves: the newest whole checkpoint, a torn one, a torn line."""
    whole = checkpoints(folder)
    record = folder / FILE
    text = record.read_text(encoding="utf-8") if record.is_file() else ""
    return {
        "checkpoint": whole[-1].name if whole else None,
        "torn_checkpoint": any(folder.glob(".checkpoint-*.tmp")),
        "torn_line": bool(text) and not text.endswith("\n"),
    }


def main(alone, killed, seed):
    rng, started = random.Random(seed), time.monotonic()
    assert os.waitpid(attempt(alone), 0)[1] == 0
    lasts = time.monotonic() - started
    for plan in PLANS:
        pid = attempt(killed, plan if isinstance(plan, tuple) else None)
        if plan == "moment":
            time.sleep(rng.uniform(0, lasts / 3))
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        told = {"plan": plan, "killed": os.WIFSIGNALED(status), "status": status}
        print(json.dumps(told | left_behind(killed)), flush=True)
        if status == 0:
            return


if __name__ == "__main__":
    torch.set_num_threads(1)
    MODEL, TOKENIZER = load(data_folder() / "model", device="cpu")
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
