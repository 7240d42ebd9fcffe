"""Memory of a training step, counted from shapes: for the explorer, the plans and the trainer.

    memory(find_shape("0.5B"), Load(), Precision())      bytes, by what they hold

It is a count of tensors, checked on a CPU against the tensors that are there (what autograd keeps,
what a decoder's room holds), without what an allocator wastes, the context of CUDA (about half a
GB) and temporary copies. Measured once: a step of 8,192 answers of 25M weights, counted as 25.8 GB,
took 27.7 on an H100, and 21.0 with its layers compiled. The time of a step: `gpu_time`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlnb.training.errors import BadInput
from rlnb.training.models.presets import PRESETS, Preset
from rlnb.training.recipe import Recipe
from rlnb.training.sampling.room_size import room_bytes
from rlnb.training.sampling.scoring import CHUNK

if TYPE_CHECKING:
    from transformers import PretrainedConfig

__all__ = [
    "GB",
    "MODELS",
    "OPTIMIZERS",
    "PASSING",
    "SHAPES",
    "Load",
    "Precision",
    "Shape",
    "bytes_per_parameter",
    "find_shape",
    "kept_per_token",
    "memory",
    "of_recipe",
    "peak",
    "shape_of",
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

    def adapters(self, rank: int) -> int:
        """How many numbers LoRA's factors have, r (in + out) for each linear map of the layers.

        layers * r * (2 (h + q) + 2 (h + kv) + 3 (h + m))
        """
        n, h, m = self.layout, self.layout.hidden, self.layout.intermediate
        q, kv = n.heads * n.head_dim, n.kv_heads * n.head_dim
        return n.layers * rank * (2 * (h + q) + 2 * (h + kv) + 3 * (h + m))


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
    (2 bytes) or "sgd" (none). sampler_copy: a separate sampler with weights and cache of 2 bytes.
    checkpointing: only the layers' inputs are kept. chunked: at most 2**26 logits at once.
    autocast: matrix products in a type of 2 bytes, of weights that may be float32; tf32: float32
    products in TF32, float16: that type of 2 bytes, which both change the time alone. lora: the
    rank of float32 factors; the weights beside them are frozen, of 2 bytes where mixed, without a
    master copy, and are the reference as well.
    """

    mixed: bool = True
    optimizer: str = "adamw"
    sampler_copy: bool = False
    checkpointing: bool = False
    chunked: bool = True
    autocast: bool = False
    tf32: bool = False
    float16: bool = False
    lora: int = 0

    def __post_init__(self):
        if self.optimizer not in OPTIMIZERS:
            raise BadInput(
                f"optimizer: there is no {self.optimizer!r}; known: {', '.join(OPTIMIZERS)}"
            )

    @property
    def number(self) -> int:
        """Bytes of a weight that is trained or frozen."""
        return 2 if self.mixed else 4

    @property
    def drawn(self) -> int:
        """Bytes of a weight and of an entry of the cache while it samples."""
        return 2 if self.sampler_copy else self.number


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


def shape_of(config: PretrainedConfig) -> Shape | None:
    """The shape of a transformers model; None where its configuration has other words for it."""
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    found = [getattr(config, name, None) for name in names]
    if not all(isinstance(value, int) for value in found):
        return None
    hidden, layers, heads, intermediate = found
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    size = getattr(config, "head_dim", None) or hidden // heads
    return Shape(Preset(hidden, layers, heads, kv_heads, size, intermediate), config.vocab_size)


def of_recipe(recipe: Recipe, prompt_tokens: int) -> tuple[Load, Precision]:
    """What a run of this recipe processes and keeps; what trains, and AdamW, are float32."""
    rows = recipe.prompts * recipe.num_generations
    load = Load(
        recipe.prompts, recipe.num_generations, prompt_tokens, recipe.max_completion_length,
        in_flight=rows, micro_batch=recipe.micro_batch,
    )  # fmt: skip
    return load, Precision(
        mixed=recipe.dtype != "float32",
        optimizer=recipe.optim,
        sampler_copy=recipe.sampler_dtype != "same",
        checkpointing=recipe.gradient_checkpointing,
        autocast=recipe.autocast != "off",
        tf32=recipe.tf32,
        float16="float16" in (recipe.dtype, recipe.autocast, recipe.sampler_dtype),
        lora=recipe.lora_r,
    )


