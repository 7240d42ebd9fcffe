"""Page 21 in three modes: live on CUDA, live on a CPU, or a replay of recorded results.

    page = open_page()                              # says the mode in large letters
    model, tokenizer = page.load()
    base = page.measure("base", lambda: evaluate(model, tokenizer, task))

The same cells serve all modes. `measure` runs its function in the live modes; in a replay it gives
back what was recorded under that name, and says so each time. Environment variables, for a page
that runs as a script:

    RLNB_MODE     cuda, cpu or replay; without it, what is there decides
    RLNB_RECORD   a .json file: a live page writes what it measured, for a later replay. The lesson
                  and its statements page may write to one file
    RLNB_REPLAY   such a file in place of the one that ships with the course
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from rlnb.classroom.figures import Bundle
from rlnb.classroom.live_plot import LivePlot
from rlnb.classroom.notebook_display import display, in_notebook
from rlnb.training import TASKS, BadInput, BaseRecipe, Recipe, data_folder, load, train_base
from rlnb.training.memory import OutOfMemory
from rlnb.training.metrics_file import environment, pack, unpack
from rlnb.training.sampling.graph_decoder import make_way
from rlnb.training.studies.gpu_budget import GB
from rlnb.training.studies.gpu_plans import Plan, need, plans_for, seconds_of
from rlnb.training.studies.gpu_time import CARDS, Card, card_named

__all__ = [
    "CPU",
    "NAMES",
    "RECORDED",
    "Mode",
    "Page",
    "Plan",
    "expected_seconds",
    "open_page",
    "pick_mode",
    "show",
]

NAMES = ("cuda", "cpu", "replay")
RECORDED = "page_19_cpu.json"  # in data/runs
PATIENCE = 600.0  # seconds; a CPU page that would take longer becomes a replay


CPU = Plan("tiny", 0, Recipe(steps=40, eval_every=20))


@dataclass(frozen=True)
class Mode:
    """A name of NAMES, why it was taken, what is trained, and what is next if bytes run out."""

    name: str
    why: str
    plan: Plan = CPU
    next: tuple[Plan, ...] = ()

    @property
    def live(self) -> bool:
        return self.name != "replay"

    @property
    def device(self) -> str:
        return "cuda" if self.name == "cuda" else "cpu"


def pick_mode(
    asked: str | None = None, *, cuda: bool, free: float = 0.0, seconds: float | None = None,
    card: Card = CARDS["H200 SXM"],  # noqa: B008  (frozen)
) -> Mode:  # fmt: skip
    """The mode of a page. Raises BadInput for an unknown name, and for cuda where there is none.

    asked: one of NAMES, or None (or "auto") to let the machine decide: CUDA where there is one,
    with the first of `plans_for` the `free` bytes of this card; otherwise the CPU, unless the page
    would take more than ten minutes of the `seconds` it is expected to take; then a replay.

    >>> pick_mode(cuda=False).name, pick_mode(cuda=True, free=80e9).name
    ('cpu', 'cuda')
    >>> pick_mode("replay", cuda=True).name, pick_mode(cuda=False, seconds=3600.0).name
    ('replay', 'replay')
    """
    asked = None if asked in (None, "", "auto") else asked.lower()
    if asked is not None and asked not in NAMES:
        raise BadInput(f"mode: there is no {asked!r}; give one of {', '.join(NAMES)}, or auto")
    if asked == "cuda" and not cuda:
        raise BadInput("mode: cuda was asked for, and torch sees no GPU; take cpu or replay")
    why = "it was asked for" if asked else None
    if asked == "cuda" or (asked is None and cuda):
        plan, *others = plans_for(free, card)
        minutes = max(1, round(seconds_of(plan, card) / 60))
        text = (
            f"{why or 'torch sees a GPU'}; preset {plan.preset!r}, which takes "
            f"{need(plan) / GB:.1f} of {free / GB:.0f} GB (counted) and about {minutes} min "
            "(estimated)"
        )
        return Mode("cuda", text, plan, tuple(others))
    if asked is None and seconds is not None and seconds > PATIENCE:
        return Mode("replay", f"live, this page would take about {seconds / 60:.0f} minutes here")
    if asked == "replay":
        return Mode("replay", why)
    return Mode("cpu", why or "torch sees no GPU")


def expected_seconds() -> float:
    """What the CPU page will take, from the time that 128 sampled answers take here.

    Sampling them takes 1/250 of the page: 60 s where it takes 0.24 s.
    """
    from rlnb.training import evaluation

    model, tokenizer = load(data_folder() / "model", device="cpu")
    times = []
    for _ in range(2):  # the first call warms up
        start = time.perf_counter()
        evaluation.pass_rate(model, tokenizer, TASKS["chain"], prompts=16, num_generations=8)
        times.append(time.perf_counter() - start)
    return 250 * min(times)


class Page:
    """What the cells of page 21 ask for, in the mode that `open_page` found."""

    def __init__(self, mode: Mode, *, replay: Path | None = None, record: Path | None = None):
        self.mode, self._record, self._base = mode, record, None
        self._handed: Any = None  # the last copy of the base that `load` gave
        self._found: dict[str, Any] = {}
        if not mode.live:
            path = replay or data_folder() / "runs" / RECORDED
            if not path.is_file():
                raise BadInput(
                    f"replay: there is no recording at {str(path)!r}; see "
                    "data/runs/README.md, or choose another mode"
                )
            self._found = json.loads(path.read_text(encoding="utf-8"))
            self.header = self._found["header"]
        else:
            where = environment(torch.device(mode.device))
            self.header = {"model": self._model(), "mode": mode.name, **where}
            if record is not None and record.is_file():  # of the page beside this one
                written = json.loads(record.read_text(encoding="utf-8"))
                self._found = written if written.get("header") == self.header else {}

    @property
    def known(self) -> bool:
        """True for the shipped model, whose numbers the text quotes."""
        return self.header["model"] == "shipped"

    def _model(self) -> str:
        plan = self.mode.plan
        return f"{plan.preset}, {plan.base_steps} steps" if plan.base_steps else "shipped"

    @property
    def recipe(self) -> Recipe:
        return self.mode.plan.recipe

    def load(self):
        """A fresh copy of the base model, and the tokenizer.

        The shipped one on a CPU and in a replay; on CUDA the plan's, trained from nothing by the
        first call.
        """
        plan = self.mode.plan
        if not plan.base_steps:
            return load(data_folder() / "model", device=self.mode.device)
        if self._base is None:
            # In one piece: a GPU waits for launches, not for the padding that pieces save.
            recipe = BaseRecipe(steps=plan.base_steps, preset=plan.preset, micro_batches=1)
            try:
                self._base = train_base(TASKS["chain"], recipe, device=self.mode.device)[:2]
            except torch.OutOfMemoryError:
                pass  # and out of the handler, which holds on to the tensors
            if self._base is None:
                self._fall_back("the base")
                return self.load()
        model, tokenizer = self._base
        self._handed = copy.deepcopy(model)
        return self._handed, tokenizer

    def _fall_back(self, what: str) -> None:
        """The next plan, and a sentence. A base that is there stays: the run alone gets smaller.

        Raises OutOfMemory where there is no smaller plan.
        """
        old = self.mode.plan
        if not self.mode.next:
            raise OutOfMemory(
                f"memory: the card has too few bytes for {what} of the smallest plan; end what "
                'else runs on it, or open the page with open_page("cpu")'
            )
        plan, *others = self.mode.next
        if self._base is not None:
            types = ("sampler_dtype", "autocast", "tf32", "torch_compile")
            kept = {name: getattr(old.recipe, name) for name in types}
            plan = replace(old, recipe=replace(plan.recipe, **kept))
        self.mode = replace(self.mode, plan=plan, next=tuple(others))
        if self._base is not None and self._handed is not None:
            self._handed.load_state_dict(self._base[0].state_dict())
        else:
            self.header["model"] = self._model()
        make_way(self.mode.device, float("inf"))
        if self.mode.device == "cuda":
            torch.cuda.empty_cache()
        recipe = plan.recipe
        print(
            f"[The card has too few bytes for {what}: going on with preset {plan.preset!r}, "
            f"{recipe.prompts} prompts x {recipe.num_generations} answers a step]"
        )

    def measure(self, name: str, function: Callable[[], Any]) -> Any:
        """What the function returns; in a replay, what was recorded under that name instead.

        The value must be made of numbers, texts, lists and dictionaries. Where a GPU's bytes run
        out, a sentence says so, the model that `load` gave last is the base again, and the function
        runs once more under the next smaller plan. Raises BadInput where the recording does not
        have the value.
        """
        if self.mode.live:
            try:
                value, fitted = function(), True
            except (torch.OutOfMemoryError, OutOfMemory):
                if self.mode.name != "cuda":
                    raise
                value, fitted = None, False
            if not fitted:  # out of the handler, which holds on to the tensors
                self._fall_back(repr(name))
                return self.measure(name, function)
            self._store(name, value)
            return value
        if name not in self._found:
            raise BadInput(f"replay: the recording has no {name!r}; record the page again")
        print(f"[RECORDED, not measured now: {name}]")
        value = self._found[name]
        return [r for row in value for r in unpack(row)] if _is_run(value) else value

    def _store(self, name: str, value: Any) -> None:
        if self._record is None:
            return
        self._found = {"header": self.header, **self._found}
        self._found[name] = pack(value) if _is_run(value) else value
        lines = [
            f" {json.dumps(key)}: {json.dumps(_short(item), separators=(',', ':'))}"
            for key, item in self._found.items()
        ]
        self._record.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    def watch(self) -> LivePlot:
        """A plot that follows a run: hand it to `train` as `watch`."""
        where = self.mode.device.upper()
        return LivePlot(self.recipe.steps, f"LIVE on {where}, by this cell")

    def show_run(self, records: list[dict[str, Any]]) -> None:
        """In a replay, the recorded curve under its own name; a live one was drawn as it ran."""
        if not self.mode.live:
            steps = max(r["step"] for r in records if r["record"] == "step")
            label = f"RECORDED on {self.header['device'].upper()}"
            plot = LivePlot(steps, label, every=steps, replayed=True)
            for record in records:
                plot(record)

    def expect(self, *conditions: bool) -> None:
        """An assertion about the shipped model; of another model it is only said what differs."""
        if self.known:
            assert all(conditions), f"holds of the shipped model, not here: {conditions}"
        elif not all(conditions):
            print(
                f"[differs from the shipped model: {conditions.count(False)} of "
                f"{len(conditions)} statements do not hold here]"
            )

    def banner(self) -> Bundle:
        """The mode in large letters; in a terminal, in capitals between two lines."""
        header, name = self.header, self.mode.name
        where = f"{header['machine']}, torch {header['torch']}"
        if name == "replay":
            title = "REPLAY"
            text = (
                f"Recorded on {where}, {header['model']} model. Only what takes a moment is "
                "computed now, with the shipped model."
            )
        elif name == "cpu":
            title = "LIVE ON THE CPU"
            text = "A small model; about a minute on an idle laptop."
        else:
            title = "LIVE ON CUDA"
            text = f"{where}."
        text = f"{text} This mode, because {self.mode.why}."
        html = (
            f'<div style="font-size:2.4em;font-weight:bold;line-height:1.3">{title}</div>'
            f"<div>{text}</div>"
        )
        line = "=" * 60
        return Bundle({"text/html": html, "text/plain": f"{line}\n  {title}\n{line}\n{text}"})


def _is_run(value: Any) -> bool:
    """True for the records of a run, whose steps are stored as columns."""
    return isinstance(value, list) and isinstance(value[0], dict) and "record" in value[0]


def _short(value: Any) -> Any:
    """Numbers to five significant digits, for the file."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_short(item) for item in value]
    return value


