"""Sampling on transformers' own cache.

Each prompt is prefilled once, its cache is repeated for the G completions of its group, and rows
that have finished are dropped from the cache. In float32 the log-probabilities of the sampler equal
those of teacher forcing (`scoring`) to about 2e-5 (the tests assert 1e-4).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rlnb.training.errors import BadInput

if TYPE_CHECKING:
    from transformers import DynamicCache, PreTrainedModel

__all__ = [
    "Rollout",
    "Sampling",
    "cut_to_longest",
    "draw",
    "end_tokens",
    "is_end",
    "left_pad",
    "prefill",
    "sample",
    "truncate",
]


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn.

    temperature: logits are divided by it; 0 means greedy (log-probabilities and entropies are then
    0, as of a point mass). top_k: keep the k likeliest tokens, 0 keeps all. top_p: keep the
    smallest set of tokens with at least this probability, 1 keeps all. max_new_tokens: a completion
    that has not ended by then is truncated.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    max_new_tokens: int = 72

    def __post_init__(self):
        for name, legal, expected in (
            ("temperature", 0.0 <= self.temperature < float("inf"), "0 or more"),
            ("top_k", self.top_k >= 0, "0 (off) or more"),
            ("top_p", 0.0 < self.top_p <= 1.0, "above 0, at most 1 (off)"),
            ("max_new_tokens", self.max_new_tokens >= 1, "1 or more"),
        ):
            if not legal:
                raise BadInput(f"{name}: got {getattr(self, name)}, expected {expected}")


@dataclass(frozen=True)
class Rollout:
    """N = prompts x G completions, prompt-major: rows kG ... kG+G-1 answer prompt k.

    prompt_ids, prompt_mask (N, P) left-padded; completion_ids (N, T) with the end-of-sequence token
    included and padding behind it; completion_mask (N, T); logprobs, entropies (N, T) of the
    distribution that was sampled from; finished (N,) False where max_new_tokens cut the row off.
    candidate_ids (N, T, K), where an objective asks for candidates: the K likeliest tokens then.
    """

    prompt_ids: Tensor
    prompt_mask: Tensor
    completion_ids: Tensor
    completion_mask: Tensor
    logprobs: Tensor
    entropies: Tensor
    finished: Tensor
    num_generations: int
    sampling: Sampling
    candidate_ids: Tensor | None = None

    @property
    def lengths(self) -> Tensor:
        """(N,) tokens written, the end-of-sequence token counted."""
        return self.completion_mask.sum(1)

    def texts(self, tokenizer) -> list[str]:
        """The completions as strings, special tokens left out; all rows in one call.

        A tokenizer written in Rust takes them as one batch, unless something is done to its texts
        afterwards: then each goes through `decode`.
        """
        pairs = zip(self.completion_ids.tolist(), self.lengths.tolist(), strict=True)
        rows = [row[:n] for row, n in pairs]
        if tokenizer.is_fast and not tokenizer.clean_up_tokenization_spaces:
            return tokenizer.backend_tokenizer.decode_batch(rows, skip_special_tokens=True)
        return tokenizer.batch_decode(rows, skip_special_tokens=True)


def left_pad(prompts: list[list[int]], pad_id: int, device) -> tuple[Tensor, Tensor]:
    """Ids and mask (N, P) of prompts of any lengths, padding in front."""
    if not prompts or not all(prompts):
        raise BadInput("prompts: got none, or an empty one; every prompt needs at least one token")
    width = max(map(len, prompts))
    ids = torch.tensor([[pad_id] * (width - len(p)) + p for p in prompts], device=device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=device)
    return ids, mask


def truncate(logits: Tensor, top_k: int, top_p: float) -> Tensor:
    """Logits (N, V) with -inf outside the top-k tokens and outside the top-p nucleus."""
    if top_k and top_k < logits.shape[-1]:
        kth = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < kth, -torch.inf)
    if top_p < 1.0:
        ordered, order = logits.sort(descending=True)
        before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
        drop = torch.zeros_like(before, dtype=torch.bool).scatter(-1, order, before >= top_p)
        logits = logits.masked_fill(drop, -torch.inf)
    return logits


def end_tokens(eos_id: int | Collection[int], device) -> Tensor:
    """The end tokens (E,), E >= 1, whether one was given or several."""
    ids = [eos_id] if isinstance(eos_id, int) else sorted(eos_id)
    if not ids:
        raise BadInput("eos_id: got no end token; a completion could never end")
    return torch.tensor(ids, device=device)


def is_end(token: Tensor, ends: Tensor) -> Tensor:
    """(N,) True where a token is one of the end tokens; one comparison where there is one."""
    return token == ends if len(ends) == 1 else (token[:, None] == ends).any(1)


def draw(logits: Tensor, sampling: Sampling, generator) -> tuple[Tensor, Tensor, Tensor]:
    """Token, its log-probability, and the entropy, each (N,), from logits (N, V)."""
    if sampling.temperature == 0:
        token = logits.argmax(-1)
        zero = torch.zeros(len(token), device=logits.device)
        return token, zero, zero
    logits = truncate(logits.float() / sampling.temperature, sampling.top_k, sampling.top_p)
    logprobs = logits.log_softmax(-1)
    probabilities = logprobs.exp()
    # The exponential race: argmax p/E with E ~ Exp(1) is a draw from p, without a normalisation.
    race = torch.empty_like(probabilities).exponential_(generator=generator).clamp_(min=1e-30)
    token = (probabilities / race).argmax(-1)
    entropy = -torch.where(probabilities > 0, probabilities * logprobs, 0.0).sum(-1)
    return token, logprobs.gather(1, token[:, None])[:, 0], entropy


def prefill(
    model: PreTrainedModel, prompts: list[list[int]], pad_id: int
) -> tuple[Tensor, Tensor, Tensor, DynamicCache, Tensor]:
    """Each prompt once: ids, mask, positions (prompts, P), cache, last logits (prompts, V)."""
    from transformers import DynamicCache  # slow: Sampling and Rollout are had without it

    ids, mask = left_pad(prompts, pad_id, model.device)
    position = (mask.cumsum(1) - 1).clamp(min=0)
    out = model(
        ids,
        attention_mask=mask,
        position_ids=position,
        past_key_values=DynamicCache(config=model.config),
        use_cache=True,
        logits_to_keep=1,
    )
    return ids, mask, position, out.past_key_values, out.logits[:, -1]


def cut_to_longest(
    ids: Tensor, mask: Tensor, tokens: Tensor, written: Tensor, logprobs: Tensor,
    entropies: Tensor, ends: Tensor, num_generations: int, sampling: Sampling,
) -> Rollout:  # fmt: skip
    """The rollout of prompts (N, P) and tables (N, steps), copied up to the longest completion."""
    width = int(written.sum(1).max())
    tokens, written = tokens[:, :width].clone(), written[:, :width].clone()
    ended = is_end(tokens.flatten(), ends).view_as(tokens)
    return Rollout(
        prompt_ids=ids,
        prompt_mask=mask,
        completion_ids=tokens,
        completion_mask=written,
        logprobs=logprobs[:, :width].clone(),
        entropies=entropies[:, :width].clone(),
        finished=(ended & written).any(1),
        num_generations=num_generations,
        sampling=sampling,
    )


@torch.no_grad()
def sample(
    model: PreTrainedModel,
    prompts: list[list[int]],
    num_generations: int,
    sampling: Sampling,
    *,
    eos_id: int | Collection[int],
    pad_id: int,
    generator: torch.Generator | None = None,
    drop_below: float = 0.9,
) -> Rollout:
    """`num_generations` completions of each prompt.

    eos_id: the end token, or several of which any one ends a row, such as a chat model's
    <|im_end|> and <|endoftext|>.

    Finished rows are dropped from the cache when fewer than `drop_below` of its rows are still
    being written; dropping copies the cache, so doing it at every token costs more than it saves.
    """
    if num_generations < 1:
        raise BadInput(f"num_generations: got {num_generations}, expected 1 or more")
    device, steps = model.device, sampling.max_new_tokens
    ends = end_tokens(eos_id, device)
    ids, mask, position, cache, logits = prefill(model, prompts, pad_id)
    logits = logits.repeat_interleave(num_generations, 0)
    cache.batch_repeat_interleave(num_generations)
    ids, mask, position = (
        x.repeat_interleave(num_generations, 0) for x in (ids, mask, position[:, -1:])
    )

    n = len(ids)
    tokens = torch.full((n, steps), pad_id, device=device)
    written = torch.zeros((n, steps), dtype=torch.bool, device=device)
    logprobs = torch.zeros((n, steps), device=device, dtype=torch.float32)
    entropies = torch.zeros((n, steps), device=device, dtype=torch.float32)
    finished = torch.zeros(n, dtype=torch.bool, device=device)
    rows = torch.arange(n, device=device)  # rows[i]: which completion row i of the cache writes
    seen = mask
    for t in range(steps):
        open_ = ~finished[rows]
        token, logprob, entropy = draw(logits, sampling, generator)
        token = torch.where(open_, token, pad_id)
        tokens[rows, t], written[rows, t] = token, open_
        logprobs[rows, t] = torch.where(open_, logprob, 0.0)
        entropies[rows, t] = torch.where(open_, entropy, 0.0)
        finished[rows] |= open_ & is_end(token, ends)
        left = (~finished[rows]).nonzero()[:, 0]
        if len(left) == 0 or t == steps - 1:
            break
        if len(left) < drop_below * len(rows):
            cache.batch_select_indices(left)
            rows, token, seen, position = (x[left] for x in (rows, token, seen, position))
        position = position + 1
        seen = torch.cat([seen, seen.new_ones(len(seen), 1)], 1)
        logits = model(
            token[:, None],
            attention_mask=seen,
            position_ids=position,
            past_key_values=cache,
            use_cache=True,
        ).logits[:, -1]

    return cut_to_longest(
        ids, mask, tokens, written, logprobs, entropies, ends, num_generations, sampling
    )
