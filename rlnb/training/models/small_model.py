"""The small model and its tokenizer: Qwen3 layout, 32-token vocabulary, freshly initialised.

308 thousand parameters in transformers' own `Qwen3ForCausalLM`, or more (`presets`); nothing here
is a model of ours.
"""

from __future__ import annotations

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from rlnb.training.models.presets import find_preset

__all__ = ["SPECIAL", "VOCABULARY", "build_model", "build_tokenizer"]

SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")
VOCABULARY = SPECIAL + tuple("0123456789+-*()=,:;?x") + ("wait", "so")
VOCABULARY += tuple(f"<unused{i}>" for i in range(32 - len(VOCABULARY)))


def build_tokenizer() -> PreTrainedTokenizerFast:
    """A word-level tokenizer of 32 ids: 4 special, digits, operators, `wait`, `so`, 5 unused.

    A prompt gets `<bos>` in front. The unused ids decode to `<unusedN>`, because a model that is
    not yet well trained does sample them.
    """
    backend = Tokenizer(
        models.WordLevel({token: i for i, token in enumerate(VOCABULARY)}, unk_token="<unk>")
    )
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"wait|so|."), behavior="isolated")
    backend.decoder = decoders.Fuse()
    backend.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", VOCABULARY.index("<bos>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=512,
    )


def build_model(seed: int, preset: str = "tiny") -> Qwen3ForCausalLM:
    """A freshly initialised small model in float32, of one of the PRESETS.

    Matrices start at std 1/sqrt(fan in), the ones that write into the residual stream divided by
    sqrt(2 layers); the embedding, which is also the head, starts at std 0.02.
    Raises BadInput for an unknown preset.
    """
    shape = find_preset(preset)
    config = Qwen3Config(
        vocab_size=len(VOCABULARY),
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        intermediate_size=shape.intermediate,
        max_position_embeddings=512,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        tie_word_embeddings=True,
        pad_token_id=VOCABULARY.index("<pad>"),
        bos_token_id=VOCABULARY.index("<bos>"),
        eos_token_id=VOCABULARY.index("<eos>"),
        dtype="float32",
    )
    model = Qwen3ForCausalLM(config)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.dim() != 2:
            continue
        std = 0.02 if "embed_tokens" in name else parameter.shape[1] ** -0.5
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            std /= (2 * config.num_hidden_layers) ** 0.5
        with torch.no_grad():
            parameter.normal_(0.0, std, generator=generator)
    return model
