"""What a rule about a configuration is, and the facts that rules may ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlnb.interop.configuration import Configuration

__all__ = ["SEVERITIES", "Facts", "Trap", "facts_of", "is_number", "mixed", "number", "severity"]

SEVERITIES = ("none", "note", "warning", "error")
# error: the library refuses it, or the words do not do what they say; note: a choice to know of
ERRORS = frozenset(
    """
    lost_words misspelt misplaced refused_group refused_batches refused_generation group_of_one
    cispo_cap dead_clip_ratio epsilon_high_is_edge high_is_edge delta_inside delta_unread
    token_epsilon kl_no_gradient kl_coef_off kl_reward_off bypass_old_trainer
    """.split()
)
NOTES = frozenset(
    """
    loss_type_default no_kl kl_corrected one_step many_steps rloo_beta small_group temperature
    token_mean_default dual_clip dapo_filter adv_default kl_default deprecated_cap
    """.split()
)


def severity(name: str) -> str:
    """ "error", "warning" or "note": how bad the trap of that name is.

    >>> severity("misspelt"), severity("dr_grpo_std"), severity("temperature")
    ('error', 'warning', 'note')
    """
    return "error" if name in ERRORS else "note" if name in NOTES else "warning"


class Facts(dict):
    """A configuration's words over its library's defaults, as attributes; a word nobody gave and
    that has no default is None. `given`: the words that stand in the configuration, those that
    could not be read included.

    >>> c = Facts({"beta": 0.0}, given={"beta"})
    >>> c.beta, c.epsilon, "beta" in c.given
    (0.0, None, True)
    """

    def __init__(self, words: Mapping[str, Any], given: set[str]) -> None:
        super().__init__(words)
        self.given = frozenset(given)

    def __missing__(self, word: str) -> None:
        return None

    def __getattr__(self, word: str) -> Any:
        return self.get(word)


@dataclass(frozen=True)
class Trap:
    """A rule: `sentence` (what happens, a number, what to write instead) where `test` holds."""

    name: str
    test: Callable[[Facts], Any]
    sentence: Callable[[Facts], str]


def facts_of(read: Configuration, defaults: Mapping[str, Any]) -> Facts:
    """The facts of a configuration. Words that could not be read count as given, without value."""
    unread = {word for word, _ in read.not_read}
    given = {*read.words, *unread}
    words = {**defaults, **read.words}
    return Facts({w: v for w, v in words.items() if w not in unread or w in read.words}, given)


def number(x: float) -> str:
    """A number as one would write it: 0.2, 3e-04, 1.28, 5.

    >>> number(1.28), number(5.0), number(0.0003)
    ('1.28', '5', '0.0003')
    """
    return f"{x:.4g}"


def mixed(rate: float, size: int) -> str:
    """How often a group of `size` answers, each right with probability `rate`, is mixed.

    >>> mixed(0.1, 8)
    '57 %'
    """
    return f"{100 * (1 - rate**size - (1 - rate) ** size):.0f} %"


def is_number(x: object) -> bool:
    """Whether a value can be compared with numbers; True and None cannot."""
    return isinstance(x, (int, float)) and not isinstance(x, bool)
