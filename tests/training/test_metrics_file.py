from __future__ import annotations

import ast
import json
import math
import sys
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path

import pytest

import rlnb.training
from rlnb.objective import ZOO
from rlnb.training import (
    METRICS,
    BadInput,
    Recipe,
    Sampling,
    pass_rate,
    read,
    replay,
    series,
    train,
)
from rlnb.training.metrics_file import CLOCKS, Recorder, line, pack, sparkline

MAIN = [f"chain_dr_grpo_seed{seed}.jsonl" for seed in (0, 1, 2)]
COIN = [f"chain_coin_flip_seed{seed}.jsonl" for seed in (0, 1, 2)]


@pytest.fixture
def runs(model_folder):
    return model_folder.parent / "runs"


def test_a_run_is_a_header_then_steps_evaluations_and_samples(finished):
    lines = (finished.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(text, parse_constant=pytest.fail) for text in lines]  # strict JSON
    header, *rest = records
    assert header["record"] == "header" and header["objective"] == repr(ZOO["dr_grpo"])
    for name in ("task", "reward", "recipe", "torch", "transformers", "device", "machine"):
        assert header[name]
    assert header["device"] == "cpu" and "CPU" in header["machine"]
    steps = [r for r in rest if r["record"] == "step"]
    assert [r["step"] for r in steps] == [1, 2, 3, 4]
    for record in steps:
        assert set(record) - {"record", "step"} <= set(METRICS)
        absent = {"kl", "pool/size", "pool/retired"}  # there is no reference and no pool here
        assert set(METRICS) - set(record) <= absent
        assert all(math.isfinite(v) for k, v in record.items() if k != "record")
    assert [r["step"] for r in rest if r["record"] == "eval"] == [0, 2, 4]
    samples = [r for r in rest if r["record"] == "sample"]
    assert samples and all(r["reward"] in (0.0, 1.0) for r in samples)


def test_group_fractions_add_up_to_one(runs):
    for record in read(runs / MAIN[0]):
        if record["record"] == "step":
            parts = [record[f"groups/{name}"] for name in ("all_pass", "mixed", "all_fail")]
            assert sum(parts) == pytest.approx(1.0)
            silent = record["groups/all_pass"] + record["groups/all_fail"]
            assert record["frac_reward_zero_std"] == pytest.approx(silent)


@pytest.mark.parametrize("name", MAIN)
def test_the_recorded_main_runs_reach_085_in_40_steps_and_30_cpu_seconds(runs, name):
    records = read(runs / name)
    recipe = records[0]["recipe"]
    default = json.loads(json.dumps(asdict(Recipe())))
    assert {**default, **recipe, "seed": 0} == {**default, "seed": 0}
    assert records[0]["objective_name"] == "dr_grpo" and records[0]["device"] == "cpu"
    curve = series(records, "pass@1", "eval")
    assert list(curve) == [0, 10, 20, 30, 40]
    assert 0.30 <= curve[0] <= 0.45 and curve[40] >= 0.85
    assert sum(series(records, "cpu_time").values()) <= 30
    assert max(series(records, "sampling/logp_difference").values()) < 1e-4
    assert set(series(records, "ratio/max").values()) == {1.0}


@pytest.mark.parametrize("name", COIN)
def test_a_coin_flip_verifier_does_not_lift_pass_at_1(runs, name):
    records = read(runs / name)
    assert records[0]["reward"] == "coin_flip"
    curve = series(records, "pass@1", "eval")
    assert max(curve.values()) <= curve[0] + 0.03
    assert series(records, "reward")[1] == pytest.approx(0.5, abs=0.2)


def test_recordings_name_no_path_and_are_small(runs):
    for name in MAIN + COIN:
        text = (runs / name).read_text(encoding="utf-8")
        assert len(text) < 100_000 and "/tmp" not in text and "/home" not in text
        assert read(runs / name)[0]["model"] == "data/model"


def test_columns_are_the_same_records_in_less_space(finished, tmp_path):
    uneven = {"record": "step", "step": 5, "reward": None}  # other fields: a block of its own
    records = [*finished.records, uneven, {**uneven, "step": 6}]
    packed = pack(records)
    assert [r["record"] for r in packed if r["record"].startswith("step")] == ["steps"] * 3
    path = tmp_path / "run.jsonl"
    path.write_text("".join(map(line, packed)), encoding="utf-8")
    assert read(path) == records
    assert [list(r) for r in read(path)] == [list(r) for r in records]  # order as well
    steps, columns = ([r for r in some if "step" in r["record"]] for some in (records, packed))
    assert sum(map(len, map(line, columns))) < 0.7 * sum(map(len, map(line, steps)))


