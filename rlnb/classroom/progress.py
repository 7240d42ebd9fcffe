"""What a learner has done, in one small file of theirs.

The file is JSON in the user's data folder. It maps a kind ("guess", "task", "check", "statement")
to keys ("ppo.1") to facts. Keys go by a page's name and not by its number, so an upgrade of the
course loses nothing. Two pages may write at once: a lock guards each change, and the file is
replaced whole. Nothing leaves the machine.

RLNB_PROGRESS names another file, or is "off": then nothing is read or written, and every page shows
what it shows a reader. Builds and tests run so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["everything", "is_kept", "progress_file", "recall", "record"]

VERSION = 1
PATIENCE = 5.0  # seconds to wait for another page's write


def is_kept() -> bool:
    """Whether this session remembers anything."""
    return os.environ.get("RLNB_PROGRESS", "") != "off"


def progress_file() -> Path:
    """The learner's file; it need not exist yet."""
    named = os.environ.get("RLNB_PROGRESS", "")
    if named and named != "off":
        return Path(named).expanduser()
    from platformdirs import user_data_path

    return user_data_path("rlnb", appauthor=False) / "progress.json"


def everything() -> dict[str, dict[str, dict[str, Any]]]:
    """All that is remembered: kind -> key -> facts. Empty when there is nothing to read."""
    if not is_kept():
        return {}
    return _read(progress_file())


def recall(kind: str, key: str) -> dict[str, Any]:
    """The facts about one guess, task, check or statement; empty when there are none."""
    return everything().get(kind, {}).get(key, {})


def record(kind: str, key: str, **facts: Any) -> bool:
    """Add facts to one entry. False when the file cannot be written: a page goes on without."""
    if not is_kept():
        return False
    from filelock import FileLock, Timeout

    path = progress_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock"), timeout=PATIENCE):
            _set_broken_aside(path)
            content = _read(path)
            entry = content.setdefault(kind, {}).setdefault(key, {})
            entry.update(facts)
            _replace(path, content)
    except (OSError, Timeout):
        return False
    return True


def _read(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    kinds = {kind: keys for kind, keys in content.items() if isinstance(keys, dict)}
    return {
        kind: {key: facts for key, facts in keys.items() if isinstance(facts, dict)}
        for kind, keys in kinds.items()
    }


def _set_broken_aside(path: Path) -> None:
    """A file that is no JSON is kept under another name: nothing of a learner's is thrown away."""
    if not path.exists():
        return
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        number = 1
        while (aside := path.with_suffix(f".broken{number}")).exists():
            number += 1
        path.replace(aside)


def _replace(path: Path, content: Mapping[str, Any]) -> None:
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    text = json.dumps({"version": VERSION, **content}, indent=1, ensure_ascii=False, sort_keys=True)
    new.write_text(text, encoding="utf-8")
    new.replace(path)
