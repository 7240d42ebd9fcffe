"""The set-up: one list of versions, the imports that are allowed, the two commands."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from rlnb.classroom import environment

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STANDARD = set(sys.stdlib_module_names)
# Packages that are imported under another name than they are installed.
IMPORT_NAMES = {
    "fonttools": "fontTools",
    "huggingface-hub": "huggingface_hub",
    "ipython": "IPython",
    "jupyter-client": "jupyter_client",
    "pillow": "PIL",
    "pytest-xdist": "xdist",
    "pyyaml": "yaml",
    "websocket-client": "websocket",
}


TEST_LOCK = "requirements-test.txt"
EXTRAS = PROJECT["optional-dependencies"]
LEARNER_EXTRAS = ("training", "lab")


def pinned_lines(name: str) -> list[str]:
    lines = (ROOT / name).read_text().splitlines()
    return [line for line in lines if not line.startswith(("#", "-r "))]


def learner_lock() -> dict[str, str]:
    pins = [line.split("==") for line in pinned_lines("requirements.txt")]
    return {canonicalize_name(name): version for name, version in pins}


def lock() -> dict[str, str]:
    """Both files: what `make test` installs."""
    pins = [line.split("==") for line in pinned_lines(TEST_LOCK)]
    return learner_lock() | {canonicalize_name(name): version for name, version in pins}


def declared(extras=tuple(EXTRAS)) -> dict[str, Requirement]:
    groups = [PROJECT["dependencies"], *(EXTRAS[extra] for extra in extras)]
    found = [Requirement(line) for group in groups for line in group]
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def project_files() -> list[Path]:
    """Every text file that belongs to the project; a download has no git to ask."""
    skipped = {".git", "work", "wheels", "__pycache__", ".hypothesis", ".ruff_cache"}
    kinds = {".py", ".md", ".toml", ".yml", ".yaml", ".txt", ".json", ".ipynb", ""}
    files = []
    for folder, folders, names in os.walk(ROOT):
        if "pyvenv.cfg" in names:  # somebody's virtual environment
            folders.clear()
            continue
        folders[:] = [name for name in folders if name not in skipped and "checkpoint" not in name]
        paths = [Path(folder, name) for name in names if name not in skipped]  # .git: a worktree
        files += [path for path in paths if path.suffix in kinds]
    return files


def test_lock_holds_exact_public_versions_for_every_platform():
    for line in pinned_lines("requirements.txt") + pinned_lines(TEST_LOCK):
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", line), line
    somewhere = ("nvidia", "triton", "cuda", "appnope", "pywinpty", "pip", "rlnb")
    assert not [name for name in lock() if name.startswith(somewhere)]
    assert lock()["torch"] == "2.13.0"


def test_lock_satisfies_pyproject():
    for name, requirement in declared().items():
        assert name in lock(), f"{name} is declared and not locked: make lock"
        assert requirement.specifier.contains(lock()[name]), f"{requirement} but {lock()[name]}"


def write_locks():
    """.ci/write_locks.py as a module."""
    spec = importlib.util.spec_from_file_location("write_locks", ROOT / ".ci" / "write_locks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_learner_is_spared_what_only_tests_need():
    heavy = {"trl", "accelerate", "datasets", "pyarrow", "pandas", "playwright", "pytest", "mypy"}
    assert not heavy & set(learner_lock())
    assert heavy <= set(lock())
    assert not set(learner_lock()) & {line.split("==")[0] for line in pinned_lines(TEST_LOCK)}


def test_the_learners_lock_has_all_that_the_learners_packages_need_in_turn():
    module = write_locks()
    needed = module.with_what_they_need(module.asked_for(module.LEARNER_EXTRAS))
    assert needed == set(learner_lock())
    assert {"tornado", "sympy", "pillow"} <= needed, "named by no extra, needed by one's packages"


def test_both_locks_are_what_the_script_writes_here():
    for path, text in write_locks().locks().items():
        assert path.read_text() == text, f"{path.name}: make lock"


def test_what_is_installed_is_the_lock():
    wrong = {}
    for name, version in lock().items():
        found = Version(importlib.metadata.version(name)).public
        if found != version:
            wrong[name] = f"{found} is installed, the lock says {version}"
    assert not wrong


def test_conda_gets_the_same_packages_at_the_same_versions():
    *conda, pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    python = next(line.removeprefix("python=") for line in conda if line.startswith("python="))
    assert Requirement(f"python{PROJECT['requires-python']}").specifier.contains(python)
    options = [line for line in pip["pip"] if line.startswith("-")]
    assert options == ["-c requirements.txt", "-e ."], "-c pins what is not listed here"
    pins = dict(line.split("==") for line in pip["pip"] if not line.startswith("-"))
    assert set(pins) == set(declared(LEARNER_EXTRAS))
    assert pins == {name: learner_lock()[name] for name in pins}


def test_environment_check_asks_for_what_pyproject_asks_for():
    for name, needed in environment.NEEDED:
        lowest = ".".join(map(str, needed))
        assert f">={lowest}" in str(declared()[name].specifier), f"{name}: {declared()[name]}"


def test_environment_check_prints_the_same_on_every_good_machine(capsys):
    environment.environment_check()
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not re.fullmatch(r"\w+ [\d.]+\+: ok", line)] == []
    assert last == "ready"


def test_environment_check_says_what_is_missing_and_what_to_do(capsys, monkeypatch):
    monkeypatch.setattr(environment, "NEEDED", (("torch", (99, 0)), ("no_such_package", (1,))))
    environment.environment_check()
    _, torch, absent, last = capsys.readouterr().out.splitlines()
    assert re.match(r"torch 99\.0\+: found [\d.]+.*; run `make lab`", torch)
    assert absent.startswith("no_such_package 1+: not installed; run `make lab`")
    assert last == "2 of 3 are missing: see above"


def imports(path: Path) -> set[str]:
    """Top-level names that a file imports, wherever in the file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module.split(".")[0])
    return names


