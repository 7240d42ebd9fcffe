"""The command line that the studies share which complete one .json file."""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["to_complete"]


def to_complete(study: str, doc: str | None) -> argparse.ArgumentParser:
    """A parser with `path`, for `python -m rlnb.training.studies.{study}`; doc is its help.

    >>> to_complete("own_answers", None).parse_args(["found.json"]).path.name
    'found.json'
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m rlnb.training.studies.{study}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", type=Path, help="the .json file to write or to complete")
    return parser
