"""An installed wheel works without the checkout, in any folder: model, runs, statements, pages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILT_FROM = ("rlnb", "data", "notebooks", "pyproject.toml", "setup.py", "MANIFEST.in",
              "README.md", "LICENSE")  # fmt: skip
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def done(*command, cwd, status=0):
    """Runs it as a stranger would: no PYTHONPATH, no network. Returns what it printed."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RLNB", "PIP_"))}
    result = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True,
        env=kept | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy, because a build leaves folders beside the source."""
    source = tmp_path_factory.mktemp("source")
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("*.pyc"))
        else:
            shutil.copy(ROOT / name, source)
    done(*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", "out", ".", cwd=source)
    (found,) = (source / "out").glob("*.whl")
    return found


@pytest.fixture(scope="module")
def bin_folder(wheel, tmp_path_factory):
    """Programs of an environment that has the wheel, and no rlnb besides.

    The dependencies are this environment's, by a line in a .pth file. Such a line does not read
    the .pth files of the folder it names, so the editable install there stays unseen.
    """
    home = tmp_path_factory.mktemp("environment")
    done(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    programs = home / ("Scripts" if os.name == "nt" else "bin")
    done(*PIP, "--python", programs / "python", "install", "--no-deps", "--no-index", wheel,
         cwd=home)  # fmt: skip
    (site,) = home.glob("**/site-packages")
    paths = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (site / "dependencies.pth").write_text("\n".join(paths) + "\n")
    return programs


def test_training_starts_from_the_shipped_model_anywhere(bin_folder, tmp_path):
    told = done(
        bin_folder / "rlnb", "train", "--out", "run", "--steps", "1", "--prompts", "2",
        "--num-generations", "2", "--eval-every", "0", "--checkpoint-every", "0",
        "--max-completion-length", "8", "--device", "cpu", cwd=tmp_path,
    )  # fmt: skip
    header = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[0])
    assert header["model"] == "data/model" and "1 steps" in told
    assert (tmp_path / "run" / "model" / "model.safetensors").is_file()


LOOK = """
import json, sys, rlnb, yaml
from rlnb.shipped import data_folder, shipped_folder
from rlnb.training import read
claims = yaml.safe_load((data_folder() / "claims.yaml").read_text(encoding="utf-8"))
run = read(data_folder() / "runs" / "chain_dr_grpo_seed0.jsonl")
print(json.dumps({"package": rlnb.__file__, "claims": len(claims), "task": run[0]["task"]}))
"""


def test_statements_and_recorded_runs_are_found_in_the_wheel_itself(bin_folder, tmp_path):
    (tmp_path / "data").mkdir()  # a folder of that name where one stands is not asked
    told = json.loads(done(bin_folder / "python", "-c", LOOK, cwd=tmp_path))
    assert bin_folder.parent in Path(told["package"]).parents
    assert ROOT not in Path(told["package"]).parents
    assert told["claims"] > 200 and told["task"] == "chain"


def test_the_learners_copy_is_made_where_the_learner_stands(bin_folder, tmp_path):
    assert "pages" in done(bin_folder / "rlnb", "copy", cwd=tmp_path)
    pages = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {path.name for path in (tmp_path / "work").glob("*.ipynb")} == pages
    assert any((tmp_path / "work" / "solutions").glob("*.ipynb"))
    assert any((tmp_path / "work" / "images").iterdir())
    done(bin_folder / "python", "-m", "rlnb.classroom.workspace", "fresh", "06", cwd=tmp_path)


def test_the_wheel_has_all_data_and_no_twins(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    data = {f"rlnb/_shipped/data/{path.relative_to(ROOT / 'data').as_posix()}"
            for path in (ROOT / "data").rglob("*") if path.is_file()}  # fmt: skip
    assert data <= names
    assert not [name for name in names if "/text/" in name]
    settings = (ROOT / "rlnb" / "classroom" / "lab_config").rglob("*.json")
    assert {path.relative_to(ROOT).as_posix() for path in settings} <= names


def test_the_wheel_says_where_it_belongs_and_what_it_runs(wheel):
    archive = zipfile.ZipFile(wheel)
    (folder,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
    said = Parser().parsestr(archive.read(f"{folder}/METADATA").decode())
    assert said.get_all("Project-URL") and said["License-Expression"] == "MIT"
    assert "Programming Language :: Python :: 3.11" in said.get_all("Classifier")
    assert "pillow" in " ".join(row for row in said.get_all("Requires-Dist") if "lab" in row)
    assert "rlnb = rlnb.__main__:main" in archive.read(f"{folder}/entry_points.txt").decode()


def test_an_unknown_command_lists_those_there_are(bin_folder, tmp_path):
    told = done(bin_folder / "rlnb", "trian", cwd=tmp_path, status=2)
    assert "there is no command 'trian'" in told and "rlnb train FLAGS" in told
    assert "rlnb lab" in done(bin_folder / "rlnb", "--help", cwd=tmp_path)
