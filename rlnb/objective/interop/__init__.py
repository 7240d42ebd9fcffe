"""To and from the configurations of TRL 1.16.0 and verl 0.9.1.

trl and verl build objectives from a library's words, trl_words and verl_words say objectives in
them; reading takes the words out of a script, a YAML file or a command line; explanation and traps
say what they amount to; rosetta_table puts five code bases side by side.
"""

from __future__ import annotations

from rlnb.objective.interop.trl import TRL_DEFAULTS, TRL_RLOO_DEFAULTS, TRL_SILENT, from_trl
from rlnb.objective.interop.trl_words import to_trl
from rlnb.objective.interop.verl import VERL_DEFAULTS, VERL_SILENT, from_verl
from rlnb.objective.interop.verl_words import to_verl
from rlnb.objective.interop.vocabulary import Words, known_words

__all__ = [
    "TRL_DEFAULTS",
    "TRL_RLOO_DEFAULTS",
    "TRL_SILENT",
    "VERL_DEFAULTS",
    "VERL_SILENT",
    "Words",
    "from_trl",
    "from_verl",
    "known_words",
    "to_trl",
    "to_verl",
]
