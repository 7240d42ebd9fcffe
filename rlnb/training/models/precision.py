"""Number formats and memory: switches of a run. Weights, gradients and AdamW stay as loaded.

sampler_copy, refresh   rollouts from a bfloat16 copy, made anew from the master weights
autocast                matrix products of the forward pass in bfloat16, or float16
recomputed_layers       gradient checkpointing: activations of one layer at a time
compiled_layers         the layers' elementwise work fused by torch.compile, beside the plain path
tensor_float_32         float32 products with 10 bits of mantissa, on a GPU that has them
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from rlnb.training.errors import BadInput

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = [
    "AUTOCAST",
    "DTYPES",
    "SAMPLER_DTYPES",
    "autocast",
    "compiled_layers",
    "recomputed_layers",
    "refresh",
    "sampler_copy",
    "tensor_float_32",
]

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
SAMPLER_DTYPES = {"same": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
# float16 ends at 65,504 and, unlike bfloat16, at 6e-8: its gradients need a loss scale
AUTOCAST = {"off": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


def sampler_copy(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """A copy with parameters in `dtype`, to sample from; `refresh` brings it up to date.

    Buffers keep their type: rotary frequencies rounded to bfloat16 are off by up to 0.2 %, which
    at token 300 is more than half a place.
    """
    engine = copy.deepcopy(model).requires_grad_(False).eval()
    for parameter in engine.parameters():  # a tied head is one parameter, and stays tied
        parameter.grad = None
        parameter.data = parameter.data.to(dtype)
    return engine


@torch.no_grad()
def refresh(engine: PreTrainedModel, model: PreTrainedModel) -> None:
    """Rounds the master weights of `model` into its `sampler_copy`."""
    for old, new in zip(engine.parameters(), model.parameters(), strict=True):
        old.copy_(new)


def autocast(device: torch.device, dtype: torch.dtype | None) -> AbstractContextManager:
    """Matrix products in `dtype` inside, reductions and weights in float32; None changes nothing.

    Old and new log-probabilities must both be taken inside, or the ratio is not 1 on-policy.
    """
    return nullcontext() if dtype is None else torch.autocast(device.type, dtype=dtype)


@contextmanager
def recomputed_layers(model: nn.Module, on: bool = True) -> Iterator[None]:
    """Layers called inside keep only their input, and compute the rest again in backward.

    The gradient is the same; memory falls from all layers' activations to one layer's, for one
    more forward pass. Unlike transformers' own switch it needs no training mode, so dropout stays
    off. Raises BadInput for a model whose layers transformers cannot checkpoint either.
    """
    blocks = _layers(model) if on else []
    if on and not blocks:
        raise BadInput(
            f"gradient_checkpointing: {type(model).__name__} has no layers that can be recomputed; "
            "leave it off"
        )

    def again(block: nn.Module) -> Callable[..., Any]:
        return partial(checkpoint, block.forward, use_reentrant=False, preserve_rng_state=False)

    with _instead(blocks, again):
        yield


@contextmanager
def compiled_layers(model: nn.Module, on: bool = True, backend: str = "inductor") -> Iterator[None]:
    """Layers called inside run through torch.compile: one compilation for all layers of a kind.

    Norms, rotation, residual sums and the gate are fused into few kernels, so that a layer's
    elementwise work reads and writes memory once and not some ten times. Values and gradients are
    those of the plain path up to rounding. Enter it around every forward pass that a ratio
    compares. Where nothing can be compiled (no C++ compiler, no Triton), a warning says so, once,
    and the plain path runs. On an H100 the gradients of both paths agreed to 1e-4.
    """
    blocks = _layers(model) if on else []
    if blocks and not _compiles(backend, next(model.parameters()).device.type):
        blocks = []
    with _instead(blocks, lambda block: partial(_compiled(type(block), backend), block)):
        yield


@cache
def _compiled(kind: type[nn.Module], backend: str) -> Callable[..., Any]:
    return torch.compile(kind.forward, dynamic=True, backend=backend)


@cache
def _compiles(backend: str, device: str) -> bool:
    """Whether torch.compile works here, asked of a line of arithmetic."""
    x = torch.ones(8, device=device)
    try:
        torch.compile(lambda y: torch.nn.functional.silu(y) * y, backend=backend)(x)
    except Exception as error:  # a missing compiler, a broken Triton, an old driver: many kinds
        first = str(error).strip().partition("\n")[0][:200]
        warnings.warn(
            f"torch_compile: nothing can be compiled here ({first}); layers run kernel by kernel "
            "instead, with the same result, but more slowly",
            stacklevel=4,
        )
        return False
    return True


def _layers(model: nn.Module) -> list[nn.Module]:
    """The model's blocks, each called once in a forward pass."""
    from transformers.modeling_layers import GradientCheckpointingLayer  # slow: asked for here

    return [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]


@contextmanager
def _instead(
    blocks: list[nn.Module], made: Callable[[nn.Module], Callable[..., Any]]
) -> Iterator[None]:
    """The blocks' forward replaced inside, and put back, whatever was there."""
    before = [vars(block).get("forward") for block in blocks]
    for block in blocks:
        block.forward = made(block)
    try:
        yield
    finally:
        for block, old in zip(blocks, before, strict=True):
            if old is None:
                del block.forward  # the class's own is seen again
            else:
                block.forward = old


@contextmanager
def tensor_float_32(on: bool = True) -> Iterator[None]:
    """float32 matrix products in TF32 inside; outside as it was. On a CPU it changes nothing."""
    before = torch.get_float32_matmul_precision()
    if on:
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
