"""Where the files that ship with the course are."""

from __future__ import annotations

from pathlib import Path

from rlnb.training.errors import BadInput

_DATA = Path(__file__).resolve().parents[2] / "data"


def data_folder() -> Path:
    """The course's `data` folder: `model/` (the base model) and `runs/` (recorded runs).

    It is found from the package, so the working directory does not matter. Raises BadInput where
    the package was installed without the course around it.
    """
    if not (_DATA / "model" / "config.json").is_file():
        raise BadInput(
            f"data: there is no base model at {str(_DATA / 'model')!r}; the package must be "
            "installed from the course's folder with `pip install -e .`, as `make lab` does"
        )
    return _DATA
