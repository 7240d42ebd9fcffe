"""A composition inside verl 0.9.1: its policy loss and its advantages, in verl's own registries.

For what `to_verl` has no word for. verl imports the module that VERL_USE_EXTERNAL_MODULES names in
every process; `verl_files` writes one that calls `register`. The functions take and return verl's
tensors and need no verl, `register` does.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from rlnb.interop.vocabulary import refuse
from rlnb.objective.batch import Batch, Prepared, Totals
from rlnb.objective.composition import Objective
from rlnb.objective.part import spell
from rlnb.objective.weights import local_token_mean, prompt_mean

__all__ = ["NAME", "advantage_estimator", "policy_loss", "register"]

NAME = "rlnb"  # what the words loss_mode and adv_estimator then say
KNOWN = {"old_logprobs", "max_completion_length"}


def register(objective: Objective, loss: bool = True, advantages: bool = True) -> None:
    """Puts the objective's policy loss and advantages under `NAME` into verl's registries."""
    algorithms = import_module("verl.trainer.ppo.core_algos")
    if loss:
        algorithms.register_policy_loss(NAME)(policy_loss(objective))
    if advantages:
        algorithms.register_adv_est(NAME)(advantage_estimator(objective))


def policy_loss(objective: Objective) -> Callable[..., tuple[torch.Tensor, dict[str, Any]]]:
    """The policy term as verl's PolicyLossFn; KL and entropy stay verl's own terms.

    The function takes old_log_prob, log_prob, advantages, response_mask (all (B, T), of a
    micro-batch) and the actor's config, whose `global_batch_info` has the denominators of the
    optimizer step; it returns verl's loss (0-d, times dp_size, which averaging gradients undoes)
    and no metrics. Raises Inexpressible for a part that needs what verl does not pass.
    """
    for part in (objective.surrogate, objective.ratio, *objective.gates):
        for field in sorted(set(getattr(part, "needs", ())) - KNOWN):
            raise refuse("verl's policy loss", spell(part), f"It is not given {field}.")
    if isinstance(objective.weights, (prompt_mean, local_token_mean)):
        raise refuse(
            "verl's policy loss",
            f"weights={spell(objective.weights)}",
            "It knows the rows and tokens of a step, not those of a group or a micro-batch.",
        )
    alone = objective.replace(terms=())

    def rlnb(
        old_log_prob: torch.Tensor,
        log_prob: torch.Tensor,
        advantages: torch.Tensor,
        response_mask: torch.Tensor,
        loss_agg_mode: str = "token-mean",
        config: Any = None,
        rollout_is_weights: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        if rollout_is_weights is not None:
            raise ValueError(
                "rollout_correction.rollout_is weighs verl's own losses; with loss_mode=rlnb leave "
                "it out, and compose engine_ratio where the engine's log-probs are passed."
            )
        info = getattr(config, "global_batch_info", None) or {}
        rows = len(log_prob)
        batch = Batch(
            log_prob,
            response_mask,
            log_prob.new_zeros(rows),
            1,
            old_logprobs=old_log_prob,
            max_completion_length=info.get("loss_scale_factor"),  # None: constant_length says so
        )
        all_rows = int(info.get("global_batch_size") or rows)
        tokens = info.get("batch_num_tokens") or response_mask.sum()
        totals = Totals(
            all_rows,
            log_prob.new_tensor(float(all_rows)),  # verl counts fully masked rows
            all_rows,
            torch.as_tensor(tokens).to(log_prob),
            batch.lengths,
        )
        kept = torch.where(batch.mask, advantages, 0.0)
        group = torch.arange(rows, device=log_prob.device)
        loss = alone.loss(Prepared(batch, kept, group, totals))
        return loss * (info.get("dp_size") or 1), {}

    return rlnb


def advantage_estimator(objective: Objective) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    """The baseline and the credit as verl's estimator: (advantages, returns), each (B, T).

    Rows of a prompt are found by verl's `index`, whatever their order; rewards per token, with
    verl's KL penalty in them if there is one, are taken as they come.
    """
    alone = objective.replace(shape=(), terms=(), gates=())
    needed = (alone.advantage, *alone.credit)
    for part in needed:
        if missing := sorted(getattr(part, "needs", ())):
            raise refuse("verl's estimators", spell(part), f"They are not given {missing[0]}.")

    def rlnb(
        token_level_rewards: torch.Tensor, response_mask: torch.Tensor, index: Any = None, **_: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if index is None:
            raise ValueError("index: verl passed no uid per row, so that groups are not known.")
        names = {name: place for place, name in enumerate(dict.fromkeys(index))}
        ids = torch.tensor([names[name] for name in index], device=response_mask.device)
        sizes = ids.bincount()
        if bool((sizes != sizes[0]).any()):
            raise ValueError(
                f"index: groups have {int(sizes.min())} to {int(sizes.max())} answers, and a "
                "baseline over groups takes as many for each prompt: set rollout.n for all."
            )
        order = ids.argsort(stable=True)
        rewards = token_level_rewards[order]
        batch = Batch(
            torch.zeros_like(rewards),
            response_mask[order],
            rewards.sum(1),
            int(sizes[0]),
            token_rewards=rewards,
        )
        made = torch.empty_like(rewards)
        made[order] = alone.prepare(batch, check=False).advantages
        return made, made

    return rlnb
