"""A run's records on a dashboard while it trains: TensorBoard or Weights & Biases.

Both are adapters on the hook that the loop has, `train(watch=...)`; metrics.jsonl is written all
the same and stays the record. Neither library is needed for anything else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rlnb.training.errors import BadInput, notice

__all__ = ["DASHBOARDS", "check_dashboard", "dashboard", "scalars"]

DASHBOARDS = ("none", "tensorboard", "wandb")
Watch = Callable[[dict[str, Any]], None]


def check_dashboard(name: str) -> None:
    """Raises BadInput for a name not in DASHBOARDS, and where its library is not installed."""
    if name not in DASHBOARDS:
        raise BadInput(f"log: got {name!r}, expected one of {', '.join(DASHBOARDS)}")
    if name != "none" and find_spec(name) is None:
        raise BadInput(
            f"log: {name} is not installed; `python -m pip install {name}`, or leave --log out: "
            "metrics.jsonl has every number"
        )


def scalars(record: dict[str, Any]) -> dict[str, float]:
    """{"train/reward": 0.5, ...} of a step, {"eval/pass@1": ...} of an evaluation, {} of others."""
    group = {"step": "train", "eval": "eval"}.get(record["record"])
    if group is None:
        return {}
    return {
        f"{group}/{name}": value
        for name, value in record.items()
        if name not in ("record", "step") and isinstance(value, (int, float))
    }


@contextmanager
def dashboard(name: str, folder: Path) -> Iterator[Watch | None]:
    """A `watch` for `train`, which writes to the dashboard of this name; None for "none".

    folder: of the run; TensorBoard's files go to folder/tensorboard, those of wandb to
    folder/wandb. What a dashboard raises is said once on stderr and stops the dashboard, not the
    run. After a resume the steps since the checkpoint are sent again, over the old ones.
    """
    check_dashboard(name)
    if name == "none":
        yield None
        return
    sink = {"tensorboard": _TensorBoard, "wandb": _WandB}[name](folder)
    broken = False

    def guarded(call: Callable[[], None]) -> None:
        nonlocal broken
        if broken:
            return
        try:
            call()
        except Exception as error:  # the network, a login, a disk: none of them is the run's
            broken = True
            notice(f"log: {name} failed ({type(error).__name__}: {error}); the run goes on without")

    try:
        yield lambda record: guarded(lambda: sink(record))
    finally:
        guarded(sink.close)


class _TensorBoard:
    def __init__(self, folder: Path):
        self.folder, self.writer = folder / "tensorboard", None

    def __call__(self, record: dict[str, Any]) -> None:
        if self.writer is None:
            from torch.utils.tensorboard import SummaryWriter

            # a resumed run hides what was sent from this step on before
            self.writer = SummaryWriter(str(self.folder), purge_step=record.get("step", 0))
        if record["record"] == "header":
            self.writer.add_text("run", f"    {json.dumps(record)}")
        elif record["record"] == "sample":
            text = f"    {record['prompt']}{record['completion']}".replace("\n", "\n    ")
            self.writer.add_text("sample", f"reward {record['reward']}\n\n{text}", record["step"])
        for name, value in scalars(record).items():
            self.writer.add_scalar(name, value, record["step"])

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class _WandB:
    def __init__(self, folder: Path):
        self.folder, self.run = folder, None

    def __call__(self, record: dict[str, Any]) -> None:
        if self.run is None:
            import wandb

            mark = self.folder / "wandb_run.txt"  # one run there for one run here, resumed or not
            known = mark.read_text(encoding="utf-8") if mark.is_file() else None
            self.run = wandb.init(
                project="rlnb", name=self.folder.name, dir=str(self.folder), id=known,
                resume="allow",
            )  # fmt: skip
            mark.write_text(str(self.run.id), encoding="utf-8")
            # steps come by name: wandb's own counter would refuse those that are sent again
            self.run.define_metric("*", step_metric="step")
        if record["record"] == "header":
            self.run.config.update({k: v for k, v in record.items() if k != "record"})
        elif found := scalars(record):
            self.run.log({**found, "step": record["step"]})

    def close(self) -> None:
        if self.run is not None:
            self.run.finish()
