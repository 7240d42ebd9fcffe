"""A real model does not inherit a toy's numbers."""

from __future__ import annotations

import json

import pytest
import torch
from chat_models import chat_tokenizer, random_model

from rlnb.training import BadInput, read
from rlnb.training.__main__ import given, main, parser, recipe_of
from rlnb.training.recipe_by_size import lower_type, parameters_of, recipe_for

HALF = {"hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151_936}  # fmt: skip


def typed(*words):
    args = parser().parse_args(["grpo", "--out", "x", "--device", "cpu", *words])
    return recipe_of(args, args.model, **given(args))


def test_the_issues_command_has_no_toys_numbers():
    recipe = typed("--model", "Qwen/Qwen2.5-0.5B-Instruct", "--task", "countdown_text")
    assert (recipe.learning_rate, recipe.max_completion_length) == (1e-6, 256)
    assert (recipe.micro_batch, recipe.warmup_steps, recipe.steps) == (8, 5, 100)
    on_gpu = recipe_for(parameters_of("Qwen/Qwen2.5-0.5B-Instruct"), "bfloat16")
    assert (on_gpu.sampler_dtype, on_gpu.autocast, on_gpu.dtype) == (
        "bfloat16",
        "bfloat16",
        "float32",
    )
    assert typed("--model", "Qwen/Qwen2.5-0.5B-Instruct", "--learning-rate", "2e-6",
                 "--max-completion-length", "64").learning_rate == 2e-6  # fmt: skip


def test_larger_models_train_factors_in_the_cards_type():
    for lower, stored in (("bfloat16", "bfloat16"), ("float16", "float32")):
        recipe = recipe_for(1.5e9, lower)
        assert (recipe.lora_r, recipe.dtype, recipe.autocast) == (32, stored, lower)
        assert recipe.sampler_dtype == "same"
        assert recipe.gradient_checkpointing and recipe.learning_rate == 1e-5
    whole = recipe_for(1.5e9, lora_r=0)
    assert (whole.dtype, whole.learning_rate, whole.sampler_dtype) == ("float32", 1e-6, "bfloat16")
    small = recipe_for(0.5e9, lora_r=16)
    assert (small.dtype, small.learning_rate, small.sampler_dtype) == ("bfloat16", 1e-5, "same")
    cpu = recipe_for(0.5e9, "float32")
    assert (cpu.autocast, cpu.sampler_dtype, cpu.dtype, cpu.tf32) == (
        "off",
        "same",
        "float32",
        False,
    )


@pytest.mark.parametrize(
    "name, size",
    [("Qwen/Qwen2.5-0.5B-Instruct", 0.5e9), ("HuggingFaceTB/SmolLM2-135M-Instruct", 135e6),
     ("meta-llama/Llama-3.2-1B", 1e9), ("no_such_folder", 0.0), ("data/nowhere-7B", 0.0)],
)  # fmt: skip
def test_sizes_of_names(name, size, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parameters_of(name) == size


def test_sizes_of_folders(model_folder, tmp_path):
    assert parameters_of(model_folder) == parameters_of(str(model_folder)) == 308_016
    (tmp_path / "config.json").write_text(json.dumps(HALF))
    assert parameters_of(tmp_path) == pytest.approx(494e6, rel=1e-3)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"0" * 3000)
    assert parameters_of(tmp_path) == 1500
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    words = {"base_model_name_or_path": "Qwen/Qwen3-4B-Instruct-2507"}
    (adapter / "adapter_config.json").write_text(json.dumps(words))
    assert parameters_of(adapter) == 4e9


def test_a_cpu_has_no_lower_type(monkeypatch):
    assert lower_type(torch.device("cpu")) == "float32"
    for units, name in (((7, 5), "float16"), ((8, 9), "bfloat16")):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, u=units: u)
        assert lower_type(torch.device("cuda")) == name


def test_what_was_chosen_is_said_and_recorded(tmp_path, capsys, monkeypatch):
    model = random_model("qwen2", vocabulary=300)
    model.save_pretrained(tmp_path / "model")
    chat_tokenizer().save_pretrained(tmp_path / "model")
    monkeypatch.setattr("rlnb.training.recipe_by_size.TOY", 0)
    line = ["grpo", "--model", str(tmp_path / "model"), "--task", "countdown_text", "--out",
            str(tmp_path / "run"), "--device", "cpu", "--steps", "1", "--prompts", "2",
            "--num-generations", "2", "--max-completion-length", "8",
            "--eval-every", "0"]  # fmt: skip
    assert main(line) == 0
    said = capsys.readouterr().err
    assert "recipe: by the model's size: learning_rate 1e-06, warmup_steps 5" in said
    assert "max_completion_length" not in said  # that was typed
    recipe = read(tmp_path / "run")[0]["recipe"]
    assert recipe["learning_rate"] == 1e-6 and recipe["micro_batch"] == 8


def test_given_numbers_are_refused_as_ever():
    with pytest.raises(BadInput, match="learning_rate: got nan"):
        recipe_for(4e9, learning_rate=float("nan"))
