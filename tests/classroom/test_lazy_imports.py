"""What an import costs: the front door of the classroom loads nothing, a part only its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rlnb.classroom import explorers

# these read recorded runs or budgets from rlnb.training
ON_TRAINING = {"gpu_budget_explorer", "recorded_run_explorer", "rollouts_explorer"}
MOST = sorted(set(explorers.__all__) - ON_TRAINING)
STEPS = {
    "nothing": "from rlnb import check; from rlnb.classroom import check, explorers",
    "one check": "check.k3",
    "one explorer": "explorers.clip_explorer",
    "most explorers": f"[getattr(explorers, name) for name in {MOST}]",
}


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """Step -> the modules that one fresh process has loaded after it."""
    lines = ["import json, sys", "found = {}"]
    for name, statement in STEPS.items():
        lines += [statement, f"found[{name!r}] = sorted(sys.modules)"]
    code = "\n".join([*lines, "print(json.dumps(found))"])
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name: set(modules) for name, modules in json.loads(out.stdout).items()}


def parts(modules: set[str], folder: str) -> set[str]:
    return {m.rpartition(".")[2] for m in modules if m.startswith(f"rlnb.classroom.{folder}.")}


def test_importing_explorers_and_check_loads_nothing_heavy(loaded):
    heavy = {"torch", "numpy", "matplotlib", "ipywidgets", "IPython", "transformers"}
    assert not heavy & loaded["nothing"]


def test_a_check_needs_torch_and_its_own_module_and_neither_matplotlib_nor_widgets(loaded):
    assert "torch" in loaded["one check"]
    assert not {"matplotlib", "ipywidgets", "IPython", "transformers"} & loaded["one check"]
    assert parts(loaded["one check"], "exercises") == {"kl"}


def test_an_explorer_loads_its_own_module_and_no_transformers(loaded):
    assert parts(loaded["one explorer"], "explorers") == {"arguments", "clip"}
    assert "transformers" not in loaded["one explorer"]


def test_no_explorer_that_is_not_about_training_loads_transformers(loaded):
    assert len(parts(loaded["most explorers"], "explorers")) > 15
    assert "transformers" not in loaded["most explorers"]


def test_an_unknown_explorer_is_a_sentence_that_lists_the_others():
    with pytest.raises(AttributeError, match="no explorer named 'clap_explorer'.*clip_explorer"):
        explorers.clap_explorer  # noqa: B018


def test_every_explorer_is_listed_and_reachable():
    assert dir(explorers) == sorted(explorers.__all__)
    for name in explorers.__all__:
        assert getattr(explorers, name).__name__ == name
