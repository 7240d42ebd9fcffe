"""The small model: Qwen3 layout, 32-token vocabulary; and any model's files on disk.

308 thousand parameters in transformers' own `Qwen3ForCausalLM`, or more (`presets`); nothing here
is a model of ours. A local folder is loaded without any network; `hub` says what else may be given.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.utils import logging

from rlnb.training.errors import BadInput
from rlnb.training.hub import model_folder
from rlnb.training.presets import find_preset
from rlnb.training.tasks import Task

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


def pick_device(device: str = "auto") -> torch.device:
    """`auto` is CUDA where there is one, the CPU otherwise."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(device)


def load(
    name: str | Path, *, device: str = "auto", dtype: torch.dtype = torch.float32
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Any causal language model in transformers' layout, with its tokenizer.

    name: a folder, or a hub id, owner/name (`hub.model_folder`). Weights come from safetensors
    alone and in `dtype`, float32 even where they are stored in bfloat16, because AdamW's small
    steps would be rounded away. No code that comes with a model is executed.

    Raises BadInput if the folder, its weights, its tokenizer, or the tokenizer's end-of-sequence
    token is missing, if transformers cannot read it, or if the hub does not have it.
    """
    path = model_folder(name)
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(path, **local)
            model = AutoModelForCausalLM.from_pretrained(
                path, dtype=dtype, use_safetensors=True, **local
            )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        first = str(error).strip().partition("\n")[0]
        raise BadInput(
            f"model: transformers cannot read {str(path)!r}: {first[:300]}; it must be a causal "
            "language model that transformers knows without code of its own"
        ) from error
    if tokenizer.eos_token_id is None:
        raise BadInput(f"model: the tokenizer in {str(path)!r} has no end-of-sequence token")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.unk_token or tokenizer.eos_token
    return model.to(pick_device(device)).eval(), tokenizer


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, path: str | Path) -> None:
    """Weights as safetensors, configuration and tokenizer, in transformers' layout."""
    with _quiet():
        model.save_pretrained(path)
        tokenizer.save_pretrained(path)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' progress bars: a 1 MB file needs none, and the loop shows its own."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def check_vocabulary(tokenizer: PreTrainedTokenizerBase, task: Task) -> None:
    """Raises BadInput if the tokenizer cannot write some character the task needs."""
    lost = []
    for symbol in task.symbols:
        ids = tokenizer(symbol, add_special_tokens=False)["input_ids"]
        if not ids or tokenizer.unk_token_id in ids:
            lost.append(symbol)
    if lost:
        raise BadInput(
            f"task: {task.name!r} needs {' '.join(map(repr, lost))}, which the model's vocabulary "
            "cannot express; train a base model for this task or pick another task"
        )
