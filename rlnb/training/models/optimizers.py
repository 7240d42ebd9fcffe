"""AdamW of a run: torch's, or bitsandbytes' with moments of one byte; and the scale of its loss."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from rlnb.training.errors import BadInput

__all__ = ["OPTIMIZERS", "adamw", "loss_scaler"]

OPTIMIZERS = ("adamw", "adamw8bit")


def adamw(
    parameters: Iterable[nn.Parameter],
    kind: str,
    learning_rate: float,
    betas: tuple[float, float],
    weight_decay: float,
    device: torch.device,
) -> torch.optim.Optimizer:
    """AdamW, fused on a GPU; "adamw8bit" is that of bitsandbytes (Dettmers et al. 2021, arXiv
    2110.02861): moments in blocks of 256 with a scale each, those of small tensors in float32.

    Raises BadInput if bitsandbytes is asked for and missing.
    """
    found: Any = torch.optim.AdamW
    more: dict[str, Any] = {"fused": device.type == "cuda"}  # one pass over weights and moments
    if kind == "adamw8bit":
        more = {}
        try:
            from bitsandbytes.optim import AdamW8bit as found
        except Exception as error:  # missing, or built for another CUDA: several kinds
            raise BadInput(
                f"optim: adamw8bit needs the library bitsandbytes, which cannot be imported "
                f"({error}); `pip install bitsandbytes`, or take --optim adamw"
            ) from error
    return found(parameters, lr=learning_rate, betas=betas, weight_decay=weight_decay, **more)


def loss_scaler(device: torch.device, autocast: str) -> torch.amp.GradScaler:
    """What multiplies the loss: 65536 at first under float16, else nothing (switched off)."""
    scaler = torch.amp.GradScaler(device.type, enabled=autocast == "float16")
    scaler.scale(torch.zeros((), device=device))  # or there is no scale before the first loss
    return scaler
