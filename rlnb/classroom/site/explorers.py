"""Explorers that work without a kernel: none yet."""

from __future__ import annotations

from pathlib import Path

__all__ = ["assets", "block"]


def block(name: str, page: str, cell_index: int) -> str | None:
    """The explorer as HTML, or None where it stays a picture.

    name: its function, "clip_explorer"; page: "06_ppo" or "statements/06_ppo"; cell_index: of the
    notebook's cells, from 0. An address in it begins with "../": pages lie one folder deep, those
    of statements, solutions and extras two ("../../").
    """
    return None


def assets(folder: Path) -> None:
    """Write what the blocks need into `folder`, the site's own."""
