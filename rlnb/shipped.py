"""Where the files that ship with the course are: the model, recorded runs, statements, pages.

In a checkout they lie beside the package, in `data/` and `notebooks/`. A wheel carries a copy of
both inside the package, in `rlnb/_shipped`, made when it is built (setup.py). Nothing here depends
on the working directory.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["NotShipped", "course_folder", "data_folder", "in_checkout", "shipped_folder"]

_PACKAGE = Path(__file__).resolve().parent


class NotShipped(FileNotFoundError):
    """This installation came without a file or folder of the course; the message says what to do.

    One sentence: the command lines print it.
    """


def in_checkout() -> bool:
    """True in the course's own folder (`pip install -e .`), False in an installed wheel."""
    return not (_PACKAGE / "_shipped").is_dir()


def course_folder() -> Path:
    """The folder that holds `data` and `notebooks`; what is in it, `shipped_folder` checks."""
    return _PACKAGE.parent if in_checkout() else _PACKAGE / "_shipped"


def shipped_folder(name: str) -> Path:
    """A folder that ships with the course: "data" or "notebooks", or one in them, "data/runs".

    Raises NotShipped where this installation does not have it.

    >>> (shipped_folder("data/model") / "config.json").is_file()
    True
    """
    folder = course_folder() / name
    if not folder.is_dir():
        raise NotShipped(
            f"shipped files: this installation of rlnb has no folder {name!r} (looked in "
            f"{str(course_folder())!r}); install it from the course's folder, with "
            "`pip install -e .` or as a wheel that was built there"
        )
    return folder


def data_folder() -> Path:
    """`data`: claims.yaml, the base models in `model/` and `model_pick/`, recorded runs in `runs/`.

    Raises NotShipped where this installation does not have it.
    """
    return shipped_folder("data")
