"""The command line: python -m rlnb.interop {explain,check,rosetta,handoff}.

    explain FILE             what the configurations of a file compute, and their traps
    explain FILE FILE        what differs between the two
    check FILE...            one line per trap; for a pre-commit hook or a job of continuous testing
    rosetta [LIBRARY]        the same setting in TRL, verl, OpenRLHF, the papers and here
    handoff                  from a choice that was learnt to the words that set it, five trainers

Exit status of explain: 0, whatever was found; with --exit-code 3 where the worst trap is a note, 4
a warning, 5 an error; 2 where nothing could be read. Of check: 1 where a trap of --fail-on was
found, 0 otherwise; a file that is no configuration is passed over.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlnb.interop.explanation import ConfigReport

STATUS = {"none": 0, "note": 3, "warning": 4, "error": 5}
LONGEST = 32_000_000  # bytes: a notebook with its outputs


class Later(ModuleType):
    """A module that is imported when something of it is first used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by the import system and by dataclasses: no use of it
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def torch_on_first_use() -> None:
    """Lets `import torch` cost nothing until something of it is used, in this process: the parts
    of an objective are named here and never called. (importlib's LazyLoader would load it at the
    second import: Python 3.11 asks a module for its __spec__ then.)"""
    sys.modules.setdefault("torch", Later("torch"))


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m rlnb.interop",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True)
    explain = commands.add_parser(
        "explain",
        help="which objective a training configuration is, and what to know before running it",
    )
    explain.add_argument(
        "config",
        help="a Python, YAML, JSON, TOML, notebook or shell file, or - for "
        "standard input; it is read and never run",
    )
    explain.add_argument("other", nargs="?", help="a second one: what differs between the two")
    explain.add_argument("--trl", metavar="VERSION", help="TRL's version, for its defaults: 0.18")
    form = explain.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the reports as JSON")
    form.add_argument(
        "--patch", action="store_true", help="the fixes as a unified diff, where that is safe"
    )
    explain.add_argument(
        "--only",
        metavar="TRAPS",
        help="with --patch: mend these, with commas between; else warnings and errors",
    )
    explain.add_argument(
        "--exit-code", action="store_true", help="3, 4 or 5 for a note, a warning, an error"
    )
    check = commands.add_parser("check", help="one line per trap, for many files")
    check.add_argument("files", nargs="+")
    check.add_argument("--trl", metavar="VERSION")
    check.add_argument(
        "--fail-on",
        default="error",
        metavar="TRAPS",
        help="names of traps or note, warning, error, with commas between; default: error",
    )
    table = commands.add_parser(
        "rosetta", help="the same setting in TRL, verl, OpenRLHF, the papers and here"
    )
    table.add_argument("library", nargs="?", help="one column only")
    commands.add_parser("handoff", help="a choice, and the words that set it in five trainers")
    return top


def text_of(path: str) -> str:
    """The text of a file or, for "-", of standard input. Raises ValueError in one sentence."""
    try:
        if path == "-":
            return sys.stdin.buffer.read(LONGEST).decode("utf-8")
        if not Path(path).is_file():
            raise ValueError(
                f"config: there is no file {path!r}; give a path, or - for standard input."
            )
        with Path(path).open("rb") as file:
            return file.read(LONGEST).decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(
            f"config: {path!r} is not UTF-8 text; give a Python, YAML, JSON or shell file."
        ) from None
    except OSError as error:
        raise ValueError(f"config: cannot read {path!r}: {error.strerror}.") from None


def reports_of(path: str, trl: str | None) -> tuple[ConfigReport, ...]:
    """The reports of a file."""
    from rlnb.interop.explanation import explain_all
    from rlnb.interop.versions import version_of

    version = version_of(trl) if trl else None
    return explain_all(text_of(path), name=Path(path).name, trl=version)


def as_json(path: str, report: ConfigReport) -> dict[str, Any]:
    """A report as plain data."""
    from rlnb.interop.patch import fix_of
    from rlnb.interop.traps import severity

    return {
        "file": path,
        "library": report.library,
        "version": report.version,
        "where": report.where,
        "method": report.name,
        "nearest": report.nearest,
        "difference": [str(c) for c in report.difference],
        "not_named_because": list(report.doubts),
        "objective": repr(report.objective) if report.objective else None,
        "no_objective_because": report.refused or None,
        "beside": list(report.beside),
        "conventions": [str(c) for c in report.conventions],
        "words": report.words,
        "not_read": [{"word": w, "text": t} for w, t in report.not_read],
        "unknown": list(report.unknown),
        "no_effect": list(report.ignored),
        "assumed": list(report.notes),
        "severity": report.severity,
        "traps": [
            {"name": n, "severity": severity(n), "sentence": s, "fix": fix_of(s)}
            for n, s in report.traps
        ],
    }


def explain(args: argparse.Namespace) -> int:
    reports = reports_of(args.config, args.trl)
    if args.other is not None:
        from rlnb.interop.comparison import compare_reports

        other = reports_of(args.other, args.trl)
        print(compare_reports(reports[0], other[0]))
        if len(reports) + len(other) > 2:
            print(f"1 of {len(reports)} and 1 of {len(other)} configurations are compared.")
        return 0
    if args.json:
        print(json.dumps([as_json(args.config, r) for r in reports], indent=2, default=str))
    elif args.patch:
        from rlnb.interop.patch import patch

        only = {name.strip() for name in args.only.split(",")} if args.only else None
        diff, mended, left = patch(text_of(args.config), Path(args.config).name, only)
        print(diff, end="")
        told = (
            f"mended: {', '.join(mended) or 'nothing'}; left to you: {', '.join(left) or 'nothing'}"
        )
        print(told, file=sys.stderr)
    else:
        for place, report in enumerate(reports, 1):
            if len(reports) > 1:
                print(f"--- {place} of {len(reports)} configurations\n")
            print(report)
            if place < len(reports):
                print()
    worst = max(STATUS[r.severity] for r in reports)
    return worst if args.exit_code else 0


def check(args: argparse.Namespace) -> int:
    from rlnb.interop.traps import SEVERITIES, severity

    asked = {word.strip() for word in args.fail_on.split(",") if word.strip()}
    levels = [SEVERITIES.index(word) for word in asked if word in SEVERITIES[1:]]
    least = min(levels, default=len(SEVERITIES))
    failed = 0
    for path in args.files:
        try:
            reports = reports_of(path, args.trl)
        except ValueError as error:
            print(f"{path}: passed over: {error}", file=sys.stderr)
            continue
        for report in reports:
            for name, sentence in report.traps:
                level = severity(name)
                if name in asked or SEVERITIES.index(level) >= least:
                    failed += 1
                    print(f"{path}: {report.where}: {level} [{name}] {sentence}")
    return 1 if failed else 0


def main(arguments: list[str] | None = None) -> int:
    """Exit status as above; 2 with one sentence on stderr when the input was bad."""
    args = parser().parse_args(arguments)
    torch_on_first_use()
    try:
        if args.command == "explain":
            return explain(args)
        if args.command == "check":
            return check(args)
        if args.command == "handoff":
            from rlnb.interop.handoff import handoff

            print(handoff())
            return 0
        from rlnb.interop.rosetta_table import rosetta

        print(rosetta(args.library))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
