from __future__ import annotations

import copy
import dataclasses
import json
import os

import pytest
import torch
from safetensors.torch import load_file

from rlnb.objective import ZOO
from rlnb.training import BadInput, CoinFlip, Recipe, checkpoint, keep_mixed, load, pass_rate, train
from rlnb.training.checkpoint import checkpoints
from rlnb.training.metrics_file import CLOCKS, FILE, read


def without_clocks(records):
    return [{k: v for k, v in r.items() if k not in CLOCKS} for r in records]


class Killed(Exception):
    """The run ends here, as if its process had been killed."""


def kill_after(reward, calls):
    """`reward`, raising Killed at the given call; its random state is passed through."""

    class Reward:
        name, count = getattr(reward, "name", "verify"), 0
        getstate = getattr(reward, "getstate", lambda: [])

        def __call__(self, problem, text):
            self.count += 1
            if self.count > calls:
                raise Killed
            return reward(problem, text)

    return Reward()


class TwoCoins(CoinFlip):
    """A reward with random numbers of its own, and of torch's global generator."""

    name = "two_coins"

    def __call__(self, problem, text):
        return float(super().__call__(problem, text) != (torch.rand(()) < 0.5).item())


@pytest.mark.parametrize("name", ["dr_grpo", "grpo", "ppo"])
def test_a_killed_run_resumes_as_if_nothing_had_happened(shipped, chain, tiny, tmp_path, name):
    recipe = dataclasses.replace(tiny, prompts=3, minibatches=2)
    _, tokenizer = shipped
    objective = ZOO[name]

    straight = copy.deepcopy(shipped[0])
    torch.manual_seed(7)
    whole = train(
        straight, tokenizer, chain, objective, recipe, out=tmp_path / "a", progress=False,
        reward=TwoCoins(5),
    )  # fmt: skip

    torch.manual_seed(7)
    stopped = kill_after(TwoCoins(5), 3 * 12 - 2)  # inside step 3, after the checkpoint of step 2
    with pytest.raises(Killed):
        train(
            copy.deepcopy(shipped[0]), tokenizer, chain, objective, recipe, out=tmp_path / "b",
            progress=False, reward=stopped,
        )  # fmt: skip
    torch.manual_seed(123)  # a new process has other global random numbers
    resumed = copy.deepcopy(shipped[0])
    rest = train(
        resumed, tokenizer, chain, objective, recipe, out=tmp_path / "b", resume=True,
        progress=False, reward=TwoCoins(5),
    )  # fmt: skip

    assert without_clocks(rest) == without_clocks(whole)
    assert without_clocks(read(tmp_path / "b")) == without_clocks(whole)
    weights = resumed.state_dict()
    assert all(torch.equal(v, weights[k]) for k, v in straight.state_dict().items())


def test_records_written_after_the_checkpoint_are_dropped(fresh, chain, tiny, finished, tmp_path):
    folder = finished.copied_to(tmp_path / "run")
    with (folder / FILE).open("a") as file:
        file.write('{"record": "step", "step": 99}\n{"record": "st')  # a torn last line
    longer = dataclasses.replace(tiny, steps=5)
    records = train(*fresh, chain, ZOO["dr_grpo"], longer, out=folder, resume=True, progress=False)
    assert [r["step"] for r in records if r["record"] == "step"] == [1, 2, 3, 4, 5]
    assert without_clocks(read(folder)) == without_clocks(records)


def test_a_checkpoint_is_whole_or_not_there(fresh, chain, tiny, finished, tmp_path, monkeypatch):
    folder = finished.copied_to(tmp_path / "run")
    before, longer = checkpoints(folder), dataclasses.replace(tiny, steps=6)

    class NoRename:  # the process dies between writing the files and renaming the folder
        def __getattr__(self, name):
            if name == "replace":
                raise Killed
            return getattr(os, name)

    monkeypatch.setattr(checkpoint, "os", NoRename())
    with pytest.raises(Killed):
        train(*fresh, chain, ZOO["dr_grpo"], longer, out=folder, resume=True, progress=False)
    assert checkpoints(folder) == before and len(before) == 2


