"""The learner's copy of the course: an ignored folder ``work/`` beside ``notebooks/``.

    python -m rlnb.classroom.workspace open [FLAGS]    copy what is missing, start JupyterLab on 00
    python -m rlnb.classroom.workspace copy            only copy what is missing
    python -m rlnb.classroom.workspace fresh 06        a new copy of page 06; the old one is kept

A file in ``work/`` is never overwritten. An upgrade of the course therefore changes nothing there:
new pages appear, and ``fresh`` fetches the new version of an old one. FLAGS go to JupyterLab.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from rlnb.shipped import course_folder, in_checkout

NOTEBOOKS = course_folder() / "notebooks"
# Beside the course in a checkout; an installed wheel's learner works where they are.
WORK = (course_folder() if in_checkout() else Path.cwd()) / "work"
LAB_CONFIG = Path(__file__).resolve().parent / "lab_config"

# What a page needs beside it: other pages, their solutions, and the pictures they show.
COPIED = ("*.ipynb", "solutions/*.ipynb", "images/*")


class WorkspaceError(Exception):
    """The request cannot be met; the message says what to do."""


def pages(notebooks: Path = NOTEBOOKS) -> list[Path]:
    """The pages of the course, in order."""
    return sorted(notebooks.glob("*.ipynb"))


def copy_missing(notebooks: Path = NOTEBOOKS, work: Path = WORK) -> list[Path]:
    """Copy into ``work`` every file of the course that is not there yet; returns the new files."""
    if not pages(notebooks):
        raise WorkspaceError(f"no pages in {notebooks}: is this a full copy of the project?")
    new = []
    for pattern in COPIED:
        for source in sorted(notebooks.glob(pattern)):
            target = work / source.relative_to(notebooks)
            if source.is_file() and copy_once(source, target):
                new.append(target)
    return new


def copy_once(source: Path, target: Path) -> bool:
    """Copy unless the target exists; the check and the creation are one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(target, "xb") as out, open(source, "rb") as read:
            shutil.copyfileobj(read, out)
    except FileExistsError:
        return False
    return True


def find_page(name: str, notebooks: Path = NOTEBOOKS) -> Path:
    """The page meant by ``06``, ``6``, ``06_grpo``, ``06_grpo.ipynb`` or ``solutions/06``."""
    folder = notebooks / "solutions" if name.startswith("solutions/") else notebooks
    stem = name.removeprefix("solutions/").removesuffix(".ipynb")
    number = stem.zfill(2) if stem.isdigit() else None
    for page in sorted(folder.glob("*.ipynb")):
        if page.stem == stem or (number and page.stem.split("_")[0] == number):
            return page
    known = ", ".join(page.stem for page in pages(notebooks)) or "none"
    raise WorkspaceError(f"no page {name!r}. Pages: {known}. Example: make fresh NB=06")


def fresh(name: str, notebooks: Path = NOTEBOOKS, work: Path = WORK) -> tuple[Path, Path | None]:
    """A new copy of one page; returns it and where the old one was kept (None: there was none)."""
    source = find_page(name, notebooks)
    target = work / source.relative_to(notebooks)
    kept = None
    if target.exists():
        number = 1
        while (kept := target.with_name(f"{target.stem}.old-{number}.ipynb")).exists():
            number += 1
        target.rename(kept)
    copy_once(source, target)
    return target, kept


def lab_environment() -> dict[str, str]:
    """This process's environment with the course's JupyterLab settings: no news, no updates."""
    config = [str(LAB_CONFIG), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    return dict(
        os.environ,
        JUPYTER_CONFIG_PATH=os.pathsep.join(part for part in config if part),
        JUPYTER_PREFER_ENV_PATH="1",  # the kernel of this environment, not one of the user's
    )


def lab_command(page: Path, flags: list[str], work: Path = WORK) -> list[str]:
    """The command line that opens ``page`` in JupyterLab with ``work`` as its root folder."""
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={work}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # containers; JupyterLab refuses otherwise
        command.append("--allow-root")
    return [*command, *flags, str(page)]


def run_copy() -> None:
    first = not WORK.exists()
    new = copy_missing()
    if first:
        print(f"Your copy of the course is in {WORK.name}/: {len(pages())} pages.")
    elif new:
        names = ", ".join(path.relative_to(WORK).as_posix() for path in new)
        print(f"New in {WORK.name}/: {names}. Nothing there was overwritten.")
    else:
        print(f"{WORK.name}/ has every page; nothing there was touched.")


def run_open(flags: list[str]) -> int:
    run_copy()
    start = WORK / pages()[0].name
    print(f"Starting JupyterLab on {WORK.name}/{start.name}; Ctrl+C stops it.", flush=True)
    command, environment = lab_command(start, flags), lab_environment()
    if os.name == "posix":  # become JupyterLab: Ctrl+C and kill reach it and nothing else
        os.execve(command[0], command, environment)
    return subprocess.run(command, env=environment).returncode


def run_fresh(name: str) -> None:
    page, kept = fresh(name)
    shown = page.relative_to(WORK.parent).as_posix()
    if kept:
        print(f"{shown} is a new copy; your old one is {kept.relative_to(WORK.parent).as_posix()}.")
    else:
        print(f"{shown} is a new copy; there was no old one.")


def main(arguments: list[str]) -> int:
    try:
        match arguments:
            case ["open", *flags]:
                return run_open(flags)
            case ["copy"]:
                run_copy()
            case ["fresh", name] if name:
                run_fresh(name)
            case ["fresh", *_]:
                raise WorkspaceError("which page? Example: make fresh NB=06")
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except WorkspaceError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
