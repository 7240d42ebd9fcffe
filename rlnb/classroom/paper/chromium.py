"""Printing with the Chromium, Chrome or Edge of this machine: no package, no network."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["NoBrowser", "browser", "pages_of", "print_pdf"]

BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "chrome", "microsoft-edge", "msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)  # fmt: skip
PATIENCE = 120  # seconds


class NoBrowser(OSError):
    """There is nothing here that prints; the message says what to install."""


def browser() -> str | None:
    """The program that prints, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def print_pdf(text: str, file: Path) -> Path:
    """Print an HTML page into `file`. Page size and margins are the page's own (@page).

    Raises NoBrowser without a browser, OSError when it made no file.
    """
    program = browser()
    if program is None:
        raise NoBrowser(
            "a PDF is printed by Chromium, Chrome or Edge, and none of them is on the PATH. On "
            "Debian: apt install chromium"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rlnb-paper-") as folder:
        page, made = Path(folder, "page.html"), Path(folder, "page.pdf")
        page.write_text(text, encoding="utf-8")
        command = [
            *(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions"),
            *(f"--user-data-dir={folder}/profile", "--no-first-run", "--disable-sync"),
            *("--disable-background-networking", "--no-pdf-header-footer"),
            *(f"--print-to-pdf={made}", page.as_uri()),
        ]
        told = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        if not made.is_file():
            last = (told.stderr.strip().splitlines() or ["nothing"])[-1]
            raise OSError(f"print: {program} made no PDF; its last words: {last}")
        shutil.move(made, file)
    return file


def pages_of(file: Path) -> int:
    """How many pages a PDF has, counted in the file itself."""
    return len(re.findall(rb"/Type\s*/Page\b", file.read_bytes()))
