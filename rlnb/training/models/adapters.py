"""LoRA through `peft`: a small trained factor beside every frozen weight of the layers.

    y = W x + (alpha / r) B A x      A (r, in), B (out, r); B starts at 0, so the model at its base

(Hu et al. 2021, arXiv 2106.09685, eq. 3). The base is there all the time: with the factors switched
off it is the reference of a KL, without a second copy. `peft` is imported when it is asked for;
where it is missing, a sentence says so.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file
from torch import nn

from rlnb.training.errors import BadInput
from rlnb.training.models.precision import DTYPES

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = [
    "ADAPTER",
    "add_adapters",
    "base_of",
    "base_weights",
    "has_adapters",
    "merged",
    "put_back_adapters",
    "with_adapters",
    "without_adapters",
]

ADAPTER = "adapter_model.safetensors"


def _peft() -> Any:
    try:
        import peft
    except ImportError as error:
        raise BadInput(
            f"lora_r: adapters need the library peft, which cannot be imported ({error}); "
            "`pip install peft`, or leave --lora-r at 0"
        ) from error
    return peft


def has_adapters(model: nn.Module) -> bool:
    """Whether `add_adapters` was called on the model, or on the one it is a copy of."""
    return bool(getattr(model, "_hf_peft_config_loaded", False))


def add_adapters(
    model: PreTrainedModel, rank: int, alpha: float, *, dtype: str = "float32", seed: int = 0
) -> None:
    """Freezes the model, in `dtype`, and adds float32 factors to every linear map of its layers.

    In place. Embedding and head stay as they are. seed: A is drawn at random, and the process's
    random state is left as it was. Raises BadInput if `peft` is missing, if the model has factors
    already, or if `peft` finds nothing to add them to.
    """
    peft = _peft()
    if has_adapters(model):
        raise BadInput(
            "lora_r: the model has adapters already; load it anew, or merge them (`merged`)"
        )
    model.requires_grad_(False)
    for parameter in model.parameters():  # not the buffers: rotary frequencies would be rounded
        parameter.data = parameter.data.to(DTYPES[dtype])
    config = peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules="all-linear")
    with torch.random.fork_rng(devices=[model.device] if model.device.type == "cuda" else []):
        torch.manual_seed(seed % 2**63)
        try:
            model.add_adapter(config)
        except ValueError as error:
            raise BadInput(f"lora_r: peft cannot add adapters to this model: {error}") from error
    for parameter in _factors(model).values():
        parameter.data = parameter.data.float()
    model.eval()


def _layers(model: nn.Module) -> dict[str, Any]:
    """The linear maps with factors beside them, by name."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    return {name: m for name, m in model.named_modules() if isinstance(m, BaseTunerLayer)}


def _factors(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: p for name, p in model.named_parameters() if ".lora_" in name}


@contextmanager
def without_adapters(model: nn.Module) -> Iterator[None]:
    """The frozen base inside: factors are neither computed nor added. Not for a backward pass."""
    layers = _layers(model).values()
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)  # which lets the factors train again


def base_weights(model: nn.Module) -> dict[str, torch.Tensor]:
    """The frozen weights, under the names they have without factors."""
    state = model.state_dict()
    return {k.replace(".base_layer", ""): v for k, v in state.items() if ".lora_" not in k}


def merged(model: PreTrainedModel) -> PreTrainedModel:
    """A copy without factors whose weights are W + (alpha / r) B A, rounded to the base's type."""
    whole = copy.deepcopy(model).requires_grad_(False)
    for name, layer in _layers(whole).items():
        layer.merge()
        parent, _, last = name.rpartition(".")
        setattr(whole.get_submodule(parent), last, layer.get_base_layer())
    whole._hf_peft_config_loaded = False
    del whole.peft_config
    return whole


def put_back_adapters(model: PreTrainedModel, path: Path) -> None:
    """Loads saved factors in place. Raises RuntimeError if they are those of another model."""
    peft, saved = _peft(), load_file(path)
    own = peft.get_peft_model_state_dict(model)
    saved = {key.removeprefix("base_model.model."): value for key, value in saved.items()}
    shapes = ({k: v.shape for k, v in found.items()} for found in (own, saved))
    if next(shapes) != next(shapes):
        raise RuntimeError(f"the factors in {str(path)!r} have other names or shapes")
    peft.set_peft_model_state_dict(model, saved)


def base_of(folder: Path) -> str | None:
    """What an adapter's folder says its base is; None for the folder of a whole model."""
    config = folder / "adapter_config.json"
    if not config.is_file() or (folder / "config.json").is_file():
        return None
    name = json.loads(config.read_text(encoding="utf-8")).get("base_model_name_or_path")
    if not name:
        raise BadInput(
            f"model: {str(folder)!r} holds an adapter that does not name its base; give "
            "base_model_name_or_path in its adapter_config.json"
        )
    return name


def with_adapters(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """The model with the factors of an adapter's folder merged into it."""
    peft = _peft()
    try:
        model.add_adapter(peft.LoraConfig.from_pretrained(folder))
        put_back_adapters(model, folder / ADAPTER)
    except (OSError, ValueError, RuntimeError) as error:
        raise BadInput(f"model: the adapter in {str(folder)!r} does not fit: {error}") from error
    return merged(model)
