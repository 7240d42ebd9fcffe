"""Memory of a training step, and the time it takes at least, from shapes and a data sheet.

    memory(find_shape("0.5B"), Load(), Precision())      bytes, by what they hold
    bound(find_shape("0.5B"), Load(), Precision(), CARDS["L4"])   seconds, by phase

Nothing here was measured on a GPU. The memory is a count of tensors, without what an allocator
wastes, the context of CUDA (about half a GB) and temporary copies. The time is a bound from below:
no such step is faster on that card; how much slower a real one is, only a run can tell.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlnb.training.errors import BadInput
from rlnb.training.models.presets import PRESETS, Preset
from rlnb.training.sampling.scoring import CHUNK

__all__ = [
    "CARDS",
    "GB",
    "MODELS",
    "OPTIMIZERS",
    "SHAPES",
    "Card",
    "Load",
    "Precision",
    "Shape",
    "bound",
    "bytes_per_parameter",
    "find_shape",
    "kept_per_token",
    "memory",
    "peak",
]

GB = 1e9


@dataclass(frozen=True)
class Shape:
    """A model's layout (`presets`) and its vocabulary, embedding and head tied."""

    layout: Preset
    vocabulary: int

    @property
    def parameters(self) -> int:
        """How many numbers the model has."""
        return self.layout.parameters(self.vocabulary)


# Our presets, and the layouts of Qwen2.5-0.5B, Qwen3-1.7B and Qwen3-4B, embeddings tied.
SHAPES = {name: Shape(preset, 32) for name, preset in PRESETS.items()} | {
    "0.5B": Shape(Preset(896, 24, 14, 2, 64, 4864), 151_936),
    "1.7B": Shape(Preset(2048, 28, 16, 8, 128, 6144), 151_936),
    "4B": Shape(Preset(2560, 36, 32, 8, 128, 9728), 151_936),
}

# Full copies of the model: (trained, frozen)
MODELS = {
    "verifier": (1, 0),
    "verifier, reference": (1, 1),
    "reward model, reference": (1, 2),
    "PPO: critic, reward model, reference": (2, 2),
}


@dataclass(frozen=True)
class Precision:
    """Bytes per parameter, and what is kept or computed again.

    mixed: bfloat16 weights and gradients with a float32 master copy, 2 + 2 + 4; otherwise float32
    weights and gradients, 4 + 4. optimizer: "adamw" (two float32 moments, 8 bytes), "adamw8bit"
    (2 bytes) or "sgd" (none). sampler_copy: bfloat16 weights of a separate sampler.
    checkpointing: only the layers' inputs are kept. chunked: at most 2**26 logits at once.
    """

    mixed: bool = True
    optimizer: str = "adamw"
    sampler_copy: bool = False
    checkpointing: bool = False
    chunked: bool = True

    def __post_init__(self):
        if self.optimizer not in OPTIMIZERS:
            raise BadInput(
                f"optimizer: there is no {self.optimizer!r}; known: {', '.join(OPTIMIZERS)}"
            )

    @property
    def number(self) -> int:
        """Bytes of a weight, an activation, or an entry of the cache."""
        return 2 if self.mixed else 4


OPTIMIZERS = {"adamw": 8, "adamw8bit": 2, "sgd": 0}


@dataclass(frozen=True)
class Load:
    """What one step processes: prompts x generations answers, all of the longest length.

    in_flight: answers that are decoded at once, each with a cache. micro_batch: answers in one
    forward and backward pass.
    """

    prompts: int = 64
    generations: int = 8
    prompt_tokens: int = 100
    answer_tokens: int = 300
    in_flight: int = 512
    micro_batch: int = 8

    def __post_init__(self):
        for name, value in vars(self).items():
            if value < 1:
                raise BadInput(f"{name}: got {value}, expected 1 or more")

    @property
    def rows(self) -> int:
        """Answers per step: prompts x generations."""
        return self.prompts * self.generations


def find_shape(name: str) -> Shape:
    """A name of SHAPES. Raises BadInput for another."""
    if name not in SHAPES:
        raise BadInput(f"model: there is no shape {name!r}; known: {', '.join(SHAPES)}")
    return SHAPES[name]


def bytes_per_parameter(precision: Precision, models: str = "verifier") -> int:
    """Bytes held per parameter of the policy, all models counted as equally large.

    >>> [bytes_per_parameter(Precision(), models) for models in MODELS]
    [16, 18, 20, 36]
    >>> bytes_per_parameter(Precision(sampler_copy=True))
    18
    """
    trained, frozen = MODELS[models]
    weights_and_gradients = 8  # 2 + 2 + 4, or 4 + 4
    each = weights_and_gradients + OPTIMIZERS[precision.optimizer]
    return trained * each + frozen * precision.number + 2 * precision.sampler_copy