def test_a_checkpoint_holds_no_pickle_and_is_a_model_folder(finished):
    model = finished.model
    *_, folder = checkpoints(finished.folder)
    assert folder.name == "checkpoint-000004"
    assert {f.suffix for f in folder.iterdir()} <= {".json", ".safetensors", ".jinja"}
    moments = load_file(folder / "optimizer.safetensors")
    assert len(moments) == 3 * len(list(model.parameters()))  # step, exp_avg, exp_avg_sq
    assert json.loads((folder / "state.json").read_text())["step"] == 4
    again, _ = load(folder, device="cpu")
    weights = model.state_dict()
    assert all(torch.equal(v, weights[k]) for k, v in again.state_dict().items())


def test_two_runs_with_one_seed_are_equal_and_another_seed_is_not(shipped, chain, tiny, finished):
    def run(**changes):
        records = train(
            copy.deepcopy(shipped[0]), shipped[1], chain, ZOO["dr_grpo"],
            dataclasses.replace(tiny, **changes), progress=False,
        )  # fmt: skip
        return without_clocks(records)

    assert run() == without_clocks(finished.records)
    other = {r["step"]: r for r in run(seed=1, steps=1, eval_every=0) if r["record"] == "step"}
    assert other[1] not in without_clocks(finished.records)


def test_evaluating_does_not_change_the_run(fresh, chain, tiny, finished):
    never = dataclasses.replace(tiny, eval_every=0)
    plain, evaluated = (
        without_clocks([r for r in records if r["record"] == "step"])
        for records in (
            train(*fresh, chain, ZOO["dr_grpo"], never, progress=False),
            finished.records,
        )
    )
    assert plain == evaluated and len(plain) == 4


def test_twelve_short_steps_lift_pass_at_1_by_a_fifth(fresh, chain):
    # 8 x 8 answers a step, half the main recipe. The recorded runs hold the coin-flip control.
    model, tokenizer = fresh
    recipe = Recipe(steps=12, prompts=8, num_generations=8, learning_rate=5e-4, eval_every=0)
    before = pass_rate(model, tokenizer, chain, prompts=60).right.mean().item()
    train(model, tokenizer, chain, ZOO["dr_grpo"], recipe, progress=False)
    after = pass_rate(model, tokenizer, chain, prompts=60).right.mean().item()
    assert after >= before + 0.2


def test_a_used_folder_is_not_overwritten(fresh, chain, tiny, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="is not empty; give a new one, or --resume"):
        train(*fresh, chain, ZOO["dr_grpo"], tiny, out=tmp_path, progress=False)


def test_resuming_without_a_checkpoint(fresh, chain, tiny, tmp_path):
    with pytest.raises(BadInput, match="there is no checkpoint in"):
        train(*fresh, chain, ZOO["dr_grpo"], tiny, out=tmp_path, resume=True, progress=False)


def test_resuming_nowhere(fresh, chain, tiny):
    with pytest.raises(BadInput, match="resume: .*out"):
        train(*fresh, chain, ZOO["dr_grpo"], tiny, resume=True, progress=False)


def test_an_unwritable_folder(fresh, chain, tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot write to .*Not a directory"):
        train(*fresh, chain, ZOO["dr_grpo"], tiny, out=tmp_path / "file" / "run", progress=False)


def test_resuming_another_run_names_what_differs(fresh, chain, tiny, finished):
    out = finished.folder  # refused before anything is written
    other = dataclasses.replace(tiny, learning_rate=1e-3)
    with pytest.raises(BadInput, match="learning_rate=0.0003, this one asks for 0.001"):
        train(*fresh, chain, ZOO["dr_grpo"], other, out=out, resume=True, progress=False)
    with pytest.raises(BadInput, match="has objective="):
        train(*fresh, chain, ZOO["rloo"], tiny, out=out, resume=True, progress=False)
    with pytest.raises(BadInput, match="has keep='keep_all', this one asks for 'keep_mixed'"):
        train(*fresh, chain, ZOO["dr_grpo"], tiny, out=out, resume=True, keep=keep_mixed,
              progress=False)  # fmt: skip
