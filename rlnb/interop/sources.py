"""Text of any kind to the configurations in it: scripts, notebooks, YAML, JSON, TOML, commands.

Text is read and never run: Python source by its syntax tree, YAML by the safe loader, shell
scripts word by word. What is not a literal is listed as not read.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from typing import Any

from rlnb.interop.commands import of_commands
from rlnb.interop.configuration import TRL_LOSS, Configuration, kind_of, of_trl, trl_words
from rlnb.interop.libraries import library_of_modules, other
from rlnb.interop.mappings import DEEPEST, from_mapping, from_object
from rlnb.interop.notebooks import Part, fenced_parts, notebook_parts
from rlnb.interop.python_source import CONFIGS, has_python_config, read_python
from rlnb.interop.versions import pinned

__all__ = ["read_configuration", "read_configurations"]

LONGEST = 200_000  # characters; the longest public script we met has 17,000
LONGEST_NOTEBOOK = 30_000_000  # with its saved outputs, of which nothing is read
SHELL = (".sh", ".slurm", ".sbatch", ".bash", ".job", ".pbs", ".zsh")
SHELL_HINT = re.compile(r"\A\s*#!.*\b(?:ba|z|da)?sh\b|^#SBATCH|^\s*set -[ex]+", re.MULTILINE)
VERL_HINT = re.compile(r"\b(?:actor_rollout_ref|algorithm)\.[a-z_.]+=")
FLAG = re.compile(r"(?:^|\s)--([A-Za-z][\w.-]*)")
TABLE = re.compile(r"^\s*\[{1,2}[\w.\-\"]+\]{1,2}\s*(?:#.*)?$", re.MULTILINE)
LOOKED_FOR = (
    "a GRPOConfig(...), RLOOConfig(...) or GMPOConfig(...) call, TRL's words as YAML, JSON or "
    "--word value, verl's actor_rollout_ref.actor.* and algorithm.* words, OpenRLHF's and slime's "
    "arguments, or prime-rl's tables"
)


def read_configuration(source: Any, name: str = "") -> Configuration:
    """The first configuration of a text, a mapping, or a config object; of several, it says so.

    Raises ValueError in one sentence for text that is too long, too deep, broken, or of a library
    that is not read; TypeError for something that is no configuration at all.

    >>> dict(read_configuration("loss_type: dr_grpo\\nbeta: 0.0").words)
    {'loss_type': 'dr_grpo', 'beta': 0.0}
    """
    first, *more = read_configurations(source, name)
    if not more:
        return first
    note = f"1 of {len(more) + 1} configurations read: {first.where}"
    return replace(first, notes=(*first.notes, note))


def read_configurations(source: Any, name: str = "") -> list[Configuration]:
    """Every configuration of a source, in order, at least one. name: the file's, for its kind."""
    if isinstance(source, str):
        return _from_text(source, name)
    if isinstance(source, Mapping):
        found = from_mapping(source, "a mapping")
        if found is None:
            raise _unknown(", ".join(sorted(str(k) for k in source)[:5]))
        return [found]
    if is_dataclass(source) and not isinstance(source, type):
        return [from_object(source)]
    raise TypeError(
        f"a configuration is text, a mapping or a config object, got a "
        f"{type(source).__name__}; pass the text of the file, not its path."
    )


def _from_text(text: str, name: str) -> list[Configuration]:
    if "\0" in text:
        raise ValueError(
            "the text holds NUL characters, so it is not a configuration; "
            "pass a Python, YAML, JSON or shell file."
        )
    if not text.strip():
        raise ValueError(f"the configuration is empty; looked for {LOOKED_FOR}.")
    parts = notebook_parts(text) if len(text) <= LONGEST_NOTEBOOK else None
    longest = max((len(p.text) for p in parts), default=0) if parts else len(text)
    if longest > LONGEST:
        raise ValueError(
            f"the text has {longest:,} characters and a configuration at most "
            f"{LONGEST:,}; pass the file that holds the training arguments."
        )
    if parts is None:
        parts = fenced_parts(text) if not name.endswith(".py") else []
        parts = parts or [Part(_kind_of_text(text, name), text, "")]
    found: list[Configuration] = []
    refused: list[ValueError] = []
    for part in parts:
        try:
            found += [_placed(c, part) for c in READERS[part.kind](part.text)]
        except ValueError as error:
            refused.append(error)
    if found:
        version = pinned(text)
        told = [str(e) for e in refused if "configuration of" in str(e)]
        return [
            replace(c, version=version, notes=(*c.notes, *(f"another part: {t}" for t in told)))
            for c in found
        ]
    if refused:
        raise next((e for e in refused if "no configuration" not in str(e)), refused[0])
    raise _unknown(text)


