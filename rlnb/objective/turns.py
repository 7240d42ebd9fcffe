"""An answer of many turns: which tokens belong in the loss, and which turn gets the credit.

A trajectory is one row of tokens with several authors. These are plain functions over tensors: what
they return goes into a Batch, as `completion_mask` and as `advantages`.
"""

from __future__ import annotations

import torch

__all__ = ["observation_mask", "turn_advantages"]

PADDING, USER, ASSISTANT, TOOL = 0, 1, 2, 3


def observation_mask(role: torch.Tensor, prompt_length: torch.Tensor) -> torch.Tensor:
    """Which predictions the policy is answerable for: (B, L) whole numbers, (B,) -> (B, L-1) bool.

    role: 0 padding, 1 system or user, 2 assistant, 3 tool, of every token of prompt and answer.
    prompt_length: how many leading tokens of a row were given to the policy; assistant turns in
    there are examples or history, not its own. Column t of the result belongs to the logits at
    token t, which predict token t+1: True where token t+1 was written by the policy.

    Raises ValueError when the shapes do not fit.

    >>> role = torch.tensor([[1, 2, 2, 3, 2, 0]])
    >>> observation_mask(role, torch.tensor([1])).int().tolist()
    [[1, 1, 0, 1, 0]]
    """
    if role.ndim != 2 or prompt_length.shape != role.shape[:1]:
        raise ValueError(
            "observation_mask needs role (B, L) and prompt_length (B,), got "
            f"{tuple(role.shape)} and {tuple(prompt_length.shape)}."
        )
    place = torch.arange(role.shape[1], device=role.device)
    written = (role == ASSISTANT) & (place >= prompt_length[:, None])
    return written[:, 1:]


def turn_advantages(
    rewards: torch.Tensor, turn: torch.Tensor, num_generations: int
) -> torch.Tensor:
    """Credit by turn: what came from this turn on, minus what the group got from there on.

        G_ik = sum of r_ij over j >= k         A_it = G_ik - mean over the group of G_.k,  k = turn

    rewards (B, K): of each turn, 0 where a trajectory has ended. turn (B, T): the number of the
    turn a token belongs to, -1 where the token is not the policy's. -> (B, T), 0 there. The mean
    is over those of the `num_generations` rows of a prompt that have a turn k.

    A turn cannot change what came before it, so leaving the past out changes no expectation; a
    terminal reward only is the special case in which all turns of a row share one G.
    Raises ValueError when the shapes do not fit.

    >>> turn_advantages(torch.tensor([[1., 0.], [0., 0.]]), torch.tensor([[0, -1, 1], [0, -1, 1]]),
    ...                 2).tolist()
    [[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]]
    """
    if rewards.ndim != 2 or turn.ndim != 2 or len(rewards) != len(turn):
        raise ValueError(
            "turn_advantages needs rewards (B, K) and turn (B, T), got "
            f"{tuple(rewards.shape)} and {tuple(turn.shape)}."
        )
    if num_generations < 1 or len(rewards) % num_generations:
        raise ValueError(
            f"turn_advantages: {len(rewards)} rows are not whole groups of {num_generations}."
        )
    to_go = rewards.flip(1).cumsum(1).flip(1)  # (B, K)
    there = torch.arange(rewards.shape[1], device=turn.device) <= turn.amax(1, keepdim=True)
    grouped = torch.where(there, to_go, 0.0).view(-1, num_generations, rewards.shape[1])
    count = there.view(grouped.shape).sum(1, keepdim=True).clamp(min=1)
    advantage = (grouped - grouped.sum(1, keepdim=True) / count).view_as(rewards)
    own = turn >= 0
    return torch.where(own, advantage.gather(1, turn.clamp(min=0)), 0.0)
