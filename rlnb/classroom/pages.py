"""Build and check the pages of the course.

A page is written as a text twin, ``text/NN_name.py`` (jupytext's py:percent), and shipped as a
notebook, ``NN_name.ipynb``, with the outputs of one clean run. ``notebooks/`` and the folders of
other kinds of page in it, ``statements/``, ``solutions/`` and ``extras/``, follow that rule. As
``python -m rlnb.classroom.pages``:

    build notebooks/text/08_grpo.py    execute the twin, write the notebook
    build --all                        every twin of the course
    pull notebooks/08_grpo.ipynb       the other way: the twin from an edited notebook
    wrap                               refill the prose of every twin, 100 columns
    check                              do notebooks and twins say the same?

A twin may be named by its path, by the notebook's path, or by its stem (``08_grpo``,
``solutions/08_grpo``). A page that raises is not written: the last good run stays.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import os
import re
import sys
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError

from rlnb.classroom.course import write_course
from rlnb.classroom.ledger import write_ledger
from rlnb.classroom.wrapping import wrapped

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
KINDS = (
    "statements",
    "solutions",
    "extras",
)  # folders of pages beside the lessons; either may be absent
SECTIONS = (NOTEBOOKS, *(NOTEBOOKS / kind for kind in KINDS))

CELL_TIMEOUT = 120  # seconds; a page should run in 20

# A cell fits a laptop's screen beside JupyterLab's file browser, and a phone turned sideways.
CELL_LINES, CELL_COLUMNS = 25, 76

# Two threads may add in another order than one: the last digit would depend on the machine.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "JUPYTER_PREFER_ENV_PATH": "1",
    "RLNB_PROGRESS": "off",  # a page shows what it shows a reader, and no learner's file is touched
    "RLNB_MODE": "cpu",  # page 21 trains here, also where there is a GPU
}

# What is kept of a cell's metadata; the rest (collapsed, ExecuteTime, ...) is noise in a diff.
KEPT_METADATA = ("tags", "slideshow", "jupyter")

NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    # Without the version: it would change with every author's Python.
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class PageError(Exception):
    """A page cannot be built; the message says which cell and why."""


def twin_of(notebook: Path) -> Path:
    """``notebooks/08_grpo.ipynb`` -> ``notebooks/text/08_grpo.py``."""
    return notebook.parent / "text" / f"{notebook.stem}.py"


def notebook_of(twin: Path) -> Path:
    """``notebooks/text/08_grpo.py`` -> ``notebooks/08_grpo.ipynb``."""
    return twin.parent.parent / f"{twin.stem}.ipynb"


def committed_twins() -> list[Path]:
    """Every twin of the course: lessons first, solutions last."""
    return [twin for section in SECTIONS for twin in sorted((section / "text").glob("*.py"))]


def committed_notebooks() -> list[Path]:
    """Every notebook of the course: lessons first, solutions last."""
    return [page for section in SECTIONS for page in sorted(section.glob("*.ipynb"))]


def find_twin(name: str) -> Path:
    """The twin meant by a path to it, a path to its notebook, or a stem."""
    given = Path(name)
    for base in (Path.cwd(), ROOT, NOTEBOOKS):
        path = (base / given).resolve()
        if path.suffix == ".py" and path.parent.name == "text" and path.exists():
            return path
        if path.suffix == ".ipynb" and twin_of(path).exists():
            return twin_of(path)
        if not path.suffix and twin_of(path.with_suffix(".ipynb")).exists():
            return twin_of(path.with_suffix(".ipynb"))
    stems = ", ".join(page_name(twin) for twin in committed_twins()) or "none yet"
    raise PageError(
        f"no text twin for {name!r}: expected text/NN_name.py beside the notebook. Twins: {stems}"
    )


def page_name(path: Path) -> str:
    """A short name for people, one for each page: ``08_grpo`` or ``solutions/08_grpo``."""
    folder = path.parent.parent if path.parent.name == "text" else path.parent
    return f"{folder.name}/{path.stem}" if folder.name in KINDS else path.stem


def kept(metadata: dict) -> dict:
    """The part of a cell's metadata that a twin carries."""
    return {key: metadata[key] for key in KEPT_METADATA if metadata.get(key)}


def content(notebook) -> list[tuple[str, str, dict]]:
    """What twin and notebook must agree on: type, source and kept metadata of each cell."""
    return [(cell.cell_type, cell.source, kept(cell.metadata)) for cell in notebook.cells]


def cell_ids(cells: list[tuple[str, str]]) -> list[str]:
    """One id per (type, source): a hash, so that unchanged cells keep theirs in a rebuild."""
    ids, seen = [], {}
    for cell_type, source in cells:
        digest = hashlib.sha256(f"{cell_type}\n{source}".encode()).hexdigest()[:8]
        seen[digest] = seen.get(digest, 0) + 1
        ids.append(digest if seen[digest] == 1 else f"{digest}-{seen[digest]}")
    return ids


