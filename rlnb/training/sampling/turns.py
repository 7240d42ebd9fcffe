"""Sampling with a world that answers back: one text, two authors.

Every row of the batch grows by one token at a time. It is drawn from the policy, or, while the
world of that row is speaking, taken from the world's answer. The cache does not care who wrote a
token; the loss does. So a rollout comes with two masks: everything that was written, which later
tokens attend to, and `own`, what the policy wrote, which alone belongs in the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rlnb.training.errors import BadInput
from rlnb.training.sampling.sampler import Rollout, Sampling, cut_to_longest, draw, prefill

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Dialogue", "World", "sample_turns"]

World = Callable[[list[int]], list[int]]
"""From the tokens that the policy has written in this turn to the tokens of the answer."""


@dataclass(frozen=True)
class Dialogue:
    """A rollout of many turns: N = prompts x G rows.

    rollout: its `completion_mask` covers both authors. own (N, T): True where the policy wrote.
    turn (N, T): the number of the turn a token belongs to, 0, 1, ...; an answer of the world counts
    to the turn that asked for it; -1 on padding.
    """

    rollout: Rollout
    own: Tensor
    turn: Tensor

    @property
    def turns(self) -> Tensor:
        """(N,) how many turns the policy had."""
        return self.turn.amax(1) + 1


@torch.no_grad()
def sample_turns(
    model: PreTrainedModel, prompts: list[list[int]], num_generations: int, sampling: Sampling,
    worlds: Sequence[World], *, eos_id: int, call_id: int, pad_id: int,
    generator: torch.Generator | None = None,
) -> Dialogue:  # fmt: skip
    """`num_generations` trajectories of each prompt, `worlds[i]` answering in row i.

    The world speaks after every `call_id`; a row ends with `eos_id`, or is cut off at
    `max_new_tokens`, both authors counted. Log-probabilities and entropies of the world's tokens
    are 0 here: nothing was drawn. Raises BadInput unless there is a world for every row.
    """
    ids, mask, position, cache, logits = prefill(model, prompts, pad_id)
    n, steps, device = len(prompts) * num_generations, sampling.max_new_tokens, model.device
    if len(worlds) != n:
        raise BadInput(f"worlds: got {len(worlds)}, expected one for each of {n} trajectories")
    logits = logits.repeat_interleave(num_generations, 0)
    cache.batch_repeat_interleave(num_generations)
    ids, mask, position = (
        x.repeat_interleave(num_generations, 0) for x in (ids, mask, position[:, -1:])
    )
    tokens = torch.full((n, steps), pad_id, device=device)
    written, own = (torch.zeros((n, steps), dtype=torch.bool, device=device) for _ in range(2))
    logprobs, entropies = (torch.zeros((n, steps), device=device) for _ in range(2))
    turn = torch.full((n, steps), -1, device=device)
    said: list[list[int]] = [[] for _ in range(n)]  # the policy's tokens of the present turn
    due: list[list[int]] = [[] for _ in range(n)]  # what the world has still to write
    turns, open_, seen = [0] * n, [True] * n, mask
    for t in range(steps):
        drawn, logprob, entropy = (x.tolist() for x in draw(logits, sampling, generator))
        for i in range(n):
            if not open_[i]:
                continue
            written[i, t], turn[i, t] = True, turns[i]
            if due[i]:
                tokens[i, t] = due[i].pop(0)
                turns[i] += not due[i]
                continue
            token = drawn[i]
            tokens[i, t], own[i, t] = token, True
            logprobs[i, t], entropies[i, t] = logprob[i], entropy[i]
            said[i].append(token)
            if token == eos_id:
                open_[i] = False
            elif token == call_id:
                due[i], said[i] = list(worlds[i](said[i])), []
                turns[i] += not due[i]
        if not any(open_) or t == steps - 1:
            break
        position = position + 1
        seen = torch.cat([seen, seen.new_ones(n, 1)], 1)
        logits = model(
            tokens[:, t : t + 1], attention_mask=seen, position_ids=position,
            past_key_values=cache, use_cache=True,
        ).logits[:, -1]  # fmt: skip
    ends = torch.tensor([eos_id], device=device)
    rollout = cut_to_longest(
        ids, mask, tokens, written, logprobs, entropies, ends, num_generations, sampling
    )
    width = rollout.completion_ids.shape[1]
    return Dialogue(rollout, own[:, :width].clone(), turn[:, :width].clone())
