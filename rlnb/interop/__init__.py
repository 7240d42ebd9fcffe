"""To and from the configurations of TRL 1.16.0 and verl 0.9.1.

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

from rlnb.interop.explanation import ConfigReport, explain_config
from rlnb.interop.rosetta_table import rosetta
from rlnb.interop.trl import TRL_DEFAULTS, TRL_RLOO_DEFAULTS, TRL_SILENT, from_trl
from rlnb.interop.trl_words import to_trl
from rlnb.interop.verl import VERL_DEFAULTS, VERL_SILENT, from_verl
from rlnb.interop.verl_words import to_verl
from rlnb.interop.vocabulary import Inexpressible, Reading, Words, known_words

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
    "explain_config",
    "from_trl",
    "from_verl",
    "known_words",
    "rosetta",
    "to_trl",
    "to_verl",
]
