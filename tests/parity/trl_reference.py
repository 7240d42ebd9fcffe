"""TRL's own numbers: its loss, its gradient and its advantages for tensors that we choose.

A real `GRPOTrainer`, `RLOOTrainer` or `GMPOTrainer` is constructed from the keywords, on a model
of two layers that never runs. Two of its methods are replaced: the one that asks the model for
per-token log-probabilities returns the given tensors, and the one that generates returns the given
completions. Everything between the rewards and the loss is TRL's code as installed.

TRL computes in the dtype it is given, except where it writes Python numbers or rewards into new
tensors: those have torch's default dtype. Under `torch.set_default_dtype(torch.float64)` the whole
path is float64; under float32 it is what a user of TRL gets.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import logging
import tempfile
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any
from unittest import mock

import datasets
import torch
import transformers
import transformers.trainer
import trl
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl.trainer import grpo_trainer, rloo_trainer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it says that it is experimental
    from trl.experimental import gmpo

TRAINERS = {
    "grpo": (trl.GRPOTrainer, trl.GRPOConfig),
    "rloo": (trl.RLOOTrainer, trl.RLOOConfig),
    "gmpo": (gmpo.GMPOTrainer, gmpo.GMPOConfig),
}
VERSION = importlib.metadata.version("trl")
PAD, EOS, WORD = 0, 1, 2
FOLDER = tempfile.TemporaryDirectory(prefix="trl-parity-")  # a config names one; it stays empty

logging.getLogger("trl").setLevel(logging.ERROR)  # it advises on real training


@dataclass(frozen=True)
class Rollout:
    """What TRL's loss looks at. B rows of T completion tokens, all tensors without gradient.

    logprobs, old, ref, sampling, entropies: (B, T) nats; old=None is TRL's on-policy shortcut.
    mask (B, T): 0 and 1, holes allowed. advantages, rewards: (B,). size: answers per prompt.
    """

    logprobs: torch.Tensor
    mask: torch.Tensor
    size: int
    old: torch.Tensor | None = None
    ref: torch.Tensor | None = None
    sampling: torch.Tensor | None = None
    entropies: torch.Tensor | None = None
    advantages: torch.Tensor | None = None
    rewards: torch.Tensor | None = None

    def to(self, dtype: torch.dtype) -> Rollout:
        """The same rollout, its float tensors in another dtype."""
        return replace(
            self,
            **{
                f.name: value.to(dtype)
                for f in fields(self)
                if torch.is_tensor(value := getattr(self, f.name)) and value.is_floating_point()
            },
        )


@functools.cache
def _tiny_model() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=8,
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            pad_token_id=PAD,
            eos_token_id=EOS,
            bos_token_id=None,
        )
    )


@functools.cache
def _reference_model() -> LlamaForCausalLM:
    return LlamaForCausalLM(_tiny_model().config)


@functools.cache
def _tokenizer() -> PreTrainedTokenizerFast:
    words = {"<pad>": PAD, "<eos>": EOS, "word": WORD}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(words, unk_token="word")),
        pad_token="<pad>",
        eos_token="<eos>",
        padding_side="left",
    )


@functools.cache
def _prompts(rows: int) -> datasets.Dataset:
    return datasets.Dataset.from_dict({"prompt": ["word"] * rows})


def _unset_reward(completions: list[str], **_: Any) -> list[float]:
    raise RuntimeError("the rewards of this rollout were not given.")


@contextmanager
def _alone(module: types.ModuleType) -> Iterator[None]:
    """For a constructor: no seeding of the global generators, no reference model from disk (it
    only has to be another object), and no warnings, which concern real training."""
    level = transformers.logging.get_verbosity()
    with contextlib.ExitStack() as stack:
        for place in (module, transformers.trainer):
            stack.enter_context(mock.patch.object(place, "set_seed", lambda *_, **__: None))
        stack.enter_context(
            mock.patch.object(module, "create_model_from_path", lambda *_, **__: _reference_model())
        )
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield
    if transformers.logging.get_verbosity() != level:
        transformers.logging.set_verbosity(level)
    for model in (_tiny_model(), _reference_model()):
        model.__dict__.pop("forward", None)  # TRL puts a fused head there, once per trainer


def build(kind: str, rows: int, size: int, **keywords: Any):
    """A new trainer of `kind` ("grpo", "rloo", "gmpo") with TRL's keywords, in training mode.

    One process, one optimizer step per generation batch of `rows` completions: no accumulation.
    """
    trainer_class, config_class = TRAINERS[kind]
    with _alone(rloo_trainer if kind == "rloo" else grpo_trainer):
        config = config_class(
            output_dir=FOLDER.name,
            per_device_train_batch_size=rows,
            num_generations=size,
            use_cpu=True,
            bf16=False,
            report_to="none",
            disable_tqdm=True,
            **keywords,
        )
        trainer = trainer_class(
            model=_tiny_model().train(),
            reward_funcs=_unset_reward,
            args=config,
            train_dataset=_prompts(rows),
            processing_class=_tokenizer(),
        )
    trainer.current_gradient_accumulation_steps = 1  # Trainer sets it when its loop starts
    return trainer


@functools.lru_cache(maxsize=2048)
def _cached(kind: str, rows: int, size: int, keywords: tuple[tuple[str, Any], ...]):
    return build(kind, rows, size, **dict(keywords))


def trainer_for(rollout: Rollout, kind: str, keywords: dict[str, Any]):
    """The trainer of these keywords, constructed once, ready for this rollout."""
    keywords = dict(keywords)
    with_vllm = keywords.pop("use_vllm", False)
    trainer = _cached(kind, len(rollout.mask), rollout.size, tuple(sorted(keywords.items())))
    # The constructor would start the engine; the loss asks only for the flag.
    trainer.use_vllm = with_vllm
    for metrics in trainer._metrics.values():
        metrics.clear()
    return trainer


def loss_and_gradient(
    rollout: Rollout, kind: str = "grpo", **keywords: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """TRL's loss (0-d) and d loss / d logprobs (B, T) for given advantages."""
    trainer = trainer_for(rollout, kind, keywords)
    return _loss(trainer, rollout, inputs_of(rollout, kind))