def read_twin(twin: Path):
    """The twin as an unexecuted notebook with settled metadata and cell ids."""
    notebook = jupytext.read(twin, fmt="py:percent")
    ids = cell_ids([(cell.cell_type, cell.source) for cell in notebook.cells])
    for cell, cell_id in zip(notebook.cells, ids, strict=True):
        cell.metadata = nbformat.from_dict(kept(cell.metadata))
        cell["id"] = cell_id
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def tidy(notebook) -> None:
    """Drop from an executed notebook what another run or machine would write differently."""
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(kept(cell.metadata))
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if not progress_bar(output)]
        for output in cell.get("outputs", ()):
            # The model behind a widget view is gone when the file is opened: without the view,
            # JupyterLab shows the text beside it instead of "model not found".
            output.get("data", {}).pop(WIDGET_VIEW, None)
            output.get("metadata", {}).pop(WIDGET_VIEW, None)
            if output.output_type == "error":  # a full traceback names folders of this machine
                output.traceback = [f"{output.ename}: {output.evalue}"]


def progress_bar(output) -> bool:
    """A finished bar of tqdm: a time of this machine, which the file would show as an error."""
    if output.output_type != "stream" or output.name != "stderr":
        return False
    return all("%|" in line for line in output.text.splitlines() if line.strip())


def execute(notebook, folder: Path) -> None:
    """Run every cell in place, in a fresh kernel of this Python started in ``folder``."""
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        coalesce_streams=True,  # otherwise the split of printed lines depends on timing
        extra_arguments=["--IPKernelApp.log_level=ERROR"],  # not a line about TCP per page
        store_widget_state=True,  # False breaks on Output widgets; `tidy` removes the state
    )
    environment = dict(os.environ)
    os.environ.update(ONE_THREAD)
    try:
        client.execute()
    except CellTimeoutError as error:
        raise PageError(f"{failing_cell(notebook)} ran past {CELL_TIMEOUT} seconds") from error
    except CellExecutionError as error:
        raise PageError(f"{failing_cell(notebook)} raised\n{error}") from error
    finally:
        os.environ.clear()
        os.environ.update(environment)


def oversized(notebook) -> list[str]:
    """One sentence per code cell that is too long or too wide to be read at a glance."""
    out = []
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for index, cell in enumerate(code, start=1):
        lines = cell.source.splitlines()
        width = max(map(len, lines), default=0)
        where = f"code cell {index} ({next(iter(lines), '')[:50]!r})"
        if len(lines) > CELL_LINES:
            out.append(f"{where}: {len(lines)} lines, at most {CELL_LINES}")
        if width > CELL_COLUMNS:
            out.append(f"{where}: {width} columns, at most {CELL_COLUMNS}")
    return out


def failing_cell(notebook) -> str:
    """Where an execution stopped: the last code cell that was started."""
    started = [
        (index, cell)
        for index, cell in enumerate(notebook.cells)
        if cell.cell_type == "code" and cell.get("execution_count")
    ]
    if not started:
        return "the first cell"
    index, cell = started[-1]
    first_line = next(iter(cell.source.splitlines()), "")
    return f"cell {index} ({first_line!r})"


def build(twin: Path) -> tuple[Path, int]:
    """Execute the twin and write its notebook; returns the notebook and its number of cells."""
    notebook = read_twin(twin)
    target = notebook_of(twin)
    execute(notebook, target.parent)
    tidy(notebook)
    nbformat.validate(notebook)
    written = target.with_suffix(".ipynb.part")  # a reader never meets half a file
    nbformat.write(notebook, written)
    written.replace(target)
    return target, len(notebook.cells)


def pull(notebook: Path) -> Path:
    """Write the twin from a notebook that was edited in Jupyter; outputs stay behind."""
    source = nbformat.read(notebook, as_version=4)
    for cell in source.cells:
        cell.metadata = nbformat.from_dict(kept(cell.metadata))
    source.metadata = nbformat.from_dict({"kernelspec": NOTEBOOK_METADATA["kernelspec"]})
    source.metadata["jupytext"] = {
        "cell_metadata_filter": ",".join(KEPT_METADATA),
        "notebook_metadata_filter": "kernelspec,-jupytext",
    }
    twin = twin_of(notebook)
    twin.parent.mkdir(exist_ok=True)
    jupytext.write(source, twin, fmt="py:percent")
    return twin


def differences(notebook: Path, twin: Path) -> list[str]:
    """Unified diff between the inputs of a notebook and its twin; empty when they agree."""

    def lines(path: Path, cells) -> list[str]:
        out = []
        for cell_type, source, metadata in cells:
            out.append(f"--- {cell_type} {metadata or ''}".rstrip())
            out.extend(source.splitlines())
        return out

    old = lines(notebook, content(nbformat.read(notebook, as_version=4)))
    new = lines(twin, content(jupytext.read(twin, fmt="py:percent")))
    names = (page_name(notebook) + ".ipynb", page_name(twin) + ".py")
    return list(difflib.unified_diff(old, new, *names, lineterm="", n=1))


