"""Which device a model is put on."""

from __future__ import annotations

import re

import torch

from rlnb.training.errors import BadInput

__all__ = ["pick_device", "use_threads"]

MOST_THREADS = 1024  # far above any machine's; a typing error asks the system for millions


def pick_device(device: str = "auto") -> torch.device:
    """`auto` is CUDA where there is one, the CPU otherwise; `cpu`, `cuda` and `cuda:1` are asked.

    Raises BadInput for another name, and for a GPU that is not there.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", device):
        raise BadInput(f"device: got {device!r}, expected auto, cpu, cuda, or cuda:1 for a second")
    if device != "cpu":
        there = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if int(device.partition(":")[2] or 0) >= there:
            why = "this torch was built without CUDA" if torch.version.cuda is None else (
                f"torch sees {there} such devices")  # fmt: skip
            raise BadInput(f"device: got {device!r}, but {why}; use --device cpu, or auto")
    return torch.device(device)


def use_threads(threads: int) -> None:
    """Sets torch's CPU threads. Raises BadInput outside 1 to 1024."""
    if not 1 <= threads <= MOST_THREADS:
        raise BadInput(f"threads: got {threads}, expected 1 to {MOST_THREADS}")
    torch.set_num_threads(threads)
