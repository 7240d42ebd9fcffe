"""Bytes on one GPU of several that train and write together: ZeRO's stages, an engine, its cache.

    on_one_gpu(QWEN_7B, Cluster(gpus=8, stage=3))        GB by what holds them

A count of tensors like `gpu_budget`, which counts one GPU in more detail. ZeRO: Rajbhandari et al.
2020, arXiv 1910.02054, section 5: stage 1 splits the optimizer's state over the GPUs, 2 the
gradients too, 3 the weights too (FSDP's full sharding).
"""

from __future__ import annotations

from dataclasses import dataclass

from rlnb.training.errors import BadInput
from rlnb.training.models.presets import Preset
from rlnb.training.studies.gpu_budget import GB, Precision, kept_per_token

__all__ = [
    "LLAMA2_7B", "QWEN_7B", "Cluster", "Model", "kv_bytes_per_token", "memory_bytes",
    "on_one_gpu", "peak_on_one_gpu",
]  # fmt: skip


@dataclass(frozen=True)
class Model:
    """A layout, its vocabulary, and how many numbers it has, embedding and head included."""

    layout: Preset
    vocabulary: int
    parameters: float


# hidden, layers, heads, kv_heads, head_dim, intermediate: from the models' config.json
QWEN_7B = Model(Preset(3584, 28, 28, 4, 128, 18944), 152_064, 7.62e9)
LLAMA2_7B = Model(Preset(4096, 32, 32, 32, 128, 11008), 32_000, 6.74e9)


@dataclass(frozen=True)
class Cluster:
    """gpus that all do both in turn. stage: of ZeRO. answers x tokens: written at the same time, by
    all GPUs together. frozen: reference or reward models, trained: policy, and critic. parked: the
    trainer's state waits in the host's memory while the GPUs write, and the engine's copy and
    cache are dropped while they train."""

    gpus: int = 8
    stage: int = 1
    answers: int = 512
    tokens: int = 8192
    trained: int = 1
    frozen: int = 1
    parked: bool = False

    def __post_init__(self):
        if self.stage not in (0, 1, 2, 3):
            raise BadInput(f"stage: got {self.stage}, expected 0, 1, 2 or 3")
        for name in ("gpus", "answers", "tokens", "trained"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name}: got {getattr(self, name)}, expected 1 or more")
        if self.frozen < 0:
            raise BadInput(f"frozen: got {self.frozen}, expected 0 or more")


def memory_bytes(
    parameters: float, trained: int = 1, frozen: int = 0, gpus: int = 1, stage: int = 0
) -> float:
    """Bytes on each of `gpus` for models of so many parameters: weights and what AdamW needs.

    A trained one has bfloat16 weights and gradients, 2 + 2, and in float32 a master copy and two
    moments, 4 + 4 + 4; a frozen one has its weights, 2.

    >>> [memory_bytes(1, *models) for models in ((1, 0), (1, 1), (1, 2), (2, 2))]
    [16.0, 18.0, 20.0, 36.0]
    >>> [memory_bytes(8, gpus=8, stage=stage) for stage in (0, 1, 2, 3)]
    [128.0, 44.0, 30.0, 16.0]
    """
    weights, gradients, optimizer = (gpus if stage >= least else 1 for least in (3, 2, 1))
    each = 2 / weights + 2 / gradients + 12 / optimizer
    return parameters * (trained * each + frozen * 2 / weights)


def kv_bytes_per_token(layout: Preset, size: int = 2) -> int:
    """2 (keys and values) x layers x kv_heads x head_dim x bytes of a number.

    >>> kv_bytes_per_token(QWEN_7B.layout), kv_bytes_per_token(LLAMA2_7B.layout)
    (57344, 524288)
    """
    return 2 * layout.layers * layout.kv_heads * layout.head_dim * size


def on_one_gpu(model: Model, cluster: Cluster) -> dict[str, float]:
    """GB on each GPU by what holds them.

    trainer: trained models with gradients and optimizer; frozen models; engine: a whole bfloat16
    copy of the policy that writes; cache: keys and values of this GPU's share of the answers, all
    at full length; activations: one answer at a time, layers recomputed, and 2**26 float32 logits
    three times.
    """
    layout, tokens = model.layout, cluster.tokens
    state = memory_bytes(model.parameters, cluster.trained, 0, cluster.gpus, cluster.stage)
    whole = memory_bytes(model.parameters, cluster.trained, cluster.frozen, cluster.gpus,
                         cluster.stage)  # fmt: skip
    cache = cluster.answers * tokens * kv_bytes_per_token(layout) / cluster.gpus
    kept = tokens * (layout.layers * layout.hidden * 2 + kept_per_token(layout, Precision()))
    logits = 12 * min(tokens * model.vocabulary, 2**26)
    parts = {
        "trainer": state,
        "frozen models": whole - state,
        "engine": 2 * model.parameters,
        "cache": cache,
        "activations": kept + logits,
    }
    return {name: size / GB for name, size in parts.items()}


def peak_on_one_gpu(parts: dict[str, float], parked: bool = False) -> float:
    """GB at the fullest moment: writing or training, everything else resident unless `parked`."""
    held = parts["trainer"] + parts["frozen models"]
    writing = parts["engine"] + parts["cache"]
    if parked:
        return max(writing, held + parts["activations"])
    return held + parts["engine"] + max(parts["cache"], parts["activations"])