def show(bundle: Bundle) -> None:
    """Displays a bundle, or prints its text where there is no notebook."""
    if in_notebook():
        display(bundle)
    else:
        print(bundle.data["text/plain"])


def open_page(mode: str | None = None) -> Page:
    """The page in the mode asked for, by the argument or RLNB_MODE, or in the one that fits.

    Prints the mode in large letters. Raises BadInput for a mode that cannot be had.
    """
    torch.set_num_threads(1)  # as the recorded runs; two threads add up in another order
    asked = mode or os.environ.get("RLNB_MODE")
    cuda = torch.cuda.is_available()
    free, known = 0.0, CARDS["H200 SXM"]
    if cuda and asked not in ("cpu", "replay"):
        free, total = torch.cuda.mem_get_info()
        units = torch.cuda.get_device_capability() >= (8, 0)  # bfloat16 and TF32 in hardware
        known = card_named(torch.cuda.get_device_name(), total, units)
    seconds = None if cuda or asked not in (None, "", "auto") else expected_seconds()
    found = pick_mode(asked, cuda=cuda, free=free, seconds=seconds, card=known)
    paths = {
        name: Path(os.environ[variable]) if os.environ.get(variable) else None
        for name, variable in (("replay", "RLNB_REPLAY"), ("record", "RLNB_RECORD"))
    }
    page = Page(found, **paths)
    show(page.banner())
    return page
