"""`sample` as most people have it: on `model.generate`, all rows to the end of the longest.

The loop takes it in the place of `rlnb.training.sample`; it exists to be compared with.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from transformers import GenerationConfig, PreTrainedModel

from rlnb.training import Rollout, Sampling
from rlnb.training.sampling.sampler import end_tokens, is_end, left_pad


@torch.no_grad()
def sample_by_generate(
    model: PreTrainedModel,
    prompts: list[list[int]],
    num_generations: int,
    sampling: Sampling,
    *,
    eos_id: int | Collection[int],
    pad_id: int,
    generator: torch.Generator | None = None,
) -> Rollout:
    """`sample`'s arguments and result. `generate` draws from torch's global generator, not from
    `generator`, and its log-probabilities come from the logits it hands out; entropies are 0."""
    ends = end_tokens(eos_id, model.device)
    ids, mask = left_pad(prompts, pad_id, model.device)
    ids, mask = (x.repeat_interleave(num_generations, 0) for x in (ids, mask))
    greedy = sampling.temperature == 0
    warp = {} if greedy else {
        "temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": sampling.top_p,
    }  # fmt: skip
    config = GenerationConfig(
        do_sample=not greedy, max_new_tokens=sampling.max_new_tokens, eos_token_id=ends.tolist(),
        pad_token_id=pad_id, return_dict_in_generate=True, output_scores=not greedy, **warp,
    )  # fmt: skip
    out = model.generate(ids, attention_mask=mask, generation_config=config)
    tokens = out.sequences[:, ids.shape[1] :]
    ended = is_end(tokens.flatten(), ends).view_as(tokens)
    written = ended.cumsum(1) - ended.long() == 0  # up to and with the first end token
    logprobs = torch.zeros(tokens.shape, device=tokens.device)
    for t, scores in enumerate(out.scores or ()):
        logprobs[:, t] = scores.float().log_softmax(-1).gather(1, tokens[:, t : t + 1])[:, 0]
    return Rollout(
        prompt_ids=ids,
        prompt_mask=mask,
        completion_ids=torch.where(written, tokens, pad_id),
        completion_mask=written,
        logprobs=torch.where(written, logprobs, 0.0),
        entropies=torch.zeros_like(logprobs),
        finished=(ended & written).any(1),
        num_generations=num_generations,
        sampling=sampling,
    )
