"""The command that makes the shipped runs, and that what is committed is what it would make."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from rlnb.training import BadInput, Recipe, data_folder, read
from rlnb.training.studies.shipped_runs import (
    BASES,
    KEPT,
    SHIPPED_RUNS,
    base_model,
    main,
    make,
    origin,
)

RUNS = data_folder() / "runs"
COMMITTED = sorted(
    path for path in RUNS.glob("*.jsonl") if path.stem.rpartition("_seed")[0] in SHIPPED_RUNS
)


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """Runs of two steps, and where they go."""
    for name in ("chain_refill", "chain_rollouts"):
        few = replace(SHIPPED_RUNS[name].recipe, steps=2, prompts=2, num_generations=4,
                      eval_every=1, eval_prompts=2, eval_generations=2)  # fmt: skip
        monkeypatch.setitem(SHIPPED_RUNS, name, replace(SHIPPED_RUNS[name], recipe=few))
    return tmp_path / "runs"


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_a_committed_run_is_what_its_command_makes(path):
    name, _, seed = path.stem.rpartition("_seed")
    header, recording = read(path)[0], SHIPPED_RUNS[name]
    assert header["objective"] == repr(recording.objective) and header["task"] == recording.task
    assert header["reward"] == (recording.reward or "verify")
    expected = json.loads(json.dumps(asdict(replace(recording.recipe, seed=int(seed)))))
    default = json.loads(json.dumps(asdict(Recipe())))
    assert {**default, **header["recipe"]} == expected and int(seed) in recording.seeds
    if recording.model in BASES:
        assert header["model"] == origin(recording.model)
    else:
        assert header["model"] == recording.model


def test_a_shipped_run_is_small_and_reads_as_a_run(quick, capsys):
    assert main(["chain_refill", "--seeds", "3", "--out", str(quick)]) == 0
    (path,) = quick.glob("*")
    assert path.name == "chain_refill_seed3.jsonl" and str(path) in capsys.readouterr().out
    header, *rest = read(path)
    assert header["recipe"]["seed"] == 3
    assert {r["record"] for r in rest} == {"eval", "step"}
    assert all(set(r) - {"record", "step"} <= set(KEPT) for r in rest if r["record"] == "step")
    assert [r["step"] for r in rest if r["record"] == "step"] == [1, 2]


def test_a_run_that_is_there_is_left_alone(quick):
    quick.mkdir()
    (quick / "chain_refill_seed0.jsonl").write_text("mine")
    assert main(["chain_refill", "--seeds", "0", "--out", str(quick)]) == 0
    assert (quick / "chain_refill_seed0.jsonl").read_text() == "mine"


def test_the_run_for_the_browser_keeps_its_answers(quick):
    quick.mkdir()
    records = read(make("chain_rollouts", 0, quick, quick, progress=False))
    assert sum(r["record"] == "rollout" for r in records) == 2 * 2 * 4
    assert any(r["record"] == "sample" for r in records)


def test_a_base_that_is_not_shipped_is_trained_once(monkeypatch, tmp_path):
    monkeypatch.setitem(BASES, "sort", replace(BASES["sort"], steps=1, batch=4))
    said = []
    path = base_model("sort", tmp_path, said.append)
    assert (path / "model.safetensors").is_file() and len(said) == 1
    assert base_model("sort", tmp_path, said.append) == path and len(said) == 1


def test_an_unknown_run_is_one_sentence(tmp_path, capsys):
    assert main(["chain_stale_9_clip", "--out", str(tmp_path)]) == 2
    assert "there is no 'chain_stale_9_clip'; known: chain_rollouts" in capsys.readouterr().err
    with pytest.raises(BadInput):
        make("nothing", 0, tmp_path, tmp_path)


def test_without_a_name_they_are_listed(capsys):
    assert main([]) == 0
    assert [row.split()[0] for row in capsys.readouterr().out.splitlines()] == list(SHIPPED_RUNS)