def _placed(found: Configuration, part: Part) -> Configuration:
    return replace(found, where=f"{found.where}{part.where}") if part.where else found


def _kind_of_text(text: str, name: str) -> str:
    if name.endswith(SHELL):
        return "shell"
    if name.endswith(".toml") or (TABLE.search(text) and _toml(text) is not None):
        return "toml"
    if name.endswith(".py"):
        return "python"
    if name.endswith((".yaml", ".yml", ".json")):
        return "data"
    if SHELL_HINT.search(text):
        return "shell"
    if has_python_config(text) or re.search(r"^(?:from \S+ )?import \w", text, re.MULTILINE):
        return "python"
    names = {flag.replace("-", "_") for flag in FLAG.findall(text)}
    if VERL_HINT.search(text) or names & (trl_words() | {"advantage_estimator", "rlhf_type"}):
        return "shell"
    if any("." in n and n.split(".")[0] in ("algo", "actor", "rollout") for n in names):
        return "shell"
    if re.search(r"\b(?:swift rlhf|openrlhf\.cli)\b", text) and names:
        return "shell"
    if re.search(r"^\s*[A-Za-z_][\w.]*\s*=(?!=)", text, re.MULTILINE):
        return "python"
    return "data"


def _python(text: str) -> list[Configuration]:
    try:
        source = read_python(text)
    except ValueError:
        if has_python_config(text):
            raise
        raise _unknown(text) from None
    library = library_of_modules(source.modules)
    if source.calls and not (library and "trl" not in source.modules):
        if source.own and source.home != "this file" and not source.home.startswith("."):
            if (name := library_of_modules([source.home.split(".")[0], source.home])) or library:
                raise other(name or library)
        return [of_trl(c.kind, c.words, c.where, c.unread, c.notes, c.doubts) for c in source.calls]
    if library:
        raise other(library)
    if source.own and source.home == "this file":
        raise ValueError(
            f"{source.own} is defined in this file and is not TRL's: its words mean what that "
            "code makes of them, which is not read."
        )
    found: list[Configuration] = []
    for docstring in source.texts:
        try:
            found += of_commands(docstring, ", in a docstring: an example of its command line")
        except ValueError:
            continue
    if found:
        return found
    try:
        found = of_commands(_strings(text), ", in a text of the program")
    except ValueError:
        found = []
    if found:
        doubt = "the arguments stand in a program's text, whose branches were not followed"
        return [c.with_doubts(doubt) for c in found]
    words, unread = source.assigned
    if set(words) & TRL_LOSS and "loss_type" in words:
        where = "assignments at module level"
        return [of_trl(kind_of(words), words, where, unread)]
    if any(c in source.parsed for c in CONFIGS):
        raise ValueError(
            "this script takes its GRPOConfig from a command line or a YAML file, which decide; "
            "pass that one."
        )
    raise _unknown(text)


def _strings(text: str) -> str:
    """The commands that a program holds as text: one long string, or a list of arguments."""
    quoted = re.findall(r"[frb]*(\"\"\".*?\"\"\"|'''.*?''')", text, re.DOTALL)
    commands = [q[3:-3] for q in quoted if VERL_HINT.search(q) and "\n" in q]
    listed = re.findall(r"^\s*f?[\"']([\w+.~-]+(?:=[^\"'\n]*)?)[\"'],?\s*$", text, re.MULTILINE)
    if sum(bool(VERL_HINT.match(w)) for w in listed) >= 2:
        # {x} of an f-string stands for something that was not read
        commands.append(" ".join(re.sub(r"\{[^}]*\}", "$unread", w) for w in listed))
    # "--advantage-estimator grpo " of a launcher: one string per argument or more
    flags = re.findall(r"f?[\"'](--[\w-]+(?:[ =][^\"'\n]*)?)[\"']", text)
    if len(flags) >= 3:
        commands.append("train.py " + " ".join(re.sub(r"\{[^}]*\}", "$unread", f) for f in flags))
    return "\n".join(commands)


