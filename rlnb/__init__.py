"""Policy optimisation for language models, derived from REINFORCE and run.

    from rlnb import ZOO, Batch, Objective     # the methods (torch and numpy)
    from rlnb import check                     # the exercises' checks
    from rlnb.toys import running_group        # worlds small enough to know the answer
    import rlnb.training                       # a real model (adds transformers)

Everything is loaded on first use, so that a bare GPU box never meets Jupyter.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = ["ZOO", "Batch", "Objective", "check"]

_HOME = {"ZOO": "rlnb.objective", "Batch": "rlnb.objective", "Objective": "rlnb.objective"}


def __getattr__(name: str) -> Any:
    if name == "check":
        return import_module("rlnb.classroom.check")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"rlnb has no attribute {name!r}.")
