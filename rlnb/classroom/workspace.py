"""The learner's copy of the course: an ignored folder ``work/`` beside ``notebooks/``.

    python -m rlnb.classroom.workspace open [FLAGS]    copy what is missing, start JupyterLab on 00
    python -m rlnb.classroom.workspace copy            only copy what is missing
    python -m rlnb.classroom.workspace fresh 06        a new copy of page 06; your old one is kept
    python -m rlnb.classroom.workspace fresh ppo       the same, by name
    python -m rlnb.classroom.workspace fresh --all     a new copy of every page you did not touch

A page in ``work/`` is never overwritten without being asked, and what somebody wrote never. An
upgrade of the course adds its new pages, says which others changed, and which of those are edited
here. A page whose number changed takes its copy along, under the new number. The pictures in
``work/images`` belong to the course and follow it. ``work/.course.json`` remembers what was copied.
FLAGS go to JupyterLab; with RLNB_PRESENT=1 it opens to show others: one page, larger letters.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rlnb.shipped import course_folder, in_checkout

NOTEBOOKS = course_folder() / "notebooks"
# Beside the course in a checkout; an installed wheel's learner works where they are.
WORK = (course_folder() if in_checkout() else Path.cwd()) / "work"
LAB_CONFIG = Path(__file__).resolve().parent / "lab_config"

PRESENTING = LAB_CONFIG / "presenting"
MANIFEST = ".course.json"

# What a page needs beside it: the other kinds of page, and the pictures they show.
PAGES = ("*.ipynb", "statements/*.ipynb", "solutions/*.ipynb", "extras/*.ipynb")
COPIED = (*PAGES, "images/*")
KINDS = ("statements", "solutions", "extras")  # folders of pages beside the lessons


class WorkspaceError(Exception):
    """The request cannot be met; the message says what to do."""


@dataclass(frozen=True)
class Copied:
    """What one file of the course was when it was copied."""

    file: str  # hash of the bytes: has the course changed since?
    written: str  # hash of what somebody writes in it: has the learner?


@dataclass(frozen=True)
class Upgrade:
    """What a visit to ``work/`` found and did; each name as in ``work/``, in order."""

    new: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()  # (old name, new name)
    untouched: tuple[str, ...] = ()  # changed in the course, not by the learner
    stale: tuple[str, ...] = ()  # changed in the course and edited here
    pictures: tuple[str, ...] = ()  # renewed


def pages(notebooks: Path = NOTEBOOKS) -> list[Path]:
    """The lessons of the course, in order."""
    return sorted(notebooks.glob("*.ipynb"))


def course_files(notebooks: Path, patterns: tuple[str, ...] = COPIED) -> Iterator[str]:
    """Name in the course, and in ``work/``, of each file that is copied."""
    for pattern in patterns:
        for source in sorted(notebooks.glob(pattern)):
            if source.is_file():
                yield source.relative_to(notebooks).as_posix()


def describe(path: Path) -> Copied:
    """The hashes of a file. A notebook that was only run is as it was written.

    What is written in a notebook are its cells; outputs, counts and metadata are not.
    """
    content = path.read_bytes()
    file = written = hashlib.sha256(content).hexdigest()
    if path.suffix == ".ipynb":
        try:
            cells = [(c["cell_type"], "".join(c["source"])) for c in json.loads(content)["cells"]]
        except (ValueError, KeyError, TypeError):
            pass  # not a notebook (any more): then every byte counts
        else:
            written = hashlib.sha256(json.dumps(cells).encode()).hexdigest()
    return Copied(file, written)


def read_manifest(work: Path) -> dict[str, Copied]:
    """What was copied into ``work``; nothing where nobody wrote it down."""
    try:
        rows = json.loads((work / MANIFEST).read_text(encoding="utf-8"))["files"]
        return {name: Copied(**row) for name, row in rows.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write_manifest(work: Path, manifest: dict[str, Copied]) -> None:
    rows = {name: asdict(manifest[name]) for name in sorted(manifest)}
    work.mkdir(parents=True, exist_ok=True)
    part = work / (MANIFEST + ".part")
    part.write_text(json.dumps({"files": rows}, indent=1) + "\n", encoding="utf-8")
    part.replace(work / MANIFEST)


def is_untouched(copy: Path, copied: Copied | None) -> bool:
    """Is the copy as it was made? Unknown (a copy from before the manifest) counts as edited."""
    return copied is not None and describe(copy).written == copied.written


def upgrade(notebooks: Path = NOTEBOOKS, work: Path = WORK) -> Upgrade:
    """Copy into ``work`` what is new in the course, move what was renumbered, compare the rest."""
    if not pages(notebooks):
        raise WorkspaceError(f"no pages in {notebooks}: is this a full copy of the project?")
    manifest = read_manifest(work)
    moved = tuple(move_renumbered(notebooks, work, manifest))
    found: dict[str, list[str]] = {"new": [], "untouched": [], "stale": [], "pictures": []}
    for name in course_files(notebooks):
        source, target = notebooks / name, work / name
        now = describe(source)
        if copy_once(source, target):
            manifest[name] = now
            found["new"].append(name)
        elif name.startswith("images/"):
            if target.read_bytes() != source.read_bytes():
                shutil.copyfile(source, target)
                found["pictures"].append(name)
            manifest[name] = now
        elif name not in manifest and describe(target).written == now.written:
            manifest[name] = now  # a copy from before the manifest, with nothing of its own
        elif name not in manifest or manifest[name].file != now.file:
            kind = "untouched" if is_untouched(target, manifest.get(name)) else "stale"
            found[kind].append(name)
    write_manifest(work, manifest)
    return Upgrade(moved=moved, **{kind: tuple(names) for kind, names in found.items()})


def name_without_number(name: str) -> str:
    """What stays when the course is renumbered.

    >>> name_without_number("solutions/06_ppo.ipynb")
    'solutions/ppo.ipynb'
    """
    return re.sub(r"(^|/)\d\d_", r"\1", name)


def move_renumbered(
    notebooks: Path, work: Path, manifest: dict[str, Copied]
) -> Iterator[tuple[str, str]]:
    """Rename each copy whose page has another number now, and its kept old copies with it."""
    course = list(course_files(notebooks, PAGES))
    ours = {  # pages of an earlier course; a notebook of the learner's own has no number
        name_without_number(name): name
        for name in course_files(work, PAGES)
        if name != name_without_number(name) and name not in course and ".old-" not in name
    }
    for new in course:
        old = ours.get(name_without_number(new))
        if old is None or (work / new).exists():
            continue
        stem, target = Path(old).stem, work / new
        kept = (work / old).parent.glob(f"{stem}.old-*.ipynb")
        for each in [work / old, *kept]:
            renamed = target.with_name(target.stem + each.name.removeprefix(stem))
            if not renamed.exists():
                each.rename(renamed)
        if old in manifest:
            manifest[new] = manifest.pop(old)
        yield old, new


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
    """The page meant by ``06``, ``6``, ``grpo``, ``08_grpo``, ``08_grpo.ipynb``, ``solutions/06``.

    Raises WorkspaceError with the list of pages where there is none.
    """
    folder, _, stem = name.removesuffix(".ipynb").rpartition("/")
    number = stem.zfill(2) if stem.isdigit() else None
    if folder in ("", *KINDS):
        for page in sorted((notebooks / folder).glob("*.ipynb")):
            own_number, _, own_name = page.stem.partition("_")
            if stem in (page.stem, own_name) or number == own_number:
                return page
    known = ", ".join(page.stem for page in pages(notebooks)) or "none"
    raise WorkspaceError(f"no page {name!r}. Pages: {known}. Example: make fresh NB=06")


def fresh(name: str, notebooks: Path = NOTEBOOKS, work: Path = WORK) -> tuple[Path, Path | None]:
    """A new copy of one page; returns it and where the old one was kept.

    None: there was none, or nobody had written anything in it.
    """
    source = find_page(name, notebooks)
    relative = source.relative_to(notebooks).as_posix()
    manifest, target, kept = read_manifest(work), work / relative, None
    if target.exists():
        if is_untouched(target, manifest.get(relative)):
            target.unlink()
        else:
            number = 1
            while (kept := target.with_name(f"{target.stem}.old-{number}.ipynb")).exists():
                number += 1
            target.rename(kept)
    copy_once(source, target)
    write_manifest(work, manifest | {relative: describe(source)})
    return target, kept


def renew_untouched(notebooks: Path = NOTEBOOKS, work: Path = WORK) -> Upgrade:
    """`upgrade`, and a new copy of each page that changed in the course and not here."""
    found = upgrade(notebooks, work)
    for name in found.untouched:
        fresh(name, notebooks, work)
    return found


def presenting() -> bool:
    """Did somebody ask for the screen that is shown to others (`make lab PRESENT=1`)?"""
    return os.environ.get("RLNB_PRESENT", "") not in ("", "0")


def before(variable: str, folder: Path) -> str:
    """The value of a search path with `folder` in front of what stands there."""
    given = os.environ.get(variable, "")
    return os.pathsep.join(part for part in (str(folder), given) if part)


def lab_environment() -> dict[str, str]:
    """This process's environment with the course's JupyterLab settings.

    No news, no updates; printed text is cut off where it would drown the page. Pictures, sliders
    and changing lines have words for screen readers (`lab_config/share`), in exports, too.
    """
    return dict(
        os.environ,
        JUPYTER_CONFIG_PATH=before("JUPYTER_CONFIG_PATH", LAB_CONFIG),
        JUPYTER_PATH=before("JUPYTER_PATH", LAB_CONFIG / "share"),
        JUPYTER_PREFER_ENV_PATH="1",  # the kernel of this environment, not one of the user's
    )


def lab_command(page: Path, flags: list[str], work: Path = WORK) -> list[str]:
    """The command line that opens ``page`` in JupyterLab with ``work`` as its root folder."""
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={work}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # containers; JupyterLab refuses otherwise
        command.append("--allow-root")
    if not presenting():
        return [*command, *flags, str(page)]
    # /doc: one document, side bars closed. The letters' size is a user setting, and JupyterLab
    # writes into the folder of those: so a copy, away from the presenter's own.
    settings = work / ".presenting"
    letters = settings / "@jupyterlab" / "apputils-extension" / "themes.jupyterlab-settings"
    letters.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(PRESENTING / "themes.json", letters)
    command.append(f"--LabApp.user_settings_dir={settings}")
    command.append(f"--LabApp.default_url=/doc/tree/{page.name}")
    return [*command, *flags]


def listed(names: tuple[str, ...]) -> str:
    """File names as people type them: ``08_grpo, solutions/08_grpo``."""
    return ", ".join(name.removesuffix(".ipynb") for name in names)


def sentences(found: Upgrade, work: str = WORK.name) -> list[str]:
    """What an upgrade did and what it left to the learner, a sentence each."""
    out = []
    if found.moved:
        pairs = ", ".join(f"{listed((old,))} -> {listed((new,))}" for old, new in found.moved)
        out.append(f"Renumbered in the course, and in {work}/ with it: {pairs}.")
    if found.new:
        out.append(f"New in {work}/: {', '.join(found.new)}. Nothing there was overwritten.")
    if found.pictures:
        out.append(f"New pictures: {', '.join(found.pictures)}.")
    if found.untouched:
        out.append(
            f"Changed in the course, and not edited by you: {listed(found.untouched)}. "
            "`make fresh NB=--all` renews them."
        )
    if found.stale:
        out.append(
            f"Changed in the course, and edited by you: {listed(found.stale)}. Your copies stay; "
            f"`make fresh NB={listed(found.stale[:1])}` fetches the new page and keeps yours."
        )
    return out


def run_copy() -> None:
    first = not WORK.exists()
    found = upgrade()
    if first:
        print(f"Your copy of the course is in {WORK.name}/: {len(pages())} pages.")
    else:
        said = sentences(found) or [f"{WORK.name}/ has every page; nothing there was touched."]
        print("\n".join(said))


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
        print(f"{shown} is a new copy; there was no old one with anything of yours.")


def run_fresh_all() -> None:
    found = renew_untouched()
    renewed = listed(found.untouched) or "none: no page changed that you had not edited"
    print(f"Renewed: {renewed}.")
    for sentence in sentences(Upgrade(found.new, found.moved, (), found.stale, found.pictures)):
        print(sentence)


def main(arguments: list[str]) -> int:
    try:
        match arguments:
            case ["open", *flags]:
                return run_open(flags)
            case ["copy"]:
                run_copy()
            case ["fresh", "--all"]:
                run_fresh_all()
            case ["fresh", name] if name:
                run_fresh(name)
            case ["fresh", *_]:
                raise WorkspaceError("which page? Example: make fresh NB=06, or NB=--all")
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except WorkspaceError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
