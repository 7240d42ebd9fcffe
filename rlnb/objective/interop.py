"""To and from the configurations of TRL 1.16.0 and verl 0.9.1; one room per library."""

from __future__ import annotations

from .trl import TRL_DEFAULTS, TRL_RLOO_DEFAULTS, from_trl, to_trl
from .verl import VERL_DEFAULTS, from_verl, to_verl
from .vocabulary import Words, known_words

TRL_SILENT = known_words("trl_grpo") - TRL_DEFAULTS.keys()
VERL_SILENT = known_words("verl") - VERL_DEFAULTS.keys()

__all__ = ["TRL_DEFAULTS", "TRL_RLOO_DEFAULTS", "TRL_SILENT", "VERL_DEFAULTS", "VERL_SILENT",
           "Words", "from_trl", "from_verl", "known_words", "to_trl", "to_verl"]
