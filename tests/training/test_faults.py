"""Every fault is made for real: files are damaged, processes started at once, arguments wrong.

What is asserted each time: one sentence, an exit status, and that nothing whole was lost.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from rlnb.objective import ZOO
from rlnb.training import BadInput, Diverged, Recipe, checkpoint, data_folder, load, read, train
from rlnb.training.__main__ import main
from rlnb.training.divergence import Collapse
from rlnb.training.metrics_file import CLOCKS, FILE, line
from rlnb.training.run_folder import LOCK, checkpoints, claim

ROOT = Path(__file__).parents[2]
STEPS = {"steps": 4, "prompts": 3, "num_generations": 4, "eval_every": 2, "eval_prompts": 4,
         "eval_generations": 2, "checkpoint_every": 2, "staleness": 1,
         "max_completion_length": 24}  # fmt: skip


def without_clocks(records):
    return [{k: v for k, v in r.items() if k not in CLOCKS} for r in records]


def weights(folder):
    return (folder / "model" / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def recipe():
    return Recipe(**STEPS)


@pytest.fixture(scope="module")
def go(model_folder, chain, recipe):
    """Trains with grpo, which has a reference, and stale weights: every file a run can have."""

    def run(folder, resume=True, start=model_folder, **changes):
        model, tokenizer = load(start, device="cpu")
        return train(
            model, tokenizer, chain, ZOO["grpo"], dataclasses.replace(recipe, **changes),
            out=folder, resume=resume, progress=False,
        )  # fmt: skip

    return run


@pytest.fixture(scope="module")
def short(go, tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults") / "short"
    go(folder, resume=False)
    return folder


@pytest.fixture(scope="module")
def long(go, tmp_path_factory):
    """What every mended run must end like."""
    folder = tmp_path_factory.mktemp("faults") / "long"
    go(folder, resume=False, steps=6)
    return folder


@pytest.fixture
def run(short, tmp_path):
    return Path(shutil.copytree(short, tmp_path / "run"))


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def halve(file):
    os.truncate(file, file.stat().st_size // 2)


FILES = ("model.safetensors", "optimizer.safetensors", "rng.safetensors", "past.safetensors",
         "state.json", "checksums.json")  # fmt: skip


@pytest.mark.parametrize("damage", [flip, halve, os.remove], ids=["flip", "halve", "remove"])
@pytest.mark.parametrize("file", FILES)
def test_every_damaged_file_of_a_checkpoint_is_noticed(run, file, damage):
    older, last = checkpoints(run)
    assert checkpoint.damage(last) is None
    damage(last / file)
    assert checkpoint.damage(last) is not None
    assert checkpoint.newest_good(run)[0] == older


@pytest.mark.parametrize("what", ["flip", "remove past", "another model"])
def test_the_checkpoint_before_a_damaged_one_is_taken_and_the_run_ends_the_same(
    go, run, long, model_folder, capsys, what
):
    last = checkpoints(run)[-1]
    if what == "flip":
        flip(last / "optimizer.safetensors")
    elif what == "remove past":
        os.remove(last / "past.safetensors")
    else:
        shutil.copy(model_folder.parent / "model_pick" / "model.safetensors", last)
    torch.manual_seed(11)
    go(run, steps=6)
    said = capsys.readouterr().err
    assert "resume: checkpoint-000004 is damaged (" in said
    assert said.strip().endswith("going on from checkpoint-000002") and len(said.splitlines()) == 1
    assert without_clocks(read(run))[1:] == without_clocks(read(long))[1:]
    assert weights(run) == weights(long)
    assert [checkpoint.damage(folder) for folder in checkpoints(run)] == [None, None]


def test_when_no_checkpoint_is_good_the_run_is_refused_and_left_as_it_is(go, run):
    for folder in checkpoints(run):
        halve(folder / "model.safetensors")
    before = (run / FILE).read_bytes()
    with pytest.raises(BadInput, match="no checkpoint in .* can be used: checkpoint-000004 is dam"):
        go(run, steps=6)
    assert (run / FILE).read_bytes() == before and len(checkpoints(run)) == 2


def test_a_checkpoint_without_checksums_is_not_trusted(run):
    older, last = checkpoints(run)
    (last / "checksums.json").write_text("{}")
    assert checkpoint.newest_good(run)[0] == older


def test_another_starting_model_is_refused_where_the_kl_is_taken_to_it(go, run, model_folder):
    with pytest.raises(BadInput, match="started from another model, which its KL is taken to"):
        go(run, steps=6, start=model_folder.parent / "model_pick")


def test_a_model_of_another_shape_is_refused(run, recipe, chain, model_folder):
    from rlnb.training import build_model

    _, tokenizer = load(model_folder, device="cpu")
    with pytest.raises(BadInput, match="has objective="):
        train(build_model(0, "small"), tokenizer, chain, ZOO["dr_grpo"], recipe, out=run,
              resume=True, progress=False)  # fmt: skip
    parts = {"optimizer": None, "rng": None, "generator": None, "past": None, "modules": {}}
    with pytest.raises(BadInput, match="are those of another model; repeat the command"):
        checkpoint.put_back(checkpoints(run)[-1], model=build_model(0, "small"), **parts)


# ---- the record file


def damaged(run, how):
    path = run / FILE
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(i for i, raw in enumerate(lines) if b'"step":3' in raw)
    if how == "not JSON":
        lines[place] = lines[place][:40] + b"\n"
    elif how == "not UTF-8":
        lines[place] = lines[place].replace(b"reward", b"rew\xffrd", 1)
    elif how == "no field 'step'":
        lines[place] = lines[place].replace(b'"step":3,', b"")
    elif how == "header":
        lines[0] = b"\x00\x01\n"
    path.write_bytes(b"".join(lines))
    return place + 1


@pytest.mark.parametrize("how", ["not JSON", "not UTF-8", "no field 'step'"])
def test_a_damaged_line_is_a_sentence_in_replay_and_resume_goes_on(go, run, long, capsys, how):
    number = damaged(run, how)
    broken = (run / FILE).read_bytes()
    assert main(["replay", str(run)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: replay: line {number} of ") and how in said
    assert len(said.splitlines()) == 1
    go(run, steps=6)
    said = capsys.readouterr().err
    assert f"metrics.jsonl is damaged (line {number}" in said and "1 of 4 steps are lost" in said
    assert (run / f"{FILE}.damaged").read_bytes() == broken
    whole = [r for r in without_clocks(read(long)) if r.get("step") != 3]
    mended = [r for r in without_clocks(read(run)) if r.get("step") != 3]
    assert mended[1:] == whole[1:] and weights(run) == weights(long)


@pytest.mark.parametrize("how", ["header", "gone"])
def test_without_its_header_or_its_file_a_record_is_begun_anew(go, run, long, capsys, how):
    if how == "gone":
        os.remove(run / FILE)
    else:
        damaged(run, how)
    go(run, steps=6)
    assert "metrics.jsonl is damaged" in capsys.readouterr().err
    records = read(run)
    assert records[0]["recipe"] == json.loads(line(read(long)[0]))["recipe"] | {"steps": 4}
    assert without_clocks(records)[-1] == without_clocks(read(long))[-1]


@pytest.mark.parametrize(
    "record, message",
    [({"record": "eval", "step": 0, "pass@1": 0.5, "entropy": 1.0, "direct": 0.0},
      "'eval' record of step 0 has no field 'mean_length'"),
     ({"record": "step", "step": 1, "reward": "much"}, "of step 1 has 'much' as 'reward'"),
     ({"record": "step", "step": 1}, "of step 1 has no field 'num_tokens'"),
     ({"record": "sample", "step": 1, "reward": 1.0, "prompt": "x"}, "no field 'completion'"),
     ({"record": "step", "step": "one"}, "has no field 'step' with a whole number")],
)  # fmt: skip
def test_a_missing_field_is_named_by_replay(tmp_path, capsys, record, message):
    path = tmp_path / "run.jsonl"
    path.write_text(line({"record": "header"}) + line(record))
    assert main(["replay", str(path)]) == 2
    said = capsys.readouterr().err
    assert message in said and len(said.splitlines()) == 1


def test_a_completion_with_a_line_separator_is_one_record(tmp_path):
    record = {"record": "sample", "step": 0, "prompt": "a\u2028b", "completion": "\x85c"}
    (tmp_path / FILE).write_text(line({"record": "header"}) + line(record), encoding="utf-8")
    assert read(tmp_path)[1] == record


# ---- two at once


def command(out, *more, steps=4):
    flags = {**STEPS, "steps": steps}
    words = [w for name, value in flags.items() for w in (f"--{name.replace('_', '-')}", value)]
    return [sys.executable, "-m", "rlnb.training", "grpo", "--device", "cpu", "--out", str(out),
            *map(str, words), *more]  # fmt: skip


def started(*arguments, **options):
    return subprocess.Popen(
        command(*arguments, **options), cwd=ROOT, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def test_of_two_runs_in_one_folder_one_wins_and_the_other_is_told(tmp_path):
    out = tmp_path / "run"
    for more, steps in (([], 4), (["--resume"], 8)):
        both = [started(out, *more, steps=steps) for _ in range(2)]
        ends = [(process.communicate()[1], process.returncode) for process in both]
        assert sorted(code for _, code in ends) == [0, 2], ends
        refused = next(said for said, code in ends if code == 2)
        assert "another run is writing to" in refused and "Traceback" not in refused
        steps_done = [r["step"] for r in read(out) if r["record"] == "step"]
        assert steps_done == list(range(1, steps + 1)) and not (out / LOCK).exists()


def test_a_folder_that_is_claimed_is_not_claimed_again(tmp_path):
    with claim(tmp_path / "run", resume=False) as out:
        with pytest.raises(BadInput, match=rf"another run .*\(process {os.getpid()}\)"):
            with claim(out, resume=False):
                pass
        (out / "mine").write_text("")
    with pytest.raises(BadInput, match="is not empty"):
        with claim(out, resume=False):
            pass


def test_a_killed_run_leaves_no_lock_that_holds(tmp_path):
    out = tmp_path / "run"
    first = started(out, steps=10_000)
    while not checkpoints(out):
        assert first.poll() is None, first.communicate()
        time.sleep(0.05)
    second = started(out, "--resume", steps=10_000)
    said = second.communicate()[1]
    assert second.returncode == 2 and f"(process {first.pid})" in said
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert (out / LOCK).read_text() == str(first.pid)  # the file is there, and holds nobody off
    with claim(out, resume=True):
        assert (out / LOCK).read_text() == str(os.getpid())
    assert not (out / LOCK).exists()


def test_where_the_system_has_no_locks_a_living_process_is_one(tmp_path, monkeypatch):
    import fcntl

    def unsupported(descriptor, how):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    (tmp_path / LOCK).write_text(str(sleeper.pid))
    try:
        with pytest.raises(BadInput, match=rf"another run .*\(process {sleeper.pid}\)"):
            with claim(tmp_path, resume=False):
                pass
    finally:
        sleeper.kill()
        sleeper.wait()
    with claim(tmp_path, resume=False):  # it is dead: its lock is taken over
        assert (tmp_path / LOCK).read_text() == str(os.getpid())


def test_a_refused_run_leaves_no_folder(tmp_path):
    with pytest.raises(BadInput, match="there is no folder '/nowhere'"):
        with claim(tmp_path / "new", resume=False):
            load("/nowhere")
    assert not (tmp_path / "new").exists()


# ---- what is told


def test_resuming_a_finished_run_says_that_there_is_nothing_to_do(go, run, capsys):
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    records = go(run)
    said = capsys.readouterr().err
    assert "nothing to do: the run in" in said and "has 4 steps" in said and "--steps 8" in said
    assert records == read(run)
    after = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    assert after == before


@pytest.mark.parametrize("how", ["missing", "of fewer steps"])
def test_a_run_without_its_final_model_has_something_to_do(go, run, short, capsys, how):
    # It was killed between its last checkpoint and its model.
    wanted = weights(short)
    if how == "missing":
        shutil.rmtree(run / "model")
    else:
        shutil.copy(checkpoints(run)[0] / "model.safetensors", run / "model")
    go(run)
    assert "nothing to do" not in capsys.readouterr().err and weights(run) == wanted


@pytest.mark.parametrize("rate", [1e9, 1e4])
def test_divergence_names_its_step_and_keeps_the_last_good_checkpoint(
    fresh, chain, recipe, tmp_path, capsys, rate
):
    wild = dataclasses.replace(recipe, learning_rate=rate, steps=6, checkpoint_every=1, staleness=0)
    with pytest.raises(Diverged, match=r"diverged at step [1-3]: .* is not finite"):
        train(*fresh, chain, ZOO["dr_grpo"], wild, out=tmp_path, progress=False)
    assert not (tmp_path / "model").exists()
    last, _ = checkpoint.newest_good(tmp_path)
    model, _ = load(last, device="cpu")
    assert all(p.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("rate", [1.0, 100.0])
def test_a_policy_that_a_huge_rate_destroyed_ends_in_a_sentence(fresh, chain, tmp_path, rate):
    model, tokenizer = load(data_folder() / "model")  # it can answer, to begin with
    wild = Recipe(
        steps=20, prompts=4, num_generations=8, learning_rate=rate, eval_every=0, checkpoint_every=9
    )
    with pytest.raises(Diverged) as caught:
        train(model, tokenizer, chain, ZOO["dr_grpo"], wild, out=tmp_path, progress=False)
    said = str(caught.value)
    assert re.match(
        r"collapsed at step 2: \d+% of the answers of step 1 were right, and none", said
    )
    assert f"(learning rate {rate:g})" in said and "\n" not in said
    assert "'checkpoint-000000'" in said and "smaller learning rate" in said
    assert not (tmp_path / "model").exists()


def test_silence_at_a_small_rate_or_of_few_answers_is_no_collapse():
    nothing = {"rewards/verify/mean": 0.0, "reward": 0.0, "grad_norm": 0.0, "generated": 128}
    some = nothing | {"rewards/verify/mean": 0.4, "reward": 0.4}
    for change in ({"learning_rate": 3e-3}, {"learning_rate": 1.0, "generated": 16}):
        found = Collapse()
        for number, metrics in enumerate([some] + [nothing] * 9, 1):
            found.check(None, None, number, metrics | change)
    never = Collapse()
    for number in range(1, 9):  # a model that was never taught the task is told elsewhere
        never.check(None, None, number, nothing | {"learning_rate": 1.0})
    late = Collapse()
    late.check(None, None, 1, some | {"learning_rate": 1.0})
    late.check(None, None, 2, nothing | {"learning_rate": 1.0})
    with pytest.raises(Diverged, match=r"step 2: 40% .* steps 2 to 3"):
        late.check(None, None, 3, nothing | {"learning_rate": 1.0})


def test_divergence_is_exit_status_3(model_folder, tmp_path, capsys):
    words = ["--learning-rate", "1e9", "--eval-every", "0", "--model", str(model_folder)]
    assert main([*command(tmp_path / "run")[3:], *words]) == 3
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("error: diverged at step") and "'checkpoint-000000'" in said


def test_a_task_the_model_was_never_taught_is_told_with_the_command_that_teaches_it(
    fresh, recipe, chain, capsys
):
    from rlnb.training import TASKS, CoinFlip

    recipe = dataclasses.replace(recipe, prompts=8, eval_prompts=16)
    for changes in ({"steps": 0}, {"steps": 1, "eval_every": 0}):
        asked = dataclasses.replace(recipe, **changes)
        train(*fresh, TASKS["countdown"], ZOO["dr_grpo"], asked, progress=False,
              model_name="mine")  # fmt: skip
        said = capsys.readouterr().err
        assert "task: none of the 32 answers" in said and "a reward of 0.000 teaches not" in said
        command = "base --task countdown --start mine --out runs/base"
        assert f"`python -m rlnb.training {command}`" in said
    train(*fresh, TASKS["countdown"], ZOO["dr_grpo"], dataclasses.replace(recipe, steps=0),
          progress=False, reward=CoinFlip(0))  # fmt: skip
    train(*fresh, chain, ZOO["dr_grpo"], dataclasses.replace(recipe, steps=0), progress=False)
    few = dataclasses.replace(recipe, steps=0, eval_prompts=8)
    train(*fresh, TASKS["countdown"], ZOO["dr_grpo"], few, progress=False)
    assert "0.000" not in capsys.readouterr().err


def test_no_error_sticks_to_the_progress_bar(model_folder, tmp_path, capsys):
    def failing(*arguments, **options):
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "save_file", failing)
        assert main([*command(tmp_path / "a")[3:], "--model", str(model_folder)]) == 2
    patched = capsys.readouterr().err
    assert main([*command(tmp_path / "b")[3:], "--learning-rate", "1e9", "--model",
                 str(model_folder)]) == 3  # fmt: skip
    for said in (patched, capsys.readouterr().err):
        last = said.rstrip("\n").split("\n")[-1]
        assert last.startswith("error: ") and "\r" not in last


def test_ctrl_c_is_no_traceback(model_folder, tmp_path, capsys, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("rlnb.training.loop.step", interrupted)
    assert main([*command(tmp_path / "run")[3:], "--model", str(model_folder)]) == 130
    assert "repeat the command with --resume to go on" in capsys.readouterr().err
