"""Runs the arms of a row, in processes of one thread each, and writes what came out."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import torch

from rlnb.training.metrics_file import environment
from rlnb.training.studies.race.large import LargeArm, make_bases, run_large
from rlnb.training.studies.race.rows import ROWS
from rlnb.training.studies.race.small import run
from rlnb.training.studies.race.verdicts import questions, recorded

__all__ = ["PILOT", "best_rate", "race"]

PILOT = (200,)
Job = tuple[str, str, str, float, int, Path]  # row, use, arm, rate, seed, made bases


def _do(job: Job) -> dict[str, Any]:
    torch.set_num_threads(1)
    row, use, name, rate, seed, made = job
    arm = ROWS[row].arms[name]
    if isinstance(arm, LargeArm):
        found = run_large(arm, seed, rate, made)
    else:
        found = run(arm, seed, rate)
    return {"use": use, "arm": name, "rate": rate, "seed": seed, **found}


def _run(jobs: list[Job], path: Path, done: list[dict[str, Any]], processes: int) -> None:
    """Makes what is missing; every run is written when it is finished."""
    have = {(r["use"], r["arm"], r["rate"], r["seed"]) for r in done}
    jobs = [j for j in jobs if j[1:5] not in have]
    if not jobs:
        return
    with path.open("a", encoding="utf-8") as file:

        def keep(found: dict[str, Any]) -> None:
            file.write(json.dumps(found) + "\n")
            file.flush()
            done.append(found)

        if processes <= 1:
            for job in jobs:
                keep(_do(job))
            return
        os.environ["OMP_NUM_THREADS"] = "1"
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            for found in pool.imap_unordered(_do, jobs):
                keep(found)


def best_rate(tried: dict[float, list[float]]) -> float:
    """The rate with the best mean; of equals the smallest.

    >>> best_rate({0.01: [0.5, 0.7], 0.001: [0.6, 0.6], 0.1: [0.0, 0.1]})
    0.001
    """
    means = {rate: round(sum(x) / len(x), 9) for rate, x in tried.items()}
    return min(rate for rate in means if means[rate] == max(means.values()))


def _tried(row: str, done: list[dict[str, Any]], use: str) -> dict[str, dict[float, list[float]]]:
    """Per arm and rate pass@1 (the row's measure where rates are fixed), seed after seed."""
    asked = questions()[row]
    measure = "pass@1" if asked["rates"] == "tuned" else asked["measure"]
    out: dict[str, dict[float, list[float]]] = {}
    for found in sorted(done, key=lambda r: (r["rate"], r["seed"])):
        if found["use"] == use:
            by_rate = out.setdefault(found["arm"], {})
            by_rate.setdefault(found["rate"], []).append(found["measures"][measure])
    return out


def _columns(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The runs of an arm, seed after seed, as columns."""
    runs = sorted(runs, key=lambda r: r["seed"])
    first = runs[0]
    return {
        "rate": first["rate"],
        "seeds": [r["seed"] for r in runs],
        "measures": {k: [r["measures"].get(k) for r in runs] for k in first["measures"]},
        "start": {k: [r["start"][k] for r in runs[:3]] for k in first["start"]},
        "answers": [point[0] for point in first["curve"]],
        "curve": [[point[2] for point in r["curve"]] for r in runs],
        "updates": [r["updates"] for r in runs],
        "seen": {k: [r["seen"][k] for r in runs] for k in first["seen"]},
        "cpu": [r["cpu"] for r in runs],
    }


def race(
    row: str, out: Path, processes: int = 1, seeds: int | None = None, recorded_rates: bool = False
) -> Path:
    """Makes OUT/ROW.json, unless it is there."""
    path, partial = out / f"{row}.json", out / f"{row}.partial.jsonl"
    if path.exists():
        return path
    asked, arms = questions()[row], ROWS[row]
    done: list[dict[str, Any]] = []
    if partial.exists():
        lines = partial.read_text(encoding="utf-8").splitlines(keepends=True)
        done = [json.loads(line) for line in lines if line.endswith("\n")]
        partial.write_text("".join(x for x in lines if x.endswith("\n")), encoding="utf-8")
    made = out / "bases"
    bases = make_bases([a for a in arms.arms.values() if isinstance(a, LargeArm)], made)
    rates: dict[str, float]
    if recorded_rates:
        rates = {name: arm["rate"] for name, arm in recorded(row)["arms"].items()}
    else:
        many = {name: arms.rates[arm.ladder] for name, arm in arms.arms.items()}
        trial = [(row, "pilot", a, r, s, made) for a in many for r in many[a] for s in PILOT]
        if asked["rates"] == "tuned":
            trial += [
                (row, "tune", a, r, s, made) for a in many for r in many[a] for s in arms.tuning
            ]
        _run(trial, partial, done, processes)
        tried = _tried(row, done, "tune")
        rates = {a: best_rate(tried[a]) if a in tried else many[a][0] for a in many}
    count = asked["seeds"] if seeds is None else min(seeds, asked["seeds"])
    _run(
        [(row, "race", a, rates[a], s, made) for s in range(count) for a in arms.arms],
        partial, done, processes,
    )  # fmt: skip
    raced = [r for r in done if r["use"] == "race"]
    head = {
        **environment(torch.device("cpu")),
        "threads": 1,
        "runs": len(done),
        "cpu_seconds": round(
            sum(r["cpu"] for r in done) + sum(b["cpu_time"] for b in bases.values()), 1
        ),
    }
    record: dict[str, Any] = {
        "header": head,
        "objectives": {name: repr(arm.objective) for name, arm in arms.arms.items()},
        "arms": {name: _columns([r for r in raced if r["arm"] == name]) for name in arms.arms},
        "tuning": _tried(row, done, "tune"),
        "pilot": _tried(row, done, "pilot"),
    }
    if bases:
        record["bases"] = {name: round(b["cpu_time"], 1) for name, b in bases.items()}
    temporary = path.with_suffix(".tmp")
    text = json.dumps(record, indent=None, separators=(",", ":"))
    temporary.write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")
    temporary.replace(path)
    partial.unlink(missing_ok=True)
    return path
