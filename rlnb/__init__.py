"""Policy optimisation for language models, derived from REINFORCE and run.

    from rlnb import ZOO, Batch, Objective     # the methods (torch only)
    from rlnb import from_trl, explain_config  # the words of TRL and verl, read and answered
    from rlnb import check                     # the exercises' checks
    from rlnb.toys import running_group        # worlds small enough to know the answer
    import rlnb.training                       # a real model (adds transformers)

Everything is loaded on first use, so that a bare GPU box never meets Jupyter.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = [
    "ZOO",
    "Batch",
    "Objective",
    "check",
    "explain_config",
    "from_trl",
    "from_verl",
    "rosetta",
    "to_trl",
    "to_verl",
]

# name -> the module it is an attribute of
_HOME = {
    **dict.fromkeys(("ZOO", "Batch", "Objective"), "rlnb.objective"),
    **dict.fromkeys(
        ("explain_config", "from_trl", "from_verl", "rosetta", "to_trl", "to_verl"), "rlnb.interop"
    ),
}


def __getattr__(name: str) -> Any:
    if name == "check":
        return import_module("rlnb.classroom.check")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"rlnb has no attribute {name!r}.")
