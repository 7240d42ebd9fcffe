"""A task from a file or folder of one's own: questions with one number as the answer.

A row has a `question` and an `answer`: a worked solution that ends in `#### 72`, as GSM8K's do.
What is done with it is `tasks.worked`, which reads no files and runs nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rlnb.training.errors import BadInput
from rlnb.training.tasks.task import SPLITS, is_held_out
from rlnb.training.tasks.worked import ASKED, MARK, Questions, marked

__all__ = ["questions"]


def questions(name: str | Path) -> Questions:
    """The task in a .jsonl file, in a folder with train.jsonl (and test.jsonl), or in a folder that
    `datasets` saved (`save_to_disk`).

    The held-out problems are those of a test split where there is one, and otherwise the rows of
    which `is_held_out` says so, about one in ten. Such rows of a train split are left out in both
    cases, as for every task, and so are rows of it that the test split has as well.

    Raises BadInput, with the file and the line, for a row without a question, or without one number
    behind ####; for a file that is not there; and where `datasets` is needed and missing.
    """
    path = Path(name)
    if path.is_dir():
        splits = _folder(path)
    else:
        splits = {"train": _rows(path, _lines(path))}
    train, test = splits["train"], splits.get("test")
    if test is None:
        test = {q: a for q, a in train.items() if is_held_out(f"{q}\n{ASKED}")}
    train = {q: a for q, a in train.items() if q not in test and not is_held_out(f"{q}\n{ASKED}")}
    if not train:
        raise BadInput(f"task: {str(path)!r} has no training question")
    digest = hashlib.sha256(json.dumps([train, test]).encode()).hexdigest()[:8]
    return Questions(f"{path.stem}-{digest}", train, test)


def _folder(path: Path) -> dict[str, dict[str, str]]:
    if (path / "train.jsonl").is_file():
        files = {split: path / f"{split}.jsonl" for split in SPLITS}
        return {s: _rows(file, _lines(file)) for s, file in files.items() if file.is_file()}
    if not any((path / n).is_file() for n in ("dataset_dict.json", "dataset_info.json")):
        raise BadInput(
            f"task: the folder {str(path)!r} has no train.jsonl and was not saved by datasets; "
            "give a .jsonl file with a question and an answer a line"
        )
    try:
        from datasets import load_from_disk
    except ImportError as error:
        raise BadInput(
            f"task: reading {str(path)!r} needs datasets, which is not installed; `python -m pip "
            "install datasets`, or give a .jsonl file"
        ) from error
    try:
        found = load_from_disk(str(path))
    except Exception as error:  # a damaged folder: what Arrow raises is not one family
        raise BadInput(f"task: datasets cannot read {str(path)!r}: {error}") from error
    parts = found if isinstance(found, dict) else {"train": found}
    if "train" not in parts:
        raise BadInput(f"task: {str(path)!r} has {', '.join(parts)}, expected a train split")
    return {s: _rows(path / s, enumerate(parts[s], 1)) for s in SPLITS if s in parts}


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise BadInput(f"task: cannot read {str(path)!r} ({error.strerror})") from error
    for number_, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        try:
            yield number_, json.loads(raw.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            what = "UTF-8" if isinstance(error, UnicodeDecodeError) else "JSON"
            raise BadInput(f"task: line {number_} of {str(path)!r} is not {what}") from error


def _rows(path: Path, rows: Iterable[tuple[int, Any]]) -> dict[str, str]:
    """{question: worked solution}; a question that comes twice must have one answer."""
    found: dict[str, str] = {}
    for place, row in rows:
        where = f"task: row {place} of {str(path)!r}"
        question, answer = (
            row.get(key) if isinstance(row, dict) else None for key in ("question", "answer")
        )
        if not isinstance(question, str) or not isinstance(answer, str) or not question.strip():
            raise BadInput(f"{where} lacks a question or an answer, expected both as texts")
        if (value := marked(answer)) is None:
            raise BadInput(
                f"{where} has no number behind {MARK} in its answer {answer[-40:]!r}; GSM8K's "
                f"format ends in {MARK} 72"
            )
        if question in found and marked(found[question]) != value:
            raise BadInput(f"{where} asks again what was asked before, with another answer")
        found.setdefault(question, answer)
    return found
