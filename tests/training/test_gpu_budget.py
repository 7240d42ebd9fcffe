"""The calculator against numbers by hand, and against what autograd really keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from chat_models import random_model
from transformers import PretrainedConfig

from rlnb.objective import ZOO
from rlnb.training import PRESETS, BadInput, Rollout, Sampling, build_model, token_logprobs
from rlnb.training.models.adapters import add_adapters
from rlnb.training.models.presets import Preset
from rlnb.training.sampling.graph_decoder import Decoder
from rlnb.training.step import collect, start, step
from rlnb.training.studies.gpu_budget import (
    MODELS,
    PASSING,
    SHAPES,
    Load,
    Precision,
    Shape,
    bytes_per_parameter,
    find_shape,
    kept_per_token,
    memory,
    of_recipe,
    peak,
    shape_of,
)
from rlnb.training.studies.gpu_time import CARDS, bound, card_named, estimate

ROUND = Shape(Preset(hidden=10, layers=2, heads=2, kv_heads=1, head_dim=5, intermediate=20), 1000)
LOAD = Load(prompts=4, generations=2, prompt_tokens=10, answer_tokens=30, in_flight=8,
            micro_batch=2)  # fmt: skip


def test_bytes_per_parameter_are_those_of_the_claims():
    """S01, S03: 36 for PPO; 20, 18 and 16 for GRPO; 2 more with a bfloat16 sampler copy."""
    assert [bytes_per_parameter(Precision(), m) for m in reversed(MODELS)] == [36, 20, 18, 16]
    copies = [bytes_per_parameter(Precision(sampler_copy=True), m) for m in reversed(MODELS)]
    assert copies == [38, 22, 20, 18]
    assert bytes_per_parameter(Precision(mixed=False)) == 16
    assert bytes_per_parameter(Precision(optimizer="sgd")) == 8
    assert bytes_per_parameter(Precision(optimizer="adamw8bit")) == 10


@pytest.mark.parametrize("models", MODELS)
@pytest.mark.parametrize(
    "precision",
    [Precision(), Precision(mixed=False), Precision(optimizer="adamw8bit", sampler_copy=True)],
)
def test_memory_of_the_models_is_bytes_per_parameter_times_parameters(models, precision):
    parts = memory(ROUND, LOAD, precision, models)
    held = sum(parts[k] for k in parts if k not in PASSING)
    assert held == bytes_per_parameter(precision, models) * ROUND.parameters


def test_cache_activations_and_logits_by_hand():
    # q = 10, kv = 5: 240 + 240 + 40 + 320 bytes per token and layer; 2 rows of 40 tokens.
    full = Precision(mixed=False, chunked=False)
    assert kept_per_token(ROUND.layout, full) == 840
    assert kept_per_token(ROUND.layout, Precision()) == 160 + 140 + 30 + 160
    parts = memory(ROUND, LOAD, full)
    # 40 places are rounded up to 64; the bias, tables of 30 tokens, and 25 bytes a row.
    assert parts["cache"] == 8 * (64 * (2 * 2 * 1 * 5 + 1) * 4 + 17 * 30 + 25) + 16 == 47_304
    assert parts["draw"] == 8 * 1000 * 4 * 6
    bias = 2 * 40 * 40 * 4  # of two padded rows
    assert parts["activations"] == 2 * (80 * 840 + bias) + 80 * 120 == 169_600
    assert parts["logits"] == 2 * 30 * 1000 * 4 * 3 == 720_000
    again = memory(ROUND, LOAD, Precision(mixed=False, checkpointing=True))
    assert again["activations"] == 80 * 2 * 10 * 4 + 80 * 840 + bias + 80 * 120 == 96_000
    models = 16 * ROUND.parameters
    assert peak(parts) == models + 169_600 + 720_000  # the room has made way when it trains
    assert peak(parts, kept=True) == models + 47_304 + 169_600 + 720_000
    assert peak(parts | {"cache": 1e9}) == models + 1e9 + 192_000


def test_logits_of_a_large_vocabulary_are_bounded_by_the_chunk():
    load = Load(micro_batch=32, answer_tokens=1000)
    whole = memory(SHAPES["0.5B"], load, Precision(chunked=False))["logits"]
    assert whole == 32 * 1000 * 151_936 * 12 > 58e9
    assert memory(SHAPES["0.5B"], load, Precision())["logits"] == 2**26 * 12 < 1e9


def test_time_by_hand():
    card = CARDS["A100 80 GB"]
    # 7 billion parameters would read 14 GB per token: here 4 waves of 2 rows, 30 tokens each.
    load = Load(4, 2, 10, 30, in_flight=2, micro_batch=2)
    seconds = bound(ROUND, load, Precision(sampler_copy=True), card)
    count, entry = ROUND.parameters, 2 * 2 * 1 * 5 * 2
    moved = 4 * 30 * count * 2 + 8 * 30 * (10 + 15) * entry
    assert seconds["decode"] == pytest.approx(moved / 2039e9)
    forward = 8 * 40 * (2 * count + 4 * 2 * 10 * 20)
    assert seconds["train"] == pytest.approx(3 * forward / 312e12)
    assert seconds["optimizer"] == pytest.approx(28 * count / 2039e9)
    more = bound(ROUND, load, Precision(checkpointing=True), card, "verifier, reference")
    assert more["train"] == pytest.approx(5 * forward / 312e12)


def test_parameters_of_the_public_layouts():
    assert SHAPES["large"].parameters == PRESETS["large"].parameters() == 25_191_936
    # Qwen2.5-0.5B has 494,032,768: biases in place of two norms make the difference.
    assert SHAPES["0.5B"].parameters == pytest.approx(494_032_768, rel=1e-4)


KINDS = {
    "float32": Precision(mixed=False),
    "autocast": Precision(mixed=False, autocast=True),
    "bfloat16": Precision(),
    "bfloat16, autocast": Precision(autocast=True),
}


@pytest.mark.parametrize("rank", [0, 4, 16])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["tiny", "small"])
def test_activations_are_what_autograd_keeps(name, kind, rank):
    """Counted on the CPU as the trainer runs it, rows padded: every storage that the backward pass
    holds, parameters left out."""
    model, layout = build_model(0, name), PRESETS[name]
    precision = replace(KINDS[kind], lora=rank)
    if rank:
        pytest.importorskip("peft", reason="peft is not installed: LoRA is not counted")
        lower = "bfloat16" if precision.mixed else "float32"
        add_adapters(model, rank, 32.0, dtype=lower)
    elif precision.mixed:
        model = model.to(torch.bfloat16)
    own = {x.untyped_storage().data_ptr() for x in (*model.parameters(), *model.buffers())}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage  # held: a freed address would be given out again
        return tensor

    rows, mask = 8, torch.ones(8, 32, dtype=torch.long)
    mask[0, :5] = 0
    answers = torch.randint(4, 30, (rows, 32))
    zero = torch.zeros(rows, 32)
    rollout = Rollout(
        torch.randint(4, 30, (rows, 32)), mask, answers, zero == 0, zero, zero, zero[:, 0] == 0, 1,
        Sampling(),
    )  # fmt: skip
    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t),
        torch.autocast("cpu", torch.bfloat16, enabled=precision.autocast),
    ):
        logprobs, _ = token_logprobs(model, rollout, temperature=1.0)
    assert logprobs.requires_grad
    load = Load(rows, 1, 32, 32, micro_batch=rows)
    counted = memory(Shape(layout, 32), load, precision)["activations"]
    assert counted == pytest.approx(sum(x.nbytes() for x in kept.values()), rel=0.03)


@pytest.mark.parametrize(
    "changes",
    [{}, {"sampler_dtype": "bfloat16"}, {"sampler_dtype": "float16"}, {"lora_r": 4},
     {"lora_r": 4, "dtype": "bfloat16", "autocast": "bfloat16", "sampler_dtype": "bfloat16"}],
)  # fmt: skip
def test_what_a_run_holds_is_what_is_counted(fresh, chain, tiny, changes):
    """Weights, gradients, moments and the sampler's copy, tensor by tensor after a step."""
    if "lora_r" in changes:
        pytest.importorskip("peft", reason="peft is not installed: LoRA is not counted")
    recipe = replace(tiny, **changes)
    run = start(*fresh, chain, ZOO["dr_grpo"], recipe)
    step(run)
    shape = shape_of(run.model.config)
    parts = memory(shape, *of_recipe(recipe, 20))
    weights = list(run.model.parameters())
    assert sum(p.nbytes for p in weights) == parts["weights"]
    assert sum(p.grad.nbytes for p in weights if p.requires_grad) == parts["gradients"]
    moments = [x for s in run.optimizer.state.values() for k, x in s.items() if k != "step"]
    assert sum(x.nbytes for x in moments) == parts["optimizer"]
    copied = [] if run.engine is None else run.engine.parameters()
    assert sum(p.nbytes for p in copied) == parts["sampler copy"]


