"""Recorded runs: one JSON object per line, a header first. Reading one needs no model.

Records, told apart by `record`:

    header   recipe, objective (its repr), reward, versions, device: what the run was
    step     one rollout and its update; names below
    eval     held-out problems at a step (0 is the model before training)
    sample   a prompt, an answer and its reward, for the eye
    rollout  a training answer token by token, where the recipe asks for it: prompt, tokens, reward,
             verified, advantage (of its first token), gradient (dL/dlogprob of each token before
             the update, two digits; below 0 where the update makes the token likelier), logprobs
             (of each token, three decimals)
    steps    consecutive steps as columns, {name: [values]}: files of a fifth of the size. `read`
             gives them back as steps

A line that a killed run left half-written is ignored. Numbers that are not finite become null;
those of steps, evaluations and samples keep five significant digits.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.training.errors import BadInput

if TYPE_CHECKING:
    import torch

__all__ = [
    "CLOCKS",
    "FILE",
    "METRICS",
    "Recorder",
    "environment",
    "line",
    "pack",
    "read",
    "replay",
    "salvage",
    "series",
    "sparkline",
    "unpack",
]

FILE = "metrics.jsonl"

METRICS = {
    "reward": "mean reward of the rollout",
    "reward_std": "standard deviation inside a group (Bessel), mean over groups",
    "frac_reward_zero_std": "share of groups whose rewards are all equal",
    "rewards/verify/mean": "share of answers the task's verifier accepts, whatever was rewarded",
    "groups/all_pass": "share of groups in which every reward is 1 or more",
    "groups/mixed": "share of groups that are neither all-pass nor all-fail",
    "groups/all_fail": "share of groups in which every reward is 0 or less",
    "groups/kept": "share of groups that the filter kept",
    "pool/size": "prompts still in the pool after the step, where there is one",
    "pool/retired": "prompts that have left it for good",
    "completions/mean_length": "tokens per completion, end token counted",
    "completions/mean_length_right": "the same over answers that the verifier accepts, cut or not",
    "completions/mean_length_wrong": "and over those it does not",
    "completions/mean_wait": "`wait` tokens per completion",
    "completions/min_length": "tokens of the shortest completion",
    "completions/max_length": "tokens of the longest",
    "completions/clipped_ratio": "share of completions cut off at max_completion_length",
    "entropy": "nats per token of the sampling distribution",
    "kl": "k3 estimate of KL(policy || reference) per token, where there is a reference",
    "clip_ratio/low_mean": "share of tokens whose gradient the lower edge of the band cut",
    "clip_ratio/high_mean": "share of tokens whose gradient the upper edge cut",
    "clip_ratio/region_mean": "share cut by either",
    "ratio/mean": "mean of policy over old policy, tokens of rows that were trained on",
    "ratio/min": "smallest such ratio",
    "ratio/max": "largest such ratio",
    "sampling/logp_difference": "largest |trainer - sampler| log-probability before any update",
    "sampling/importance_sampling_ratio/min": "smallest trainer / sampler probability of a token",
    "sampling/importance_sampling_ratio/mean": "mean of it over tokens",
    "sampling/importance_sampling_ratio/max": "largest of it",
    "staleness": "steps between the weights that sampled and the first update",
    "generated": "answers sampled for the step, refills and dropped groups counted",
    "loss": "mean over the step's updates",
    "grad_norm": "before clipping, mean over the step's updates",
    "learning_rate": "of the optimizer",
    "num_tokens": "prompt and completion tokens seen so far",
    "tokens_per_second": "prompt and completion tokens of the step per second on the clock",
    "step_time": "seconds on the clock",
    "cpu_time": "CPU seconds of this process",
}
# The only entries that differ between two equal runs:
CLOCKS = ("tokens_per_second", "step_time", "cpu_time")


def environment(device: torch.device) -> dict[str, str | int]:
    """Versions, device and machine class: what the numbers of a run depend on."""
    import torch  # reading a file needs none of it

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    return {
        "device": device.type,
        "machine": f"{name} ({platform.machine()})",
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": version("transformers"),
        "python": platform.python_version(),
    }


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def line(record: dict[str, Any]) -> str:
    """One record as one line of strict JSON, without spaces."""
    text = json.dumps(_finite(record), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text + "\n"


def _shortened(fields: dict[str, Any]) -> dict[str, Any]:
    """Floats to five significant digits, which is more than a sampled metric means."""
    return {k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in fields.items()}


def pack(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same records, consecutive steps of equal fields put together as columns."""
    out: list[dict[str, Any]] = []
    for record in records:
        last = out[-1] if out else {}
        if record["record"] != "step":
            out.append(record)
        elif last.get("record") == "steps" and list(last) == ["record", *list(record)[1:]]:
            for name in list(record)[1:]:
                last[name].append(record[name])
        else:
            out.append({"record": "steps"} | {k: [v] for k, v in list(record.items())[1:]})
    return out


