"""The command line: python -m rlnb.interop {explain,rosetta}."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rlnb.interop.explanation import explain_config
from rlnb.interop.rosetta_table import rosetta


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m rlnb.interop", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    explain = commands.add_parser(
        "explain",
        help="which objective a training configuration is, and what to know before running it",
    )
    explain.add_argument(
        "config",
        help="a Python, YAML, JSON, notebook or shell file, or - for "
        "standard input; it is read and never run",
    )
    table = commands.add_parser(
        "rosetta", help="the same setting in TRL, verl, OpenRLHF, the papers and here"
    )
    table.add_argument("library", nargs="?", help="one column only")
    return top


def text_of(path: str) -> str:
    """The text of a file or, for "-", of standard input. Raises ValueError in one sentence."""
    try:
        if path == "-":
            return sys.stdin.buffer.read(2_000_000).decode("utf-8")
        if not Path(path).is_file():
            raise ValueError(
                f"config: there is no file {path!r}; give a path, or - for standard input."
            )
        with Path(path).open("rb") as file:
            return file.read(2_000_000).decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(
            f"config: {path!r} is not UTF-8 text; give a Python, YAML, JSON or shell file."
        ) from None
    except OSError as error:
        raise ValueError(f"config: cannot read {path!r}: {error.strerror}.") from None


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0, or 2 with one sentence on stderr when the input was bad."""
    args = parser().parse_args(arguments)
    try:
        if args.command == "explain":
            print(explain_config(text_of(args.config)))
        else:
            print(rosetta(args.library))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