@pytest.mark.parametrize("dtype", ["same", "bfloat16"])
def test_the_room_of_a_run_is_what_is_counted(fresh, chain, tiny, dtype):
    decoder = Decoder()
    recipe = replace(tiny, sampler_dtype=dtype)
    run = start(*fresh, chain, ZOO["dr_grpo"], recipe, sampler=decoder)
    assert decoder.longest == 20  # nine digits, eight operators, "=?" and <bos>
    collect(run)
    (room,) = decoder.rooms.values()
    assert room.nbytes == memory(shape_of(run.model.config), *of_recipe(recipe, 20))["cache"]


def test_shapes_are_read_from_a_models_configuration():
    assert shape_of(build_model(0, "small").config) == SHAPES["small"]
    layout = shape_of(random_model("qwen2", vocabulary=64).config).layout
    assert layout.head_dim * layout.heads == layout.hidden
    assert shape_of(PretrainedConfig()) is None


def test_an_estimate_by_hand_and_above_its_bound():
    card, precision = CARDS["A100 80 GB"], Precision(mixed=False, autocast=True, sampler_copy=True)
    load = Load(4, 2, 10, 30, in_flight=2, micro_batch=2)
    found = estimate(ROUND, load, precision, card)
    count = ROUND.parameters
    assert found["train products"] == pytest.approx(
        3 * 320 * (2 * count + 4 * 2 * 10 * 20) / (0.4 * 312e12)
    )
    moved = 2 * (120 * 10 + 106 * 10 + 90 * 5 + 16 * 20)  # two layers
    assert found["train elementwise"] == pytest.approx(3 * 320 * moved / (0.75 * 2039e9))
    assert found["decode elementwise"] == pytest.approx(240 * moved / (0.75 * 2039e9))
    cache = 8 * (30 * 64) * 2 * 2 * 5 * 2  # 30 tokens, each of which reads a window of 64
    assert found["decode bytes"] == pytest.approx((4 * 30 * count * 2 + cache) / (0.75 * 2039e9))
    assert found["decode launches"] == pytest.approx(4 * 30 * 2 * 45 * 2.5e-6)
    assert found["host"] == pytest.approx(8 * 20e-6)
    fused = estimate(ROUND, load, precision, card, compiled=True)
    assert fused["train elementwise"] < found["train elementwise"] / 2
    for name, data in CARDS.items():
        least = bound(SHAPES["large"], Load(512, 16, 20, 100, 8192, 512), precision, data)
        whole = estimate(SHAPES["large"], Load(512, 16, 20, 100, 8192, 512), precision, data, True)
        assert sum(whole.values()) > sum(least.values()), name


