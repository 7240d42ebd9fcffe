"""To and from the configurations of TRL 1.16.0 and verl 0.9.1, and from three more libraries'.

    from rlnb.interop import from_trl, to_verl, explain_config

    from_trl(loss_type="dr_grpo").objective      # what TRL computes for these words
    to_verl(objective).differences               # what verl's words do not carry over
    explain_config(open("train.py").read())      # which method a script runs, and its traps

trl and verl build objectives from a library's words, trl_words and verl_words say objectives in
them; configuration takes the words out of a script, a YAML file or a command line; explanation and
traps say what they amount to; rosetta_table puts five code bases side by side.

An objective trains in TRL through trl_trainer (ObjectiveTrainer; its parts are trl_fit, trl_pieces
and trl_metrics), in verl through verl_files and verl_plugin; these are imported by name. This room
knows `objective`; `objective` does not know it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = [
    "ConfigReport",
    "Inexpressible",
    "Reading",
    "TRL_DEFAULTS",
    "TRL_RLOO_DEFAULTS",
    "TRL_SILENT",
    "VERL_DEFAULTS",
    "VERL_SILENT",
    "Words",
    "compare_configs",
    "explain_all",
    "explain_config",
    "from_openrlhf",
    "from_prime_rl",
    "from_slime",
    "from_trl",
    "from_verl",
    "known_words",
    "rosetta",
    "to_trl",
    "to_verl",
]

# name -> the module it is an attribute of; loaded on first use, so that a command starts soon
_HOME = {
    **dict.fromkeys(("ConfigReport", "explain_all", "explain_config"), "explanation"),
    "compare_configs": "comparison",
    "rosetta": "rosetta_table",
    **dict.fromkeys(("TRL_DEFAULTS", "TRL_RLOO_DEFAULTS", "TRL_SILENT", "from_trl"), "trl"),
    "to_trl": "trl_words",
    **dict.fromkeys(("VERL_DEFAULTS", "VERL_SILENT", "from_verl"), "verl"),
    "to_verl": "verl_words",
    "from_openrlhf": "openrlhf",
    "from_slime": "slime",
    "from_prime_rl": "prime_rl",
    **dict.fromkeys(("Inexpressible", "Reading", "Words", "known_words"), "vocabulary"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"rlnb.interop has no attribute {name!r}.")
    return getattr(import_module(f"rlnb.interop.{_HOME[name]}"), name)
