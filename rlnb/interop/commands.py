"""Commands that start a training run, to configurations: one for each command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rlnb.interop.configuration import (
    TRL_LOSS,
    VERL_BASES,
    Configuration,
    kind_of,
    of_openrlhf,
    of_slime,
    of_trl,
    of_verl,
    trl_words,
)
from rlnb.interop.libraries import OPENRLHF, SLIME, Entry, entry_of, library_of_words, other
from rlnb.interop.openrlhf import older_name
from rlnb.interop.shell_source import UNKNOWN, Command, Given, commands

__all__ = ["of_commands"]

UNFILLED = re.compile(r"\$\{?(\w*(?:ARG|OPT|EXTRA|OVERRIDE|FLAG|CONFIG)\w*)", re.IGNORECASE)
BESIDE = ("config", "./config", "config/")  # hydra looks beside the module: verl's own folder
MODEL_ONLY = re.compile(
    r"MODEL|PARALLEL|MEGATRON|WANDB|RAY|TORCHRUN|DISTRIB|ACCEL|LAUNCH|DEEPSPEED"
)


def of_commands(text: str, where: str = "") -> list[Configuration]:
    """The configurations that a script's commands give, in order; none where there is none.

    Raises ValueError, with its name, where all commands are of a library that is not read.
    """
    found: list[Configuration] = []
    refused: list[ValueError] = []
    every = commands(text)
    for command in every:
        try:
            made = _of_command(command, where)
        except ValueError as error:
            refused.append(error)
            continue
        if made is not None:
            found.append(replace(made, lost=command.lost))
    if refused and not found:
        raise refused[0]
    return found


def _of_command(command: Command, where: str) -> Configuration | None:
    entry = entry_of(command.plain)
    flags = {g.name for g in command.flags}
    paths = {g.name for g in command.overrides}
    name = library_of_words(flags | paths)
    if entry.other or name:
        if entry.other or len(flags | paths) > 1:
            raise other(entry.other or name)
    place = f"the command on line {command.line}{where}"
    if sum(p.startswith(("actor_rollout_ref.", "algorithm.")) for p in paths):
        return _verl(command, entry, place)
    older = {older_name(f) for f in flags}
    if entry.openrlhf or len((flags | older) & OPENRLHF) >= 2 and not flags & {"num_rollout"}:
        if flags & {"num_rollout", "hf_checkpoint"}:
            return _slime(command, entry, place)
        words, gaps, notes = _given(command.flags)
        made = of_openrlhf(words, place, gaps, notes)
        return _with_entry(made, command, entry, entry.openrlhf, "OpenRLHF's own train_ppo")
    if len(flags & SLIME) >= 3:
        return _slime(command, entry, place)
    if flags & TRL_LOSS or (entry.name.startswith("trl ") and flags & trl_words()):
        return _trl(command, entry, place)
    return None


def _slime(command: Command, entry: Entry, place: str) -> Configuration:
    words, gaps, notes = _given(command.flags)
    made = of_slime(words, place, gaps, notes)
    own = entry.name.rpartition("/")[2] in ("train.py", "train_async.py", "")
    return _with_entry(made, command, entry, own, "slime's own train.py")


def _trl(command: Command, entry: Entry, place: str) -> Configuration:
    words, gaps, notes = _given(command.flags)
    rloo = entry.name == "trl rloo" or "rloo" in entry.name.lower()
    made = of_trl("RLOOConfig" if rloo else kind_of(words), words, place, gaps, notes)
    doubts = []
    config = words.get("config")
    if isinstance(config, str) and config.endswith((".yaml", ".yml", ".json")):
        doubts.append(f"--config {config} was not seen, and may set any word")
    strange = [w for w in words if w not in trl_words()]
    if "loss_type" not in words and entry.name.endswith(".py") and len(strange) > len(words) / 2:
        doubts.append(f"{entry.name} was not seen, and most of its arguments are not TRL's")
    return _with_entry(made, command, entry, True, "").with_doubts(*doubts)


def _verl(command: Command, entry: Entry, place: str) -> Configuration:
    words, gaps, notes = _given(command.overrides)
    made = of_verl(words, place, gaps, notes)
    doubts = []
    flags = {g.name: g.value for g in command.flags}
    base = str(flags.get("config_name", "ppo_trainer")).removesuffix(".yaml").strip("'\"")
    if base not in VERL_BASES:
        doubts.append(f"--config-name {base} was not seen, and may set any word")
    elif "config_path" in flags and not (entry.verl and str(flags["config_path"]) in BESIDE):
        doubts.append(f"--config-path {flags['config_path']} was not seen, and may set any word")
    made = _with_entry(made, command, entry, entry.verl, "verl.trainer.main_ppo")
    return made.with_doubts(*doubts)


def _with_entry(
    made: Configuration, command: Command, entry: Entry, own: bool, expected: str
) -> Configuration:
    doubts = []
    if not own:
        doubts.append(
            f"{entry.name} starts it and not {expected}: a trainer of its own may compute "
            "another loss"
            if entry.name
            else f"no command was found that takes these words; {expected} is expected"
        )
    for word in command.plain:
        unfilled = UNFILLED.match(word)
        if unfilled and not MODEL_ONLY.search(unfilled[1].upper()):
            doubts.append(f"{word} was not read, and may hold any argument")
    for given in command.flags:
        values = given.value if isinstance(given.value, list) else [given.value]
        for value in values[1:] if given.note == UNKNOWN else ():
            unfilled = UNFILLED.match(str(value))
            if unfilled and not MODEL_ONLY.search(unfilled[1].upper()):
                doubts.append(f"{value} was not read, and may hold any argument")
    return replace(made, entry=entry.name).with_doubts(*dict.fromkeys(doubts))


def _given(given: Sequence[Given]) -> tuple[dict[str, Any], list[tuple[str, str]], list[str]]:
    """(words, not read, notes) of arguments; of two for one word the last counts."""
    words: dict[str, Any] = {}
    gaps: dict[str, str] = {}
    notes: list[str] = []
    for one in given:
        gaps.pop(one.name, None)
        if one.note == UNKNOWN:
            words.pop(one.name, None)  # the later argument counts, and it cannot be read
            gaps[one.name] = str(one.value)
            continue
        if one.name in words and words[one.name] != one.value:
            notes.append(
                f"{one.name} is set twice, {words[one.name]!r} and then {one.value!r}; "
                "the last counts"
            )
        if one.note:
            notes.append(f"{one.name}: {one.note}")
        words[one.name] = one.value
    return words, list(gaps.items()), notes
