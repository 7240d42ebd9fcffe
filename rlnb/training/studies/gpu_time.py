"""How long a training step takes on a card: a bound from its data sheet, and an estimate.

    bound(find_shape("0.5B"), Load(), Precision(), CARDS["L4"])      seconds at least, by phase
    estimate(find_shape("large"), load, precision, CARDS["T4"])      seconds, by class of kernel

The bound is from below: no such step is faster on that card. The estimate adds what a bound leaves
out (elementwise kernels, launches, the host) at shares of the data sheet that are guesses; it
serves to choose between plans, not to promise a time. On an H100 two steps of 8,192 answers took
0.9 and 1.03 times what it says, page 21's plans 1.1 to 2.7 times, the smallest most
(tests/benchmarks/README.md); the plans reckon with SLOWER times the estimate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from rlnb.training.sampling.room_size import rounded
from rlnb.training.studies.gpu_budget import GB, MODELS, OPTIMIZERS, Load, Precision, Shape

__all__ = ["CARDS", "SLOWER", "Card", "bound", "card_named", "estimate"]


@dataclass(frozen=True)
class Card:
    """A data sheet: memory in GB, bandwidth in GB/s, dense TFLOP/s in half, single and TF32
    precision. bfloat16: whether the card computes in it; otherwise it is emulated, slowly, and
    there is no TF32 either."""

    memory: float
    bandwidth: float
    half: float
    single: float
    tf32: float
    bfloat16: bool = True


# Vendor data sheets: dense rates (no sparsity), half precision accumulated in float32, single
# precision without and with TF32.
CARDS = {
    "RTX 4060": Card(8, 272, 30.2, 15.1, 15.1),
    "T4": Card(16, 320, 65, 8.1, 8.1, bfloat16=False),
    "L4": Card(24, 300, 121, 30.3, 60),
    "RTX 3090": Card(24, 936, 71, 35.6, 35.6),
    "RTX 4090": Card(24, 1008, 165, 82.6, 82.6),
    "A100 80 GB": Card(80, 2039, 312, 19.5, 156),
    "H100 SXM": Card(80, 3350, 989, 67, 494),
    "H200 SXM": Card(141, 4800, 989, 67, 494),
}


def card_named(name: str, memory: float, bfloat16: bool = True) -> Card:
    """The data sheet of a device as CUDA names it, with the bytes that it says it has.

    A device that is not in CARDS counts as a slow one: too small a plan costs less than one that
    never ends.

    >>> card_named("Tesla T4", 15e9).bandwidth, card_named("NVIDIA A100-SXM4-80GB", 85e9).half
    (320, 312)
    >>> card_named("NVIDIA GeForce RTX 4090", 24e9) == CARDS["RTX 4090"]
    True
    >>> card_named("Quadro P4000", 8e9, bfloat16=False).single
    5
    """
    for key, card in CARDS.items():
        core = key.removesuffix(" SXM").removesuffix(" 80 GB")
        if re.search(rf"\b{core}\b", name) and "Laptop" not in name:
            return replace(card, memory=memory / GB)
    return Card(memory / GB, 200, 20, 5, 5, bfloat16)


def _rate(precision: Precision, card: Card) -> float:
    """TFLOP/s of the matrix products that train."""
    if precision.mixed or precision.autocast:
        return card.half if card.bfloat16 or precision.float16 else card.single
    return card.tf32 if precision.tf32 else card.single


def _tuned(shape: Shape, precision: Precision) -> int:
    return shape.adapters(precision.lora) if precision.lora else shape.parameters


def bound(
    shape: Shape, load: Load, precision: Precision, card: Card, models: str = "verifier"
) -> dict[str, float]:
    """Seconds that each phase of a step takes at least: bytes / bandwidth or FLOPs / rate.

    decode: each wave reads all weights once per token, and every row's cache, half full on average.
    train: 3 forward passes' worth of FLOPs (forward, and twice that backward), 1 more with
    checkpointing, 1 for a reference. On-policy the old log-probabilities are the fresh ones.
    optimizer: AdamW reads weights, gradients and moments and writes all but the gradients. With
    LoRA a backward pass has no gradient of the weights: one forward pass's worth less.
    """
    layout, count, size = shape.layout, shape.parameters, precision.drawn
    trained, frozen = MODELS[models]
    rate = 1e12 * _rate(precision, card)
    drawing = 1e12 * card.half if size == 2 else rate
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
    passes = (3 - bool(precision.lora) + precision.checkpointing) * trained + frozen
    forward = load.rows * length * (2 * count + wide * length / 2)
    state = 2 * (OPTIMIZERS[precision.optimizer] + 4) + 4  # there and back, gradients only there
    return {
        "decode": max(moved / bandwidth, (computed + prompts) / drawing),
        "train": passes * forward / rate,
        "optimizer": trained * _tuned(shape, precision) * state / bandwidth,
    }


OF_RATE, OF_BANDWIDTH = 0.4, 0.75  # shares of the data sheet that small kernels are taken to reach
REPLAYED, LAUNCHED = 2.5e-6, 6e-6  # seconds of a kernel that has nothing to do
KERNELS = 45  # of a layer's forward pass; its backward pass has twice as many
FACTORS = 35  # more with LoRA: two products, two casts and a sum beside each of seven maps
SLOWER = 2.0  # seconds of a measured step over those estimated: 1.1 to 2.7
HOST = 20e-6  # seconds per answer: ids to text (8 us on a CPU core), the verifier, its prompt


def estimate(
    shape: Shape, load: Load, precision: Precision, card: Card, compiled: bool = False
) -> dict[str, float]:
    """Seconds of one step by class of kernel: an estimate, not a measurement.

    Every answer is of the longest length, every group trains.

        decode products     2 P per row and token, over the rate
        decode bytes        weights, and the rounded window of every row's cache, per token
        decode elementwise  what a forward pass reads and writes between its products
        decode launches     45 kernels a layer and token, 2.5 us each in a replayed graph
        train products      6 P per token (8 recomputed) and the attention, over the rate
        train elementwise   three forward passes of such bytes (4 recomputed)
        train launches      what 45 x 3 kernels a layer and micro-batch take above all that
        optimizer           AdamW: weights, gradients, moments, there and back
        host                20 us per answer

    With LoRA products have a pass less and kernels are 80; its factors' own products and bytes are
    left out.

    with P parameters; products at 0.4 of the data sheet's rate, bytes at 0.75 of its bandwidth. A
    forward pass moves, per token and layer, in bytes of autocast (twice that in float32)

        plain     120 h + 106 q + 90 kv + 16 m
        compiled   46 h +  20 q +  8 kv + 12 m

    with h, m the widths of residual stream and MLP, q and kv those of queries and keys: each
    kernel's inputs and outputs, added up by hand from the layer's code.
    """
    layout, count = shape.layout, shape.parameters
    h, m = layout.hidden, layout.intermediate
    q, kv = layout.heads * layout.head_dim, layout.kv_heads * layout.head_dim
    bandwidth, rate = OF_BANDWIDTH * card.bandwidth * GB, OF_RATE * 1e12 * _rate(precision, card)
    lower = precision.drawn == 2
    drawing = OF_RATE * 1e12 * card.half if lower else rate
    length, rows = load.prompt_tokens + load.answer_tokens, load.rows
    waves, written = -(-rows // load.in_flight), rows * load.answer_tokens
    seen = sum(rounded(load.prompt_tokens + t) for t in range(1, load.answer_tokens + 1))
    cache = rows * seen * 2 * layout.layers * kv * precision.drawn
    plain = layout.layers * (120 * h + 106 * q + 90 * kv + 16 * m)
    fused = layout.layers * (46 * h + 20 * q + 8 * kv + 12 * m)
    wide = 1 if precision.mixed or precision.autocast else 2
    passes = 3 + precision.checkpointing
    attention = 4 * layout.layers * q * length / 2
    kernels = KERNELS + FACTORS * bool(precision.lora)
    products = (passes - bool(precision.lora)) * rows * length * (2 * count + attention) / rate
    between = passes * rows * length * (fused if compiled else plain) * wide / bandwidth
    launched = -(-rows // load.micro_batch) * passes * layout.layers * kernels * LAUNCHED
    state = 2 * (OPTIMIZERS[precision.optimizer] + 4) + 4
    return {
        "decode products": 2 * count * (written + load.prompts * load.prompt_tokens) / drawing,
        "decode bytes": (waves * load.answer_tokens * count * precision.drawn + cache) / bandwidth,
        "decode elementwise": written * plain * (1 if lower else 2) / bandwidth,
        "decode launches": waves * load.answer_tokens * layout.layers * kernels * REPLAYED,
        "train products": products,
        "train elementwise": between,
        "train launches": max(0.0, launched - products - between),
        "optimizer": _tuned(shape, precision) * state / bandwidth,
        "host": rows * HOST,
    }
