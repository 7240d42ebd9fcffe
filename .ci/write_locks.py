"""Write the two locks from one resolution: what is installed beside this Python.

    .venv-lock/bin/python .ci/write_locks.py        (`make lock` prepares that environment)

requirements.txt holds what a learner needs: `dependencies` and the extras `training` and `lab`,
with all that they need in turn. requirements-test.txt holds the rest: `parity`, `test`, and what
only they need. One resolution, so that no package has two versions. environment.yml, the list for
conda users, gets the learner's versions. Only the standard library and `packaging` are imported.
"""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LEARNER, TEST = ROOT / "requirements.txt", ROOT / "requirements-test.txt"
CONDA = ROOT / "environment.yml"
LEARNER_EXTRAS, TEST_EXTRAS = ("training", "lab"), ("parity", "test")
BUILD = ("setuptools",)  # `pip install -e . --no-build-isolation` asks for it

# Some platforms only, or the installer itself: not what every machine needs.
NOT_LOCKED = re.compile(r"(appnope|colorama|cuda-|nvidia|pip$|pywin|rlnb$|triton|wheel$)")

HEADS = {
    LEARNER: "# The exact versions the course is tested with. Written by `make lock`.\n",
    TEST: (
        "# What `make test` needs beside the course: TRL, the test tools. Written by `make lock`.\n"
        "-r requirements.txt\n"
    ),
}


def asked_for(extras: Iterable[str]) -> list[Requirement]:
    """What pyproject.toml names for the package itself and for these extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = list(project["dependencies"])
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    return [*map(Requirement, lines), *map(Requirement, BUILD)]


def with_what_they_need(wanted: Iterable[Requirement]) -> set[str]:
    """The names of these packages and of everything that they need here, in turn."""
    waiting = [(canonicalize_name(each.name), extra) for each in wanted for extra in _extras(each)]
    seen = set()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen or NOT_LOCKED.match(name):
            continue
        seen.add((name, extra))
        for line in importlib.metadata.requires(name) or ():
            each = Requirement(line)
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(each.name), part) for part in _extras(each)]
    return {name for name, _ in seen}


def _extras(requirement: Requirement) -> tuple[str, ...]:
    """The bare package (extra "") and each extra that is asked for."""
    return ("", *requirement.extras)


def pins(names: Iterable[str]) -> dict[str, str]:
    """The lock's line of each package, by its plain name; local builds (+cpu) are left out."""
    lines = {}
    for name in names:
        found = importlib.metadata.distribution(name)
        lines[name] = f"{found.metadata['Name']}=={Version(found.version).public}"
    return dict(sorted(lines.items()))


def locks() -> dict[Path, str]:
    """The text of both locks."""
    learner = with_what_they_need(asked_for(LEARNER_EXTRAS))
    everything = with_what_they_need(asked_for(LEARNER_EXTRAS + TEST_EXTRAS))
    parts = {LEARNER: learner, TEST: everything - learner}
    return {
        path: HEADS[path] + "".join(f"{line}\n" for line in pins(names).values())
        for path, names in parts.items()
    }


def conda(text: str) -> str:
    """environment.yml with the versions that are installed here."""

    def renewed(match: re.Match) -> str:
        version = Version(importlib.metadata.version(match["name"])).public
        return f"{match['start']}{match['name']}=={version}"

    return re.sub(r"^(?P<start> +- )(?P<name>[\w-]+)==.+$", renewed, text, flags=re.MULTILINE)


def main() -> None:
    for path, text in locks().items():
        path.write_text(text)
        print(f"{path.name}: {sum('==' in line for line in text.splitlines())} packages")
    CONDA.write_text(conda(CONDA.read_text()))


if __name__ == "__main__":
    main()
