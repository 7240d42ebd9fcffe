"""What an import costs: the front door of the classroom loads nothing, an explorer only its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rlnb.classroom import explorers

# these read recorded runs or budgets from rlnb.training
ON_TRAINING = {"gpu_budget_explorer", "recorded_run_explorer", "rollouts_explorer"}


def printed(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_importing_explorers_and_check_loads_neither_torch_nor_matplotlib():
    heavy = "('torch', 'numpy', 'matplotlib', 'ipywidgets', 'IPython', 'transformers')"
    code = (
        "import sys; from rlnb.classroom import check, explorers; "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    assert printed(code) == "[]"


def test_an_explorer_loads_its_own_module_and_no_transformers():
    code = (
        "import sys; from rlnb.classroom import explorers; explorers.clip_explorer; "
        "print('transformers' in sys.modules, sorted(m.rpartition('.')[2] for m in sys.modules"
        " if m.startswith('rlnb.classroom.explorers.')))"
    )
    assert printed(code).startswith("False ['")
    assert set(eval(printed(code).removeprefix("False "))) <= {"arguments", "clip"}


def test_no_explorer_that_is_not_about_training_loads_transformers():
    names = sorted(set(explorers.__all__) - ON_TRAINING)
    code = (
        "import sys; from rlnb.classroom import explorers; "
        f"[getattr(explorers, name) for name in {names}]; print('transformers' in sys.modules)"
    )
    assert printed(code) == "False"


def test_an_unknown_explorer_is_a_sentence_that_lists_the_others():
    with pytest.raises(AttributeError, match="no explorer named 'clap_explorer'.*clip_explorer"):
        explorers.clap_explorer  # noqa: B018


def test_every_explorer_is_listed_and_reachable():
    assert dir(explorers) == sorted(explorers.__all__)
    for name in explorers.__all__:
        assert getattr(explorers, name).__name__ == name