def test_a_card_without_bfloat16_trains_at_its_single_rate():
    precision = Precision(mixed=False, autocast=True)
    load = Load(4, 2, 10, 30, in_flight=8, micro_batch=2)
    seconds = bound(ROUND, load, precision, CARDS["T4"])["train"]
    assert seconds == bound(ROUND, load, Precision(mixed=False), CARDS["T4"])["train"]
    quick = bound(ROUND, load, Precision(mixed=False, tf32=True), CARDS["A100 80 GB"])["train"]
    slow = bound(ROUND, load, Precision(mixed=False), CARDS["A100 80 GB"])["train"]
    assert slow / quick == pytest.approx(156 / 19.5)


def test_devices_are_found_by_the_name_that_cuda_gives_them():
    names = {"Tesla T4": "T4", "NVIDIA L4": "L4", "NVIDIA H100 80GB HBM3": "H100 SXM",
             "NVIDIA H200": "H200 SXM", "NVIDIA GeForce RTX 4060": "RTX 4060"}  # fmt: skip
    for name, key in names.items():
        assert card_named(name, CARDS[key].memory * 1e9) == CARDS[key]
    for name in ("NVIDIA L40S", "NVIDIA GeForce RTX 4090 Laptop GPU", "something new"):
        unknown = card_named(name, 16e9)
        assert unknown.memory == 16 and unknown.half < min(card.half for card in CARDS.values())


def test_bad_entries_are_sentences():
    with pytest.raises(BadInput, match="no shape '70B'; known: tiny"):
        find_shape("70B")
    with pytest.raises(BadInput, match="in_flight: got 0"):
        Load(in_flight=0)
    with pytest.raises(BadInput, match="no 'lion'"):
        Precision(optimizer="lion")