def unpack(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps of a record of columns; any other record as it is."""
    if record["record"] != "steps":
        return [record]
    names = [name for name in record if name != "record"]
    rows = zip(*(record[name] for name in names), strict=True)
    return [{"record": "step", **dict(zip(names, row, strict=True))} for row in rows]


class Recorder:
    """Appends records to a file, a flushed line each. Without a path it only keeps them."""

    def __init__(
        self,
        path: Path | None,
        records: list[dict[str, Any]] | None = None,
        watch: Callable[[dict[str, Any]], None] | None = None,
    ):
        """Starts from `records`: the file is rewritten with them, whole, before anything else.

        watch: is given every later record, once it is written.
        """
        self._watch = watch
        self.records = list(records or [])
        self._file = None
        if path is not None:
            temporary = path.with_suffix(".tmp")
            temporary.write_text("".join(map(line, self.records)), encoding="utf-8")
            os.replace(temporary, path)
            self._file = path.open("a", encoding="utf-8")

    def write(self, kind: str, **fields: Any) -> dict[str, Any]:
        """One record, rounded, to the file and to `watch`; returns it. OSError on a full disk."""
        fields = fields if kind == "header" else _shortened(fields)
        record = _finite({"record": kind, **fields})
        self.records.append(record)
        if self._file is not None:
            self._file.write(line(record))
            self._file.flush()
        if self._watch is not None:
            self._watch(record)
        return record

    def close(self) -> None:
        """Closes the file, if there is one."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # every line was flushed, or has said that it failed
                self._file.close()


def read(path: str | Path) -> list[dict[str, Any]]:
    """The records of a run, from its file or its folder. Raises BadInput if that is not a run."""
    path = Path(path)
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        raise BadInput(f"replay: there is no recorded run at {str(path)!r}; give a .jsonl file")
    records, wrong = salvage(path)
    if wrong:
        number, what = wrong[0]
        raise BadInput(f"replay: line {number} of {str(path)!r} {what}")
    if not records or records[0]["record"] != "header":
        raise BadInput(f"replay: {str(path)!r} does not start with a header; it is not a run")
    return records


def salvage(path: Path) -> tuple[list[dict[str, Any]], list[tuple[int, str]]]:
    """(the records of every line that can be read, (number, what is wrong) of every other).

    A last line that was torn is neither.
    """
    records: list[dict[str, Any]] = []
    wrong: list[tuple[int, str]] = []
    lines = path.read_bytes().splitlines()
    for number, raw in enumerate(lines, 1):
        try:
            records += _records(raw)
        except _Wrong as error:
            if not (error.torn and number == len(lines)):
                wrong.append((number, str(error)))
    return records, wrong


class _Wrong(ValueError):
    """What is wrong with a line; `torn` if a killed run may have left it so."""

    def __init__(self, what: str, torn: bool = False):
        super().__init__(what)
        self.torn = torn


def _records(raw: bytes) -> list[dict[str, Any]]:
    try:
        record = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise _Wrong("is not UTF-8", torn=True) from None
    except (json.JSONDecodeError, RecursionError):
        raise _Wrong("is not JSON", torn=True) from None
    if not isinstance(record, dict) or "record" not in record:
        raise _Wrong("has no field 'record'")
    try:
        found = unpack(record)
    except (TypeError, ValueError):
        raise _Wrong("has uneven columns") from None
    for each in found:
        if each["record"] != "header" and not isinstance(each.get("step"), int):
            raise _Wrong("has no field 'step' with a whole number")
    return found


def series(records: list[dict[str, Any]], name: str, kind: str = "step") -> dict[int, float]:
    """{step: value} of one metric, steps where it is missing or null left out."""
    found = (r for r in records if r["record"] == kind)
    return {r["step"]: r[name] for r in found if r.get(name) is not None}


def sparkline(values: list[float], low: float, high: float) -> str:
    """Values as bars of eight heights between low and high."""
    bars, span = "▁▂▃▄▅▆▇█", (high - low) or 1.0
    return "".join(bars[max(0, min(7, int(8 * (v - low) / span)))] for v in values)


def _pool(pool: dict[str, Any] | None) -> list[str]:
    if not pool:
        return []
    if pool.get("retire") is None:
        return [f"pool of {pool.get('size')} prompts, none retires"]
    last = {None: "all visits", 1: "the last visit"}
    over = last.get(pool.get("visits"), f"the last {pool.get('visits')} visits")
    return [f"pool of {pool.get('size')} prompts, retired at {pool['retire']} over {over}"]


def _of(record: dict[str, Any], name: str, kind: type | tuple[type, ...] = (int, float)) -> Any:
    """A field that the text needs; nan for a number that was not finite. BadInput without it."""
    value = record.get(name, "")
    if value is None and float in (kind if isinstance(kind, tuple) else (kind,)):
        return math.nan
    if name not in record or not isinstance(value, kind):
        what = "no field" if name not in record else f"{value!r} as"
        raise BadInput(
            f"replay: the {record['record']!r} record of step {record.get('step')} has {what} "
            f"{name!r}; the file is damaged, or no recorded run"
        )
    return value


def replay(records: list[dict[str, Any]], width: int = 60) -> str:
    """A recorded run as text: what it was, its evaluations, its curves, a few answers."""
    header = records[0]
    recipe = _of({"recipe": {}, **header}, "recipe", dict)
    out = [
        f"task {header.get('task')}, reward {header.get('reward')}, seed {recipe.get('seed')}",
        f"objective {header.get('objective')}",
        *_pool(header.get("pool")),
        f"recorded on {header.get('machine')}, {header.get('threads')} thread(s), "
        f"torch {header.get('torch')}, transformers {header.get('transformers')}",
        "",
    ]
    evaluations = [r for r in records if r["record"] == "eval"]
    if evaluations:
        # More answers per problem and a greedy one are in newer runs only.
        rates = [name for name in evaluations[-1] if name[5:].isdigit() or name == "greedy"]
        out.append(f"  step {'  '.join(f'{n:>7s}' for n in rates)}   length  entropy  direct"
                   "   (held-out problems)")  # fmt: skip
        for r in evaluations:
            found = "  ".join(f"{_of({n: None, **r}, n):7.3f}" for n in rates)
            rest = f"{_of(r, 'mean_length'):8.1f} {_of(r, 'entropy'):8.3f} {_of(r, 'direct'):7.3f}"
            out.append(f"{r['step']:6d} {found} {rest}")
        out.append("")
    shown = ("reward", "frac_reward_zero_std", "completions/mean_length", "entropy", "kl",
             "clip_ratio/region_mean", "grad_norm", "pool/size")  # fmt: skip
    steps = [r for r in records if r["record"] == "step"]
    for name in shown:
        values = [_of(r, name) for r in steps if r.get(name) is not None]
        if values:
            stride = -(-len(values) // width)
            curve = sparkline(values[::stride], min(values), max(values))
            out.append(f"{name:24s} {values[0]:8.3f} {curve} {values[-1]:.3f}")
    if steps:
        spent = sum(_of({"cpu_time": 0.0, **r}, "cpu_time") for r in steps)
        tokens = _of(steps[-1], "num_tokens")
        out += ["", f"{len(steps)} steps, {tokens} tokens, {spent:.1f} CPU s"]
    samples = [r for r in records if r["record"] == "sample"]
    if samples:
        out += ["", "  step  reward  answer"]
        out += [
            f"{r['step']:6d} {_of(r, 'reward'):7.2f}  "
            f"{_of(r, 'prompt', str)}{_of(r, 'completion', str)}"
            for r in samples
        ]
    return "\n".join(out)
