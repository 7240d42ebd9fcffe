"""The shipped model, loaded once; and small recipes, so that the folder stays quick."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from rlnb.objective import ZOO
from rlnb.training import TASKS, Recipe, load, train

ROOT = Path(__file__).parents[2]

# ATEN_CPU_CAPABILITY makes torch compute as a lesser processor does, and leaves oneDNN out: on a
# machine with AVX-512 torch then packs bfloat16 for kernels that it does not take, and raises.
# A real machine of that kind has no such conflict. oneDNN reads this at its first product.
if os.environ.get("ATEN_CPU_CAPABILITY") in ("default", "avx2"):
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")


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


@pytest.fixture(scope="session")
def tiny():
    """A recipe of seconds: 4 prompts x 4 answers, two evaluations of 16 samples.

    Every third answer is cut off: most tests do not mind, and it is a matter of seconds.
    """
    return Recipe(
        steps=4, prompts=4, num_generations=4,
        eval_every=2, eval_prompts=8, eval_generations=2, eval_greedy=False, checkpoint_every=2,
        max_completion_length=24,
    )  # fmt: skip


@pytest.fixture(scope="session")
def roomy(tiny):
    """`tiny` with room for every answer of the base: none is cut off, so none loses its reward."""
    return replace(tiny, max_completion_length=Recipe.max_completion_length)


@dataclass(frozen=True)
class FinishedRun:
    """`tiny` with dr_grpo and seed 0, to its end: its folder, its records, the trained model."""

    folder: Path
    records: list
    model: torch.nn.Module

    def copied_to(self, folder):
        """A folder of one's own, to go on in."""
        return Path(shutil.copytree(self.folder, folder))


@pytest.fixture(scope="session")
def finished(shipped, chain, tiny, tmp_path_factory):
    """A whole run, shared by all who only look at one: write in a copy."""
    folder, model = tmp_path_factory.mktemp("runs") / "finished", copy.deepcopy(shipped[0])
    records = train(
        model, shipped[1], chain, ZOO["dr_grpo"], tiny, out=folder, progress=False
    )  # fmt: skip
    return FinishedRun(folder, records, model)


ELSEWHERE = """
import contextlib, importlib, io, json, sys
import rlnb.training
out, heavy = {}, ("torch", "transformers", "tokenizers", "safetensors", "huggingface_hub")

def loaded(*modules):
    for name in modules:
        importlib.import_module("rlnb.training." + name)
    return [name for name in heavy if name in sys.modules]

out["with the names"] = loaded()
out["with tasks and files"] = loaded("tasks", "metrics_file", "models.presets", "prompt_pool")
out["with recipes and studies"] = loaded(
    "recipe", "rewards", "models.precision", "sampling.scoring", "sampling.prompts",
    "studies.gpu_budget", "studies.stop_push",
)
out["with the command line"] = loaded("__main__", "named", "run_folder", "dashboards")
import rlnb.training.__main__ as line
loaded("loop", "evaluation", "models.base_training")
out["modules"] = sorted({name.split(".")[0] for name in sys.modules})
out["held_out"] = rlnb.training.is_held_out("9*4+2*1*7-1=?")
with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.suppress(SystemExit):
    line.main(["--help"])
print(json.dumps(out | {"help": text.getvalue()}))
"""


@pytest.fixture(scope="session")
def elsewhere():
    """What a new process sees: modules so far and at last, one prompt's split, the line's help."""
    run = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
