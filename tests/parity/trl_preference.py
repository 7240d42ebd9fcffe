"""TRL's own preference losses, on log-probabilities that we choose.

Nothing is constructed but what the loss looks at: TRL's methods are called as functions, with a
stand-in for the trainer that holds its settings, and one for the model that returns the given
log-probabilities of tokens. Everything from there to the loss is TRL's code as installed.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from trl import DPOTrainer, KTOTrainer, RewardTrainer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it says that it is experimental
    from trl.experimental.cpo import CPOTrainer


def _trainer(**settings: Any) -> mock.MagicMock:
    """A trainer on one CPU in training mode."""
    accelerator = SimpleNamespace(
        device=torch.device("cpu"), gather=lambda x: x, gather_for_metrics=lambda x: x
    )
    return mock.MagicMock(
        accelerator=accelerator,
        model=SimpleNamespace(training=True),
        args=SimpleNamespace(gradient_checkpointing_kwargs=None, center_rewards_coefficient=None),
        _metrics={"train": defaultdict(list)},
        _total_train_tokens=0,
        _tp_size=1,
        aux_loss_enabled=False,
        **settings,
    )


class _Model:
    """Returns the same outputs whatever it is asked: log_probs (rows, T) and what goes with it."""

    def __init__(self, log_probs: Tensor):
        self.log_probs = log_probs

    def __call__(self, **_: Any) -> SimpleNamespace:
        zero = torch.zeros_like(self.log_probs)
        return SimpleNamespace(
            log_probs=self.log_probs, entropy=zero, mean_logits=zero, is_top1=zero > 1
        )


def _inputs(mask: Tensor) -> dict[str, Tensor]:
    """One prompt token before each answer; mask (rows, T) of the answers' tokens."""
    whole = torch.cat([torch.zeros(len(mask), 1), mask], 1).long()
    ones = torch.ones_like(whole)
    return {"input_ids": ones, "attention_mask": ones, "completion_mask": whole}


def _gradient(loss: Tensor, of: Tensor) -> tuple[Tensor, Tensor]:
    (gradient,) = torch.autograd.grad(loss, of)
    return loss.detach(), gradient


def dpo(
    logprobs: Tensor,
    ref: Tensor,
    mask: Tensor,
    loss_types: list[str],
    beta: float,
    weights: list[float] | None = None,
    label_smoothing: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """`DPOTrainer._compute_loss`: loss 0-d, and its gradient by logprobs (2 P, T).

    TRL's fused head returns exact zeros at masked places; the caller gives zeros there too.
    """
    trainer = _trainer(
        loss_types=loss_types,
        loss_weights=weights or [1.0] * len(loss_types),
        beta=beta,
        label_smoothing=label_smoothing,
        ld_alpha=None,
        precompute_ref_logps=True,
        f_divergence_type="reverse_kl",
        use_weighting=False,
    )
    of = logprobs.detach().clone().requires_grad_()
    first, second = ref.sum(1).chunk(2)
    inputs = _inputs(mask) | {"ref_chosen_logps": first, "ref_rejected_logps": second}
    return _gradient(DPOTrainer._compute_loss(trainer, _Model(of), inputs, False), of)


def kto(
    logprobs: Tensor,
    ref: Tensor,
    mask: Tensor,
    desirable: Tensor,
    kl_logprobs: Tensor,
    kl_ref: Tensor,
    **settings: float,
) -> tuple[Tensor, Tensor]:
    """`KTOTrainer._compute_loss`; kl_* (B,) are the sums of the mismatched answers."""
    trainer = _trainer(loss_type="kto", calculate_KL=True, precompute_ref_logps=True, **settings)
    trainer._compute_kl_logps = lambda *_: kl_logprobs
    of = logprobs.detach().clone().requires_grad_()
    inputs = _inputs(mask) | {"label": desirable, "ref_logps": ref.sum(1), "ref_KL_logps": kl_ref}
    return _gradient(KTOTrainer._compute_loss(trainer, _Model(of), inputs, False), of)


def cpo(
    chosen: Tensor, rejected: Tensor, loss_type: str = "simpo", beta: float = 2.0,
    simpo_gamma: float = 1.0, label_smoothing: float = 0.0,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`CPOTrainer.cpo_loss` of average log-probs (P,): mean loss, gradient (2, P)."""
    trainer = _trainer(
        alpha=0.0, loss_type=loss_type, beta=beta, simpo_gamma=simpo_gamma,
        label_smoothing=label_smoothing,
    )  # fmt: skip
    of = torch.stack([chosen, rejected]).detach().clone().requires_grad_()
    losses, _, _ = CPOTrainer.cpo_loss(trainer, of[0], of[1])
    return _gradient(losses.mean(), of)


def reward(
    chosen: Tensor, rejected: Tensor, margin: Tensor | None = None, center: float | None = None
) -> tuple[Tensor, Tensor]:
    """`RewardTrainer.compute_loss` of scores (P,): loss, gradient (2, P)."""
    trainer = _trainer()
    trainer.args.center_rewards_coefficient = center
    of = torch.stack([chosen, rejected]).detach().clone().requires_grad_()
    inputs = {"attention_mask": torch.ones(2 * len(chosen), 1)}
    if margin is not None:
        inputs["margin"] = margin
    model = lambda **_: SimpleNamespace(logits=of.reshape(-1, 1))  # noqa: E731
    return _gradient(RewardTrainer.compute_loss(trainer, model, inputs), of)
