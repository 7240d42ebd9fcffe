"""The course as a folder of web pages: open index.html with a double-click.

    python -m rlnb.classroom.site                    into site/
    python -m rlnb.classroom.site --to elsewhere     into another folder
    python -m rlnb.classroom.site --no-explorers     pictures only: some seconds

The folder needs no server, no kernel and no network. It may be copied, zipped, or published.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rlnb.classroom.site import explorers
from rlnb.classroom.site.build import build


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.classroom.site",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--to", type=Path, default=Path("site"), help="a folder; site/")
    parser.add_argument("--no-explorers", action="store_true", help="leave them pictures")
    given = parser.parse_args(arguments)
    begin = time.perf_counter()
    try:
        made = build(given.to, None if given.no_explorers else explorers.block)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    count = sum(map(len, made.explorers.values()))
    print(
        f"{made.folder / 'index.html'}  {made.pages} pages, {made.pictures} pictures, {count} "
        f"explorers that move, {made.bytes / 2**20:.1f} MiB, {time.perf_counter() - begin:.1f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
