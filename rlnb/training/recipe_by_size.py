"""The numbers a run begins with, by the size of its model; whatever is given replaces them.

A toy learns at 3e-4 in answers of 72 tokens; half a billion pretrained weights forget what they
know at that rate, and do not get to the end of a sentence.

| parameters | what trains | learning rate | answer | rows at once | weights held in |
|---|---|---|---|---|---|
| below 0.1B | all | 3e-4 | 72 | 64 | float32 |
| below 1B | all | 1e-6 | 256 | 8 | float32, sampled and multiplied in bfloat16 |
| above | LoRA, r = 32 | 1e-5 | 512 | 4, layers recomputed | bfloat16, factors float32 |

From 0.1B on there are 100 steps, the first five warm up, and an evaluation every 25 steps asks 64
problems twice. 1e-6 is TRL's default for GRPO; factors take about ten times the rate of all weights
(Schulman et al. 2025, "LoRA Without Regret"). None of it was tuned here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from rlnb.training.models.adapters import base_of
from rlnb.training.models.hub import model_folder
from rlnb.training.recipe import Recipe
from rlnb.training.studies.gpu_budget import shape_of

__all__ = ["lower_type", "parameters_of", "recipe_for"]

TOY, LARGE = 1e8, 1e9  # parameters
_SIZE = re.compile(r"(?<![A-Za-z0-9.])([0-9]+(?:\.[0-9]+)?)([BM])(?![A-Za-z0-9])", re.IGNORECASE)


def recipe_for(parameters: float, lower: str = "bfloat16", **given: Any) -> Recipe:
    """The recipe for a model of so many parameters, with the fields that are `given` as given.

    lower: the type of two bytes that the device computes in (`lower_type`), "float32" for none. In
    float16 nothing is stored: it ends at 65,504, and pretrained residual streams come near.
    Raises BadInput as Recipe does.

    >>> recipe_for(308_016) == Recipe()
    True
    >>> half = recipe_for(494_032_768, steps=20)
    >>> half.steps, half.learning_rate, half.max_completion_length, half.autocast
    (20, 1e-06, 256, 'bfloat16')
    >>> recipe_for(4e9).lora_r, recipe_for(1.5e9, lower="float16").dtype
    (32, 'float32')
    """
    if parameters < TOY:
        return Recipe(**given)
    large = parameters >= LARGE
    rank = given.get("lora_r", 32 if large else 0)
    units, stored = lower != "float32", lower == "bfloat16"  # float16 for products alone
    numbers: dict[str, Any] = {
        "steps": 100,
        "learning_rate": 1e-5 if rank else 1e-6,
        "warmup_steps": 5,
        "max_completion_length": 512 if large else 256,
        "micro_batch": 4 if large else 8,
        "gradient_checkpointing": large,
        "lora_r": rank,
        "dtype": lower if rank and stored else "float32",
        "sampler_dtype": lower if stored and not rank else "same",
        "autocast": lower if units else "off",
        "tf32": stored,
        "eval_every": 25,
        "eval_prompts": 64,
        "eval_generations": 2,
        "checkpoint_every": 25,
    }
    return Recipe(**(numbers | given))


def lower_type(device: torch.device) -> str:
    """The type of two bytes that a device has units for; a CPU is taken to have none.

    float16 on a GPU without bfloat16, such as a T4.
    """
    if device.type != "cuda":
        return "float32"
    return "bfloat16" if torch.cuda.get_device_capability(device) >= (8, 0) else "float16"


def parameters_of(name: str | Path) -> float:
    """How many parameters the model has, before it is loaded; 0 where there is no such folder.

    Of a folder, from its config.json, or else from the bytes of its weights, taken as two each; of
    a hub id from its name, and only where that does not say, from the model, fetched.

    >>> parameters_of("Qwen/Qwen2.5-0.5B-Instruct"), parameters_of("Qwen/Qwen3-4B-Instruct-2507")
    (500000000.0, 4000000000.0)
    """
    path = Path(name)
    if not path.is_dir():
        if isinstance(name, Path) or "/" not in name or path.parent.exists():
            return 0.0
        if found := _SIZE.findall(name.rpartition("/")[2]):
            number, unit = found[-1]
            return float(number) * (1e9 if unit in "bB" else 1e6)
        path = model_folder(name)
    if (base := base_of(path)) is not None:
        return parameters_of(base)
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        shape = shape_of(SimpleNamespace(**config))  # type: ignore[arg-type]
    except (OSError, ValueError, TypeError, AttributeError):
        shape = None
    if shape is not None:
        return shape.parameters
    return sum(file.stat().st_size for file in path.glob("*.safetensors")) / 2
