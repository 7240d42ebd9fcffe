"""Questions with one number as the answer, from a file or folder of one's own: GSM8K's format.

A row has a `question` and an `answer`: a worked solution that ends in `#### 72`. A model is asked
to end the same way, and its number is parsed and compared, never evaluated. GSM8K: Cobbe et al.
2021, arXiv 2110.14168.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from rlnb.training.errors import BadInput
from rlnb.training.tasks.task import SPLITS, Problem, is_held_out

__all__ = ["MARK", "Questions", "number", "questions"]

MARK = "####"
ASKED = f"Work step by step. Then write, on a line of its own, {MARK} and the result as one number."
SYSTEM = "You solve problems step by step and then give the answer in the form that is asked for."
# [0-9] and not \d, which takes the digits of every script.
_NUMBER = re.compile(r"(-?)[$]?([0-9]{1,28}|[0-9]{1,3}(?:,[0-9]{3}){1,8})([.][0-9]{1,12})?")
_NOTES = re.compile(r"<<[^<>]*>>")  # GSM8K's calculator annotations, which no model should write


def number(text: str) -> Fraction | None:
    """The one number that a text is, exactly; None for anything else.

    A sign, a dollar sign, commas between groups of three digits and a decimal part may be there,
    and blanks around it and a full stop behind it.

    >>> [str(number(text)) for text in ("72", " -1,000.50 ", "$18.", "1,00", "7 2", "2+2", "1e3")]
    ['72', '-2001/2', '18', 'None', 'None', 'None', 'None']
    """
    text = text.strip(" \t\r").removesuffix(".")
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    return Fraction(f"{found[1]}{found[2].replace(',', '')}{found[3] or ''}")


def _after_mark(text: str) -> Fraction | None:
    """The number on the rest of the line behind the last mark."""
    _, mark, rest = text.rpartition(MARK)
    return number(rest.partition("\n")[0]) if mark else None


@dataclass(frozen=True)
class Questions:
    """A task made of rows: {prompt: worked solution} of each split. `questions` reads them.

    >>> task = Questions("sums", {"What is 40 + 2?": "40 + 2 = 42\\n#### 42"}, {})
    >>> problem = task.problem(random.Random(0), "train")
    >>> problem.answer, [task.verify(problem, t) for t in ("#### 42.0", "#### 4\\n#### 2", "42")]
    ('42', [1.0, 0.0, 0.0])
    """

    name: str
    train: dict[str, str] = field(repr=False)
    test: dict[str, str] = field(repr=False)
    symbols: tuple[str, ...] = (*"0123456789#-., ", "a", "E")
    system: str = SYSTEM

    def problem(self, rng: random.Random, split: str = "train") -> Problem:
        """One row of the split, any with equal odds. BadInput for another, or an empty split."""
        if split not in SPLITS:
            raise BadInput(f"split: got {split!r}, expected 'train' or 'test'")
        rows = self.train if split == "train" else self.test
        if not rows:
            raise BadInput(f"task: {self.name!r} has no {split} question; give it more rows")
        return self._problem(rng.choice(list(rows)), rows)

    @staticmethod
    def _problem(question: str, rows: dict[str, str]) -> Problem:
        return Problem(f"{question}\n{ASKED}", str(_after_mark(rows[question])))

    def parse(self, prompt: str) -> Problem:
        """The problem of a question, or of a whole prompt. BadInput if it is not in the file."""
        question = prompt.removesuffix(f"\n{ASKED}")
        for rows in (self.train, self.test):
            if question in rows:
                return self._problem(question, rows)
        raise BadInput(f"prompt: {prompt!r} is no question of {self.name!r}")

    def demo(self, rng: random.Random, problem: Problem) -> str:
        """The worked solution of the file, without its calculator annotations."""
        question = problem.prompt.removesuffix(f"\n{ASKED}")
        return _NOTES.sub("", self.train.get(question) or self.test[question])

    def verify(self, problem: Problem, text: str) -> float:
        """1.0 if the line behind the last #### is a number equal to the answer, 0.0 otherwise."""
        found = _after_mark(text)
        return float(found is not None and found == Fraction(problem.answer))

    def openings(self, problem: Problem) -> dict[str, str]:
        """The mark at once: an answer without a written calculation."""
        return {"direct": MARK}


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
        if (value := _after_mark(answer)) is None:
            raise BadInput(
                f"{where} has no number behind {MARK} in its answer {answer[-40:]!r}; GSM8K's "
                f"format ends in {MARK} 72"
            )
        if question in found and _after_mark(found[question]) != value:
            raise BadInput(f"{where} asks again what was asked before, with another answer")
        found.setdefault(question, answer)
    return found
