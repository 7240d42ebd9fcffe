"""The calculator against numbers by hand, and against what autograd really keeps."""

from __future__ import annotations

import pytest
import torch

from rlnb.training import PRESETS, BadInput, build_model
from rlnb.training.models.presets import Preset
from rlnb.training.studies.gpu_budget import (
    CARDS,
    MODELS,
    SHAPES,
    Load,
    Precision,
    Shape,
    bound,
    bytes_per_parameter,
    find_shape,
    kept_per_token,
    memory,
    peak,
)

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
    held = sum(parts[k] for k in parts if k not in ("cache", "activations", "logits"))
    assert held == bytes_per_parameter(precision, models) * ROUND.parameters


def test_cache_activations_and_logits_by_hand():
    # q = 10, kv = 5: 60 + 40 + 20 + 80 numbers per token and layer; 2 rows of 40 tokens.
    assert kept_per_token(ROUND.layout) == 200
    parts = memory(ROUND, LOAD, Precision(mixed=False, chunked=False))
    assert parts["cache"] == 8 * 40 * (2 * 2 * 1 * 5) * 4 == 25_600
    assert parts["activations"] == 80 * (2 * 200 + 3 * 10) * 4 == 137_600
    assert parts["logits"] == 2 * 30 * 1000 * 4 * 3 == 720_000
    again = memory(ROUND, LOAD, Precision(mixed=False, checkpointing=True))
    assert again["activations"] == 80 * (2 * 10 + 200 + 3 * 10) * 4 == 80_000
    models = 16 * ROUND.parameters
    assert peak(parts) == models + 137_600 + 720_000  # the cache is gone when it trains


def test_logits_of_a_large_vocabulary_are_bounded_by_the_chunk():
    load = Load(micro_batch=32, answer_tokens=1000)
    whole = memory(SHAPES["0.5B"], load, Precision(chunked=False))["logits"]
    assert whole == 32 * 1000 * 151_936 * 12 > 58e9
    assert memory(SHAPES["0.5B"], load, Precision())["logits"] == 2**26 * 12 < 1e9


def test_time_by_hand():
    card = CARDS["A100 80 GB"]
    # 7 billion parameters would read 14 GB per token: here 4 waves of 2 rows, 30 tokens each.
    load = Load(4, 2, 10, 30, in_flight=2, micro_batch=2)
    seconds = bound(ROUND, load, Precision(), card)
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


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_activations_are_what_autograd_keeps(name):
    """Counted on the CPU: every storage that the backward pass holds, parameters left out."""
    model, layout = build_model(0, name), PRESETS[name]
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        hidden = model.model(torch.randint(4, 30, (4, 64)), use_cache=False).last_hidden_state
    load = Load(4, 1, 32, 32, micro_batch=4)
    counted = memory(Shape(layout, 32), load, Precision(mixed=False))["activations"]
    assert counted == pytest.approx(sum(kept.values()), rel=0.02), hidden.shape


def test_bad_entries_are_sentences():
    with pytest.raises(BadInput, match="no shape '70B'; known: tiny"):
        find_shape("70B")
    with pytest.raises(BadInput, match="in_flight: got 0"):
        Load(in_flight=0)
    with pytest.raises(BadInput, match="no 'lion'"):
        Precision(optimizer="lion")