def kept_per_token(layout: Preset, precision: Precision) -> int:
    """Bytes a layer keeps per token for its backward pass, attention fused, prompts padded.

    With q and kv the widths of queries and keys, of float32

        24 h + 24 q + 8 kv + 16 m

    (residual stream and norms 6 h; queries, keys and values as the attention takes them, keys and
    values repeated for all heads, and its output 6 q; keys before norm and rotation 2 kv; gated MLP
    4 m); of bfloat16, where norms still compute in float32, 16 h + 14 q + 6 kv + 8 m; under
    autocast 26 h + 14 q + 6 kv + 8 m, because the residual stream is float32 and each product has a
    rounded copy of its input.

    Frozen weights need no inputs, and norms without a gradient none of their outputs; LoRA's
    factors of rank r keep what they are given and r numbers of each of seven maps:

        16 h + 20 q + 4 kv + 16 m + 28 r      float32
        18 h + 12 q + 4 kv +  8 m + 14 r      float32 under autocast
        16 h + 14 q + 6 kv +  8 m + 14 r      of 2 bytes, under autocast
        24 h + 16 q + 8 kv + 10 m + 28 r      of 2 bytes, whose factors take float32 copies
    """
    h, m = layout.hidden, layout.intermediate
    q, kv = layout.heads * layout.head_dim, layout.kv_heads * layout.head_dim
    if rank := precision.lora:
        if precision.mixed and not precision.autocast:
            return 24 * h + 16 * q + 8 * kv + 10 * m + 28 * rank
        if precision.mixed:
            return 16 * h + 14 * q + 6 * kv + 8 * m + 14 * rank
        if precision.autocast:
            return 18 * h + 12 * q + 4 * kv + 8 * m + 14 * rank
        return 16 * h + 20 * q + 4 * kv + 16 * m + 28 * rank
    if precision.autocast or precision.mixed:
        return (16 if precision.mixed else 26) * h + 14 * q + 6 * kv + 8 * m
    return 24 * h + 24 * q + 8 * kv + 16 * m


def memory(
    shape: Shape, load: Load, precision: Precision, models: str = "verifier"
) -> dict[str, float]:
    """Bytes by what holds them. The last four are not all needed at the same time (`peak`).

    weights, gradients, optimizer (moments and float32 master), frozen models, sampler copy, with
    LoRA the factors among the weights and nothing for a reference;
    cache = the decoder's room (`room_bytes`): keys and values of all rows in flight, their length
    rounded up to whole windows, and its tables; draw = the logits of one token and what is made of
    them, six float32 copies; activations = what a micro-batch keeps: `kept_per_token`, the
    attention's bias of each layer where several rows are padded (numbers rows * length^2), and
    under autocast the rounded weights; logits = three float32 copies (log-softmax, its gradient,
    the logits' gradient).
    """
    layout, count, size = shape.layout, shape.parameters, precision.number
    trained, frozen = MODELS[models]
    length = load.prompt_tokens + load.answer_tokens
    batch, flight = min(load.micro_batch, load.rows), min(load.in_flight, load.rows)
    tokens, product = batch * length, 2 if precision.autocast else size
    bias = batch * length * length * product * (batch > 1)
    one_layer = tokens * kept_per_token(layout, precision) + bias
    kept = layout.layers * one_layer
    if precision.checkpointing:
        kept = one_layer + tokens * layout.layers * layout.hidden * size
    adapters = shape.adapters(precision.lora)
    tuned, wide = (adapters, 4) if precision.lora else (count, size)
    reference = min(frozen, 1) * bool(precision.lora)  # the base itself
    few = precision.lora and (precision.autocast or not precision.mixed)
    ends = (4 if few else 12) * tokens * layout.hidden
    if precision.autocast:
        ends += 2 * (adapters if precision.mixed else count + adapters)
    logits = batch * load.answer_tokens * shape.vocabulary
    numbers = 2 * layout.layers * layout.kv_heads * layout.head_dim
    return {
        "weights": trained * (count * size + 4 * adapters),
        "gradients": trained * tuned * wide,
        "optimizer": trained * tuned * (OPTIMIZERS[precision.optimizer] + 4 * (wide == 2)),
        "frozen models": (frozen - reference) * count * size,
        "sampler copy": 2 * (count + adapters) * precision.sampler_copy,
        "cache": room_bytes(flight, length, load.answer_tokens, numbers, precision.drawn),
        "draw": 24 * flight * shape.vocabulary,
        "activations": kept + ends,
        "logits": 12 * (min(logits, CHUNK) if precision.chunked else logits),
    }


PASSING = ("cache", "draw", "activations", "logits")


def peak(parts: dict[str, float], kept: bool = False) -> float:
    """Bytes at the fullest moment: the models, and decoding or the backward pass.

    kept: the decoder's room stays while it trains, so that its CUDA graphs need not be captured
    again; otherwise it makes way (`graph_decoder.make_way`).
    """
    models = sum(parts[k] for k in parts if k not in PASSING)
    decoding, training = parts["cache"] + parts["draw"], parts["activations"] + parts["logits"]
    if kept:
        return models + max(decoding, parts["cache"] + training)
    return models + max(decoding, training)