def undeclared(folder: str, extras, besides: set[str]) -> list[str]:
    """One sentence per file that imports what neither these extras nor `besides` give."""
    known = {IMPORT_NAMES.get(name, name) for name in declared(extras)} | STANDARD | besides
    found = {path: imports(path) - known for path in sorted((ROOT / folder).rglob("*.py"))}
    return [f"{path.relative_to(ROOT)}: {sorted(names)}" for path, names in found.items() if names]


def test_tests_import_only_what_pyproject_declares():
    files = list((ROOT / "tests").rglob("*.py"))
    ours = {path.stem for path in files} | {path.parent.name for path in files} | {"rlnb"}
    assert not undeclared("tests", EXTRAS, ours)


@pytest.mark.parametrize("folder", ["rlnb", "notebooks"])
def test_package_and_pages_import_only_what_a_learner_has(folder):
    lazy = set().union(*LAZY.values())
    assert not undeclared(folder, LEARNER_EXTRAS, {"rlnb"} | lazy)


ALLOWED = {
    "objective": {"numpy", "torch", "rlnb"},
    "toys": {"numpy", "torch", "rlnb"},
    "training": {
        "numpy",
        "torch",
        "rlnb",
        "huggingface_hub",
        "safetensors",
        "tokenizers",
        "tqdm",
        "transformers",
    },
    "interop": {"torch", "rlnb"},
}
LAZY = {  # imported where they are asked for; a sentence without them
    "sources.py": {"yaml"},
    "dashboards.py": {"wandb"},
    "question_files.py": {"datasets"},
    "adapters.py": {"peft"},
    "optimizers.py": {"bitsandbytes"},
}
ABOVE = {  # what each may not load of ours: arrows run down only
    "objective": ("rlnb.interop", "rlnb.toys", "rlnb.training", "rlnb.classroom"),
    "interop": ("rlnb.toys", "rlnb.training", "rlnb.classroom"),
    "toys": ("rlnb.training", "rlnb.classroom"),
    "training": ("rlnb.classroom",),
}
CLASSROOM = ("IPython", "ipykernel", "ipywidgets", "jupyter_client", "jupytext", "matplotlib")


@pytest.mark.parametrize("package", ALLOWED)
def test_package_imports_only_what_a_bare_gpu_machine_has(package):
    for path in (ROOT / "rlnb" / package).rglob("*.py"):
        extra = imports(path) - STANDARD - ALLOWED[package] - LAZY.get(path.name, set())
        assert not extra, f"{path.relative_to(ROOT)} imports {sorted(extra)}"


