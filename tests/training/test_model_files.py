from __future__ import annotations

import dataclasses
import json
import random
import shutil
import socket

import pytest
import torch
from safetensors.torch import load_file
from transformers import Qwen3ForCausalLM

from rlnb.training import BadInput, Sampling, build_model, load, sample, save
from rlnb.training.models.base_training import (
    IGNORED,
    BaseRecipe,
    collate,
    demonstrations,
    train_base,
)
from rlnb.training.models.loading import check_vocabulary


def test_the_shipped_model_is_the_small_qwen3(shipped, model_folder):
    model, tokenizer = shipped
    config = model.config
    assert type(model) is Qwen3ForCausalLM
    assert (config.vocab_size, config.hidden_size, config.num_hidden_layers) == (32, 96, 3)
    assert (config.num_attention_heads, config.num_key_value_heads, config.head_dim) == (4, 2, 24)
    assert config.intermediate_size == 256 and config.tie_word_embeddings
    assert config.rope_parameters["rope_theta"] == 1e4
    assert model.num_parameters() == 308_016
    assert len(tokenizer) == 32
    assert 0.5e6 < sum(f.stat().st_size for f in model_folder.iterdir()) < 1.5e6


def test_loading_asks_the_network_for_nothing(model_folder, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    load(model_folder, device="cpu")


def test_all_32_ids_decode(shipped):
    _, tokenizer = shipped
    texts = [tokenizer.decode([i]) for i in range(32)]
    assert len(set(texts)) == 32 and all(texts)
    assert tokenizer.decode([0, 1, 2, 3, 31], skip_special_tokens=True) == "<unused4>"


def test_an_untrained_model_can_be_sampled_and_decoded(shipped):
    _, tokenizer = shipped
    rollout = sample(
        build_model(0).eval(), [[1, 5, 6]] * 8, 4, Sampling(max_new_tokens=30),
        eos_id=2, pad_id=0, generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    texts = rollout.texts(tokenizer)
    assert any("<unused" in text for text in texts)  # it does sample them, and decode survives


def test_save_and_load_keep_every_bit(shipped, tmp_path):
    model, tokenizer = shipped
    save(model, tokenizer, tmp_path)
    again, other = load(tmp_path, device="cpu")
    weights = again.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert other.get_vocab() == tokenizer.get_vocab()
    assert not list(tmp_path.glob("*.bin")) and not list(tmp_path.glob("*.pt"))


def test_a_missing_model_folder(tmp_path):
    with pytest.raises(BadInput, match="there is no folder"):
        load(tmp_path / "nowhere")


def test_a_model_folder_without_a_tokenizer(model_folder, tmp_path):
    for name in ("config.json", "model.safetensors"):
        shutil.copy(model_folder / name, tmp_path)
    with pytest.raises(BadInput, match=r"has no tokenizer \(tokenizer.json is missing\)"):
        load(tmp_path)


def test_a_model_folder_without_weights(model_folder, tmp_path):
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(model_folder / name, tmp_path)
    with pytest.raises(BadInput, match="has no weights"):
        load(tmp_path)


def test_a_task_the_vocabulary_cannot_express(shipped, chain):
    _, tokenizer = shipped
    check_vocabulary(tokenizer, chain)
    division = dataclasses.replace(chain, name="division", symbols=(*chain.symbols, "/", "%"))
    with pytest.raises(BadInput, match="'division' needs '/' '%', which the model's vocabulary"):
        check_vocabulary(tokenizer, division)


def test_only_the_answer_is_learned_from(shipped, chain):
    _, tokenizer = shipped
    rows = demonstrations(tokenizer, chain, random.Random(0), 6)
    ids, labels = collate(rows, tokenizer.pad_token_id)
    for i, (row, prompt) in enumerate(rows):
        learned = labels[i][labels[i] != IGNORED].tolist()
        assert learned == row[prompt:] and learned[-1] == tokenizer.eos_token_id
        assert ids[i, : len(row) - 1].tolist() == row[: ids.shape[1]][: len(row) - 1]


def test_base_training_is_reproducible_and_lowers_the_loss(chain):
    recipe = BaseRecipe(steps=6, batch=16, warmup=2)
    first, _, spent = train_base(chain, recipe, device="cpu", progress=False)
    second, _, _ = train_base(chain, recipe, device="cpu", progress=False)
    assert spent["loss"] < 3.2  # log 32 = 3.47 is a uniform guess
    state = second.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in first.state_dict().items())


def test_the_micro_batches_of_base_training_do_not_matter(chain):
    # A mean per micro-batch would: sorted by length, short answers would weigh ten times more.
    runs = [
        train_base(
            chain, BaseRecipe(steps=1, batch=16, micro_batches=n), device="cpu", progress=False
        )
        for n in (1, 4)
    ]
    assert abs(runs[0][2]["loss"] - runs[1][2]["loss"]) < 1e-6


def test_the_weights_on_disk_are_float32_safetensors(model_folder):
    tensors = load_file(model_folder / "model.safetensors")
    assert {t.dtype for t in tensors.values()} == {torch.float32}
    assert "lm_head.weight" not in tensors  # tied to the embedding
    assert json.loads((model_folder / "config.json").read_text())["model_type"] == "qwen3"