def test_columns_of_different_lengths_are_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"record":"header"}\n{"record":"steps","step":[1,2],"reward":[0.5]}\n')
    with pytest.raises(BadInput, match="line 2 of .* has uneven columns"):
        read(path)


def test_an_evaluation_has_pass_at_k_without_bias_and_greedy(fresh, chain, roomy):
    recipe = replace(roomy, steps=0, eval_prompts=20, eval_generations=4, eval_greedy=True)
    records = train(*fresh, chain, ZOO["dr_grpo"], recipe, progress=False)
    (found,) = (r for r in records if r["record"] == "eval")
    answers = pass_rate(*fresh, chain, prompts=20, num_generations=4)
    right = answers.right.sum(1).int().tolist()
    assert len(set(right)) > 2  # or every estimator agrees
    for k in (1, 2, 4):  # by counting the subsets of four answers
        subsets = [[i < n for i in chosen] for n in right for chosen in combinations(range(4), k)]
        assert found[f"pass@{k}"] == pytest.approx(sum(map(any, subsets)) / len(subsets), abs=1e-4)
    cold = pass_rate(*fresh, chain, prompts=20, num_generations=1,
                     sampling=Sampling(temperature=0.0))  # fmt: skip
    assert found["greedy"] == pytest.approx(cold.right.mean().item())


def test_numbers_that_are_not_finite_become_null():
    assert json.loads(line({"a": float("nan"), "b": [float("inf"), 1.5]})) == {
        "a": None,
        "b": [None, 1.5],
    }


def test_a_torn_last_line_is_ignored_and_a_torn_middle_is_not(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"record": "header"}\n{"record": "step", "st')
    assert read(path) == [{"record": "header"}]
    path.write_text('{"record": "header"}\n{"rec\n{"record": "step", "step": 1}\n')
    with pytest.raises(BadInput, match="line 2 of .* is not JSON"):
        read(path)


@pytest.mark.parametrize(
    "text, message",
    [("", "does not start with a header"), ('{"record": "step", "step": 1}\n', "does not start"),
     ("[1]\n", "has no field 'record'")],
)  # fmt: skip
def test_a_file_that_is_not_a_run(tmp_path, text, message):
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        read(path)


def test_a_run_that_is_not_there(tmp_path):
    with pytest.raises(BadInput, match="there is no recorded run"):
        read(tmp_path / "nothing.jsonl")


def test_a_recorder_starts_from_what_was_kept(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("old\n")
    recorder = Recorder(path, [{"record": "header"}])
    recorder.write("step", step=1, reward=float("nan"))
    recorder.close()
    assert read(path) == [{"record": "header"}, {"record": "step", "step": 1, "reward": None}]


def test_replay_shows_every_evaluation_and_a_curve(runs):
    text = replay(read(runs / MAIN[0]))
    assert "recorded on CPU" in text and "seed 0" in text
    for step in (0, 10, 20, 30, 40):
        assert any(row.split()[:1] == [str(step)] for row in text.splitlines())
    assert "▁" in text and "40 steps" in text


def test_a_sparkline_spans_its_range():
    assert sparkline([0.0, 0.5, 1.0], 0.0, 1.0) == "▁▅█"
    assert sparkline([2.0, 2.0], 2.0, 2.0) == "▁▁"


def test_the_clocks_are_metrics():
    assert set(CLOCKS) <= set(METRICS)


def test_training_needs_neither_jupyter_nor_matplotlib(elsewhere):
    unwanted = {"matplotlib", "ipywidgets", "IPython", "jupyterlab", "notebook", "nbformat"}
    assert not unwanted & set(elsewhere["modules"])
    assert "transformers" in elsewhere["modules"]


def test_the_sources_import_only_what_a_bare_gpu_machine_has():
    # PIL and yaml are seen in sys.modules where they are installed: transformers takes them.
    # transformers brings huggingface_hub along.
    allowed = {"torch", "transformers", "tokenizers", "safetensors", "tqdm", "huggingface_hub"}
    allowed |= {"numpy"}  # comes with transformers; the race's bootstrap
    allowed |= set(sys.stdlib_module_names)
    files = list(Path(rlnb.training.__file__).parent.rglob("*.py"))
    assert len(files) > 35  # with the folders
    optional = {
        "dashboards.py": {"wandb"},
        "question_files.py": {"datasets"},
        "adapters.py": {"peft"},
        "optimizers.py": {"bitsandbytes"},
    }
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        late = optional.get(path.name, set())  # asked for in a function, and a sentence without
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                ours = name.startswith(("rlnb.training", "rlnb.objective", "rlnb.shipped"))
                inside = name.split(".")[0] in late and node not in tree.body
                assert ours or inside or name.split(".")[0] in allowed, f"{path.name}: {name}"
