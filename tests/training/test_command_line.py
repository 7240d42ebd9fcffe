from __future__ import annotations

import dataclasses
import sys
from functools import partial

import pytest
import torch

from rlnb.objective import ANNEX, ZOO
from rlnb.training import load, pass_rate, read
from rlnb.training.__main__ import (
    find_objective,
    find_reward,
    given,
    main,
    parser,
    recipe_of,
    start_of,
)
from rlnb.training.recipe import Recipe
from rlnb.training.tasks import TASKS, WEAK

SMALL = ["--prompts", "2", "--num-generations", "4", "--eval-prompts", "4",
         "--eval-generations", "2", "--device", "cpu"]  # fmt: skip


@pytest.fixture
def grpo(model_folder, tmp_path):
    """Calls `grpo` on a new folder with small defaults: (exit status, folder)."""

    def call(*arguments, out=tmp_path / "run"):
        line = ["grpo", "--model", str(model_folder), "--out", str(out), *SMALL, *arguments]
        return main(line), out

    return call


def test_grpo_writes_a_run_that_replay_shows_and_eval_loads(grpo, capsys):
    status, out = grpo("--steps", "2", "--objective", "rloo")
    assert status == 0 and (out / "model" / "model.safetensors").is_file()
    live = capsys.readouterr().out
    assert main(["replay", str(out)]) == 0
    assert capsys.readouterr().out == live and "leave_one_out" in live
    line = ["eval", "--model", str(out / "model"), "--prompts", "6", "--num-generations", "4"]
    assert main([*line, "--device", "cpu"]) == 0
    names = {row.split()[0] for row in capsys.readouterr().out.splitlines()}
    assert {"pass@1", "pass@2", "pass@4", "greedy", "forced/steps", "forced/direct", "entropy",
            "mean_length", "direct"} <= names  # fmt: skip


def test_grpo_resumes_from_the_command_line(grpo, capsys):
    assert grpo("--steps", "2", "--checkpoint-every", "1")[0] == 0
    assert grpo("--steps", "3", "--checkpoint-every", "1", "--resume")[0] == 0
    assert "3 steps" in capsys.readouterr().out


