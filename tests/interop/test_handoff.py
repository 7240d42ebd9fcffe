"""The hand-off table: each row's words, read, give the part that the row names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rlnb
from rlnb import from_trl, from_verl
from rlnb.interop.__main__ import main
from rlnb.interop.handoff import HANDOFF, TRAINERS, handoff
from rlnb.interop.openrlhf import OPENRLHF_WORDS, from_openrlhf
from rlnb.interop.prime_rl import PRIME_RL_WORDS, from_prime_rl
from rlnb.interop.slime import SLIME_WORDS, from_slime

READERS = {
    "trl": lambda words: from_trl(**words),
    "verl": lambda words: from_verl(**words),
    "openrlhf": from_openrlhf,
    "slime": from_slime,
    "prime_rl": lambda words: from_prime_rl({"loss.kl_tau": 0.0, **words}),
}
WORDS = Path(rlnb.__file__).parent / "interop" / "known_words.json"
KNOWN = json.loads(WORDS.read_text(encoding="utf-8"))
CASES = [
    pytest.param(row, trainer, id=f"{trainer}-{row.choice[:24]}")
    for row in HANDOFF
    for trainer in TRAINERS
    if getattr(row, trainer) is not None
]


def kind(part) -> str:
    """What a part is called, without its numbers."""
    return getattr(part, "__name__", type(part).__name__)


@pytest.mark.parametrize(("row", "trainer"), [c for c in CASES if c.values[0].part])
def test_the_words_give_the_part(row, trainer):
    words = {**row.needs.get(trainer, {}), **getattr(row, trainer)}
    found = getattr(READERS[trainer](words).objective, row.part)
    found = found if isinstance(found, tuple) else (found,)
    # verl spells GSPO with a stop-gradient, sequence_token: the same push
    assert kind(row.is_) in [kind(part).removesuffix("_token") for part in found] or (
        kind(row.is_) in [kind(part) for part in found]
    ), found
    if isinstance(row.is_, type(found[0])) and row.part in ("surrogate", "terms"):
        written = repr(row.is_).removesuffix(")")
        assert any(repr(part).startswith(written) for part in found), found


@pytest.mark.parametrize(("row", "trainer"), [c for c in CASES if not c.values[0].part])
def test_words_outside_the_loss_are_words_of_the_trainer(row, trainer):
    known = {
        "trl": set(KNOWN["trl_grpo"]),
        "verl": set(KNOWN["verl"]) | {"rollout.n", "rollout.temperature", "filter_groups.enable"},
        "openrlhf": OPENRLHF_WORDS,
        "slime": SLIME_WORDS,
        "prime_rl": PRIME_RL_WORDS,
    }[trainer]
    assert set(getattr(row, trainer)) <= set(known)


def test_without_the_words_the_choice_is_not_made():
    """A row whose words changed nothing would teach nothing."""
    for row in HANDOFF:
        for trainer in TRAINERS:
            words, needs = getattr(row, trainer), row.needs.get(trainer, {})
            if row.part and words:
                plain = {k: v for k, v in needs.items() if k not in words}
                if trainer == "openrlhf":
                    plain = {"advantage_estimator": "group_norm", "init_kl_coef": 0.0} | plain
                before = READERS[trainer](plain).objective
                after = READERS[trainer]({**needs, **words}).objective
                same_by_default = (trainer, row.choice) in {
                    ("trl", "one mean over all tokens"),
                    ("verl", "one mean over all tokens"),
                }
                assert (before == after) == same_by_default, (trainer, row.choice)


def test_the_table_is_printed_within_a_terminal(capsys):
    assert main(["handoff"]) == 0
    text = capsys.readouterr().out
    assert text.strip() == handoff().strip() and max(map(len, text.splitlines())) <= 88
    assert all(row.choice in text for row in HANDOFF)