def inputs_of(rollout: Rollout, kind: str) -> dict[str, torch.Tensor]:
    """The dict that TRL's generation step hands to its loss."""
    mask = rollout.mask.long()
    rows, width = mask.shape
    inputs = {
        "prompt_ids": torch.zeros(rows, 1, dtype=torch.long),
        "prompt_mask": torch.ones(rows, 1, dtype=torch.long),
        "completion_ids": torch.full((rows, width), WORD),
        "advantages": rollout.advantages,
    }
    if kind == "rloo":  # knows no tool mask: the one mask decides
        return inputs | {"completion_mask": mask, "old_logps": (rollout.old * mask).sum(1)}
    whole = (mask.flip(1).cummax(1).values).flip(1)  # 1 up to the last unmasked token
    inputs |= {"completion_mask": whole, "num_items_in_batch": mask.sum()}
    if bool((whole != mask).any()):
        inputs["tool_mask"] = mask
    named = {
        "old_per_token_logps": rollout.old,
        "ref_per_token_logps": rollout.ref,
        "sampling_per_token_logps": rollout.sampling,
    }
    return inputs | {name: value for name, value in named.items() if value is not None}


def _loss(trainer, rollout: Rollout, inputs: dict[str, torch.Tensor]):
    logprobs = rollout.logprobs.detach().clone().requires_grad_()
    entropies = torch.zeros_like(logprobs) if rollout.entropies is None else rollout.entropies
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (
        logprobs,
        entropies.detach(),
        None,
    )
    loss = trainer.compute_loss(trainer.model, inputs)
    (gradient,) = torch.autograd.grad(loss, logprobs, allow_unused=True)
    return loss.detach(), torch.zeros_like(logprobs) if gradient is None else gradient


def score(
    rollout: Rollout, kind: str = "grpo", *, truncated: torch.Tensor | None = None, **keywords: Any
) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor]:
    """From rewards to the loss: what TRL's generation step returns, its loss and its gradient.

    truncated (B,) bool: rows that end without the end-of-sequence token. The inputs hold
    `advantages` (B,). With old log-probabilities the step is declared the first of two passes, so
    that TRL records them.
    """
    if kind != "rloo" and rollout.old is not None:
        keywords.setdefault("num_iterations", 2)
    trainer = trainer_for(rollout, kind, keywords)
    mask = rollout.mask.long()
    lengths = [int(n) for n in (mask * torch.arange(1, mask.shape[1] + 1)).amax(1)]
    if min(lengths) == 0 or max(lengths) < mask.shape[1]:
        raise ValueError(
            "TRL generates at least one token per row and pads to the longest row: "
            "mask a whole row through `truncated`."
        )
    last = [
        WORD if truncated is not None and bool(truncated[i]) else EOS for i in range(len(lengths))
    ]
    completions = [[WORD] * (n - 1) + [end] for n, end in zip(lengths, last, strict=True)]
    holes = [row[:n].tolist() for row, n in zip(mask, lengths, strict=True)]
    texts = ["word"] * len(lengths)
    prompts = [[WORD]] * len(lengths)
    if kind == "rloo":
        generated = (prompts, completions, texts)
    else:
        sampled = rollout.sampling
        if sampled is not None:
            sampled = [row[:n].tolist() for row, n in zip(sampled, lengths, strict=True)]
        generated = (prompts, completions, holes, texts, sampled, {}, None, [])
    old = rollout.logprobs if rollout.old is None else rollout.old

    def per_token(model, *_: Any, **__: Any):
        return (rollout.ref if model is trainer.ref_model else old), None, None

    trainer._generate = lambda prompts: generated
    trainer._get_per_token_logps_and_entropies = per_token
    trainer.reward_funcs[0] = lambda completions, **_: rollout.rewards.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers renamed a method that TRL calls
        inputs = trainer._generate_and_score_completions([{"prompt": "word"}] * len(lengths))
    return inputs, *_loss(trainer, rollout, inputs)


def defaults(kind: str = "grpo") -> dict[str, Any]:
    """Field -> default of TRL's config class, inherited fields included."""
    return {
        f.name: f.default_factory() if callable(f.default_factory) else f.default
        for f in fields(TRAINERS[kind][1])
    }