def drift() -> list[str]:
    """One sentence (with its diff) per notebook and twin that differ; empty when none do."""
    out = []
    for section in SECTIONS:
        stems = {path.stem for path in section.glob("*.ipynb")}
        stems |= {path.stem for path in (section / "text").glob("*.py")}
        for stem in sorted(stems):
            page = section / f"{stem}.ipynb"
            twin, name = twin_of(page), page_name(page)
            if not twin.exists():
                out.append(f"{name} has no text twin: run `pages pull {name}.ipynb`")
            elif not page.exists():
                out.append(f"{name} has a twin and no notebook: run `pages build {name}`")
            elif diff := differences(page, twin):
                out.append(
                    f"{name}: notebook and twin differ; run `pages build {name}` (the twin is "
                    f"right) or `pages pull {name}.ipynb` (the notebook is)\n" + "\n".join(diff)
                )
    return out


def run_build(names: list[str], everything: bool) -> int:
    twins = committed_twins() if everything else [find_twin(name) for name in names]
    if not twins:
        print("nothing to build: name a twin, or use --all", file=sys.stderr)
        return 2
    write_course(NOTEBOOKS, ROOT / "data" / "course.json")  # page 00 shows it
    write_ledger(NOTEBOOKS, ROOT / "data")
    failed = 0
    for twin in twins:
        print(f"{page_name(twin):<28}", end=" ", flush=True)
        start = time.perf_counter()
        try:
            target, cells = build(twin)
        except PageError as error:
            failed += 1
            print(f"FAILED after {time.perf_counter() - start:.1f} s: {error}", flush=True)
        else:
            seconds, kib = time.perf_counter() - start, target.stat().st_size / 1024
            print(f"{cells:3d} cells  {seconds:5.1f} s  {kib:5.0f} KiB", flush=True)
            for sentence in oversized(nbformat.read(target, as_version=4)):
                print(f"    {sentence}", flush=True)
    return 1 if failed else 0


def run_pull(names: list[str]) -> int:
    for name in names:
        given = Path(name)
        candidates = (given, ROOT / given, NOTEBOOKS / given)
        page = next((path.resolve() for path in candidates if path.exists()), None)
        if page is None or page.suffix != ".ipynb":
            print(f"no notebook at {name!r}: expected a path to NN_name.ipynb", file=sys.stderr)
            return 2
        pull(page)
        print(f"{page_name(page)}: twin written")
    return 0


def wrap(twin: Path) -> bool:
    """Refill the prose of a twin, and of its notebook, which is not run again. Did it change?"""
    cells = re.split(r"(?m)^(?=# %%)", twin.read_text(encoding="utf-8"))
    new = "".join(map(_wrapped_cell, cells))
    if new == "".join(cells):
        return False
    twin.write_text(new, encoding="utf-8")
    page, source = nbformat.read(notebook_of(twin), as_version=4), read_twin(twin)
    for shown, written in zip(page.cells, source.cells, strict=True):
        shown["id"] = written["id"]
        if shown.cell_type == "markdown":
            shown.source = written.source
    nbformat.write(page, notebook_of(twin))
    return True


def _wrapped_cell(cell: str) -> str:
    """One cell of a py:percent text; only markdown written as comments is touched."""
    head, _, body = cell.partition("\n")
    lines = body.rstrip("\n").split("\n")
    if "[markdown]" not in head or not all(line.startswith("#") for line in lines):
        return cell
    prose = wrapped("\n".join(line.removeprefix("#").removeprefix(" ") for line in lines))
    text = "\n".join(f"# {line}".rstrip() for line in prose.split("\n"))
    return f"{head}\n{text}{body[len(body.rstrip(chr(10))) :]}"


def run_wrap() -> int:
    changed = [page_name(twin) for twin in committed_twins() if wrap(twin)]
    print("\n".join(changed) or "every twin is within its columns")
    return 0


def run_check() -> int:
    problems = drift()
    print("\n\n".join(problems) or f"{len(committed_notebooks())} notebooks agree with their twins")
    return 1 if problems else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.classroom.pages",
        description="Build and check the pages of the course.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("build", help="execute text twins, write their notebooks")
    command.add_argument("files", nargs="*", metavar="FILE", help="path or stem: 08_grpo")
    command.add_argument("--all", action="store_true", help="every twin of the course")
    command = commands.add_parser("pull", help="write text twins from edited notebooks")
    command.add_argument("files", nargs="+", metavar="FILE", help="NN_name.ipynb")
    commands.add_parser("wrap", help="refill the prose of every twin")
    commands.add_parser("check", help="do notebooks and twins say the same?")
    options = parser.parse_args(arguments)
    try:
        if options.command == "build":
            return run_build(options.files, options.all)
        if options.command == "pull":
            return run_pull(options.files)
        return run_wrap() if options.command == "wrap" else run_check()
    except PageError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