def test_an_objective_may_come_from_any_module(grpo, tmp_path, monkeypatch):
    source = "from rlnb.objective import ZOO\nmine = ZOO['dr_grpo']\n"
    (tmp_path / "my_objectives.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert grpo("--steps", "1", "--objective", "my_objectives:mine")[0] == 0


def test_the_control_and_the_filter_are_flags(grpo, capsys):
    assert grpo("--steps", "1", "--reward", "coin_flip", "--keep", "mixed")[0] == 0
    assert "reward coin_flip" in capsys.readouterr().out


def test_the_tiny_bonus_is_a_flag(grpo, capsys):
    assert grpo("--steps", "1", "--reward", "wait_bonus")[0] == 0
    assert "reward wait_bonus" in capsys.readouterr().out


def test_a_weak_verifier_is_a_flag(grpo, capsys):
    assert grpo("--steps", "1", "--task", "sort", "--reward", "is_sorted")[0] == 0
    assert "task sort, reward is_sorted" in capsys.readouterr().out


def test_every_weak_verifier_has_a_name_on_the_command_line():
    for task, known in WEAK.items():
        for name, reward in known.items():
            args = parser().parse_args(["grpo", "--out", "x", "--reward", name])
            assert find_reward(args.reward, TASKS[task], 0) is reward


def test_a_weak_verifier_of_another_task_is_refused_before_a_folder_is_made(grpo, capsys):
    status, out = grpo("--steps", "1", "--task", "chain", "--reward", "is_sorted")
    assert status == 2 and not out.exists()
    assert "'chain' has no weak verifier 'is_sorted'; it has contains" in capsys.readouterr().err


def test_the_small_model_refuses_a_task_in_english(grpo, capsys):
    assert grpo("--steps", "1", "--task", "countdown_text")[0] == 2
    assert "the model's vocabulary cannot express" in capsys.readouterr().err


def test_the_switches_of_the_loop_are_flags(grpo):
    switches = ["--staleness", "1", "--max-resample", "2", "--mask-truncated-completions",
                "--record-rollouts", "1", "--no-eval-greedy"]  # fmt: skip
    status, out = grpo("--steps", "2", "--overlong", "20", *switches)
    assert status == 0
    header, *rest = read(out)
    assert "shape=overlong(72, cache=20)" in header["objective"]
    expected = {"staleness": 1, "max_resample": 2, "record_rollouts": 1, "eval_greedy": False,
                "mask_truncated_completions": True}  # fmt: skip
    assert {name: header["recipe"][name] for name in expected} == expected
    assert [r["staleness"] for r in rest if r["record"] == "step"] == [0, 1]
    assert any(r["record"] == "rollout" for r in rest)


def test_a_penalty_longer_than_the_answers_is_refused(grpo, capsys):
    assert grpo("--steps", "1", "--overlong", "73")[0] == 2
    assert "overlong: cache must lie in (0, max_length=72]" in capsys.readouterr().err


def test_base_goes_on_from_a_model_for_another_task(tmp_path, model_folder, monkeypatch):
    monkeypatch.setattr("rlnb.training.evaluation.pass_rate", partial(pass_rate, prompts=4))
    out = tmp_path / "base"
    line = ["base", "--task", "pick", "--steps", "1", "--device", "cpu", "--out", str(out)]
    assert main([*line, "--start", str(model_folder)]) == 0
    before, after = (load(folder, device="cpu")[0].state_dict() for folder in (model_folder, out))
    gaps = [(before[name] - after[name]).abs().max().item() for name in before]
    assert 0 < max(gaps) < 1e-3  # one step of AdamW at the first warm-up rate, 3e-3 / 50


def test_going_on_from_nothing_is_refused(tmp_path, capsys):
    line = ["base", "--steps", "1", "--out", str(tmp_path / "base"), "--start", "/nowhere"]
    assert main(line) == 2 and "there is no folder '/nowhere'" in capsys.readouterr().err


def test_base_trains_and_saves_a_model(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rlnb.training.evaluation.pass_rate", partial(pass_rate, prompts=20))
    out = tmp_path / "base"
    assert main(["base", "--out", str(out), "--steps", "1", "--device", "cpu"]) == 0
    assert (out / "tokenizer.json").is_file() and "pass@1" in capsys.readouterr().out


def test_the_defaults_are_the_main_recipe():
    args = parser().parse_args(["grpo", "--out", "x"])
    assert args.objective == "dr_grpo" and args.task == "chain"
    assert recipe_of(args, start_of(args), **given(args)) == Recipe()
    line = ["grpo", "--out", "x"]
    for field in dataclasses.fields(Recipe):
        if field.name in ("betas", "dtype", "merge_adapter"):
            continue  # no flag; not without lora_r
        value = getattr(Recipe(), field.name)
        flag = "--" + field.name.replace("_", "-")
        if isinstance(value, bool):
            flag = flag if value else flag.replace("--", "--no-", 1)
        line += [flag] if isinstance(value, bool) else [flag, str(value)]
    typed = parser().parse_args(line)
    assert given(typed).keys() >= {f.name for f in dataclasses.fields(Recipe)} - {
        "betas", "dtype", "merge_adapter",
    }  # fmt: skip
    assert recipe_of(typed, "Qwen/Qwen2.5-0.5B-Instruct", **given(typed)) == Recipe()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--objective", "dr-grpoo"], "there is no 'dr-grpoo'; did you mean 'dr_grpo'?"),
        (["--objective", "zzz"], "there is no 'zzz'; known: reinforce"),
        (["--objective", "rlnb.objective.zoo:nothing"], "has no attribute 'nothing'"),
        (["--objective", "no_such_module:x"], "No module named 'no_such_module'"),
        (["--objective", "rlnb.objective.zoo:ZOO"], "is a dict, expected an Objective"),
        (["--task", "chains"], "there is no 'chains'; did you mean 'chain'?"),
        (["--num-generations", "1"], "num_generations of at least 2, got 1"),
        (["--top-p", "0.9"], "sample with top_k=0 and top_p=1 to train"),
        (["--temperature", "0"], "greedy rollout"),
        (["--resume"], "there is no checkpoint in"),
        (["--model", "/nowhere"], "there is no folder '/nowhere'"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(grpo, capsys, arguments, message):
    status, out = grpo("--steps", "1", *arguments)
    printed = capsys.readouterr().err
    assert status == 2 and message in printed
    assert printed.startswith("error: ") and len(printed.strip().splitlines()) == 1
    assert not (out / "metrics.jsonl").exists()


MODULES = {
    "raising": "raise RuntimeError('no such luck')",
    "unparsed": "def f(:",
    "leaving": "raise SystemExit(4)",
    "mine": """
from rlnb.training import Chain
number = 3
task = Chain(max_operators=4, name='short')
class broken(Chain):
    def verify(self, problem, text): raise KeyError('key')
stuck = broken()
def reward(problem, text): return float(text.endswith(problem.answer))
def one(problem): return 1.0
def nothing(problem, text): return None
def nan(problem, text): return float('nan')
""",
}


@pytest.fixture
def modules(tmp_path, monkeypatch):
    folder = tmp_path / "modules"
    folder.mkdir()
    for name, source in MODULES.items():
        (folder / f"{name}_here.py").write_text(source)
        monkeypatch.delitem(sys.modules, f"{name}_here", raising=False)
    monkeypatch.syspath_prepend(folder)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--device", "cuda"], "device: got 'cuda', but this torch was built without CUDA"),
        (["--device", "gpu"], "device: got 'gpu', expected auto, cpu, cuda"),
        (["--threads", "0"], "threads: got 0, expected 1 to 1024"),
        (["--threads", "-1"], "threads: got -1"),
        (["--seed", str(2**64)], "seed: got 18446744073709551616, expected a whole number from 0"),
        (["--seed", "-1"], "seed: got -1"),
        (["--learning-rate", "nan"], "learning_rate: got nan, expected a number from 0"),
        (["--learning-rate", "inf"], "learning_rate: got inf"),
        (["--learning-rate", "-1"], "learning_rate: got -1.0"),
        (["--weight-decay", "nan"], "weight_decay: got nan"),
        (["--weight-decay", "-0.1"], "weight_decay: got -0.1"),
        (["--max-grad-norm", "0"], "max_grad_norm: got 0.0, expected a finite number above 0"),
        (["--max-grad-norm", "inf"], "max_grad_norm: got inf"),
        (["--max-grad-norm", "nan"], "max_grad_norm: got nan"),
        (["--temperature", "nan"], "temperature: got nan"),
        (["--prompts", "0"], "prompts: got 0, expected 1 or more"),
        (["--objective", "raising_here:x"], "cannot take 'raising_here:x': RuntimeError: no such"),
        (["--objective", "unparsed_here:x"], "SyntaxError: "),
        (["--objective", "leaving_here:x"], "SystemExit: 4"),
        (["--objective", "mine_here:number"], "is a int, expected an Objective"),
        (["--task", "raising_here:x"], "task: cannot take 'raising_here:x': RuntimeError: no such"),
        (["--task", "mine_here:number"], "is a int without name, symbols, problem"),
        (["--task", "mine_here:broken"], "is a class, expected a task"),
        (["--task", "mine_here:stuck"], "cannot draw and grade a problem: KeyError: 'key'"),
        (["--task", "no.jsonl"], "task: cannot read 'no.jsonl' (No such file or directory)"),
        (["--reward", "coinflip"], "reward: there is no 'coinflip'; did you mean 'coin_flip'?"),
        (["--reward", "raising_here:x"], "reward: cannot take 'raising_here:x': RuntimeError"),
        (["--reward", "mine_here:one"], "cannot be called with (problem, text)"),
        (["--reward", "mine_here:broken"], "it is a class; name an object that it makes"),
        (["--num-generations", "1"], "num_generations of at least 2, got 1"),
        (["--top-p", "0.9"], "sample with top_k=0 and top_p=1 to train"),
    ],
)
def test_every_wrong_argument_is_one_sentence_before_the_model_is_loaded(
    grpo, modules, capsys, monkeypatch, arguments, message
):
    def load(*arguments, **options):
        pytest.fail("the model was loaded")

    if arguments == ["--device", "cuda"] and torch.cuda.is_available():
        pytest.skip("here it is right")
    monkeypatch.setattr("rlnb.training.models.loading.load", load)
    status, out = grpo("--steps", "1", *arguments)
    said = capsys.readouterr().err
    assert status == 2 and message in said and said.startswith("error: ")
    assert len(said.splitlines()) == 1 and not out.exists()


def test_a_task_and_a_reward_may_come_from_any_module(grpo, modules, capsys):
    words = ["--steps", "1", "--task", "mine_here:task", "--reward", "mine_here:reward"]
    status, out = grpo(*words)
    assert status == 0
    header, *_ = read(out)
    assert (header["task"], header["reward"]) == ("short", "mine_here:reward")
    assert grpo(*words, "--resume")[0] == 0
    assert "nothing to do" in capsys.readouterr().err


@pytest.mark.parametrize("name, value", [("nan", "nan"), ("nothing", "None")])
def test_a_reward_that_is_no_number_is_named_with_its_answer(grpo, modules, capsys, name, value):
    assert grpo("--steps", "1", "--reward", f"mine_here:{name}")[0] == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"'mine_here:{name}' gave {value} for the answer" in said


def test_a_module_beside_the_user_is_found_from_any_command(tmp_path, monkeypatch):
    (tmp_path / "beside_me.py").write_text("from rlnb.objective import ZOO\nit = ZOO['rloo']\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    assert find_objective("beside_me:it") is ZOO["rloo"]


def test_wrong_numbers_of_the_other_commands(tmp_path, capsys):
    for line in (["eval", "--prompts", "0"], ["eval", "--seed", "-1"], ["eval", "--threads", "0"],
                 ["base", "--out", str(tmp_path / "b"), "--learning-rate", "nan"],
                 ["base", "--out", str(tmp_path / "b"), "--seed", str(2**64)]):  # fmt: skip
        assert main(line) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"error: {line[-2].removeprefix('--').replace('-', '_')}: got ")
    assert not (tmp_path / "b").exists()


def test_a_used_folder_and_an_unwritable_one(grpo, tmp_path, capsys):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").write_text("")
    assert grpo(out=tmp_path / "used")[0] == 2
    assert "is not empty" in capsys.readouterr().err
    assert grpo(out=tmp_path / "used" / "file" / "run")[0] == 2
    assert "cannot write to" in capsys.readouterr().err


def test_replaying_nothing(tmp_path, capsys):
    assert main(["replay", str(tmp_path)]) == 2
    assert "there is no recorded run" in capsys.readouterr().err


def test_names_are_found_in_the_zoo_and_the_annex():
    named = ZOO | ANNEX
    assert len(named) == len(ZOO) + len(ANNEX)
    assert all(find_objective(name) is named[name] for name in named)


def test_the_module_runs_as_a_program(elsewhere):
    assert all(name in elsewhere["help"] for name in ("base", "grpo", "eval", "replay"))
