"""The course as a folder of web pages: open index.html with a double-click.

    python -m rlnb.classroom.site                    into site/
    python -m rlnb.classroom.site --to elsewhere     into another folder
    python -m rlnb.classroom.site --no-explorers     pictures only: some seconds

Drawing the explorers takes two minutes, once: drawings are kept in the user's cache folder, or
where RLNB_SITE_CACHE says, until something changes that they depend on. The folder needs no server,
no kernel and no network. It may be copied, zipped, or published.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rlnb.classroom.site.build import build


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.classroom.site",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--to", type=Path, default=Path("site"), help="a folder; site/")
    parser.add_argument("--no-explorers", action="store_true", help="leave them pictures")
    parser.add_argument("--workers", type=int, help="processes that draw; one a processor, up to 4")
    given = parser.parse_args(arguments)
    begin = time.perf_counter()
    try:
        made = build(given.to, moving=() if given.no_explorers else None, workers=given.workers)
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
