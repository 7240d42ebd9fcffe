"""Does this machine have what the course needs? One line each, the same on every machine.

    >>> from rlnb.classroom.environment import environment_check
    >>> environment_check()  # doctest: +ELLIPSIS
    python 3.11+: ok
    ...

The lines name the lowest version that will do, not the one found, so that a page can print them and
still be compared as text. A requirement that is not met says what was found and what to do.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys

NEEDED = (
    ("numpy", (2, 0)),
    ("torch", (2, 11)),
    ("transformers", (5, 17)),
    ("jupyterlab", (4, 6)),
    ("ipywidgets", (8, 1)),
    ("matplotlib", (3, 10)),
)
REMEDY = "run `make lab`, or `pip install -r requirements.txt`"


def version_numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version.

    >>> version_numbers("2.13.0+cpu")
    (2, 13, 0)
    """
    return tuple(int(part) for part in re.match(r"\d+(\.\d+)*", version)[0].split("."))


def requirement_line(name: str, needed: tuple[int, ...], found: str | None) -> str:
    """One line of the report.

    >>> requirement_line("torch", (2, 11), "2.13.0")
    'torch 2.11+: ok'
    >>> requirement_line("torch", (2, 11), "2.4.1")
    'torch 2.11+: found 2.4.1; run `make lab`, or `pip install -r requirements.txt`'
    """
    wanted = f"{name} {'.'.join(map(str, needed))}+"
    if found is None:
        return f"{wanted}: not installed; {REMEDY}"
    if version_numbers(found) < needed:
        return f"{wanted}: found {found}; {REMEDY}"
    return f"{wanted}: ok"


def environment_check() -> None:
    """Print one line per requirement, and end with whether the course can run here."""
    lines = [requirement_line("python", (3, 11), ".".join(map(str, sys.version_info[:3])))]
    for name, needed in NEEDED:
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = None
        lines.append(requirement_line(name, needed, found))
    failing = sum(not line.endswith(": ok") for line in lines)
    print("\n".join(lines))
    print("ready" if not failing else f"{failing} of {len(lines)} are missing: see above")


def gpu_check() -> None:
    """Print which GPU torch sees. Differs by machine: tag its cell ``nbval-ignore-output``."""
    import torch

    if torch.cuda.is_available():
        print(f"GPU: {torch.cuda.get_device_name(0)} (only page 21 can use it)")
    else:
        print("GPU: none (not needed)")


if __name__ == "__main__":
    environment_check()
    gpu_check()
