"""A critic for the objectives that need `values`: a copy of the policy's body and a linear head."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from rlnb.training.sampling.sampler import Rollout

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Critic"]


class Critic(nn.Module):
    """V(s_t): the expected return before token t is written. Starts at 0 everywhere."""

    def __init__(self, policy: PreTrainedModel):
        super().__init__()
        self.body = copy.deepcopy(policy.base_model)
        head = policy.get_output_embeddings().weight
        self.head = nn.Linear(head.shape[1], 1, device=head.device, dtype=head.dtype)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def values(self, rollout: Rollout, rows: Tensor) -> Tensor:
        """(len(rows), T): the value of the state in which each completion token is chosen."""
        ids = torch.cat([rollout.prompt_ids[rows], rollout.completion_ids[rows]], 1)
        mask = torch.cat([rollout.prompt_mask[rows], rollout.completion_mask[rows].long()], 1)
        position = (mask.cumsum(1) - 1).clamp(min=0)
        hidden = self.body(
            ids, attention_mask=mask, position_ids=position, use_cache=False
        ).last_hidden_state
        start = rollout.prompt_ids.shape[1] - 1  # the state of token 0 is the prompt's last place
        values = self.head(hidden[:, start:-1])[..., 0].float()
        return torch.where(rollout.completion_mask[rows], values, 0.0)
