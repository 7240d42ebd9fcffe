"""TensorBoard and Weights & Biases get what metrics.jsonl has; stand-ins take their place here."""

from __future__ import annotations

import importlib.machinery
import sys
import types
from dataclasses import replace

import pytest

from rlnb.objective import ZOO
from rlnb.training import BadInput, read, train
from rlnb.training.__main__ import main
from rlnb.training.dashboards import check_dashboard, dashboard, scalars


class Writer:
    """Stands for torch.utils.tensorboard.SummaryWriter."""

    made: list = []

    def __init__(self, folder, purge_step=None):
        self.folder, self.purge_step, self.numbers, self.texts = folder, purge_step, [], []
        self.closed = False
        self.made.append(self)

    def add_scalar(self, name, value, step):
        self.numbers.append((name, value, step))

    def add_text(self, name, text, step=None):
        self.texts.append((name, text, step))

    def close(self):
        self.closed = True


class Project:
    """Stands for the module wandb and the run that it gives."""

    def __init__(self):
        self.asked, self.logged, self.defined, self.finished = [], [], [], 0
        self.config, self.id = {}, "abc123"

    def init(self, **options):
        self.asked.append(options)
        return self

    def define_metric(self, *arguments, **options):
        self.defined.append((arguments, options))

    def log(self, values):
        self.logged.append(values)

    def finish(self):
        self.finished += 1


def put_in(monkeypatch, name, module):
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def tensorboard(monkeypatch):
    Writer.made.clear()
    put_in(monkeypatch, "tensorboard", types.ModuleType("tensorboard"))
    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    return Writer.made


@pytest.fixture
def wandb(monkeypatch):
    project, module = Project(), types.ModuleType("wandb")
    module.init = project.init
    put_in(monkeypatch, "wandb", module)
    return project


def expected(records):
    return [(name, value, r["step"]) for r in records for name, value in scalars(r).items()]


@pytest.fixture
def go(fresh, chain, tiny):
    def run(name, out, **options):
        with dashboard(name, out) as watch:
            return train(*fresh, chain, ZOO["dr_grpo"], tiny, out=out, watch=watch,
                         progress=False, **options)  # fmt: skip

    return run


def test_tensorboard_gets_every_number_of_the_file(go, tensorboard, tmp_path):
    records = go("tensorboard", tmp_path / "run")
    (writer,) = tensorboard
    assert writer.numbers == expected(records) == expected(read(tmp_path / "run"))
    names = {name for name, _, _ in writer.numbers}
    assert {"train/reward", "train/entropy", "eval/pass@1"} <= names
    assert writer.texts[0][0] == "run" and '"seed": 0' in writer.texts[0][1]
    assert writer.closed and writer.folder == str(tmp_path / "run" / "tensorboard")


def test_wandb_gets_every_number_and_the_recipe(go, wandb, tmp_path):
    records = go("wandb", tmp_path / "run")
    sent = [(n, v, row["step"]) for row in wandb.logged for n, v in row.items() if n != "step"]
    assert sent == expected(records)
    assert wandb.config["recipe"]["prompts"] == 4 and wandb.finished == 1
    assert wandb.asked[0]["id"] is None and wandb.defined == [(("*",), {"step_metric": "step"})]


def test_a_resumed_run_goes_on_where_it_was_shown(fresh, chain, tiny, finished, tmp_path,
                                                  tensorboard, wandb):  # fmt: skip
    for name in ("tensorboard", "wandb"):
        out = finished.copied_to(tmp_path / name)
        (out / "wandb_run.txt").write_text("abc123")
        with dashboard(name, out) as watch:
            train(*fresh, chain, ZOO["dr_grpo"], replace(tiny, steps=5), out=out, resume=True,
                  watch=watch, progress=False)  # fmt: skip
    assert tensorboard[0].purge_step == 5 and {s for _, _, s in tensorboard[0].numbers} == {5}
    assert wandb.asked[0]["id"] == "abc123" and wandb.asked[0]["resume"] == "allow"


def test_a_dashboard_that_fails_is_said_once_and_stops_no_run(go, wandb, tmp_path, capsys):
    def log(values):
        raise OSError("no network")

    wandb.log = log
    records = go("wandb", tmp_path / "run")
    assert [r["step"] for r in records if r["record"] == "step"] == [1, 2, 3, 4]
    assert capsys.readouterr().err.count("wandb failed (OSError: no network); the run goes on") == 1


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_dashboard_that_is_not_installed_is_a_sentence_before_the_model(
    name, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr("rlnb.training.dashboards.find_spec", lambda name: None)
    line = ["grpo", "--log", name, "--out", str(tmp_path / "run"), "--device", "cpu"]
    assert main([*line, "--model", "/nowhere"]) == 2
    assert (
        f"log: {name} is not installed; `python -m pip install {name}`" in capsys.readouterr().err
    )
    assert not (tmp_path / "run").exists()


def test_an_unknown_dashboard_is_refused():
    with pytest.raises(BadInput, match="expected one of none, tensorboard, wandb"):
        check_dashboard("mlflow")


def test_the_flag_reaches_the_run(tensorboard, model_folder, tmp_path):
    line = ["grpo", "--log", "tensorboard", "--out", str(tmp_path / "run"), "--steps", "1",
            "--prompts", "2", "--num-generations", "2", "--eval-every", "0", "--device", "cpu",
            "--model", str(model_folder)]  # fmt: skip
    assert main(line) == 0 and tensorboard[0].closed
    assert {step for _, _, step in tensorboard[0].numbers} == {1}
