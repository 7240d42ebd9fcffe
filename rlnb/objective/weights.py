"""Aggregation: (batch, totals) -> the weight c (B, T) of every token in the step's loss.

Returning weights and not a number is what makes micro-batches exact: the totals belong to the
whole optimizer step, and the losses of any split of its rows add up. B rows, P prompts, T_i the
unmasked length of row i. TRL's and verl's names are in the docstrings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from rlnb.objective.batch import Batch, Totals
from rlnb.objective.part import Part

__all__ = [
    "constant_length",
    "local_token_mean",
    "padded_length",
    "prompt_mean",
    "sequence_mean",
    "sequence_sum",
    "token_mean",
    "token_sum",
]


class _Weights(Part):
    fits = "weights"
    bare = True


def _rows(totals: Totals, count_empty: bool) -> torch.Tensor | int:
    return totals.rows if count_empty else totals.nonempty_rows.clamp(min=1)


@dataclass(frozen=True, repr=False)
class sequence_mean(_Weights):
    """c = 1 / (B T_i): each answer counts the same. GRPO, GSPO, SAPO.

    TRL `loss_type="grpo"`, verl `seq-mean-token-mean`. count_empty: whether a fully masked row
    still counts in B (TRL: yes; verl without a global batch size: no).
    """

    count_empty: bool = True
    conventions: ClassVar[tuple[str, ...]] = ("count_empty",)

    def __call__(self, batch: Batch, totals: Totals) -> torch.Tensor:
        return batch.expand(1 / (_rows(totals, self.count_empty) * batch.lengths.clamp(min=1)))


@dataclass(frozen=True, repr=False)
class token_mean(_Weights):
    """c = 1 / sum_j T_j over the whole step: each token counts the same.

    TRL `loss_type="dapo"`, verl `token-mean`. DAPO as implemented, CISPO.
    """

    def __call__(self, batch: Batch, totals: Totals) -> torch.Tensor:
        return torch.ones_like(batch.completion_mask) / totals.tokens


@dataclass(frozen=True, repr=False)
class local_token_mean(_Weights):
    """c = 1 / sum_j T_j over the rows at hand only. TRL `loss_type="bnpo"`.

    Not splittable: a token's weight depends on the micro-batch it falls into, and the losses of
    a split do not add up to the step's.
    """

    def __call__(self, batch: Batch, totals: Totals) -> torch.Tensor:
        return torch.ones_like(batch.completion_mask) / batch.lengths.sum().clamp(min=1)


@dataclass(frozen=True, repr=False)
class constant_length(Part):
    """c = 1 / (B L): a token counts the same in every step. Dr. GRPO, arXiv 2503.20783.

    L is `length`, or `Batch.max_completion_length`; never the padded width, which changes from
    batch to batch. TRL `loss_type="dr_grpo"`, verl `seq-mean-token-sum-norm` with a
    `loss_scale_factor`.
    """

    fits = "weights"
    length: int | None = None
    count_empty: bool = True
    conventions: ClassVar[tuple[str, ...]] = ("length", "count_empty")

    def constant(self, batch: Batch) -> int:
        """L. Raises ValueError where neither the part nor the batch has one."""
        length = self.length if self.length is not None else batch.max_completion_length
        if length is None:
            raise ValueError(
                "constant_length needs its constant: write constant_length(512), or "
                "pass Batch(max_completion_length=...), the generation limit."
            )
        return length

    def check(self, batch: Batch) -> None:
        length = self.constant(batch)
        if length < 1:
            raise ValueError(f"constant_length must be at least 1 token, got {length}.")

    def __call__(self, batch: Batch, totals: Totals) -> torch.Tensor:
        one = torch.ones_like(batch.completion_mask)
        return one / (_rows(totals, self.count_empty) * self.constant(batch))


@dataclass(frozen=True, repr=False)
class padded_length(_Weights):
    """c = 1 / (B W), W the padded width of the rows at hand: no constant, whatever its use.

    verl's `seq-mean-token-sum-norm` without a `loss_scale_factor`. The longest answer of a
    micro-batch sets the step size of all others, and a split of the rows does not add up to the
    step. It is here because it is run; write constant_length(512).
    """

    count_empty: bool = True
    conventions: ClassVar[tuple[str, ...]] = ("count_empty",)

    def __call__(self, batch: Batch, totals: Totals) -> torch.Tensor:
        one = torch.ones_like(batch.completion_mask)
        return one / (_rows(totals, self.count_empty) * one.shape[1])


@dataclass(frozen=True, repr=False)
class sequence_sum(_Weights):
    """c = 1 / B: sum over tokens, mean over answers. REINFORCE and RLOO in theory.

    verl `seq-mean-token-sum`, TRL `loss_type="luspo"` (LUSPO is GSPO with this weight).
    """

    count_empty: bool = True
    conventions: ClassVar[tuple[str, ...]] = ("count_empty",)

    def __call__(self, batch: Batch, totals: Totals) -> torch.Tensor:
        return torch.ones_like(batch.completion_mask) / _rows(totals, self.count_empty)


@dataclass(frozen=True, repr=False)
class token_sum(_Weights):
    """c = 1: plain sum. verl `token-sum`."""

    def __call__(self, batch: Batch, totals: Totals) -> torch.Tensor:
        return torch.ones_like(batch.completion_mask)


@dataclass(frozen=True, repr=False)
class prompt_mean(_Weights):
    """c = 1 / (P sum_{j in group} T_j): each prompt counts the same, tokens inside it too.

    ScaleRL's aggregation (arXiv 2510.13786), and DAPO's equation as printed.
    """

    def __call__(self, batch: Batch, totals: Totals) -> torch.Tensor:
        return batch.expand(1 / (totals.prompts * totals.row_group_tokens.clamp(min=1)))
