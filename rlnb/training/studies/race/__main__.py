"""Runs the race.

    python -m rlnb.training.studies.race                         the questions, and what is recorded
    python -m rlnb.training.studies.race ROW [ROW ...] --out DIR --processes 2
    python -m rlnb.training.studies.race all --out DIR

A row: pilots, then learning rates on seeds that the race does not use, then the race. Every
finished run is a line of DIR/ROW.partial.jsonl, so a stopped command can be repeated; a finished
row is DIR/ROW.json, and is left alone. --seeds N takes the first N seeds only, --rates recorded
takes the rates of data/runs/race instead of tuning (together: a quick check).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from pathlib import Path

from rlnb.training.errors import BadInput
from rlnb.training.studies.race.rows import ROWS
from rlnb.training.studies.race.running import race
from rlnb.training.studies.race.verdicts import questions, recorded, results

__all__ = ["main"]


def _listed() -> None:
    for name, asked in questions().items():
        print(f"{name}: {asked['question']}")
        try:
            for found in results(name):
                print(f"    {found}")
            print(f"    {recorded(name)['header']['cpu_seconds'] / 3600:.3f} CPU hours")
        except BadInput as error:
            print(f"    {error}")


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0, or 2 with one sentence on stderr when the input was bad."""
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.training.studies.race",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--out", type=Path, default=Path("runs/race"))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seeds", type=int, help="the first N seeds only")
    parser.add_argument("--rates", choices=("tuned", "recorded"), default="tuned")
    args = parser.parse_args(arguments)
    if not args.rows:
        _listed()
        return 0
    try:
        names = list(questions()) if args.rows == ["all"] else args.rows
        for name in names:
            if name not in ROWS:
                raise BadInput(f"race: there is no row {name!r}; known: {', '.join(ROWS)}")
        args.out.mkdir(parents=True, exist_ok=True)
        for name in names:
            path = race(name, args.out, args.processes, args.seeds, args.rates == "recorded")
            print(path, flush=True)
            for found in results(name, args.out):
                print(f"    {found}", flush=True)
    except (BadInput, json.JSONDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    sys.exit(main())