def _shell(text: str) -> list[Configuration]:
    found = of_commands(text)
    for kind, body in _documents(text):
        try:
            found += READERS[kind](body)
        except ValueError:
            continue
    if not found:
        raise _unknown(text)
    return found


def _documents(text: str) -> list[tuple[str, str]]:
    """The here-documents of a script that write a YAML, TOML or Python file."""
    found = re.findall(
        r"^([^\n]*)<<-?\s*\\?['\"]?(\w+)['\"]?([^\n]*)\n(.*?)\n\s*\2\b",
        text,
        re.DOTALL | re.MULTILINE,
    )
    kinds = {".yaml": "data", ".yml": "data", ".json": "data", ".toml": "toml", ".py": "python"}
    documents = []
    for before, _, after, body in found[:10]:
        kind = next((k for end, k in kinds.items() if end in before + after), "")
        kind = kind or ("python" if "python" in before else "shell" if "sbatch" in before else "")
        if kind:
            documents.append((kind, body))
    return documents


def _data(text: str) -> list[Configuration]:
    loaded = _load(text)
    where = "JSON" if text.lstrip().startswith("{") else "YAML"
    if isinstance(loaded, Mapping):
        found = from_mapping(loaded, where)
        if found is not None:
            return [found]
        if VERL_HINT.search(text) or " --" in text:  # a job's YAML that holds a command
            held = [v for v in _texts(loaded) if " " in v]
            for value in held:
                try:
                    if commands := of_commands(value, f", in a text of the {where}"):
                        return commands
                except ValueError:
                    continue
    raise _unknown(text)


def _texts(value: Any, deep: int = 0) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value
    if deep > DEEPEST or not isinstance(value, (Mapping, list)):
        return []
    return [text for one in inner for text in _texts(one, deep + 1)]


def _toml(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _tables(text: str) -> list[Configuration]:
    loaded = _toml(text)
    if loaded is None:
        raise ValueError("the TOML does not parse; pass the file as the library reads it.")
    found = from_mapping(loaded, "TOML")
    if found is None:
        raise _unknown(text)
    return [found]


def _load(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except RecursionError:
            raise ValueError("the JSON is nested too deeply to be a configuration.") from None
        except ValueError as error:
            if not text.lstrip().startswith("{}"):
                place = (
                    f"line {error.lineno}: {error.msg}"
                    if isinstance(error, json.JSONDecodeError)
                    else str(error)
                )
                raise ValueError(f"the JSON does not parse: {place}.") from None
    try:
        import yaml
    except ImportError:
        raise ValueError(
            "reading YAML needs pyyaml, which is not installed; pip install pyyaml, "
            "or pass the words as JSON."
        ) from None
    try:
        deep = aliases = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            aliases += isinstance(event, yaml.AliasEvent)
            deep += isinstance(event, yaml.CollectionStartEvent)
            deep -= isinstance(event, yaml.CollectionEndEvent)
            if deep > DEEPEST:
                raise ValueError(
                    f"the YAML is nested deeper than {DEEPEST} levels, which no configuration is."
                )
        if aliases > 20:
            raise ValueError(
                f"the YAML uses {aliases} aliases (*name), which can unfold to any size; "
                "write the values out."
            )
        documents = [d for d in yaml.safe_load_all(text) if d is not None]
        return documents[0] if documents else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ValueError(
            f"the text is neither Python, JSON, a command nor YAML: {place}"
            f"{problem}; looked for {LOOKED_FOR}."
        ) from None


def _unknown(text: str) -> ValueError:
    shown = " ".join(text.split())[:40]
    return ValueError(
        f"this is no configuration of TRL or verl (it starts with {shown!r}); looked "
        f"for {LOOKED_FOR}."
    )


READERS = {"python": _python, "shell": _shell, "data": _data, "toml": _tables}
