"""Break the package on purpose, one line at a time, and see whether the tests notice.

    python tests/mutants/run.py                all mutants of mutants.py; goes on where it stopped
    python tests/mutants/run.py --part 10      a tenth: another one whenever the sources change
    python tests/mutants/run.py --only gae     those with "gae" in their file, texts or sentence

Each mutant is written into a temporary copy of the project that stands first on the path; the tests
that name it as theirs run there, in a process of their own. The checkout is never touched.

    killed     a test went red, as it should
    survived   all of them stayed green: write the test that sees it
    broken     the tests could not run at all: mend the mutant or the name of its test

Exit status 1 if any mutant survived or is broken.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import hashlib
import json
import multiprocessing
import os
import py_compile
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # run by its path, from anywhere

from mutants import MUTANTS, Mutant  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results.jsonl")  # ignored by git
COPIED = ("rlnb", "tests", "data", "notebooks")  # and the files beside them
# What every test imports and no mutant touches; a server that has it forks a process per mutant.
PRELOADED = (
    "torch", "pytest", "hypothesis", "transformers.modeling_utils",
    "transformers.models.auto.modeling_auto", "transformers.models.qwen3.modeling_qwen3",
    "transformers.tokenization_utils_tokenizers",
)  # fmt: skip
PATIENCE = 300  # seconds for one mutant's tests; a loop without end counts as noticed


@contextlib.contextmanager
def copied() -> Iterator[Path]:
    """A copy of the project that may be broken."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder)
        for name in COPIED:
            ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", RESULTS.name)
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        for file in ROOT.iterdir():
            if file.is_file():
                shutil.copy(file, copy / file.name)
        # By hash, not by date: two mutants of one second and one length are told apart.
        by_hash = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(copy / "rlnb", quiet=2, invalidation_mode=by_hash)
        yield copy


@contextlib.contextmanager
def planted(mutant: Mutant, copy: Path) -> Iterator[None]:
    """The copy with the mutant in it, and without it afterwards."""
    file = copy / mutant.file
    sound = file.read_text(encoding="utf-8")
    file.write_text(mutant.applied_to(sound), encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(sound, encoding="utf-8")


def outcome(tests: tuple[str, ...], copy: Path) -> tuple[str, str]:
    """(green | red | broken, the first red test) of these tests in the copy."""
    log = copy / "pytest.log"
    log.unlink(missing_ok=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    process = context.Process(target=_run_tests, args=(tests, str(copy), str(log)))
    process.start()
    process.join(PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
        return "red", f"stopped after {PATIENCE} s"
    said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    red = re.search(r"^FAILED (\S+)", said, re.M)
    if process.exitcode == 0:
        return "green", ""
    if process.exitcode == 1 and red:
        return "red", red[1]
    return "broken", " ".join(said.split()[-40:]) or f"exit status {process.exitcode}"


def _run_tests(tests: tuple[str, ...], copy: str, log: str) -> None:
    os.chdir(copy)
    sys.path[:0] = [copy]
    os.environ["PYTHONPATH"] = copy  # for tests that start a process
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none is needed, and they load slowly
    with open(log, "w", encoding="utf-8") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    import pytest

    import rlnb

    if not Path(rlnb.__file__).is_relative_to(copy):
        raise SystemExit(f"the package at {rlnb.__file__} was imported, not the copy in {copy}")
    status = pytest.main(["-x", "-q", "--tb=no", "-rf", *tests])
    sys.stdout.flush()
    sys.exit(int(status))


def fingerprint() -> str:
    """Of everything a verdict may depend on: the sources, the tests, the list."""
    digest = hashlib.sha256()
    for name in ("rlnb", "tests"):
        for file in sorted((ROOT / name).rglob("*.py")):
            digest.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return digest.hexdigest()


def share(mutants: tuple[Mutant, ...], parts: int, turn: int) -> tuple[Mutant, ...]:
    """Every `parts`-th mutant, from number `turn` on."""
    return mutants[turn % parts :: parts]


def remembered(state: str) -> dict[str, dict[str, str]]:
    """Verdicts on these very sources, from a run that was stopped."""
    found = {}
    for text in RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):  # cut off where the run was stopped
            line = json.loads(text)
            if line["state"] == state:
                found[line["mutant"]] = line
    return found


def tried(mutants: tuple[Mutant, ...], state: str, copy: Path) -> Iterator[dict[str, str]]:
    """The verdict on each mutant as it is known, from before or from now."""
    known = remembered(state)
    for mutant in mutants:
        line = known.get(mutant.name)
        if line is None:
            with planted(mutant, copy):
                colour, detail = outcome(mutant.tests, copy)
            verdict = {"green": "survived", "red": "killed"}.get(colour, colour)
            line = {"mutant": mutant.name, "state": state, "verdict": verdict, "by": detail}
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        yield line


def red_already(mutants: tuple[Mutant, ...], copy: Path) -> str:
    """What is wrong with the tests before any mutant: one that is red anyway proves nothing."""
    tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    colour, detail = outcome(tests, copy) if tests else ("green", "")
    return "" if colour == "green" else f"Before any mutant the tests are {colour}: {detail}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", type=int, default=1, metavar="N", help="every N-th mutant only")
    parser.add_argument("--turn", type=int, help="which part; by default the sources decide")
    parser.add_argument("--only", default="", metavar="WORD", help="mutants with this word only")
    parser.add_argument("--seconds", type=float, help="begin no further mutant after so long")
    parser.add_argument("--again", action="store_true", help="forget what was found before")
    asked = parser.parse_args(arguments)
    if asked.part < 1:
        parser.error(f"--part: got {asked.part}, expected 1 (all) or more")
    if asked.again:
        RESULTS.unlink(missing_ok=True)
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"

    start, state = time.monotonic(), fingerprint()
    chosen = share(MUTANTS, asked.part, int(state, 16) if asked.turn is None else asked.turn)
    chosen = tuple(m for m in chosen if asked.only.lower() in m.all_text.lower())
    counts = {"killed": 0, "survived": 0, "broken": 0}
    with copied() as copy:
        known = remembered(state)
        if problem := red_already(tuple(m for m in chosen if m.name not in known), copy):
            print(problem)
            return 1
        for number, line in enumerate(tried(chosen, state, copy), 1):
            counts[line["verdict"]] += 1
            print(f"{number:3d}/{len(chosen)} {line['verdict']:8s} {line['mutant']}", flush=True)
            if line["verdict"] != "killed":
                mutant = chosen[number - 1]
                print(f"    {mutant.old!r} -> {mutant.new!r}\n    {line['by'] or mutant.tests}")
            late = asked.seconds is not None and time.monotonic() - start > asked.seconds
            if late and number < len(chosen):
                print(f"{asked.seconds:.0f} s are over, {len(chosen) - number} were not tried")
                break
    seconds = time.monotonic() - start
    print(", ".join(f"{n} {word}" for word, n in counts.items()) + f", in {seconds:.0f} s")
    return 1 if counts["survived"] or counts["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