def kept_per_token(layout: Preset) -> int:
    """Numbers a layer keeps per token for its backward pass, attention fused.

    6 h + 4 q + 4 kv + 4 m with q and kv the widths of queries and keys: residual stream and norms,
    projections before and after norm and rotation, attention's output, and the gated MLP.
    """
    q, kv = layout.heads * layout.head_dim, layout.kv_heads * layout.head_dim
    return 6 * layout.hidden + 4 * q + 4 * kv + 4 * layout.intermediate


def memory(
    shape: Shape, load: Load, precision: Precision, models: str = "verifier"
) -> dict[str, float]:
    """Bytes by what holds them. `cache` and the last two are not needed at the same time.

    weights, gradients, optimizer (moments and float32 master), frozen models, sampler copy;
    cache = 2 layers kv head_dim numbers per token in flight; activations = what a micro-batch
    keeps (norms that compute in float32 keep more than bfloat16 says); logits = three float32
    copies (log-softmax, its gradient, the logits' gradient).
    """
    layout, count, size = shape.layout, shape.parameters, precision.number
    trained, frozen = MODELS[models]
    length = load.prompt_tokens + load.answer_tokens
    tokens = min(load.micro_batch, load.rows) * length
    every_layer = tokens * layout.layers * kept_per_token(layout) * size
    inputs = tokens * layout.layers * layout.hidden * size
    one_layer = tokens * kept_per_token(layout) * size
    ends = tokens * 3 * layout.hidden * size  # embedding, last norm
    logits = min(load.micro_batch, load.rows) * load.answer_tokens * shape.vocabulary
    per_token = 2 * layout.layers * layout.kv_heads * layout.head_dim * size
    return {
        "weights": trained * count * size,
        "gradients": trained * count * size,
        "optimizer": trained * count * (OPTIMIZERS[precision.optimizer] + 4 * precision.mixed),
        "frozen models": frozen * count * size,
        "sampler copy": 2 * count * precision.sampler_copy,
        "cache": min(load.in_flight, load.rows) * length * per_token,
        "activations": ends + (inputs + one_layer if precision.checkpointing else every_layer),
        "logits": 12 * (min(logits, CHUNK) if precision.chunked else logits),
    }


def peak(parts: dict[str, float]) -> float:
    """Bytes at the fullest moment: models, and the cache or the backward pass, never both."""
    models = sum(parts[k] for k in parts if k not in ("cache", "activations", "logits"))
    return models + max(parts["cache"], parts["activations"] + parts["logits"])


@dataclass(frozen=True)
class Card:
    """A data sheet: memory in GB, bandwidth in GB/s, dense TFLOP/s in half and single precision."""

    memory: float
    bandwidth: float
    half: float
    single: float


# Vendor data sheets: dense rates (no sparsity), half precision accumulated in float32, single
# precision without TF32.
CARDS = {
    "T4": Card(16, 320, 65, 8.1),
    "L4": Card(24, 300, 121, 30.3),
    "RTX 3090": Card(24, 936, 71, 35.6),
    "RTX 4090": Card(24, 1008, 165, 82.6),
    "A100 80 GB": Card(80, 2039, 312, 19.5),
    "H100 SXM": Card(80, 3350, 989, 67),
    "H200 SXM": Card(141, 4800, 989, 67),
}


def bound(
    shape: Shape, load: Load, precision: Precision, card: Card, models: str = "verifier"
) -> dict[str, float]:
    """Seconds that each phase of a step takes at least: bytes / bandwidth or FLOPs / rate.

    decode: each wave reads all weights once per token, and every row's cache, half full on average.
    train: 3 forward passes' worth of FLOPs (forward, and twice that backward), 1 more with
    checkpointing, 1 more to score the old policy of a separate sampler, 1 for a reference.
    optimizer: AdamW reads weights, gradients and moments and writes all but the gradients.
    """
    layout, count, size = shape.layout, shape.parameters, precision.number
    trained, frozen = MODELS[models]
    rate = 1e12 * (card.half if precision.mixed else card.single)
    bandwidth = card.bandwidth * GB
    length = load.prompt_tokens + load.answer_tokens
    half_full = load.prompt_tokens + load.answer_tokens / 2
    wide = 4 * layout.layers * layout.heads * layout.head_dim  # attention's FLOPs per token seen
    waves = -(-load.rows // load.in_flight)
    written = load.rows * load.answer_tokens
    per_token = 2 * layout.layers * layout.kv_heads * layout.head_dim * size
    moved = waves * load.answer_tokens * count * size + written * half_full * per_token
    computed = written * (2 * count + wide * half_full)
    prompts = 2 * count * load.prompts * load.prompt_tokens
    passes = 3 * trained + precision.checkpointing * trained + precision.sampler_copy + frozen
    forward = load.rows * length * (2 * count + wide * length / 2)
    state = 2 * (OPTIMIZERS[precision.optimizer] + 4) + 4  # there and back, gradients only there
    return {
        "decode": max(moved / bandwidth, (computed + prompts) / rate),
        "train": passes * forward / rate,
        "optimizer": trained * count * state / bandwidth,
    }
