"""Slides, printed lessons, the cheat-sheet.

    python -m rlnb.classroom.paper slides              every lesson: made/slides/NN_name.html
    python -m rlnb.classroom.paper slides 08           one
    python -m rlnb.classroom.paper handout 08          made/handouts/08_grpo.pdf, answers at the end
    python -m rlnb.classroom.paper cheat-sheet         made/cheat_sheet.html and .pdf, two pages
    python -m rlnb.classroom.paper answers             prints teach/answers.md

--to names another folder than made/. A PDF needs Chromium, Chrome or Edge on this machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rlnb.classroom.paper.answers import answers
from rlnb.classroom.paper.lesson import find_lesson, lessons
from rlnb.shipped import shipped_folder


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m rlnb.classroom.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["slides", "handout", "cheat-sheet", "answers"])
    parser.add_argument("lessons", nargs="*", metavar="NN", help="08, grpo or 08_grpo")
    parser.add_argument("--to", type=Path, default=Path("made"), help="a folder; made/")
    given = parser.parse_args(arguments)
    notebooks = shipped_folder("notebooks")
    try:
        asked = [find_lesson(notebooks, name) for name in given.lessons]
        if given.what == "handout" and not asked:
            raise ValueError("handout: name a lesson, as in `make handout NB=08`.")
        if given.what == "answers":
            print(answers(notebooks), end="")
        if given.what == "cheat-sheet":
            _cheat_sheet(notebooks, given.to)
        for page in asked or (lessons(notebooks) if given.what == "slides" else []):
            (_slides if given.what == "slides" else _handout)(page, given.to)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _slides(page: Path, folder: Path) -> None:
    from rlnb.classroom.paper.slides import deck, slides

    begin = time.perf_counter()
    file = folder / "slides" / f"{page.stem}.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(deck(page), encoding="utf-8")
    _told(file, begin, f"{len(slides(page))} slides")


def _handout(page: Path, folder: Path) -> None:
    from rlnb.classroom.paper.chromium import pages_of, print_pdf
    from rlnb.classroom.paper.handout import handout

    begin = time.perf_counter()
    file = folder / "handouts" / f"{page.stem}.pdf"
    print_pdf(handout(page), file)
    _told(file, begin, f"{pages_of(file)} pages")


def _cheat_sheet(notebooks: Path, folder: Path) -> None:
    from rlnb.classroom.paper.cheat_sheet import cheat_sheet
    from rlnb.classroom.paper.chromium import pages_of, print_pdf

    begin = time.perf_counter()
    text, file = cheat_sheet(notebooks), folder / "cheat_sheet.pdf"
    folder.mkdir(parents=True, exist_ok=True)
    file.with_suffix(".html").write_text(text, encoding="utf-8")
    print_pdf(text, file)
    _told(file, begin, f"{pages_of(file)} pages")


def _told(file: Path, begin: float, what: str) -> None:
    size = file.stat().st_size / 1024
    print(f"{file}  {what}, {size:.0f} KiB, {time.perf_counter() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
