"""What the front door names is there: every path, file, make target, command and dotted name.

The rule is `faults`, a function of a text; the second half of this file shows it failing.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
FILE_KINDS = "py|md|toml|yml|yaml|txt|json|jsonl|ipynb|cfg"
MADE_LATER = (
    "work/",
    "made/",
    "site/",
    ".venv/",
    "runs/",
    "wheels/",
)  # folders that a reader's own commands make
A_READERS_OWN = {"train_grpo.py", "first.yaml", "second.yaml"}  # stand for any file of theirs
SKIPPED = {".git", "work", "wheels", "build", "dist", "node_modules"}


@cache
def project_files() -> frozenset[str]:
    """Paths of all files of the project, relative to its root."""
    found = set()
    for folder, folders, names in os.walk(ROOT):
        if "pyvenv.cfg" in names:  # somebody's virtual environment
            folders.clear()
            continue
        folders[:] = [name for name in folders if name not in SKIPPED and name != "__pycache__"]
        found |= {Path(folder, name).relative_to(ROOT).as_posix() for name in names}
    return frozenset(found)


@cache
def make_targets() -> frozenset[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^([a-z][\w-]*):", makefile, re.M))


def code_lines(text: str) -> list[str]:
    """The lines of indented and fenced code."""
    lines, fenced = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            lines.append(line.strip())
    return lines


def quoted(text: str) -> list[str]:
    """What stands in backticks outside code blocks, line breaks as spaces."""
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]


def faults(text: str) -> list[str]:
    """A sentence for each thing that is named and not there."""
    said: list[str] = []
    commands = [*code_lines(text), *quoted(text)]
    for span in quoted(text):
        if "/" in span and re.fullmatch(r"[\w.*/-]+", span):
            said += path_faults(span)
        elif re.fullmatch(r"rlnb(\.\w+)+", span):
            said += dotted_faults(span)
    for command in commands:
        said += command_faults(command)
        for name in re.findall(rf"(?<![\w./*-])([\w-]+\.(?:{FILE_KINDS}))(?![\w.(])", command):
            known = name in A_READERS_OWN or name.startswith("NN_name")
            if not known and not any(p.rpartition("/")[2] == name for p in project_files()):
                said.append(f"no file of the project is called {name}")
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if not re.match(r"https?:", target) and not (ROOT / target).exists():
            said.append(f"a link leads to {target}, which is not there")
    return list(dict.fromkeys(said))


def path_faults(path: str) -> list[str]:
    if path.startswith(MADE_LATER):
        return []
    if "*" in path or "NN" in path:
        found = any(ROOT.glob(path.replace("NN_name", "[0-9][0-9]_*").replace("NN", "[0-9]*")))
    else:
        found = (ROOT / path).exists()
    return [] if found else [f"there is no {path}"]


def dotted_faults(name: str) -> list[str]:
    """A module, or an attribute of one."""
    place, attributes = name, []
    while place and not _is_module(place):
        place, _, last = place.rpartition(".")
        attributes.insert(0, last)
    if not place:
        return [f"there is no module {name}"]
    value = importlib.import_module(place)
    for attribute in attributes:
        if not hasattr(value, attribute):
            return [f"{place} has no {attribute}"]
        value = getattr(value, attribute)
    return []


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def command_faults(command: str) -> list[str]:
    said = [
        f"the Makefile has no target {target}"
        for target in re.findall(r"(?:^|&& |=1 |=[\w.]+ )make +([a-z][\w-]*)", command)
        if target not in make_targets()
    ]
    for module, rest in re.findall(r"python[\d.]* -m (rlnb[\w.]*)(.*)", command):
        if not _is_module(module):
            said.append(f"there is no module {module} to run")
            continue
        origin = Path(importlib.util.find_spec(module).origin)
        runs = origin.with_name("__main__.py") if origin.name == "__init__.py" else origin
        if not runs.is_file():
            said.append(f"{module} has no __main__.py and cannot be run")
            continue
        verb = re.match(r" +([a-z]\w*)(?![\w.*/])", rest)
        source = runs.read_text(encoding="utf-8")
        if verb and not re.search(rf"[\"']{verb[1]}[\"']", source):
            said.append(f"python -m {module} knows no {verb[1]}")
        for flag in re.findall(r"(?<!\S)(--[a-z][\w-]*)", rest):
            if flag != "--help" and flag not in source and not _is_a_field(flag):
                said.append(f"python -m {module} knows no {flag}")
    for path in re.findall(r"python[\d.]* ((?:tests|rlnb|\.ci)/[\w./-]+\.py)", command):
        if not (ROOT / path).is_file():
            said.append(f"there is no {path} to run")
    for path in re.findall(r"pytest ((?:tests|rlnb)[\w./-]*)", command):
        said += path_faults(path)
    return said


def _is_a_field(flag: str) -> bool:
    """Options of a training run are the fields of its recipes."""
    from dataclasses import fields

    from rlnb.training import BaseRecipe, Recipe

    names = {field.name for recipe in (Recipe, BaseRecipe) for field in fields(recipe)}
    return flag.removeprefix("--").replace("-", "_") in names


@pytest.mark.parametrize("page", PAGES)
def test_what_the_page_names_is_there(page):
    assert faults((ROOT / page).read_text(encoding="utf-8")) == []


def test_what_the_changelog_says_has_moved_is_where_it_says():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", text, re.M)[2:]
    assert len(rows) >= 8
    for was, now in rows:
        assert faults(now) == [], now
        gone = [name for name in re.findall(r"`(rlnb\.[\w.]+)`", was) if not dotted_faults(name)]
        assert gone == [], "it has not moved"


def test_the_hooks_run_what_the_test_environment_has():
    import yaml

    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repo["repo"] for repo in hooks["repos"]] == ["local"]  # nothing is fetched
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for hook in hooks["repos"][0]["hooks"]:
        assert hook["language"] == "system"
        tool = hook["entry"].removeprefix(".venv/bin/").removeprefix("python -m ").split()[0]
        assert re.search(rf'"{tool}[>=]', pyproject), f"{tool} is in no extra of pyproject.toml"


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md"])
def test_prose_is_wrapped_where_a_terminal_shows_it(page):
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        limit = 400 if line.startswith(("|", "!", "[")) else 110
        assert len(line) <= limit, line


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("see `rlnb/objective/nowhere.py`", "there is no rlnb/objective/nowhere.py"),
        ("see `rlnb/nowhere/`", "there is no rlnb/nowhere/"),
        ("the file `nowhere.py` says", "no file of the project is called nowhere.py"),
        ("    loop.py    then nowhere.py", "no file of the project is called nowhere.py"),
        ("`make nothing` it", "the Makefile has no target nothing"),
        ("    make nothing NB=1   # so", "the Makefile has no target nothing"),
        ("    PIP_NO_INDEX=1 make nothing", "the Makefile has no target nothing"),
        ("`rlnb.objective.nothing`", "rlnb.objective has no nothing"),
        ("`rlnb.objective.ratios.nothing`", "rlnb.objective.ratios has no nothing"),
        ("    .venv/bin/python -m rlnb.nothing explain", "no module rlnb.nothing to run"),
        ("    python -m rlnb.toys", "rlnb.toys has no __main__.py"),
        ("    python -m rlnb.classroom.pages bild 06", "rlnb.classroom.pages knows no bild"),
        ("    python -m rlnb.training grpo --stepps 4", "rlnb.training knows no --stepps"),
        ("    python tests/mutants/runs.py", "there is no tests/mutants/runs.py to run"),
        ("    python -m pytest tests/nowhere", "there is no tests/nowhere"),
        ("a [page](notebooks/99_x.ipynb)", "a link leads to notebooks/99_x.ipynb"),
    ],
)
def test_what_is_not_there_is_named(text, sentence):
    found = faults(text)
    assert len(found) == 1 and sentence in found[0], found


@pytest.mark.parametrize(
    "text",
    [
        "`make test`, `work/`, `rlnb/objective/ratios.py`, `rlnb.objective.ratios.token`, `a / b`",
        "    python -m rlnb.training grpo --task chain --steps 40 --out runs/mine",
        "`notebooks/text/NN_name.py`, `tests/**`, `loss_type`, `SFT/RL mixtures`",
        "a [link](https://example.org/a/b.html#c) and a [page](README.md#set-up)",
    ],
)
def test_what_is_there_or_is_no_name_passes(text):
    assert faults(text) == []