@pytest.mark.parametrize("package", ALLOWED)
def test_package_loads_nothing_above_it(package):
    """Every module of it, in a fresh process: what is in sys.modules afterwards?

    torch itself loads tqdm where it finds it, and transformers loads yaml and PIL: those say
    nothing about our code, so they are left to the test above.
    """
    forbidden = CLASSROOM + ABOVE[package] + (() if package == "training" else ("transformers",))
    code = f"""
import importlib, pkgutil, sys
package = importlib.import_module("rlnb.{package}")
for module in pkgutil.walk_packages(package.__path__, "rlnb.{package}."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(*sorted(name for name in {forbidden!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [], f"rlnb.{package} loads {done.stdout}"


def test_importing_rlnb_alone_loads_nothing_heavy():
    code = "import sys, rlnb; print(*{'torch', 'numpy', 'IPython'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stdout + done.stderr


def test_no_file_names_a_folder_of_one_machine():
    start = "/(?:" + "|".join(("home", "Users", "root", "work", "mnt")) + ")/"
    folder = re.compile(r"(?<![\w.}:~*/-])" + start + r"\w")
    for path in project_files():
        text = path.read_text(encoding="utf-8", errors="ignore")
        found = [line for line in text.splitlines() if folder.search(line)]
        assert not found, f"{path.relative_to(ROOT)}: {found[0][:120]}"


def test_licence_is_mit():
    text = (ROOT / "LICENSE").read_text()
    assert text.startswith("MIT License\n\nCopyright (c) 2026 The rlnb authors\n")
    assert PROJECT["license"] == "MIT"


def test_readme_names_only_make_targets_that_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = re.findall(r"(?:`|^|&& |\b)make ([a-z]+)\b", (ROOT / "README.md").read_text(), re.M)
    assert {"lab", "test", "fresh"} <= set(commands) <= targets


def test_ci_runs_the_command_of_the_readme():
    script = ROOT / ".ci" / "run"
    assert stat.S_IMODE(script.stat().st_mode) & stat.S_IXUSR
    assert script.read_text().rstrip().splitlines()[-1] == "make test"


needs_make = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")


@pytest.fixture
def copy(tmp_path):
    for name in ("Makefile", "requirements.txt", TEST_LOCK, "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    bare = {"PATH": os.environ["PATH"]}  # without the flags of an outer make
    return lambda *words: subprocess.run(
        ["make", *words], cwd=tmp_path, capture_output=True, text=True, env=bare
    )


@needs_make
def test_make_alone_says_what_it_can_do(copy):
    done = copy()
    assert done.returncode == 0
    for target in ("make lab", "make fresh NB=06", "make test", "make quick", "make bench"):
        assert target in done.stdout


@needs_make
def test_old_python_is_refused_in_a_sentence(copy, tmp_path):
    old = tmp_path / "python3.8"
    old.write_text("#!/bin/sh\n[ $1 = --version ] && echo Python 3.8.10 || exit 1\n")
    old.chmod(0o755)
    done = copy("lab", f"PYTHON={old}")
    assert done.returncode != 0
    assert f"Python 3.11 or newer is needed; '{old}' is: Python 3.8.10." in done.stdout
    assert not (tmp_path / ".venv").exists()


@needs_make
def test_second_make_installs_nothing(copy, tmp_path):
    bin_ = tmp_path / ".venv" / "bin"
    bin_.mkdir(parents=True)
    (bin_ / "python").symlink_to("/bin/echo")  # prints what it would have been asked to do
    first, second = copy("lab"), copy("lab")
    assert "-m pip" in first.stdout and "-r requirements.txt" in first.stdout
    assert TEST_LOCK not in first.stdout, "a learner needs no TRL"
    assert "pip" not in second.stdout
    assert "-m rlnb.classroom.workspace open" in second.stdout


@needs_make
def test_make_test_installs_both_locks_and_asks_for_lint_and_types_first(copy, tmp_path):
    bin_ = tmp_path / ".venv" / "bin"
    bin_.mkdir(parents=True)
    for name in ("python", "ruff", "mypy"):
        (bin_ / name).symlink_to("/bin/echo")
    said = copy("test", "WORKERS=3").stdout
    order = ["-r requirements.txt", f"-r {TEST_LOCK}", "check --quiet .", "-m pytest -n 3"]
    positions = [said.index(words) for words in order]
    assert positions == sorted(positions)
    assert "pip" not in copy("test").stdout


@needs_make
def test_a_signal_to_make_reaches_jupyterlab(copy, tmp_path):
    """`kill` of a make that runs a shell that runs JupyterLab would end the first two only."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(
        "#!/bin/sh\n"
        'case "$*" in *workspace\\ open*)\n'
        'echo "present=$RLNB_PRESENT $PPID"; exec sleep 60;; esac\n'
    )
    python.chmod(0o755)
    copy("fresh", "NB=--version")  # makes the stamp
    make = subprocess.Popen(
        ["make", "lab", "PRESENT=1", "LAB_FLAGS='a flag in quotes'"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    try:
        assert make.stdout.readline() == f"present=1 {make.pid}\n"
        make.terminate()
        rest = make.communicate(timeout=10)[0]  # waits until nobody holds the other end
        assert rest == ""
    finally:
        make.kill()


def browser_tests_without_a_browser(tmp_path, ci: str):
    environment = os.environ | {"PATH": str(tmp_path), "CI": ci}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/browser"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_browser_tests_say_loudly_that_they_did_not_run(tmp_path):
    done = browser_tests_without_a_browser(tmp_path, ci="")
    assert done.returncode == 0
    assert "THE BROWSER TESTS DID NOT RUN" in done.stdout
    assert re.search(r"\d+ skipped", done.stdout.splitlines()[-1])


def test_browser_tests_must_run_in_ci(tmp_path):
    done = browser_tests_without_a_browser(tmp_path, ci="true")
    assert done.returncode != 0
    assert "With CI set they must run" in done.stdout + done.stderr
