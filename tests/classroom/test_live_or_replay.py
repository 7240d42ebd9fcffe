"""Page 21 in three modes: how one is chosen, what a replay says, and the page as a plain script."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rlnb.classroom import live_or_replay, live_plot
from rlnb.classroom.live_or_replay import Mode, Page, Plan, open_page, pick_mode
from rlnb.classroom.live_plot import LivePlot
from rlnb.training import BadInput, Recipe, build_model, data_folder, series
from rlnb.training.memory import OutOfMemory
from rlnb.training.studies.gpu_plans import plans_for
from rlnb.training.studies.gpu_time import CARDS

ROOT = Path(__file__).parents[2]
TWIN = ROOT / "notebooks" / "text" / "21_grpo_for_real.py"
BESIDE = ROOT / "notebooks" / "statements" / "text" / "21_grpo_for_real.py"
RUN = [
    {"record": "header", "objective": "o"},
    {"record": "eval", "step": 0, "pass@1": 0.4},
    {"record": "step", "step": 1, "reward": 0.5},
    {"record": "step", "step": 2, "reward": 0.75},
    {"record": "eval", "step": 2, "pass@1": 0.8},
]


@pytest.mark.parametrize(
    ("asked", "cuda", "seconds", "name"),
    [
        (None, True, None, "cuda"),
        (None, False, 60.0, "cpu"),
        ("auto", False, None, "cpu"),
        (None, False, 601.0, "replay"),  # too slow to wait for
        ("cpu", False, 601.0, "cpu"),  # who asks for it gets it
        ("cpu", True, None, "cpu"),
        ("replay", True, None, "replay"),
        ("CUDA", True, None, "cuda"),
    ],
)
def test_the_mode_is_what_was_asked_for_or_what_is_there(asked, cuda, seconds, name):
    mode = pick_mode(asked, cuda=cuda, free=80e9, seconds=seconds)
    assert mode.name == name and mode.live == (name != "replay")
    assert mode.device == ("cuda" if name == "cuda" else "cpu")


def test_a_mode_that_cannot_be_had_is_a_sentence():
    with pytest.raises(BadInput, match="no 'gpu'; give one of cuda, cpu, replay"):
        pick_mode("gpu", cuda=True)
    with pytest.raises(BadInput, match="torch sees no GPU; take cpu or replay"):
        pick_mode("cuda", cuda=False)


def test_a_page_on_cuda_takes_the_first_plan_and_says_what_it_takes():
    mode = pick_mode(None, cuda=True, free=80e9, card=CARDS["A100 80 GB"])
    assert (mode.plan, *mode.next) == tuple(plans_for(80e9, CARDS["A100 80 GB"]))
    assert "preset 'large', which takes 13.8 of 80 GB (counted) and about" in mode.why
    assert "(estimated)" in mode.why
    slow = pick_mode(None, cuda=True, free=15e9, card=CARDS["T4"])
    assert slow.plan.preset == "medium" and slow.plan.recipe.sampler_dtype == "float16"
    assert pick_mode("cpu", cuda=True, free=80e9).plan == live_or_replay.CPU


class FakeCuda:
    """A page that believes to be on CUDA; everything is computed on the CPU."""

    def __init__(self, monkeypatch, plans=None):
        monkeypatch.setattr(live_or_replay, "environment", lambda device: {"machine": "a card"})
        monkeypatch.setattr(live_or_replay, "make_way", lambda device, wanted: 0)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
        self.trained, self.full = [], 0
        monkeypatch.setattr(live_or_replay, "train_base", self.train_base)
        plan, *others = plans or plans_for(80e9)
        self.page = Page(Mode("cuda", "test", plan, tuple(others)))

    def train_base(self, task, recipe, device):
        self.trained.append(recipe.preset)
        if self.full:
            self.full -= 1
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return build_model(0, "tiny"), "tokenizer", {}


def test_a_base_that_does_not_fit_is_followed_by_the_next_plan_and_a_sentence(monkeypatch, capsys):
    cuda = FakeCuda(monkeypatch)
    cuda.full = 2
    cuda.page.load()
    assert cuda.trained == ["large", "medium", "small"]
    assert cuda.page.header["model"] == "small, 1000 steps"
    said = capsys.readouterr().out
    assert said.count("too few bytes for the base: going on with preset") == 2
    assert "32 prompts x 16 answers a step" in said and "Traceback" not in said


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA"), OutOfMemory("memory: few")])
def test_a_run_that_does_not_fit_starts_again_from_the_base_under_the_next_plan(
    monkeypatch, capsys, error
):
    cuda = FakeCuda(monkeypatch)
    page, seen = cuda.page, []
    student, _ = page.load()
    weight = next(student.parameters())
    base = weight.detach().clone()

    def run():
        seen.append((page.recipe.prompts, torch.equal(weight, base)))
        with torch.no_grad():
            weight.add_(1.0)
        if len(seen) == 1:
            raise error

    assert page.measure("run", run) is None
    assert seen == [(128, True), (64, True)]
    assert page.mode.plan.preset == "large" and cuda.trained == ["large"]  # the base stays
    assert page.recipe.autocast == "bfloat16" and page.recipe.micro_batch == 512
    assert "too few bytes for 'run': going on with preset 'large', 64 prompts x 16" in (
        capsys.readouterr().out
    )


def test_where_the_smallest_plan_does_not_fit_one_sentence_ends_it(monkeypatch):
    cuda = FakeCuda(monkeypatch, plans_for(80e9)[-2:])
    cuda.full = 1
    page = cuda.page

    def never():
        raise torch.OutOfMemoryError("CUDA")

    with pytest.raises(
        BadInput, match="^memory: the card has too few bytes for 'run' of the small"
    ):
        page.measure("run", never)
    on_cpu = Page(Mode("cpu", "test"))
    with pytest.raises(torch.OutOfMemoryError):
        on_cpu.measure("run", never)


def test_the_banner_says_the_mode_in_large_letters():
    words = {}
    for name in live_or_replay.NAMES:
        page = Page.__new__(Page)
        page.mode = Mode(name, "a reason")
        page.header = {"machine": "some card", "torch": "2", "device": "cpu", "model": "shipped"}
        data = page.banner().data
        words[name] = data["text/plain"].splitlines()[1].strip()
        assert words[name] in data["text/html"] and "font-size:2.4em" in data["text/html"]
        assert "a reason" in data["text/plain"]
    assert words == {"cuda": "LIVE ON CUDA", "cpu": "LIVE ON THE CPU", "replay": "REPLAY"}


def test_what_a_live_page_measures_a_replay_gives_back_and_says_so(tmp_path, capsys):
    path = tmp_path / "page.json"
    live = Page(Mode("cpu", "test"), record=path)
    assert live.measure("base", lambda: {"pass@1": 1 / 3}) == {"pass@1": 1 / 3}
    assert live.measure("run", lambda: list(RUN)) == RUN
    assert live.measure("pair", lambda: [0.5, 0.25]) == [0.5, 0.25]
    assert capsys.readouterr().out == ""  # a live value is not called recorded

    again = Page(Mode("replay", "test"), replay=path)
    never = pytest.fail
    assert again.measure("base", never) == {"pass@1": 0.33333}
    assert again.measure("run", never) == RUN
    assert again.measure("pair", never) == [0.5, 0.25]
    said = capsys.readouterr().out
    assert said.count("[RECORDED, not measured now: ") == 3
    assert again.known and again.header["device"] == "cpu"
    with pytest.raises(BadInput, match="the recording has no 'after'; record the page again"):
        again.measure("after", never)


def test_without_a_recording_a_replay_is_a_sentence(tmp_path):
    with pytest.raises(BadInput, match="no recording at .*data/runs/README"):
        Page(Mode("replay", "test"), replay=tmp_path / "none.json")


def test_statements_about_the_shipped_model_are_asserted_of_it_alone(capsys):
    page = Page(Mode("cpu", "test"))
    page.expect(True, True)
    with pytest.raises(AssertionError, match="shipped model"):
        page.expect(True, False)
    other = Page(Mode("cpu", "test", Plan("small", 10, Recipe())))
    assert not other.known
    other.expect(True, False)
    assert "1 of 2 statements do not hold here" in capsys.readouterr().out


def test_the_environment_chooses_and_an_argument_outranks_it(monkeypatch, capsys):
    monkeypatch.setenv("RLNB_MODE", "replay")
    assert open_page().mode.name == "replay"
    assert "REPLAY" in capsys.readouterr().out
    assert open_page("cpu").mode.name == "cpu"
    assert "LIVE ON THE CPU" in capsys.readouterr().out


def test_on_another_card_a_base_is_trained_once_and_handed_out_in_copies(monkeypatch):
    calls = []

    def train_base(task, recipe, device):
        calls.append((recipe.steps, recipe.preset, device))
        return {"weights": [1]}, "tokenizer", {}

    monkeypatch.setattr(live_or_replay, "train_base", train_base)
    page = Page(Mode("cpu", "test", Plan("small", 7, Recipe())))
    first, _ = page.load()
    first["weights"].append(2)
    assert page.load() == ({"weights": [1]}, "tokenizer")
    assert calls == [(7, "small", "cpu")]


def test_the_live_plot_updates_one_picture(monkeypatch):
    shown = []

    class Handle:
        def update(self, picture):
            shown.append(picture)

    def display(picture, display_id):
        shown.append(picture)
        return Handle()

    monkeypatch.setattr(live_plot, "display", display)
    plot = LivePlot(2, "LIVE on CPU", every=2)
    plot._notebook = True
    for record in RUN:
        plot(record)
    assert len(shown) == 3  # two evaluations and step 2; step 1 is left out
    assert shown[-1].data["text/plain"] == (
        "LIVE on CPU: step 2 of 2, reward 0.750, held-out pass@1 0.80 after step 2."
    )
    assert shown[0].data["image/png"] != shown[-1].data["image/png"]


def test_outside_a_notebook_the_plot_is_a_line_per_evaluation(capsys):
    plot = LivePlot(2, "RECORDED on CPU")
    for record in RUN:
        plot(record)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and all(line.startswith("RECORDED on CPU: step") for line in lines)


def measured(twin: Path = TWIN) -> list[str]:
    return re.findall(r'page\.measure\(\s*"([^"]+)"', twin.read_text(encoding="utf-8"))


def test_the_shipped_recording_has_what_the_page_measures():
    found = json.loads(
        (data_folder() / "runs" / live_or_replay.RECORDED).read_text(encoding="utf-8")
    )
    assert set(found) == {"header", *measured(), *measured(BESIDE)}
    assert found["header"]["device"] == "cpu" and found["header"]["model"] == "shipped"
    page = Page(Mode("replay", "test"))
    rewards = series(page.measure("run", pytest.fail), "reward")
    assert list(rewards) == list(range(1, 41)) and rewards[40] > 0.8


def test_two_pages_write_one_recording(tmp_path):
    path = tmp_path / "page.json"
    Page(Mode("cpu", "test"), record=path).measure("base", lambda: 1)
    Page(Mode("cpu", "test"), record=path).measure("habits", lambda: 2)
    other = Page(Mode("cpu", "test"), record=path)
    found = json.loads(path.read_text(encoding="utf-8"))
    assert (found["base"], found["habits"], found["header"]) == (1, 2, other.header)
    path.write_text(json.dumps(found | {"header": {"machine": "another"}}), encoding="utf-8")
    Page(Mode("cpu", "test"), record=path).measure("habits", lambda: 3)
    assert set(json.loads(path.read_text(encoding="utf-8"))) == {"header", "habits"}


@pytest.mark.parametrize("twin", [TWIN, BESIDE], ids=["lesson", "statements"])
def test_the_page_is_a_plain_script_that_needs_no_jupyter(twin, tmp_path):
    """In replay mode, in an empty folder, with everything of Jupyter forbidden."""
    code = (
        "import runpy, sys\n"
        "for name in ('IPython', 'ipykernel', 'ipywidgets', 'jupyter_client', 'nbformat'):\n"
        "    sys.modules[name] = None\n"
        f"runpy.run_path({str(twin)!r}, run_name='__main__')\n"
    )
    environment = {**os.environ, "RLNB_MODE": "replay", "OMP_NUM_THREADS": "1"}
    environment["RLNB_PROGRESS"] = ""  # as on a box where nobody has set anything
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True,
        text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[1].strip() == "REPLAY"
    for name in measured(twin):
        assert f"[RECORDED, not measured now: {name}]" in done.stdout
    assert "RECORDED on CPU: step 40 of 40" in done.stdout
    assert "opens here as soon as" not in done.stdout  # nobody can press: answers stand open
    assert "LIVE" not in done.stdout
    assert list(tmp_path.iterdir()) == []
