"""Random Qwen2 and Qwen3 models with a real vocabulary, and a chat tokenizer, made on the spot."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    set_seed,
)

VOCABULARY = 151_936
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SENTENCES = ["Compute 17 + 4 * 23. Work step by step.", "<answer>109</answer>", "so it is 3 - 5"]
KINDS = {"qwen2": (Qwen2Config, Qwen2ForCausalLM), "qwen3": (Qwen3Config, Qwen3ForCausalLM)}


def chat_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE, as Qwen's, with its special tokens and roles in its way of writing."""
    backend = Tokenizer(BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=300, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    backend.train_from_iterator(SENTENCES, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"], chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
    )  # fmt: skip


def random_model(
    kind: str, *, ends: Sequence[int] = (2, 0), vocabulary: int = VOCABULARY
) -> PreTrainedModel:
    """Qwen2.5-0.5B's shape with a sixteenth of its width and 2 of its 24 layers.

    As there: 7 query heads to a key-value head, MLP 5.4 times the width, tied embeddings, biases
    on q, k and v (qwen2) or norms on q and k (qwen3). Weights are larger than usual, so that
    tokens differ in probability.
    """
    config, cls = KINDS[kind]
    set_seed(0)
    model = cls(
        config(
            vocab_size=vocabulary, hidden_size=56, intermediate_size=304, num_hidden_layers=2,
            num_attention_heads=14, num_key_value_heads=2, head_dim=4, initializer_range=0.2,
            tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e6},
            dtype="float32",
        )
    )  # fmt: skip
    model.generation_config.eos_token_id = list(ends)
    return model.eval()
